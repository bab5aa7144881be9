"""The optimum lies on the law and takes the budget."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deepwide.laws import TransitionLaw, transition_law
from deepwide.planning import Budget, Style
from deepwide.planning.optimum import find_optimum, width_of_blocks


def test_the_optimum_lies_on_the_law_and_meets_the_budget() -> None:
    style, sizes = Style(), np.logspace(7, 14, 50)
    for kind in ("block", "total"):
        budget = Budget.of(1, kind)
        optimum = find_optimum(style, transition_law(), budget, sizes)
        grid = style.grid(optimum.depth.value, optimum.width)
        assert budget.measure(grid) == pytest.approx(sizes, rel=1e-6)
        block = Budget.of(1).measure(grid)
        assert optimum.depth.value == pytest.approx(np.maximum(1, transition_law().depth(block).value), rel=1e-6)


@given(st.floats(1, 200), st.floats(6, 14).map(lambda power: 10**power))
def test_the_width_of_blocks_of_a_size_has_that_size(depth: float, N: float) -> None:
    style = Style()
    width = float(width_of_blocks(style, depth, N))
    assume(width > 8)
    assert Budget.of(1).measure(style.grid(depth, width)) == pytest.approx(N, rel=1e-6)


def test_a_law_s_depth_beyond_the_sizes_it_was_checked_at_does_no_harm() -> None:
    """Along the bisection a law is asked about sizes from 12 to 1e17."""
    steep = TransitionLaw(name="steep", a=0.0, b=1e-4, fitted_block_params=(1e6, 1e8))
    optimum = find_optimum(Style(), steep, Budget.of("10M"), np.array([1e7]))
    assert optimum.depth.value[0] == pytest.approx(steep.depth_at(float(optimum.block_params[0])))
