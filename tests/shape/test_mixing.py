"""Attention kinds of encoders: parameters against networks, products against torch's counter, memory against what
torch keeps."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape import Mixing, Shape, flops, training_memory
from deepwide.shape.mixing import BLOCKWISE, ROUNDS, seen_blocks

torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")

KINDS = ("bigbird", "linear_elu", "linformer", "local", "longformer", "performer", "sinkhorn", "sparse", "synthesizer")
SIZED = {"bigbird", "linformer", "local", "longformer", "performer", "sinkhorn", "sparse"}
BASE: dict[str, Any] = {"vocab": 7, "kind": "encoder"}


@st.composite
def networks(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """A small encoder of some kind of attention."""
    fields: dict[str, Any] = BASE | {"attention": kind, "depth": draw(st.integers(1, 2))}
    fields |= {"width": draw(st.integers(2, 9)), "heads": draw(st.integers(1, 3)), "head_dim": draw(st.integers(1, 5))}
    fields |= {"context": draw(st.integers(1, 40)), "qkv_bias": draw(st.booleans()), "ff_width": 5}
    if kind in SIZED:
        size = draw(st.integers(1, 12))
        fields["attention_size"] = 2 * size if kind == "longformer" else size
    if kind in ("bigbird", "sparse"):
        most = fields["attention_size"] if kind == "sparse" else 4
        fields["attention_links"] = draw(st.integers(1, most))
    return fields


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_those_of_the_network(kind: str) -> None:
    from deepwide.model import Architecture, Transformer

    @settings(max_examples=15, deadline=None)
    @given(networks(kind))
    def check(fields: dict[str, Any]) -> None:
        design = Architecture.of(**fields)
        model = Transformer(design)
        assert sum(parameter.numel() for parameter in model.parameters()) == design.shape.total_params
        attention = sum(p.numel() for name, p in model.named_parameters() if ".attention." in name)
        assert attention == design.shape.params.attention

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_products_equal_torchs_counter(kind: str) -> None:
    """Performer's random matrix needs no gradient, so that its backward pass does fewer products than are counted."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from deepwide.model import Architecture, Transformer

    @settings(max_examples=15, deadline=None)
    @given(networks(kind), st.integers(1, 40))
    def check(fields: dict[str, Any], length: int) -> None:
        design, batch = Architecture.of(**fields), 2
        s, T = design.shape, min(length, fields["context"])
        model, tokens = Transformer(design), torch.zeros(batch, T, dtype=torch.long)
        counted = flops(s, T)
        with sdpa_kernel(SDPBackend.MATH):
            with FlopCounterMode(display=False) as counter:
                logits = model(tokens)
            assert counter.get_total_flops() == batch * counted.forward
            with FlopCounterMode(display=False) as counter:
                logits.sum().backward()
        less = 2 * 2 * s.depth * s.heads * T * s.head_dim * (s.mixing.size or 0) if kind == "performer" else 0  # type: ignore[union-attr]
        assert counter.get_total_flops() == batch * (counted.training - counted.forward - less)

    check()


@pytest.mark.parametrize("T", [48, 41])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_keeps_what_the_formula_says(kind: str, T: int) -> None:
    """To the byte in whole blocks, but for what is left out: log-sum-exps, and the numbers of blocks and heads; within
    20% where the last block is filled up."""
    from deepwide.model import Architecture
    from deepwide.model.attention import Attention

    sizes: dict[str, Any] = {"attention_size": 8 if kind == "longformer" else 4} if kind in SIZED else {}
    sizes |= {"attention_links": 2} if kind in ("bigbird", "sparse") else {}
    design = Architecture.of(**BASE, attention=kind, depth=1, width=8, heads=2, context=T, **sizes)
    attention = Attention(design, causal=False)
    own = {t.untyped_storage().data_ptr() for t in (*attention.parameters(), *attention.buffers())}
    kept: dict[int, int] = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    x_BTD = torch.randn(1, T, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = attention(x_BTD, None, None, None)
    del output
    kept.pop(x_BTD.untyped_storage().data_ptr(), None)
    alone = Shape.of(depth=1, width=8, heads=2, context=T, vocab=7, kind="encoder", mixing=design.shape.mixing)
    formula = training_memory(alone, sequence=T, precision="fp32").activations
    formula -= training_memory(alone.but(mixing=None), sequence=T, precision="fp32").activations - 4 * T * 4 * 8
    fused = kind not in ("linear_elu", "performer", "synthesizer")
    left_out = 4 * 2 * T * fused + (8 * (2 + 2) if kind == "bigbird" else 0)
    if T == 48:
        assert 0 <= formula + left_out - sum(kept.values()) < 4 * T, "rounded up to a number per token"
    else:
        assert formula == pytest.approx(sum(kept.values()), rel=0.2)


def test_sparse_kinds_count_and_keep_far_less_than_all_pairs_at_length_4000() -> None:
    fields: dict[str, Any] = {"depth": 1, "width": 128, "heads": 4, "context": 4000, "kind": "encoder", "vocab": 256}
    whole = flops(Shape(**fields)).attention
    sizes: dict[str, Any] = {"bigbird": (64, 3), "local": (50, None), "longformer": (512, None), "sinkhorn": (50, None)}
    for kind, (size, links) in sizes.items():
        shape = Shape(**fields, mixing=Mixing(kind=kind, size=size, links=links))  # type: ignore[arg-type]
        assert flops(shape).attention < 0.25 * whole, kind


def test_bigbird_sees_at_most_the_blocks_that_there_are() -> None:
    mixing = Mixing(kind="bigbird", size=4, links=3)
    seen = [seen_blocks(Shape(depth=1, width=8, context=4 * n, kind="encoder", mixing=mixing)) for n in (3, 7, 8, 50)]
    assert seen == [3, 7, 8, 8]


def test_the_rounds_that_are_counted_are_those_of_the_network() -> None:
    from deepwide.model import blockwise

    assert blockwise.ROUNDS == ROUNDS


def test_what_cannot_be_counted_is_refused_in_one_sentence() -> None:
    for kind in BLOCKWISE:
        links = 1 if kind in ("bigbird", "sparse") else None
        shape = Shape(depth=1, width=64, kind="encoder", mixing=Mixing(kind=kind, size=8, links=links))  # type: ignore[arg-type]
        with pytest.raises(DeepwideError, match=r"computed in whole blocks.*: use torch"):
            flops(shape, 16, "causal")
        assert flops(shape, 16, "kaplan").attention == 0
    with pytest.raises(DeepwideError, match="local attention is for encoders"):
        Shape.of(depth=1, width=64, mixing={"kind": "local", "size": 8})
