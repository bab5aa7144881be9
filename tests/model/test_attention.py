"""Attention: eq. 3 of the theory, torch's own modules with the same weights, and what may be seen."""

import itertools
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import nn

from deepwide.model import Architecture, Look, Transformer
from deepwide.model.attention import (
    Attention,
    CrossAttention,
    allowed_pairs,
    hard_attention,
    linear_attention,
    softmax_attention,
)
from model.builders import seeded

SIZE: dict[str, Any] = {"depth": 1, "width": 12, "heads": 3, "vocab": 5, "context": 9}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("residual", ["none", "plain"])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_linear_preset_is_equation_3(causal: bool, residual: str, heads: int) -> None:
    """y^i = Σ_j Σ_h ⟨W^Q_h x^i, W^K_h x^j⟩ W^O_h W^V_h x^j, written with loops over plain numbers."""
    d, a = 4, 4 // heads
    size: dict[str, Any] = {"depth": 2, "width": d, "heads": heads, "vocab": 7, "context": 5}
    kind = "decoder" if causal else "encoder"
    model: Any = Transformer(Architecture.of("linear", **size, kind=kind, residual=residual)).double()
    tokens = torch.tensor([[3, 1, 4, 1, 6]])
    x = [model.embedding.weight[t] + model.positions[i] for i, t in enumerate(tokens[0])]
    for block in model.blocks:
        q, k, v = block.attention.qkv.weight.split(d)
        o = block.attention.out.weight
        new = []
        for i in range(5):
            y = x[i].clone() if residual == "plain" else torch.zeros(d, dtype=torch.float64)
            for h in range(heads):
                rows = slice(h * a, (h + 1) * a)
                for j in range(i + 1 if causal else 5):
                    y = y + ((q[rows] @ x[i]) @ (k[rows] @ x[j])) * (o[:, rows] @ (v[rows] @ x[j]))
            new.append(y)
        x = new
    expected = torch.stack(x) @ model.head.weight.T
    assert torch.allclose(model(tokens)[0], expected, rtol=1e-10, atol=1e-12)


def _shake(module: nn.Module, seed: int = 0) -> None:
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=seeded(seed + i)))


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_self_attention_is_torchs_with_the_same_weights(kind: str) -> None:
    ours = Attention(Architecture.of(**SIZE, kind=kind), causal=kind == "decoder")
    _shake(ours)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.qkv.weight,
            "in_proj_bias": ours.qkv.bias,
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )
    x_BTD, padding_BT = torch.randn(2, 7, 12, generator=seeded(1)), torch.arange(7) < torch.tensor([[7], [4]])
    future = nn.Transformer.generate_square_subsequent_mask(7).isinf() if kind == "decoder" else None
    expected, _ = theirs(x_BTD, x_BTD, x_BTD, key_padding_mask=~padding_BT, attn_mask=future)
    allowed = allowed_pairs(padding_BT, 7, causal=kind == "decoder")
    assert torch.allclose(ours(x_BTD, None, None, allowed)[padding_BT], expected[padding_BT], atol=1e-5)


def test_cross_attention_is_torchs_with_the_same_weights() -> None:
    ours = CrossAttention(Architecture.of(**SIZE, kind="encoder-decoder", encoder_depth=1))
    _shake(ours)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([ours.q.weight, ours.kv.weight]),
            "in_proj_bias": torch.cat([ours.q.bias, ours.kv.bias]),
            "out_proj.weight": ours.out.weight,
            "out_proj.bias": ours.out.bias,
        }
    )
    x_BTD, memory_BSD = torch.randn(2, 7, 12, generator=seeded(1)), torch.randn(2, 5, 12, generator=seeded(2))
    real_BS = torch.arange(5) < torch.tensor([[5], [2]])
    expected, _ = theirs(x_BTD, memory_BSD, memory_BSD, key_padding_mask=~real_BS)
    assert torch.allclose(ours(x_BTD, memory_BSD, real_BS[:, None, None, :]), expected, atol=1e-5)


