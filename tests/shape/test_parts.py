"""Parts: what a Shape fills in, what it refuses and in which words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape import Shape

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
