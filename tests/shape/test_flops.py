"""FLOPs: each convention against the formula of its paper, against a loop over a mask, and against torch's counter.

Dense families are held against torch's counter on the meta device in test_families.py. Mixtures of experts are
held here, on the CPU: routing needs real numbers.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape import (
    CONVENTIONS,
    FAMILIES,
    FlopConvention,
    Shape,
    flops,
    inference_memory,
    training_memory,
    write_config,
)
from deepwide.shape.shape import attention_matrices

BARE: dict[str, Any] = {"qkv_bias": False, "out_bias": False, "ff_bias": False, "norm": "none"}


@st.composite
def shapes(draw: st.DrawFn, *, windows: bool = True) -> Shape:
    """A shape of bare matrices, so that parameters and FLOPs can be compared."""
    depth, kv_heads, groups = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    width = draw(st.integers(4, 64))
    fields: dict[str, Any] = BARE | {"depth": depth, "width": width, "vocab": draw(st.integers(1, 300))}
    fields |= {"heads": kv_heads * groups, "kv_heads": kv_heads, "head_dim": draw(st.integers(1, 20))}
    fields |= {"ff": draw(st.sampled_from(["plain", "gated"])), "ff_width": draw(st.integers(1, 99))}
    fields |= {"context": draw(st.integers(1, 40)), "tied": draw(st.booleans())}
    fields |= {"embedding_width": draw(st.none() | st.just(width + 1000))}
    if windows and draw(st.booleans()):
        layers = draw(st.sets(st.integers(0, depth - 1), min_size=1))
        fields |= {"window": draw(st.integers(1, 50)), "sliding_layers": tuple(sorted(layers))}
    if draw(st.booleans()):
        experts = draw(st.integers(1, 5))
        dense = tuple(sorted(draw(st.sets(st.integers(0, depth - 1)))))
        fields["experts"] = {"experts": experts, "active": draw(st.integers(1, experts)), "dense_layers": dense}
        fields["experts"] |= {"width": draw(st.integers(1, 40)), "shared": draw(st.integers(0, 2))}
    if draw(st.booleans()):
        latent = {name: draw(st.integers(1, 12)) for name in ("kv_rank", "rope_dim", "nope_dim", "value_dim")}
        fields["latent"] = latent | {"query_rank": draw(st.none() | st.integers(1, 12))}
        fields["head_dim"] = latent["rope_dim"] + latent["nope_dim"]
    return Shape.of(**fields)


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Choices of a small network of any kind and head, for Architecture.of."""
    kind = draw(st.sampled_from(["decoder", "encoder", "encoder-decoder"]))
    head = "tokens" if kind == "encoder-decoder" else draw(st.sampled_from(["tokens", "class", "pair"]))
    kv_heads = draw(st.integers(1, 3))
    fields: dict[str, Any] = {"kind": kind, "head": head, "classes": 0 if head == "tokens" else draw(st.integers(1, 5))}
    fields |= {"encoder_depth": draw(st.integers(1, 3)) if kind == "encoder-decoder" else 0}
    fields |= {"depth": draw(st.integers(1, 3)), "width": draw(st.integers(1, 20)), "vocab": draw(st.integers(1, 30))}
    fields |= {"heads": kv_heads * draw(st.integers(1, 2)), "kv_heads": kv_heads, "head_dim": 2}
    fields |= {"ff": draw(st.sampled_from(["plain", "gated"])), "ff_width": draw(st.integers(0, 20))}
    fields |= {"context": draw(st.integers(1, 12)), "tied": draw(st.booleans())}
    fields |= {"positions": draw(st.sampled_from(["learned", "rotary", "alibi", "none"]))}
    return fields


def attended(shape: Shape, T: int) -> int:
    """Query–key pairs of one head over all layers, counted one by one."""
    pairs = 0
    for layer in range(shape.depth):
        window = shape.window if layer in shape.sliding_layers else None
        pairs += sum(1 for i in range(T) for j in range(T) if j <= i and (window is None or i - j < window))
    return pairs


@given(shapes(), st.integers(1, 40))
def test_kaplan_is_six_flops_per_active_block_parameter_and_token(shape: Shape, T: int) -> None:
    """With neither biases nor norms every block parameter is in a matrix, and a token passes the active ones."""
    active_block = shape.block_params - shape.params.inactive
    assert flops(shape, T, "kaplan").training == 6 * T * active_block
    assert flops(shape, T, "kaplan").training_per_token == 6 * active_block


def test_kaplan_of_gpt2_is_six_times_twelve_depth_width_squared() -> None:
    gpt2 = Shape(depth=12, width=768, heads=12, context=1024)
    assert flops(gpt2, convention="kaplan").training_per_token == 6 * 12 * 12 * 768**2


