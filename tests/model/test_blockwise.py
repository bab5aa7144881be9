"""Attention in blocks: against dense references in loops, padding included, and what a layer may look at."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer
from deepwide.model.attention import Attention
from deepwide.model.blockwise import _chosen, sorting
from model.builders import seeded
from model.dense import ALL, SMALL_SIZES, dense

BLOCKWISE = ("bigbird", "local", "longformer", "sinkhorn", "sparse")
CONTEXT = 17


def layer(kind: str, number: int = 1, **changes: Any) -> Any:
    """One attention layer in float64 with shaken weights."""
    size: dict[str, Any] = {"depth": 2, "width": 12, "heads": 3, "vocab": 5, "context": CONTEXT, "kind": "encoder"}
    design = Architecture.of(**(size | {"attention": kind} | SMALL_SIZES.get(kind, {}) | changes))
    attention = Attention(design, causal=False, layer=number).double()
    with torch.no_grad():
        for i, parameter in enumerate(attention.parameters()):
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=seeded(i), dtype=torch.float64))
    return attention


def own_numbers(kind: str, attention: Any, head: int, number: int) -> Any:
    """What the reference needs of one head's learned or random numbers."""
    sizes = SMALL_SIZES.get(kind, {})
    if kind == "sinkhorn":
        return attention.mixer.sort[head]
    if kind == "bigbird":
        count = -(-CONTEXT // sizes["attention_size"])
        fixed = lambda block: {0, count - 1, block - 1, block, block + 1}  # noqa: E731
        return lambda block: set(_chosen(block, count, sizes["attention_links"], number, head)) - fixed(block)
    return lambda _: set()


@pytest.mark.parametrize("lengths", [(17, 17), (17, 11), (12, 5), (7, 7), (2, 1), (1, 1)])
@pytest.mark.parametrize("kind", BLOCKWISE)
def test_every_kind_is_its_dense_reference_with_padding_too(kind: str, lengths: tuple[int, int]) -> None:
    attention, T, sizes = layer(kind), max(lengths), SMALL_SIZES.get(kind, {})
    x_BTD = torch.randn(2, T, 12, generator=seeded(7), dtype=torch.float64)
    real_BT = torch.arange(T) < torch.tensor(lengths)[:, None]
    if kind == "local":
        real_BT[1, 0] = lengths[1] == 1  # padding may stand anywhere
    padding = None if real_BT.all() else real_BT
    q_BHTE, k_BHTE, v_BHTE = attention._placed(*attention._projected(x_BTD), None)
    y_BHTE = attention.mixer(x_BTD, q_BHTE, k_BHTE, v_BHTE, attention.scale, padding)
    for row in range(2):
        real = [i for i in range(T) if real_BT[row, i]]
        for head in range(3):
            expected = dense(
                kind, own_numbers(kind, attention, head, 1), x_BTD[row], q_BHTE[row, head], k_BHTE[row, head],
                v_BHTE[row, head], real, scale=attention.scale, context=CONTEXT, size=sizes["attention_size"],
                links=sizes.get("attention_links", 1),
            )  # fmt: skip
            for i in real:
                assert torch.allclose(y_BHTE[row, head, i], expected[i], rtol=1e-9, atol=1e-12), (kind, row, head, i)


@pytest.mark.parametrize("kind", BLOCKWISE)
def test_padding_changes_no_answer_and_gets_no_gradient_that_is_not_finite(kind: str) -> None:
    sizes = SMALL_SIZES[kind]
    design = Architecture.of(
        depth=2, width=12, heads=3, vocab=5, context=CONTEXT, kind="encoder", head="class", classes=3, attention=kind,
        **sizes,
    )  # fmt: skip
    model = Transformer(design).double()
    tokens = torch.randint(5, (1, 9), generator=seeded(1))
    alone = model(tokens)
    filled = torch.cat([tokens, torch.randint(5, (1, 8), generator=seeded(2))], dim=1)
    padding = torch.arange(17)[None] < 9
    assert torch.allclose(model(filled, padding_BT=padding), alone, rtol=1e-9, atol=1e-12)
    model(filled, padding_BT=padding).sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


def test_bigbirds_random_blocks_differ_by_head_and_layer_and_are_others_than_the_fixed_ones() -> None:
    for block in range(1, 29):
        chosen = _chosen(block, 30, 3, 0, 0)
        assert len(chosen) == len(set(chosen)) == len({0, 29, block - 1, block, block + 1}) + 3
    drawn = {(n, h): tuple(tuple(_chosen(b, 30, 3, n, h)) for b in range(30)) for n in range(2) for h in range(2)}
    assert len(set(drawn.values())) == 4


def test_a_sorting_is_nearly_doubly_stochastic_and_skips_blocks_without_tokens() -> None:
    scores = torch.randn(2, 3, 5, 5, generator=seeded(3), dtype=torch.float64)
    used = torch.tensor([[True] * 5, [True, True, True, False, False]])
    S = sorting(scores, used)
    assert torch.allclose(S.sum(-2), used[:, None].double().expand(-1, 3, -1), atol=1e-9), "columns are normalised last"
    assert torch.allclose(S.sum(-1), used[:, None].double().expand(-1, 3, -1), atol=0.05)
    assert S[1, :, 3:].abs().max() == S[1, :, :, 3:].abs().max() == 0


@pytest.mark.parametrize("kind", BLOCKWISE)
def test_no_tensor_of_all_pairs_is_formed(kind: str) -> None:
    """The largest tensor that is stored for the backward pass is far smaller than T × T per head."""
    T = 1024
    sizes: dict[str, Any] = {"attention_size": 32 if kind == "longformer" else 16}
    sizes |= {"attention_links": 2} if kind in ("bigbird", "sparse") else {}
    design = Architecture.of(depth=1, width=8, heads=2, vocab=5, context=T, kind="encoder", attention=kind, **sizes)
    largest = 0

    def look(tensor: Any) -> Any:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(look, lambda tensor: tensor):
        Transformer(design)(torch.zeros(1, T, dtype=torch.long), padding_BT=torch.arange(T)[None] < T - 3)
    assert largest < 0.35 * 2 * T * T


def test_other_attention_loads_none_of_these_modules() -> None:
    """A default run passes through as few modules as before."""
    program = (
        "import sys; from deepwide.model import Architecture, Transformer; from deepwide.shape import flops;"
        "design = Architecture.of(depth=1, width=8, vocab=5, context=9, kind='encoder'); Transformer(design);"
        "flops(design.shape); names = ('model.blockwise', 'model.low_rank', 'shape.mixing');"
        "assert not [name for name in names if f'deepwide.{name}' in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("kind", ALL)
def test_every_kind_trains_in_16_bits_and_records_what_there_is(kind: str) -> None:
    design = Architecture.of(
        depth=2,
        width=12,
        heads=3,
        vocab=5,
        context=CONTEXT,
        kind="encoder",
        attention=kind,
        **SMALL_SIZES.get(kind, {}),
    )
    model, tokens = Transformer(design), torch.randint(5, (2, 15), generator=seeded(4))
    padding = torch.arange(15) < torch.tensor([[15], [6]])
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(tokens, tokens, padding_BT=padding, mask_BT=padding)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert loss.item() == pytest.approx(model(tokens, tokens, padding_BT=padding, mask_BT=padding).item(), rel=0.02)
    output, recorded = model.run_with_cache(tokens, ["blocks.1.attention.heads", "blocks.0.attention.head_outputs"])
    assert torch.allclose(output, model(tokens), atol=1e-6)
    assert recorded["blocks.1.attention.heads"].shape == (2, 3, 15, 4)
    with pytest.raises(DeepwideError, match="pattern"):
        model.run_with_cache(tokens, ["blocks.0.attention.pattern"])
