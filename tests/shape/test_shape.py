"""Shape: a value that is checked again when it changes."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.shape import Experts, LatentAttention, Shape
from deepwide.shape.family import LLAMA_LIKE

JUNK = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
)
KINDS = st.sampled_from(["decoder", "encoder", "encoder-decoder", "tokens", "class", "pair"])
BOTH: dict[str, Any] = {"depth": 1, "width": 64, "kind": "encoder-decoder", "encoder_depth": 1}


def test_depth_and_width_alone_are_gpt2s_block() -> None:
    shape = Shape(depth=12, width=768)
    assert (shape.heads, shape.kv_heads, shape.head_dim) == (12, 12, 64)
    assert (shape.ff, shape.ff_width) == ("plain", 4 * 768)
    assert (shape.positions, shape.norm, shape.tied) == ("learned", "layernorm", True)
    assert shape.qkv_bias
    assert shape.out_bias
    assert shape.ff_bias


def test_a_gated_feed_forward_is_eight_thirds_wide_rounded_up() -> None:
    assert Shape(depth=1, width=768, ff="gated").ff_width == 2048
    assert Shape(depth=1, width=64, ff="gated").ff_width == 171


def test_a_width_that_64_does_not_divide_gets_one_head() -> None:
    shape = Shape(depth=1, width=100)
    assert (shape.heads, shape.head_dim) == (1, 100)


def test_heads_and_head_width_give_each_other() -> None:
    assert Shape(depth=1, width=96, heads=3).head_dim == 32
    assert Shape(depth=1, width=96, head_dim=32).heads == 3


def test_head_width_is_not_assumed_to_be_width_over_heads() -> None:
    shape = Shape(depth=1, width=100, heads=3, head_dim=7)
    assert (shape.heads, shape.head_dim) == (3, 7)


def test_a_field_given_as_none_is_a_field_left_out() -> None:
    assert Shape.of(depth=1, width=64, heads=None, ff_width=None) == Shape(depth=1, width=64)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"width": 64}, "depth: field required."),
        ({"depth": 1}, "width: field required."),
        ({}, "depth: field required."),
        ({"depth": 0, "width": 64}, "depth: input should be greater than or equal to 1, not '0'."),
        ({"depth": -3, "width": 64}, "depth: input should be greater than or equal to 1, not '-3'."),
        ({"depth": 10**10, "width": 64}, "depth: input should be less than or equal to 1000000000, not '10000000000'."),
        ({"depth": 10**5000, "width": 64}, "depth: input should be less than or equal to 1000000000, not a number"),
        ({"depth": "12", "width": 64}, "depth: input should be a valid integer, not '12'."),
        ({"depth": 12.0, "width": 64}, "depth: input should be a valid integer, not '12.0'."),
        ({"depth": True, "width": 64}, "depth: input should be a valid integer, not 'True'."),
        ({"depth": 1, "width": True}, "width: input should be a valid integer, not 'True'."),
        ({"depth": 1, "width": 64, "tied": 1}, "tied: input should be a valid boolean, not '1'."),
        ({"depth": 1, "width": 64, "ff": "glu"}, "ff: input should be 'plain' or 'gated', not 'glu'."),
        (
            {"depth": 1, "width": 64, "heads": 5},
            "width (64) is not a multiple of heads (5): give heads and head_dim both.",
        ),
        ({"depth": 1, "width": 64, "head_dim": 5}, "width (64) is not a multiple of head_dim (5): give heads and"),
        ({"depth": 1, "width": 64, "heads": 4, "kv_heads": 3}, "heads (4) must be a multiple of kv_heads (3)."),
        ({"depth": 2, "width": 64, "window": 8}, "window and sliding_layers go together."),
        ({"depth": 2, "width": 64, "sliding_layers": (0,)}, "window and sliding_layers go together."),
        ({"depth": 2, "width": 64, "window": 8, "sliding_layers": (2,)}, "sliding_layers must be rising layer numbers"),
        ({"depth": 2, "width": 64, "window": 8, "sliding_layers": (1, 0)}, "sliding_layers must be rising"),
        ({"depth": 2, "width": 64, "window": 8, "sliding_layers": (0, 0)}, "sliding_layers must be rising"),
        ({"depth": 2, "width": 64, "embedding_width": 64}, "embedding_width is for embeddings of another width"),
        (
            {"depth": 1, "width": 64, "experts": {"experts": 2, "active": 3, "width": 8}},
            "experts: 3 active experts of 2.",
        ),
        (
            {"depth": 1, "width": 64, "experts": {"experts": 2, "active": 1, "width": 8, "dense_layers": (1,)}},
            "experts.dense_layers must be rising layer numbers below depth 1.",
        ),
        (
            {"depth": 1, "width": 64, "latent": {"kv_rank": 4, "rope_dim": 4, "nope_dim": 4, "value_dim": 4}},
            "with latent attention, head_dim is nope_dim + rope_dim.",
        ),
        ({"depth": 1, "width": 64, "kind": "both"}, "kind: input should be 'decoder', 'encoder' or 'encoder-decoder'"),
        (
            {"depth": 1, "width": 64, "kind": "encoder-decoder"},
            "encoder_depth is for encoder-decoders, which need one;",
        ),
        (
            {"depth": 1, "width": 64, "encoder_depth": 2},
            "encoder_depth is for encoder-decoders, which need one; kind is",
        ),
        (
            {"depth": 1, "width": 64, "head": "class"},
            "classes is for the heads class and pair, which need one or more;",
        ),
        ({"depth": 1, "width": 64, "classes": 2}, "classes is for the heads class and pair, which need one or more;"),
        ({**BOTH, "head": "class", "classes": 2}, "an encoder-decoder has a head for tokens, not for a class."),
        ({**BOTH, "embedding_width": 8}, "embedding_width is for decoders and encoders with a head for tokens;"),
        ({**BOTH, "block_norms": 1}, "block_norms and residual_scales must be multiples of 2 sublayers."),
        ({**BOTH, "experts": {"experts": 2, "active": 1, "width": 8}}, "encoder-decoders have neither experts nor"),
        (
            {"depth": 2, "width": 64, "kind": "encoder", "window": 8, "sliding_layers": (1,)},
            "windows are for decoders; kind is encoder.",
        ),
    ],
)
def test_what_does_not_fit_gets_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError) as complaint:
        Shape.of(**fields)
    assert str(complaint.value).startswith(sentence)
    assert "\n" not in str(complaint.value)


def test_a_shape_that_reads_two_sequences_says_so() -> None:
    assert Shape.of(**BOTH).reads_two
    assert Shape(depth=1, width=64, head="pair", classes=2).reads_two
    assert not Shape(depth=1, width=64, head="class", classes=2).reads_two
    assert not Shape(depth=1, width=64, kind="encoder").reads_two


def test_a_layer_without_feed_forward_has_one_sublayer() -> None:
    assert Shape(depth=1, width=64).sublayers == 2
    assert Shape(depth=1, width=64, ff_width=0, ff_bias=False).sublayers == 1


@given(st.dictionaries(st.sampled_from([*Shape.model_fields, "junk"]), JUNK | KINDS, max_size=8))
def test_any_fields_give_a_shape_or_a_sentence(fields: dict[str, Any]) -> None:
    try:
        shape = Shape.of(**fields)
    except DeepwideError as complaint:
        sentence = str(complaint)
        assert "\n" not in sentence
        assert len(sentence) < 500
        assert sentence.endswith((".", "?"))
    else:
        assert shape.total_params >= shape.block_params > 0


LLAMA = LLAMA_LIKE | {"tied": False}
GEMMA2 = LLAMA_LIKE | {"block_norms": 4}
BLOOM = {"positions": "alibi", "embedding_norm": True}


@pytest.mark.parametrize(
    ("name", "fields", "total"),
    [
        ("GPT-2", {"depth": 12, "width": 768, "context": 1024}, 124_439_808),
        ("GPT-2 medium", {"depth": 24, "width": 1024, "context": 1024}, 354_823_168),
        ("GPT-2 large", {"depth": 36, "width": 1280, "context": 1024}, 774_030_080),
        ("GPT-2 XL", {"depth": 48, "width": 1600, "context": 1024}, 1_557_611_200),
        ("Llama-2-7B", LLAMA | {"depth": 32, "width": 4096, "ff_width": 11008, "vocab": 32000}, 6_738_415_616),
        (
            "Llama-3-8B",
            LLAMA | {"depth": 32, "width": 4096, "heads": 32, "kv_heads": 8, "ff_width": 14336, "vocab": 128256},
            8_030_261_248,
        ),
        (
            "Llama-3.2-1B",
            LLAMA_LIKE | {"depth": 16, "width": 2048, "heads": 32, "kv_heads": 8, "ff_width": 8192, "vocab": 128256},
            1_235_814_400,
        ),
        (
            "Qwen2.5-7B",
            LLAMA
            | {
                "depth": 28,
                "width": 3584,
                "heads": 28,
                "kv_heads": 4,
                "ff_width": 18944,
                "vocab": 152064,
                "qkv_bias": True,
            },
            7_615_616_512,
        ),
        (
            "Gemma-2-9B",
            GEMMA2
            | {
                "depth": 42,
                "width": 3584,
                "heads": 16,
                "kv_heads": 8,
                "head_dim": 256,
                "ff_width": 14336,
                "vocab": 256000,
            },
            9_241_705_984,
        ),
        ("BLOOM", BLOOM | {"depth": 70, "width": 14336, "heads": 112, "vocab": 250880}, 176_247_271_424),
        (
            "Mistral-7B",
            LLAMA | {"depth": 32, "width": 4096, "heads": 32, "kv_heads": 8, "ff_width": 14336, "vocab": 32000},
            7_241_732_096,
        ),
        (
            "Pythia-70m",
            {"depth": 6, "width": 512, "heads": 8, "vocab": 50304, "tied": False, "positions": "rotary"},
            70_426_624,
        ),
    ],
)
def test_published_totals_are_met_to_the_parameter(name: str, fields: dict[str, Any], total: int) -> None:
    assert Shape(**fields).total_params == total, name


BART = {"kind": "encoder-decoder", "extra_positions": 2, "embedding_norm": True, "final_norm": False}


@pytest.mark.parametrize(
    ("name", "fields", "total"),
    [
        ("base", {"depth": 6, "encoder_depth": 6, "width": 768, "vocab": 50265, "context": 1024}, 139_420_416),
        ("large", {"depth": 12, "encoder_depth": 12, "width": 1024, "vocab": 50265, "context": 1024}, 406_291_456),
    ],
)
def test_barts_published_totals_are_met_to_the_parameter(name: str, fields: dict[str, Any], total: int) -> None:
    assert Shape.of(**(BART | fields)).total_params == total, name


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 30), st.integers(1, 50))
def test_an_encoder_decoder_has_the_parameters_of_transformers_bart(
    depth: int, encoder_depth: int, heads: int, ff_width: int, vocab: int
) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
    transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")
    sizes = {"d_model": 8 * heads, "vocab_size": vocab + 3, "max_position_embeddings": 20}
    for stack, layers in (("encoder", encoder_depth), ("decoder", depth)):
        sizes |= {f"{stack}_layers": layers, f"{stack}_attention_heads": heads, f"{stack}_ffn_dim": ff_width}
    with torch.device("meta"):
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(**sizes))
    fields = {"depth": depth, "encoder_depth": encoder_depth, "width": 8 * heads, "heads": heads}
    shape = Shape.of(**(BART | fields | {"ff_width": ff_width, "vocab": vocab + 3, "context": 20}))
    assert shape.total_params == model.num_parameters()
    blocks = sum(p.numel() for name, p in model.named_parameters() if ".layers." in name)
    assert shape.block_params == blocks


def test_an_encoder_decoder_of_bare_matrices_has_28_width_squared_per_pair_of_layers() -> None:
    """12d² for an encoder layer, 16d² for a decoder layer with its cross-attention."""
    bare: dict[str, Any] = {"qkv_bias": False, "out_bias": False, "ff_bias": False, "norm": "none"}
    shape = Shape(depth=5, encoder_depth=3, width=64, kind="encoder-decoder", **bare)
    assert shape.block_params == (5 * 16 + 3 * 12) * 64**2


@pytest.mark.parametrize(("block_norms", "residual_scales"), [(2, 0), (4, 0), (2, 2), (4, 2 * 64)])
def test_cross_attention_has_its_share_of_norms_and_scales(block_norms: int, residual_scales: int) -> None:
    """A decoder layer has three sublayers to an encoder layer's two; each stack has a final norm."""
    fields = {"block_norms": block_norms, "residual_scales": residual_scales}
    shape = Shape.of(depth=5, encoder_depth=3, width=64, kind="encoder-decoder", **fields)
    layers = 3 * 2 + 5 * 3  # sublayers
    assert shape.params.norms == (layers * block_norms // 2 + 2) * 2 * 64 + layers * residual_scales // 2


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(["decoder", "encoder"]))
def test_heads_for_classes_are_no_block_parameters(width: int, classes: int, kind: Any) -> None:
    tokens = Shape(depth=2, width=width, kind=kind)
    one = tokens.but(head="class", classes=classes)
    two = tokens.but(head="pair", classes=classes, tied=False, head_bias=True)
    assert one.block_params == two.block_params == tokens.block_params
    assert one.total_params - tokens.total_params == one.params.head == (width + 1) * classes
    assert two.total_params - tokens.total_params == (4 * width + 1) * width + (width + 1) * classes


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Any shape, with every part a model may have."""
    kv_heads, groups = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    depth, width = draw(st.integers(1, 12)), draw(st.integers(8, 200))
    fields: dict[str, Any] = {
        "depth": depth,
        "width": width,
        "heads": kv_heads * groups,
        "kv_heads": kv_heads,
        "head_dim": draw(st.integers(1, 40)),
        "ff": draw(st.sampled_from(["plain", "gated"])),
        "ff_width": draw(st.integers(1, 500)),
        "vocab": draw(st.integers(1, 5000)),
        "context": draw(st.integers(1, 300)),
        "positions": draw(st.sampled_from(["learned", "rotary", "alibi", "none"])),
        "norm": draw(st.sampled_from(["layernorm", "rmsnorm", "none"])),
        "block_norms": draw(st.integers(0, 4)),
        "qk_norm": draw(st.sampled_from(["none", "head", "full"])),
        "extra_positions": draw(st.integers(0, 2)),
        "embedding_width": draw(st.none() | st.just(width + 1000)),
    }
    for flag in ("tied", "final_norm", "embedding_norm", "qkv_bias", "out_bias", "ff_bias", "head_bias"):
        fields[flag] = draw(st.booleans())
    if draw(st.booleans()):
        experts = draw(st.integers(1, 6))
        fields["experts"] = {
            "experts": experts,
            "active": draw(st.integers(1, experts)),
            "width": draw(st.integers(1, 60)),
            "shared": draw(st.integers(0, 2)),
            "dense_layers": tuple(range(draw(st.integers(0, depth)))),
        }
    if draw(st.booleans()):
        latent = {name: draw(st.integers(1, 20)) for name in ("kv_rank", "rope_dim", "nope_dim", "value_dim")}
        fields["latent"] = latent | {"query_rank": draw(st.none() | st.integers(1, 20))}
        fields["head_dim"] = latent["rope_dim"] + latent["nope_dim"]
    return Shape.of(**fields)


def by_hand(s: Shape) -> int:
    """The total from a list of matrices and vectors, layer by layer: a second way to the same number."""
    norm = {"layernorm": 2, "rmsnorm": 1, "none": 0}[s.norm]
    d, q, kv = s.width, s.heads * s.head_dim, s.kv_heads * s.head_dim
    e = s.embedding_width or d

    def linear(into: int, out: int, bias: bool) -> int:
        return into * out + (out if bias else 0)

    def feed_forward(f: int) -> int:
        gate = linear(d, f, s.ff_bias) if s.ff == "gated" else 0
        return gate + linear(d, f, s.ff_bias) + linear(f, d, s.ff_bias)

    total = s.vocab * e + (0 if s.tied else s.vocab * e) + (s.vocab if s.head_bias else 0)
    total += (linear(e, d, False) + linear(d, e, False)) if s.embedding_width else 0
    total += (s.context + s.extra_positions) * d if s.positions == "learned" else 0
    total += norm * d * (int(s.embedding_norm) + int(s.final_norm))
    for layer in range(s.depth):
        total += norm * d * s.block_norms
        if m := s.latent:
            # biases only where DeepSeek has them: on the way into the latents, and out
            if m.query_rank:
                total += linear(d, m.query_rank, s.qkv_bias) + norm * m.query_rank + linear(m.query_rank, q, False)
            else:
                total += linear(d, q, False)
            total += linear(d, m.kv_rank + m.rope_dim, s.qkv_bias) + norm * m.kv_rank
            total += linear(m.kv_rank, s.heads * (m.nope_dim + m.value_dim), False)
            total += linear(s.heads * m.value_dim, d, s.out_bias)
        else:
            total += linear(d, q, s.qkv_bias) + 2 * linear(d, kv, s.qkv_bias) + linear(q, d, s.out_bias)
            total += norm * {"none": 0, "head": 2 * s.head_dim, "full": q + kv}[s.qk_norm]
        if s.experts and layer not in s.experts.dense_layers:
            moe = s.experts
            total += linear(d, moe.experts, False) + sum(feed_forward(moe.width) for _ in range(moe.experts))
            total += feed_forward(moe.shared * moe.width) if moe.shared else 0
        else:
            total += feed_forward(s.ff_width)
    return total


@given(shapes())
def test_the_total_is_the_sum_of_all_matrices_and_vectors(shape: Shape) -> None:
    assert shape.total_params == by_hand(shape)


@given(shapes())
def test_the_parts_sum_to_the_total(shape: Shape) -> None:
    p = shape.params
    assert p.embedding + p.positions + p.attention + p.feed_forward + p.norms + p.head == p.total == shape.total_params
    assert p.attention + p.feed_forward + p.norms == p.block == shape.block_params
    assert min(p.embedding, p.positions, p.attention, p.feed_forward, p.norms, p.head, p.inactive) >= 0
    assert all(isinstance(value, int) for value in p.model_dump().values())


@given(shapes(), st.sampled_from(["depth", "width", "vocab"]), st.integers(1, 50))
def test_more_depth_width_or_vocabulary_is_more_parameters(shape: Shape, name: str, more: int) -> None:
    grown = shape.but(**{name: getattr(shape, name) + more})
    assert grown.total_params > shape.total_params
    assert grown.block_params >= shape.block_params
    assert (grown.block_params == shape.block_params) == (name == "vocab")


@given(shapes(), st.integers(1, 50))
def test_a_wider_feed_forward_is_more_parameters_where_a_layer_has_one(shape: Shape, more: int) -> None:
    grown = shape.but(ff_width=shape.ff_width + more)
    dense = shape.depth if shape.experts is None else len(shape.experts.dense_layers)
    assert (grown.total_params > shape.total_params) == (dense > 0)


@given(shapes())
def test_embeddings_do_not_count_towards_the_law(shape: Shape) -> None:
    other = shape.but(vocab=2 * shape.vocab, tied=not shape.tied, context=3 * shape.context, positions="none")
    assert other.block_params == shape.block_params


@given(shapes())
def test_tied_is_less_than_untied_by_one_vocabulary_of_embeddings(shape: Shape) -> None:
    saved = shape.but(tied=False).total_params - shape.but(tied=True).total_params
    assert saved == shape.vocab * (shape.embedding_width or shape.width)


@given(shapes())
def test_active_is_total_less_the_experts_a_token_is_not_sent_to(shape: Shape) -> None:
    if shape.experts is None:
        assert shape.active_params == shape.total_params
        return
    moe = shape.experts
    fewer = shape.but(experts=moe.model_copy(update={"experts": moe.active}))
    routers = (shape.depth - len(moe.dense_layers)) * shape.width * (moe.experts - moe.active)
    assert shape.active_params == fewer.total_params + routers
    assert shape.active_params <= shape.total_params


@given(st.integers(1, 100), st.integers(1, 5000))
def test_the_laws_block_is_twelve_depth_width_squared(depth: int, width: int) -> None:
    """What Levine et al. call N, exactly, when norms and biases are left out."""
    bare: dict[str, Any] = {"qkv_bias": False, "out_bias": False, "ff_bias": False, "norm": "none"}
    assert Shape(depth=depth, width=width, **bare).block_params == 12 * depth * width**2


def test_counting_does_not_walk_the_layers() -> None:
    shape = Shape(depth=10**9, width=10**9, ff_width=10**9, vocab=10**9)
    assert shape.block_params > 6 * 10**27


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DeepwideError, match=r"there is no field 'dept': did you mean 'depth'\?$"):
        Shape.of(dept=12, depth=12, width=64)


def test_the_constructor_itself_speaks_pydantic() -> None:
    with pytest.raises(ValidationError):
        Shape(depth=0, width=64)


def test_but_changes_some_fields_and_checks_again() -> None:
    shape = Shape(depth=12, width=768)
    deeper = shape.but(depth=24)
    assert deeper.depth == 24
    assert deeper.but(depth=12) == shape
    with pytest.raises(DeepwideError, match=r"heads \(12\) must be a multiple of kv_heads \(5\)"):
        shape.but(kv_heads=5)
    with pytest.raises(DeepwideError, match="did you mean 'depth'"):
        shape.but(depht=24)


def test_but_keeps_experts_and_latent_attention() -> None:
    shape = Shape(
        depth=3,
        width=64,
        heads=2,
        head_dim=12,
        experts=Experts(experts=4, active=2, width=16, dense_layers=(0,)),
        latent=LatentAttention(kv_rank=4, rope_dim=4, nope_dim=8, value_dim=6),
    )
    assert shape.but(depth=5).experts == shape.experts
    assert shape.but(depth=5).latent == shape.latent


def test_a_shape_is_a_value() -> None:
    shape = Shape(depth=2, width=64)
    assert shape == Shape(depth=2, width=64)
    assert len({shape, Shape(depth=2, width=64), Shape(depth=3, width=64)}) == 2
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert Shape.model_validate_json(shape.model_dump_json(), strict=False) == shape
    with pytest.raises(ValidationError, match="frozen"):
        shape.depth = 3  # type: ignore[misc]