@given(shapes(), st.integers(1, 25))
def test_causal_attention_counts_the_pairs_the_mask_and_windows_leave(shape: Shape, T: int) -> None:
    values = shape.latent.value_dim if shape.latent else shape.head_dim
    expected = 2 * attended(shape, T) * shape.heads * (shape.head_dim + values)
    assert flops(shape, T, "causal").attention == expected


@given(shapes(), st.integers(1, 25))
def test_full_attention_counts_every_pair_of_every_layer(shape: Shape, T: int) -> None:
    values = shape.latent.value_dim if shape.latent else shape.head_dim
    assert flops(shape, T, "torch").attention == 2 * shape.depth * T**2 * shape.heads * (shape.head_dim + values)


@given(shapes(windows=False), st.integers(1, 99))
def test_without_windows_causal_attention_is_half_of_full_and_the_diagonal(shape: Shape, T: int) -> None:
    full, causal = flops(shape, T, "torch"), flops(shape, T, "causal")
    assert 2 * causal.attention == full.attention + full.attention // T
    assert full.forward - full.attention == causal.forward - causal.attention


@given(shapes(), st.integers(1, 40))
def test_conventions_differ_by_exactly_what_their_names_say(shape: Shape, T: int) -> None:
    by = {name: flops(shape, T, name) for name in CONVENTIONS}
    torch, e = by["torch"], shape.embedding_width or shape.width
    assert torch.training == 3 * torch.forward
    assert by["chinchilla"].forward == torch.forward + 2 * T * shape.vocab * e
    assert by["selective"].training == torch.training + torch.attention
    assert by["recompute"].training == torch.training + torch.projections + torch.attention + torch.feed_forward
    assert by["recompute"].forward == by["selective"].forward == torch.forward
    assert by["kaplan"].forward == torch.projections + torch.feed_forward
    projections_in_and_out = 2 * e * shape.width if shape.embedding_width else 0
    assert torch.head == 2 * T * (shape.vocab * e + projections_in_and_out)
    assert torch.projections == 2 * T * shape.depth * attention_matrices(shape)
    assert all(flop.convention == name and flop.sequence == T for name, flop in by.items())


@given(shapes(), st.sampled_from(sorted(CONVENTIONS)))
def test_per_token_is_per_sequence_over_its_length(shape: Shape, convention: str) -> None:
    whole = flops(shape, convention=convention)
    assert whole.sequence == shape.context
    assert whole.forward_per_token == whole.forward / shape.context
    assert whole.training_per_token == whole.training / shape.context


@given(shapes(), st.integers(1, 30), st.sampled_from(["depth", "width", "ff_width", "vocab"]))
def test_a_larger_shape_is_never_cheaper(shape: Shape, more: int, name: str) -> None:
    grown = shape.but(**{name: getattr(shape, name) + more})
    for convention in CONVENTIONS:
        assert flops(grown, 8, convention).training >= flops(shape, 8, convention).training


def test_a_convention_may_be_made_to_measure() -> None:
    shape = Shape(depth=2, width=64, context=16)
    mine = FlopConvention(name="mine", about="causal without the head", attention="causal", head=False)
    assert flops(shape, convention=mine).convention == "mine"
    assert flops(shape, convention=mine).forward == flops(shape, convention="causal").forward - flops(shape).head


def test_an_unknown_convention_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DeepwideError, match=r"no FLOP convention 'kaplann': did you mean 'kaplan'\?$"):
        flops(Shape(depth=1, width=64), convention="kaplann")


@pytest.mark.parametrize("sequence", [0, -1, -100])
def test_a_sequence_of_no_token_is_refused(sequence: int) -> None:
    with pytest.raises(DeepwideError, match="sequence"):
        flops(Shape(depth=1, width=64), sequence)


def test_flops_of_the_largest_shape_are_whole_numbers() -> None:
    shape = Shape(depth=10**9, width=10**9, ff_width=10**9, vocab=10**9, context=10**9)
    assert isinstance(flops(shape).training, int)
    assert flops(shape).training > 10**37


@settings(max_examples=25)
@given(networks(), st.integers(0, 99))
def test_every_kind_and_head_equals_torchs_counter_forward_and_backward(fields: dict[str, Any], seed: int) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from deepwide.model import Architecture, Transformer

    design = Architecture.of(**fields)
    shape, batch = design.shape, 2
    T, S = (int(n) for n in np.random.default_rng(seed).integers(1, shape.context + 1, 2))
    two = shape.kind == "encoder-decoder" or shape.head == "pair"
    model = Transformer(design).to("meta")
    tokens, source = (torch.zeros(batch, length, dtype=torch.long, device="meta") for length in (T, S))
    counted = flops(shape, T, source=S if two else None)
    with sdpa_kernel(SDPBackend.MATH):  # plain products: a fused kernel computes scores again in its backward pass
        with FlopCounterMode(display=False) as counter:
            logits = model(tokens, source_BS=source if two else None)
        assert counter.get_total_flops() == batch * counted.forward
        with FlopCounterMode(display=False) as counter:
            logits.sum().backward()
        assert counter.get_total_flops() == batch * (counted.training - counted.forward)
    assert counted.training_per_token == counted.training / (T + S if two else T)


