"""Architecture: named choices, what follows from the kind, and what makes no network."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.model import Architecture
from deepwide.model import architecture as choices
from deepwide.model.attention import ATTENTION
from deepwide.model.feed_forward import ACTIVATIONS, FEED_FORWARD
from deepwide.model.initialisation import SPREADS
from deepwide.model.norm import NORMS
from deepwide.model.residual import RESIDUAL
from deepwide.shape import Shape
from model.builders import SMALL


def test_every_named_choice_has_a_builder_and_every_builder_a_name() -> None:
    assert set(get_args(choices.AttentionKind)) == ATTENTION.keys()
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
