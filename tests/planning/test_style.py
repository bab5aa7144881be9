"""Style: what a family of shapes shares, and its arithmetic on arrays against real shapes."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from deepwide.catalogue import find_model
from deepwide.errors import DeepwideError
from deepwide.planning import Style, plan
from deepwide.planning.style import Grid, Sizes
from deepwide.shape import FAMILIES, Shape, cache_elements, causal_training_flops, flops, write_config

SHAPE = Shape(depth=3, width=128, heads=2, ff_width=512, vocab=1000, context=64)


def grid(depths: list[int]) -> Grid:
    return Grid(SHAPE, np.array(depths), 128, 2, 2, 64, 512)


def test_a_field_that_is_no_size_is_the_template_s() -> None:
    assert (grid([1]).vocab, grid([1]).norm, grid([1]).tied) == (1000, "layernorm", True)
    with pytest.raises(AttributeError):
        _ = grid([1]).no_such_field


def test_counts_are_of_the_grid_and_not_of_the_template() -> None:
    depths = [1, 3, 8]
    shapes = [SHAPE.but(depth=depth) for depth in depths]
    several = grid(depths)
    assert several.params.block.tolist() == [shape.block_params for shape in shapes]
    assert several.block_params.tolist() == [shape.block_params for shape in shapes]
    assert (several.total_params + 0 * several.depth).tolist() == [shape.total_params for shape in shapes]
    per_token = [flops(shape, convention="causal").training_per_token for shape in shapes]
    assert causal_training_flops(several.as_shape).tolist() == pytest.approx(per_token)
    assert np.array_equal(cache_elements(several.as_shape), [depth * 2 * 2 * 64 for depth in depths])


def test_a_grid_is_frozen() -> None:
    with pytest.raises(AttributeError):
        grid([1]).depth = 2  # type: ignore[misc]


DENSE = [name for name, family in FAMILIES.items() if not family.has_experts]
HEAD_DIMS = st.sampled_from([8, 16, 32, 64, 128])


def blocks(sizes: Sizes) -> Any:
    return sizes.params.block


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - set(DENSE)))
def test_families_with_experts_are_planned_with_experts_only(family: str) -> None:
    latent = family.startswith("deepseek")
    with pytest.raises(ValidationError, match="latent attention" if latent else f"{family} has experts: give"):
        Style(family=family)
    if not latent:
        assert Style(family=family, experts=8, active=2).shape(2, 128, 64, 96).experts is not None


def test_an_expert_is_so_wide_that_a_token_passes_as_much_as_in_a_dense_model() -> None:
    dense, mixture = Style(), Style(experts=64, active=7, shared=1)
    assert dense.usual_ff_width(3072) == 8192
    assert mixture.usual_ff_width(3072) == 1024
    assert Style(experts=64, active=7, shared=1, granularity=4).usual_ff_width(3072) == 2048
    one, other = dense.shape(2, 3072, 128, 8192).params, mixture.shape(2, 3072, 128, 1024).params
    assert other.active_block == one.active_block + 2 * 64 * 3072  # and the routers


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"family": "lama"}, "no family 'lama': did you mean 'llama'"),
        ({"family": "gpt2", "kv_heads": 2}, "gpt2 has one key/value head per head; leave kv_heads out"),
        ({"family": "bloom", "ff_ratio": 3.0}, "bloom has a feed-forward of 4 × width; leave ff_ratio out"),
        ({"family": "llama", "head_dim": 65}, "rotary positions need heads of even width, not 65"),
        ({"ff_ratio": 0.0}, "greater than 0"),
        ({"ff_ratio": float("nan")}, "ff_ratio"),
        ({"tensor_parallel": 0}, "greater than or equal to 1"),
        ({"vocab": 10**10}, "less than or equal to"),
        ({"tensor_paralel": 2}, "tensor_paralel"),
        ({"experts": 8}, "how many are active per token"),
        ({"active": 8}, "active is for mixtures of experts"),
        ({"shared": 1}, "shared is for mixtures of experts"),
        ({"granularity": 2.0}, "granularity is for mixtures of experts"),
        ({"experts": 4, "active": 5}, "active must be at most the 4 experts, not 5"),
        ({"experts": 4, "active": 1, "family": "llama"}, "llama has no experts: leave it out, or choose mixtral"),
        ({"experts": 4, "active": 1, "shared": 1, "family": "mixtral"}, "mixtral has no shared experts"),
        ({"experts": 4, "active": 1, "feed_forward": "plain"}, "mixtral has a gated feed-forward"),
    ],
)
def test_what_a_family_cannot_have_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Style(**fields)


@pytest.mark.parametrize("family", DENSE)
@given(st.integers(1, 200), st.integers(1, 300), HEAD_DIMS, st.integers(1, 4), st.booleans())
def test_a_planned_shape_is_one_its_family_can_write(
    family: str, depth: int, heads: int, head_dim: int, groups: int, tied: bool
) -> None:
    free = FAMILIES[family].free_kv
    style = Style(family=family, kv_heads=heads if free else None, tied=tied, vocab=1000, context=512)
    width = heads * head_dim * (groups if free else 1)
    shape = style.shape(depth, width, head_dim, int(style.usual_ff_width(width)))
    assert (shape.depth, shape.width, shape.head_dim, shape.tied) == (depth, width, head_dim, tied)
    assert shape.kv_heads == heads
    assert write_config(shape, family)["model_type"] == family


def test_a_planned_falcon_has_no_biases_as_no_falcon_has() -> None:
    shape = Style(family="falcon").shape(2, 128, 64, 512)
    assert (shape.qkv_bias, shape.out_bias, shape.ff_bias) == (False, False, False)


@given(
    st.sampled_from(DENSE),
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99), HEAD_DIMS), min_size=1, max_size=5),
    st.integers(1, 4000),
    st.sampled_from([None, 1, 3]),
)
def test_shapes_as_arrays_count_as_one_by_one(
    family: str, sizes: list[tuple[int, int, int]], context: int, kv_heads: int | None
) -> None:
    kv_heads = kv_heads if FAMILIES[family].free_kv else None
    style = Style(family=family, context=context, kv_heads=kv_heads)
    depth, heads, head_dim = (np.array(column) for column in zip(*sizes, strict=True))
    heads = heads * (kv_heads or 1)
    grid = style.grid(depth, heads * head_dim, head_dim)
    rows = np.stack([depth, grid.width, head_dim, grid.ff_width], axis=1)
    shapes = [style.shape(*(int(x) for x in row)) for row in rows]
    assert np.broadcast_to(grid.params.total, len(shapes)).tolist() == [shape.total_params for shape in shapes]
    assert np.array(grid.params.block).tolist() == [shape.block_params for shape in shapes]
    per_token = [flops(shape, convention="causal").training_per_token for shape in shapes]
    assert causal_training_flops(grid.as_shape).tolist() == pytest.approx(per_token, rel=1e-12)


@given(st.sampled_from(DENSE), st.floats(1, 200), st.floats(5, 15))
def test_width_for_meets_the_amount(family: str, depth: float, power: float) -> None:
    style, amount = Style(family=family), 10**power
    width = float(style.width_for(depth, amount, blocks))
    if width > 1.001:  # the narrowest there is
        assert blocks(style.grid(depth, width)) == pytest.approx(amount, rel=1e-9)


@given(st.sampled_from(DENSE), st.integers(1, 300), HEAD_DIMS, st.integers(1, 1000))
def test_depth_for_undoes_the_count(family: str, heads: int, head_dim: int, depth: int) -> None:
    style, width = Style(family=family), heads * head_dim
    amount = style.shape(depth, width, head_dim, int(style.usual_ff_width(width))).block_params
    assert style.depth_for(np.array([width]), amount, blocks, head_dim)[0] == pytest.approx(depth, rel=1e-9)


@given(st.integers(8, 10**6), st.sampled_from([1, 2, 3, 8]), st.none() | st.floats(0.5, 8))
def test_the_usual_feed_forward_is_near_its_ratio_and_divides(width: int, split: int, ratio: float | None) -> None:
    assert Style(family="gpt2", tensor_parallel=split).usual_ff_width(width) == 4 * width
    for family, usual in (("llama", 8 / 3), ("gpt2", None)):
        if ratio is None and usual is None:
            continue
        style = Style(family=family, tensor_parallel=split, ff_ratio=ratio)
        ff_width, unit = int(style.usual_ff_width(width)), int(style.ff_multiple(width))
        assert ff_width % unit == 0
        assert unit % split == 0
        assert unit % (64 if width >= 1024 else 8) == 0
        assert ff_width == unit or abs(ff_width - (ratio or usual or 0) * width) <= unit / 2


def test_only_a_gated_feed_forward_of_no_given_ratio_is_free() -> None:
    assert Style(family="llama").ff_is_free
    assert not Style(family="llama", ff_ratio=3.0).ff_is_free
    assert not Style(family="gpt2").ff_is_free


def test_a_changed_copy_counts_by_its_own_fields() -> None:
    style = Style(vocab=1000)
    assert style.shape(1, 64, 64, 64).vocab == 1000
    assert style.model_copy(update={"vocab": 2000}).shape(1, 64, 64, 64).vocab == 2000


def test_the_families_with_experts_are_those_that_have_them() -> None:
    assert set(FAMILIES) - set(DENSE) == {"mixtral", "qwen3_moe", "glm4_moe", "deepseek_v2", "deepseek_v3"}


def test_a_plain_feed_forward_without_a_family_is_gpt2_s() -> None:
    assert Style.of({"feed_forward": "plain"}).family == "gpt2"
    assert Style.of({"feed_forward": "gated", "family": None}).family == "llama"
    with pytest.raises(DeepwideError, match="the family gpt2 has a plain feed-forward, not a gated one"):
        Style.of({"feed_forward": "gated", "family": "gpt2"})


def test_units_are_read_where_people_write_them() -> None:
    style = Style.of({"vocab": "128k", "context": "8Ki"})
    assert (style.vocab, style.context) == (128_000, 8192)


@pytest.mark.parametrize("name", ["llama-3-8b", "gpt2", "falcon-7b", "gemma-2-9b", "mistral-7b"])
def test_the_style_of_a_model_keeps_its_parts(name: str) -> None:
    model = find_model(name).shape
    style = Style.of_model(model)
    width = 8 * model.head_dim * style.heads_share
    shape = style.shape(7, width, model.head_dim, int(style.usual_ff_width(width)))
    same = ("norm", "positions", "tied", "vocab", "qkv_bias", "ff", "head_dim", "block_norms")
    assert [getattr(shape, field) for field in same] == [getattr(model, field) for field in same]
    assert shape.kv_heads == (shape.heads if model.kv_heads == model.heads else model.kv_heads)
    assert shape.ff_width / shape.width == pytest.approx(model.ff_width / model.width, rel=0.02)


@settings(max_examples=60, deadline=None)
@given(st.floats(7, 11), st.floats(1, 64), st.sampled_from([(8, 2), (64, 8), (128, 4)]), st.sampled_from([1, 2, 8]))
def test_a_granularity_is_met_or_the_miss_is_said(
    size: float, granularity: float, experts: tuple[int, int], split: int
) -> None:
    """A fresh user's find: experts were stretched to meet the budget, and missed the granularity by up to 16%."""
    many, active = experts
    granularity = round(granularity, 1)
    try:
        best = plan(10**size, experts=many, active=active, granularity=granularity, tensor_parallel=split)
    except DeepwideError:
        return  # experts too narrow for the split
    assert best.mixture is not None
    miss = best.mixture.granularity / granularity - 1
    notes = [note for note in best.notes if note.code == "granularity-missed"]
    assert len(notes) == (abs(miss) > 0.01)
    if notes:
        assert f"{miss:+.1%} from the {granularity:g} asked for" in notes[0].text
    # No expert of that granularity is further off than half of the finest step.
    wanted = 8 / 3 * best.shape.width / granularity
    step = math.lcm(8, split)
    assert abs(best.mixture.width - wanted) <= max(step / 2, 0.01 * wanted) or best.mixture.width == step