@given(networks(), st.integers(1, 12), st.integers(1, 12))
def test_the_masks_of_every_kind_leave_the_pairs_that_a_loop_counts(fields: dict[str, Any], T: int, S: int) -> None:
    names = ("kind", "encoder_depth", "head", "classes", "depth", "width", "heads", "kv_heads", "head_dim")
    shape = Shape.of(**{name: fields[name] for name in names})
    past = sum(1 for i in range(T) for j in range(T) if j <= i or shape.kind == "encoder")
    past_of_source = sum(1 for i in range(S) for j in range(S) if j <= i or shape.kind == "encoder")
    two = shape.kind == "encoder-decoder" or shape.head == "pair"
    pairs = shape.depth * past
    if shape.head == "pair":
        pairs += shape.depth * past_of_source
    if shape.kind == "encoder-decoder":
        pairs += shape.encoder_depth * S * S + shape.depth * T * S
    counted = flops(shape, T, "causal", source=S if two else None)
    assert counted.attention == 4 * pairs * shape.heads * shape.head_dim


def test_a_source_is_as_long_as_the_sequence_unless_given_and_only_where_one_is_read() -> None:
    both = Shape(depth=2, width=64, kind="encoder-decoder", encoder_depth=2, context=32)
    assert flops(both) == flops(both, 32, source=32)
    assert flops(both, 7) == flops(both, 7, source=7)
    with pytest.raises(DeepwideError, match=r"this shape reads one sequence\.$"):
        flops(Shape(depth=2, width=64), source=8)
    with pytest.raises(DeepwideError, match="source must be at least 1, not '0'"):
        flops(both, source=0)


# One feed-forward of every expert runs for the tokens routed to it, and each token is routed to `active` of them:
# whatever the router says, the products add up to active experts per token. transformers' "eager" experts are plain
# matrix products, which the counter sees; its default, grouped products, the counter of torch 2.13 does not.
@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"])
def test_a_mixture_of_experts_equals_torchs_counter_whatever_the_routing(family: str) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
    transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")
    from torch.utils.flop_counter import FlopCounterMode

    @settings(max_examples=4, deadline=None, derandomize=True)
    @given(shape=mixtures(family), seed=st.integers(0, 99))
    def check(shape: Shape, seed: int) -> None:
        config = write_config(shape, family)
        del config["architectures"]
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(**config), attn_implementation="eager", experts_implementation="eager"
        ).train()
        batch, T = 2, shape.context
        tokens = torch.from_numpy(np.random.default_rng(seed).integers(0, shape.vocab, (batch, T)))
        with FlopCounterMode(display=False) as counter:
            logits = model(tokens, use_cache=False).logits
        counted = flops(shape, T)
        assert counter.get_total_flops() == batch * counted.forward
        with FlopCounterMode(display=False) as counter:
            logits.sum().backward()
        assert counter.get_total_flops() == batch * (counted.training - counted.forward)

    check()


@st.composite
def mixtures(draw: st.DrawFn, family: str) -> Shape:
    """A tiny shape of a family with experts."""
    depth, width, f = draw(st.integers(1, 3)), 32, draw(st.integers(3, 30))
    experts = draw(st.integers(2, 6))
    fields = FAMILIES[family].fixed | {"depth": depth, "width": width, "heads": 4, "head_dim": 8, "ff_width": f}
    fields |= {"vocab": 50, "context": draw(st.integers(2, 12)), "tied": draw(st.booleans())}
    moe: dict[str, Any] = {"experts": experts, "active": draw(st.integers(1, experts)), "width": f}
    if family == "qwen3_moe":
        moe |= {"width": draw(st.integers(3, 20))}
        moe |= {"dense_layers": tuple(sorted(draw(st.sets(st.integers(0, depth - 1)))))}
    if family.startswith("deepseek"):
        moe |= {"width": draw(st.integers(3, 20)), "shared": draw(st.integers(1, 3))}
        moe |= {"dense_layers": tuple(range(draw(st.integers(0, depth))))}
        latent = {"kv_rank": 6, "query_rank": draw(st.sampled_from([None, 10])), "rope_dim": 4}
        fields |= {"latent": latent | {"nope_dim": 8, "value_dim": 6}, "head_dim": 12}
    else:
        fields["kv_heads"] = draw(st.sampled_from([1, 2, 4]))
    return Shape.of(**(fields | {"experts": moe}))


def test_only_a_shape_is_counted() -> None:
    for counted in (flops, training_memory, inference_memory):
        with pytest.raises(DeepwideError, match="counted of a Shape, not of 'gpt2'"):
            counted("gpt2")  # type: ignore[arg-type]
