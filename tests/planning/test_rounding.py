"""Rounding: divisible as asked, near the budget, and at the law's depth unless that costs too much."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape.params import count
from deepwide.shape.rounding import FF_STRETCH, Rounded, round_shapes
from deepwide.shape.shape import Shape
from deepwide.shape.style import Style


def blocks(shape: Shape) -> int:
    return count(shape).block


def rounded(style: Style, size: float, depth: float, **how: bool) -> tuple[Rounded, Shape]:
    amounts, depths = np.array([size]), np.array([depth])
    result = round_shapes(style, amounts, depths, style.width_for(depths, amounts, blocks), blocks, **how)
    return result, style.shape(*(int(values[0]) for values in result))


@settings(max_examples=60, deadline=None)
@given(
    size=st.floats(6, 14).map(lambda e: 10**e),
    aspect=st.floats(16, 256),
    tensor_parallel=st.sampled_from([1, 2, 3, 8]),
    pipeline_stages=st.sampled_from([1, 2, 5]),
    family=st.sampled_from(["llama", "gpt2", "qwen3", "gpt_neox"]),
)
def test_what_was_asked_for_divides(
    size: float, aspect: float, tensor_parallel: int, pipeline_stages: int, family: str
) -> None:
    style = Style(family=family, tensor_parallel=tensor_parallel, pipeline_stages=pipeline_stages)
    _, shape = rounded(style, size, max(1.0, (size / (12 * aspect**2)) ** (1 / 3)))
    assert shape.depth % pipeline_stages == 0
    assert shape.heads % tensor_parallel == 0
    assert shape.ff_width % tensor_parallel == 0
    assert shape.heads * shape.head_dim == shape.width
    if shape.ff == "plain":
        assert shape.ff_width == 4 * shape.width
    else:
        ratio = shape.ff_width / (8 / 3 * shape.width)
        slack = style.ff_multiple(shape.width) / shape.width
        assert FF_STRETCH[0] - slack <= ratio <= FF_STRETCH[1] + slack


def test_the_optimal_depth_rounded_is_kept_where_the_budget_allows() -> None:
    for depth in np.linspace(3, 120, 40):
        style = Style()
        result, _ = rounded(style, 12 * depth * (96 * depth) ** 2, depth)
        assert result.depth[0] == round(depth)


def test_another_depth_is_taken_where_coarse_widths_would_miss_the_budget() -> None:
    coarse = Style(family="gpt2", width_multiple=1024)
    _, shape = rounded(coarse, 12 * 40 * 1536**2, 40.0)
    assert shape.width in (1024, 2048)
    assert shape.depth != 40
    assert blocks(shape) == pytest.approx(12 * 40 * 1536**2, rel=0.05)


def test_never_over_means_never() -> None:
    for size in np.logspace(7, 12, 60):
        _, shape = rounded(Style(), size, max(1.0, math.log(size)), never_over=True)
        assert 0.9 * size < blocks(shape) <= size


def test_a_fixed_depth_or_width_is_kept() -> None:
    _, shape = rounded(Style(), 7e9, 33.0, fixed_depth=True)
    assert shape.depth == 33
    amounts, width = np.array([7e9]), np.array([4160.0])
    depth = Style().depth_for(width, amounts, blocks)
    assert round_shapes(Style(), amounts, depth, width, blocks, fixed_width=True).width[0] == 4160


def test_a_width_no_head_divides_is_refused_with_the_reason() -> None:
    amounts, width = np.array([1e9]), np.array([1001.0])
    with pytest.raises(DeepwideError, match="width 1001 cannot be split into heads of 128, 64"):
        round_shapes(Style(), amounts, np.array([30.0]), width, blocks, fixed_width=True)


def test_from_width_512_on_heads_are_never_narrower_than_half_the_ideal() -> None:
    sizes = np.logspace(8, 13, 300)
    depth = np.log(sizes)
    style = Style(kv_heads=8, tensor_parallel=8)
    result = round_shapes(style, sizes, depth, style.width_for(depth, sizes, blocks), blocks)
    assert result.head_dim[result.width >= 4096].min() >= 64
    assert result.head_dim[result.width >= 1024].min() >= 32


def law_of_logs(sizes: np.ndarray) -> np.ndarray:
    """Some depths to round; any would do."""
    return 3 * np.log(sizes) - 35


def test_another_depth_is_taken_only_where_it_saves_more_than_its_price() -> None:
    """With one head width and heads in eights, a miss and another depth are all that is weighed."""
    style, sizes = Style(family="gpt2", head_dim=64, width_multiple=512), np.logspace(8, 12, 800)
    depth = law_of_logs(sizes)
    width = style.width_for(depth, sizes, blocks)
    free, kept = (round_shapes(style, sizes, depth, width, blocks, fixed_depth=fixed) for fixed in (False, True))

    def miss(result: Rounded) -> np.ndarray:
        return np.abs(np.log(blocks(style.grid(result.depth, result.width, result.head_dim)) / sizes))

    moved = free.depth != kept.depth
    assert 20 < moved.sum() < 780
    price = 0.03 + 0.5 * np.abs(np.log(free.depth / kept.depth))
    assert np.all((miss(kept) > miss(free) + price)[moved])


def test_without_constraints_heads_have_their_ideal_width_and_divide_well() -> None:
    style, sizes = Style(), np.logspace(8, 13, 800)
    depth = law_of_logs(sizes)
    result = round_shapes(style, sizes, depth, style.width_for(depth, sizes, blocks), blocks)
    assert np.mean(result.head_dim[result.width >= 2048] == 128) > 0.95
    assert np.mean(result.head_dim[(result.width >= 512) & (result.width < 2048)] == 64) > 0.9
    heads = result.width // result.head_dim
    assert np.mean(heads % 4 == 0) > 0.7
    assert np.mean(heads[result.width > 8192] % 8 == 0) > 0.8
