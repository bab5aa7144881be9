"""Attention of linear cost and without queries: against dense references in loops, and against what it approximates."""

from typing import Any

import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer
from deepwide.model.attention import Attention, softmax_attention
from deepwide.model.low_rank import Performer, orthogonal
from model.builders import seeded
from model.dense import SMALL_SIZES, dense

KINDS = ("linear_elu", "linformer", "performer", "synthesizer")
CONTEXT = 9


def layer(kind: str, **changes: Any) -> Any:
    """One attention layer in float64 with shaken weights."""
    size: dict[str, Any] = {"depth": 1, "width": 12, "heads": 3, "vocab": 5, "context": CONTEXT, "kind": "encoder"}
    design = Architecture.of(**(size | {"attention": kind} | SMALL_SIZES.get(kind, {}) | changes))
    attention = Attention(design, causal=False).double()
    with torch.no_grad():
        for i, parameter in enumerate(attention.parameters()):
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=seeded(i), dtype=torch.float64))
    return attention


def own_numbers(kind: str, attention: Any, head: int) -> Any:
    """What the reference needs of one head's learned or random numbers."""
    mixer = attention.mixer
    return {
        "linear_elu": lambda: None,
        "linformer": lambda: mixer.project,
        "performer": lambda: mixer.omega[head],
        "synthesizer": lambda: mixer.scores[head],
    }[kind]()


@pytest.mark.parametrize("lengths", [(9, 9), (9, 6), (5, 2), (1, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_its_dense_reference_with_padding_too(
    kind: str, lengths: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepwide.model.low_rank.LEAST", 0.0)  # what the authors add is no part of the definition
    attention, T = layer(kind), max(lengths)
    x_BTD = torch.randn(2, T, 12, generator=seeded(7), dtype=torch.float64)
    real_BT = torch.arange(T) < torch.tensor(lengths)[:, None]
    if lengths[1] > 1:
        real_BT[1, 0] = False  # padding may stand anywhere
    padding = None if real_BT.all() else real_BT
    if kind == "synthesizer":
        v_BHTE = attention.qkv(x_BTD).view(2, T, 3, 4).transpose(1, 2)
        q_BHTE = k_BHTE = v_BHTE
    else:
        q_BHTE, k_BHTE, v_BHTE = attention._placed(*attention._projected(x_BTD), None)
    y_BHTE = attention.mixer(x_BTD, q_BHTE, k_BHTE, v_BHTE, attention.scale, padding)
    for row in range(2):
        real = [i for i in range(T) if real_BT[row, i]]
        for head in range(3):
            expected = dense(
                kind, own_numbers(kind, attention, head), x_BTD[row], q_BHTE[row, head], k_BHTE[row, head],
                v_BHTE[row, head], real, scale=attention.scale, context=CONTEXT,
            )  # fmt: skip
            for i in real:
                assert torch.allclose(y_BHTE[row, head, i], expected[i], rtol=1e-9, atol=1e-12), (kind, row, head, i)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_answer_and_gets_no_gradient_that_is_not_finite(kind: str) -> None:
    design = Architecture.of(
        depth=2, width=12, heads=3, vocab=5, context=CONTEXT, kind="encoder", head="class", classes=3, attention=kind,
        **SMALL_SIZES.get(kind, {}),
    )  # fmt: skip
    model = Transformer(design).double()
    tokens = torch.randint(5, (1, 5), generator=seeded(1))
    filled = torch.cat([tokens, torch.randint(5, (1, 4), generator=seeded(2))], dim=1)
    padding = torch.arange(9)[None] < 5
    assert torch.allclose(model(filled, padding_BT=padding), model(tokens), rtol=1e-9, atol=1e-12)
    model(filled, padding_BT=padding).sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


def test_many_random_features_approximate_softmax_attention() -> None:
    q, k, v = (0.6 * torch.randn(1, 2, 6, 4, generator=seeded(i), dtype=torch.float64) for i in range(3))
    exact, errors = softmax_attention(q, k, v, causal=False, scale=0.5, bias_HTT=None), []
    for features in (32, 8192):
        size: dict[str, Any] = {"depth": 1, "width": 8, "heads": 2, "vocab": 5, "context": 6, "kind": "encoder"}
        design = Architecture.of(**size, attention="performer", attention_size=features)
        errors.append(float((Performer(design, 0)(torch.empty(1, 6, 8), q, k, v, 0.5, None) - exact).abs().max()))
    assert errors[1] < 0.1 < errors[0]


def test_random_features_are_orthogonal_in_groups_and_as_long_as_gaussian_vectors() -> None:
    omega = orthogonal(4096, 8, "any").double()
    products = omega[:8] @ omega[:8].T
    assert torch.allclose(products, products.diag().diag(), atol=1e-5)
    assert abs(float(omega.square().sum(1).mean()) - 8) < 0.3
    assert float(omega.norm(dim=1).std()) > 0.5, "lengths are random"


def test_a_synthesizer_has_no_queries_and_keys() -> None:
    assert layer("synthesizer").qkv.weight.shape == (12, 12)
    with pytest.raises(DeepwideError, match="synthesizer attention has no queries and keys"):
        layer("synthesizer", positions="rotary")
