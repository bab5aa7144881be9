"""Architecture: named choices, what follows from the kind, what makes no network, and the table of parametrisations."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, factors
from deepwide.model import architecture as choices
from deepwide.model.architecture import attention_scale, branch_multiplier, logits_multiplier
from deepwide.model.attention import ATTENTION, MIXERS
from deepwide.model.initialisation import SPREADS
from deepwide.model.layers import ACTIVATIONS, FEED_FORWARD, NORMS, RESIDUAL
from deepwide.shape import MixingKind, Shape
from model.builders import SMALL


def test_every_named_choice_has_a_builder_and_every_builder_a_name() -> None:
    assert set(get_args(choices.AttentionKind)) == ATTENTION.keys() | MIXERS.keys()
    assert MIXERS.keys() == choices.MIXING_SIZES.keys() == set(get_args(MixingKind))
    assert set(get_args(choices.Activation)) == ACTIVATIONS.keys()
    assert set(get_args(choices.Residual)) == RESIDUAL.keys()
    assert set(get_args(choices.Initialisation)) == SPREADS.keys()
    assert set(get_args(Shape.model_fields["ff"].annotation)) == FEED_FORWARD.keys()
    assert set(get_args(Shape.model_fields["norm"].annotation)) == NORMS.keys()


def test_a_network_is_a_decoder_for_tokens_unless_asked_otherwise() -> None:
    shape = Architecture.of(**SMALL).shape
    assert (shape.kind, shape.encoder_depth, shape.head, shape.classes) == ("decoder", 0, "tokens", 0)


def test_what_is_causal_and_what_crosses_follows_from_the_kind() -> None:
    encoder = Architecture.of(**SMALL, kind="encoder")
    both = Architecture.of(**SMALL, kind="encoder-decoder", encoder_depth=5)
    assert Architecture.of(**SMALL).causal
    assert not encoder.causal
    assert both.causal
    assert both.stack == (2, 3, True, True)
    assert both.encoder == both.stack_of("encoder.blocks.0.attention.qkv.weight") == (5, 2, False, False)
    assert both.stack_of("blocks.0.attention.qkv.weight") == both.stack


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"preset": "lama"}, "did you mean 'llama'"),
        ({"resid": "plain"}, "did you mean 'residual'"),
        ({"residual": "magic"}, "residual: input should be 'plain'"),
        ({"heads": 3}, "not a multiple of heads"),
        ({"positions": "rotary", "heads": 16}, "even head_dim"),
        ({"attention": "linear", "positions": "alibi"}, "linear attention has none"),
        ({"attention": "hard"}, "looks are for hard attention, one per head"),
        ({"looks": ("leftmost j<i",)}, "looks are for hard attention, one per head"),
        ({"attention": "hard", "heads": 1, "looks": ("nearest j<i",)}, "looks.0: input should be 'leftmost none'"),
        (
            {"attention": "hard", "heads": 1, "looks": ("leftmost j<i",), "positions": "alibi"},
            "hard attention has none",
        ),
        ({"block_norms": 3}, "has block_norms 2, the shape 3"),
        ({"residual_scales": 3}, "does not learn 3 numbers per block"),
        ({"experts": {"experts": 2, "active": 1, "width": 4}}, "counted but not trained yet"),
        ({"embedding_width": 8}, "counted but not trained yet"),
        ({"kind": "decodr"}, "kind: input should be 'decoder'"),
        ({"kind": "encoder-decoder"}, "encoder_depth"),
        ({"head": "class"}, "classes"),
    ],
)
def test_choices_that_make_no_network_get_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    preset = changes.pop("preset", "levine")
    with pytest.raises(DeepwideError, match=sentence) as complaint:
        Architecture.of(preset, **(SMALL | changes))
    assert "\n" not in str(complaint.value)


JUNK = st.none() | st.booleans() | st.integers(-3, 99) | st.floats() | st.text(max_size=5)
NAMES = [*Shape.model_fields, *choices.Choices.model_fields, "junk"]


@given(st.dictionaries(st.sampled_from(NAMES), JUNK, max_size=6), st.sampled_from(["levine", "llama", "linear"]))
def test_any_choices_give_a_network_or_one_sentence(fields: dict[str, Any], preset: str) -> None:
    try:
        Architecture.of(preset, **({"depth": 2, "width": 16} | fields))
    except DeepwideError as complaint:
        sentence = str(complaint)
        assert "\n" not in sentence
        assert len(sentence) < 500
        assert sentence.endswith((".", "?"))


HIDDEN, BIAS, EMBEDDING = "blocks.1.feed_forward.up.weight", "blocks.1.feed_forward.up.bias", "embedding.weight"


def design(parametrisation: str, **changes: Any) -> Architecture:
    sizes: dict[str, Any] = {"depth": 6, "width": 256, "head_dim": 32, "base_depth": 2, "base_width": 64}
    return Architecture.of(**(sizes | {"parametrisation": parametrisation} | changes))


@pytest.mark.parametrize(
    ("kind", "hidden", "bias", "embedding"),
    [
        ("standard", (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1)),
        ("mup", (1 / 2, 1 / 4, 4, 1 / 4), (1, 1, 1, 1 / 4), (1, 1, 1, 1 / 4)),
        ("completep", (1 / 2, 1 / 4, 4, 1 / 12), (1, 1, 1, 1 / 12), (1, 1, 1, 1 / 4)),
    ],
)
def test_factors_are_those_of_the_table(kind: str, hidden: Any, bias: Any, embedding: Any) -> None:
    for name, dimensions, expected in ((HIDDEN, 2, hidden), (BIAS, 1, bias), (EMBEDDING, 2, embedding)):
        f = factors(design(kind), name, dimensions)
        assert (f.init, f.lr, f.decay, f.eps) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "branch", "logits", "scores"),
    [("standard", 1, 1, 32**-0.5), ("mup", 1, 1 / 4, 8 / 32), ("completep", 1 / 3, 1 / 4, 8 / 32)],
)
def test_multipliers_are_those_of_the_table(kind: str, branch: float, logits: float, scores: float) -> None:
    d = design(kind)
    measured = (branch_multiplier(d, d.stack), logits_multiplier(d), attention_scale(d))
    assert measured == pytest.approx((branch, logits, scores))


def test_at_the_base_shape_all_are_standard() -> None:
    for kind in ("mup", "completep"):
        base = design(kind, depth=2, width=64, head_dim=64)
        for name, dimensions in ((HIDDEN, 2), (BIAS, 1), (EMBEDDING, 2)):
            assert factors(base, name, dimensions) == factors(design("standard"), name, dimensions)
        assert (branch_multiplier(base, base.stack), logits_multiplier(base)) == (1, 1)
        assert attention_scale(base) == 64**-0.5


def test_an_encoder_follows_its_own_depth() -> None:
    both = design("completep", kind="encoder-decoder", encoder_depth=10)
    assert branch_multiplier(both, both.encoder) == pytest.approx(2 / 10)
    assert branch_multiplier(both, both.stack) == pytest.approx(2 / 6)
    assert factors(both, f"encoder.{HIDDEN}", 2).eps == pytest.approx(1 / 4 * 2 / 10)
    assert factors(both, "encoder.positions", 2) == factors(both, "positions", 2)


def test_the_hidden_layer_of_a_head_for_pairs_is_hidden_and_its_last_is_not() -> None:
    pair = design("mup", kind="encoder", head="pair", classes=2)
    assert factors(pair, "classifier.hidden.weight", 2) == factors(pair, HIDDEN, 2)
    assert factors(pair, "classifier.out.weight", 2) == factors(pair, EMBEDDING, 2)


def test_attention_of_encoders_has_its_usual_size_unless_given() -> None:
    design = Architecture.of(**SMALL, kind="encoder", attention="bigbird")
    assert (design.attention_size, design.attention_links) == (64, 3)
    assert design.shape.mixing is not None
    assert design.shape.mixing.model_dump() == {"kind": "bigbird", "size": 64, "links": 3}
    assert Architecture.of(**SMALL, kind="encoder", attention="local", attention_size=3).attention_size == 3
    assert Architecture.of(**SMALL).shape.mixing is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"attention": "local", "kind": "decoder"}, "local attention is for encoders"),
        ({"attention": "local", "heads": 2, "kv_heads": 1}, "as many key/value heads"),
        ({"attention": "softmax", "attention_size": 8}, "softmax attention takes neither"),
        ({"attention": "local", "attention_links": 2}, r"local attention takes a size \("),
        ({"attention": "longformer", "attention_size": 7}, "must be even, not 7"),
        ({"attention": "sparse", "attention_size": 4, "attention_links": 5}, "at most attention_size"),
        ({"attention": "local", "parametrisation": "mup"}, "does not say how local attention is scaled"),
        ({"attention": "local", "positions": "alibi"}, "alibi biases the scores"),
        ({"attention": "synthesizer", "qk_norm": "head"}, "no queries and keys"),
    ],
)
def test_what_attention_of_encoders_cannot_be_is_said(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DeepwideError, match=message):
        Architecture.of(**(SMALL | {"kind": "encoder"} | fields))
