"""The Gemstones surface against its published optima, its formula written out, and a numerical minimum.

Legend: P total parameters, L depth, d width.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from deepwide.laws import SurfaceLaw, depth_law, transition_law

LEVINE = transition_law()
GEMSTONES = depth_law("gemstones")


@pytest.mark.parametrize(
    ("P", "L", "d", "levine"),
    [(0.1e9, 35, None, 21), (0.5e9, 39, 842, 34), (1e9, 42, 1182, 39), (2e9, 47, 1614, 45), (7e9, 58, 2779, 55),
     (70e9, 87, 7285, 73)],
)  # fmt: skip
def test_the_gemstones_optima_are_reproduced(P: float, L: int, d: int | None, levine: int) -> None:
    assert isinstance(GEMSTONES, SurfaceLaw)
    depth, width = (float(x[0]) for x in GEMSTONES.optimum(P))
    assert round(depth) == L
    at_whole_depth = float(GEMSTONES._width(np.array([L]), np.array([P]))[0])
    assert width == pytest.approx(at_whole_depth, rel=0.01)
    if d is not None:  # read off at a whole depth, and rounded
        assert width == pytest.approx(d, rel=0.005)
    block = 15 * depth * width**2
    assert round(float(LEVINE.depth(block).value[0])) == levine


@given(st.floats(6, 16).map(lambda power: 10**power))
def test_the_surfaces_optimum_is_a_minimum(P: float) -> None:
    assert isinstance(GEMSTONES, SurfaceLaw)
    depth, width = (float(x[0]) for x in GEMSTONES.optimum(P))
    assert 15 * depth * width**2 + 100608 * width == pytest.approx(P, rel=1e-9)

    def loss(u: float) -> float:
        """The paper's formula, written out, at equal total parameters."""
        L = math.exp(u)
        w = (math.sqrt(100608**2 + 60 * L * P) - 100608) / (30 * L)
        return math.exp(1.0820) * w**-0.2196 + math.exp(-0.2187) * L**-0.4759

    best = minimize_scalar(loss, bounds=(-2, 9), method="bounded", options={"xatol": 1e-9})
    assert loss(math.log(depth)) <= best.fun * (1 + 1e-12)


def test_the_surfaces_loss_is_the_papers_formula() -> None:
    assert isinstance(GEMSTONES, SurfaceLaw)
    w, L, T = 1024.0, 28.0, 100e9
    P = 15 * L * w**2 + 100608 * w
    by_hand = math.exp(1.082) * w**-0.2196 + math.exp(-0.2187) * L**-0.4759 + math.exp(6.0902) * P**-0.3636
    by_hand += math.exp(10.472) * T**-0.4935 + math.exp(0.4282)
    assert float(GEMSTONES.loss(L, w, T)) == pytest.approx(by_hand, rel=1e-12)
    assert float(GEMSTONES.loss(L, w)) == pytest.approx(float(GEMSTONES.loss(L, w, 20 * P)), rel=1e-12)


@given(st.floats(6, 16).map(lambda power: 10**power))
def test_the_surfaces_depth_for_blocks_is_its_optimum_without_embeddings(P: float) -> None:
    assert isinstance(GEMSTONES, SurfaceLaw)
    depth, width = (float(x[0]) for x in GEMSTONES.optimum(P))
    assert GEMSTONES.depth(15 * depth * width**2).value[0] == pytest.approx(depth, rel=1e-3)


def test_the_surface_is_never_shallower_for_a_larger_budget_where_it_was_measured() -> None:
    """Below its data, from 60M block parameters down, embeddings eat the budget and its optimum turns deep again."""
    depth = GEMSTONES.depth(np.logspace(8, 17, 500)).value
    assert np.all(np.diff(depth) > 0)


def test_equal_laws_stay_equal_after_use() -> None:
    copy = SurfaceLaw(**GEMSTONES.model_dump())
    copy.depth(1e9)
    GEMSTONES.depth(1e9)
    assert copy == GEMSTONES
    assert len({copy, GEMSTONES}) == 1