def test_a_real_token_never_sees_padding_and_padding_sees_itself() -> None:
    real_BT = torch.tensor([[False, True, True, False]])
    for causal in (True, False):
        allowed = allowed_pairs(real_BT, 4, causal=causal)
        assert allowed is not None
        for i in range(4):
            for j in range(4):
                seen = (bool(real_BT[0, j]) and (j <= i or not causal)) or i == j
                assert bool(allowed[0, 0, i, j]) == seen
    assert allowed_pairs(None, 4, causal=True) is None


@pytest.mark.parametrize("mix", [softmax_attention, linear_attention])
@pytest.mark.parametrize("causal", [True, False])
def test_a_mask_that_hides_nothing_changes_nothing(mix: Any, causal: bool) -> None:
    q, k, v = (torch.randn(2, heads, 5, 4, generator=seeded(heads), dtype=torch.float64) for heads in (4, 2, 2))
    plain = mix(q, k, v, causal=causal, scale=0.3, bias_HTT=None)
    allowed = allowed_pairs(torch.ones(2, 5, dtype=torch.bool), 5, causal=causal)
    assert torch.allclose(mix(q, k, v, causal=causal, scale=0.3, bias_HTT=None, allowed=allowed), plain)


@pytest.mark.parametrize("look", get_args(Look))
@pytest.mark.parametrize("causal", [False, True])
def test_hard_attention_takes_one_value_of_those_with_the_largest_score(look: str, causal: bool) -> None:
    """Against loops over plain numbers, with ties, padding, and rows that may look nowhere."""
    side, mask = look.split()
    generator = seeded(4)
    q, k = (torch.randint(2, (3, 2, 6, 2), generator=generator).double() for _ in range(2))
    v = torch.randn(3, 2, 6, 2, generator=generator, dtype=torch.float64)
    padding = torch.arange(6) < torch.tensor([[6], [4], [1]])
    mixed = hard_attention(
        q,
        k,
        v,
        causal=causal,
        scale=1.0,
        bias_HTT=None,
        allowed=padding[:, None, None, :],
        looks=(look, "leftmost j<i"),
    )
    inside: dict[str, Callable[[int, int], bool]] = {
        "none": lambda _i, _j: True, "j<i": lambda i, j: j < i, "j<=i": lambda i, j: j <= i, "j>i": lambda i, j: j > i,
        "j>=i": lambda i, j: j >= i,
    }  # fmt: skip
    for b, i in itertools.product(range(3), range(6)):
        seen = [j for j in range(6) if inside[mask](i, j) and padding[b, j] and (j <= i or not causal)]
        scores = {j: float(q[b, 0, i] @ k[b, 0, j]) for j in seen}
        best = [j for j in seen if scores[j] == max(scores.values())]
        expected = (
            torch.zeros(2, dtype=torch.float64) if not best else v[b, 0, best[0] if side == "leftmost" else best[-1]]
        )
        assert torch.equal(mixed[b, 0, i], expected)


def test_hard_attention_with_its_pattern_gives_the_same_and_the_shape_counts_it() -> None:
    looks = ("leftmost j<i", "rightmost none", "rightmost j>=i")
    design = Architecture.of(**SIZE, kind="encoder", attention="hard", looks=looks)
    model = Transformer(design)
    tokens = torch.randint(5, (2, 9), generator=seeded(0))
    logits, cache = model.run_with_cache(tokens, ["blocks.0.attention.pattern"])
    pattern_BHTS = cache["blocks.0.attention.pattern"]
    assert torch.allclose(logits, model(tokens))
    assert set(pattern_BHTS.unique().tolist()) == {0.0, 1.0}
    assert pattern_BHTS.sum(-1)[:, 1:].eq(1).all()
    assert pattern_BHTS[:, 0, 0].sum() == 0
    assert sum(parameter.numel() for parameter in model.parameters()) == design.shape.total_params
