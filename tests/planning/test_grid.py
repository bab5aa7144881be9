"""A Grid reads as a Shape: fields from the template, sizes as arrays, what is derived is derived from them."""

import numpy as np
import pytest

from deepwide.planning.grid import Grid
from deepwide.shape import Shape, cache_elements, causal_training_flops, flops

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
    assert cache_elements(several.as_shape) == 2 * 2 * 64


def test_a_grid_is_frozen() -> None:
    with pytest.raises(AttributeError):
        grid([1]).depth = 2  # type: ignore[misc]
