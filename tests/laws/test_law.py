"""What holds for every law: no size overflows, many at once are as one by one, each has its opinion."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from deepwide.laws import Bowl, DepthLaw, Law, TransitionLaw, depth_cost, depth_law, outside_the_data, published_laws

BOWL = Bowl(curvature=0.02, error=0.002, x_range=(-1.0, 1.5))
LAW = TransitionLaw(name="mine", a=3.2, b=0.25, bowl=BOWL, fitted_block_params=(1e4, 1e6))


@pytest.mark.parametrize(("x", "y"), [(0.7, 0.0), (-0.5, 0.3), (1.2, -0.9)])
def test_the_interval_is_what_random_draws_of_slope_and_curvature_give(x: float, y: float) -> None:
    covariance = ((4e-6, 1e-6), (1e-6, 9e-6))
    bowl = Bowl(slope=0.003, curvature=0.02, covariance=covariance, x_range=(-2, 2))
    draws = np.random.default_rng(0).multivariate_normal([0.003, 0.02], covariance, 200_000)
    logs = draws[:, 0] * (x - y) + draws[:, 1] * (x * x - y * y)
    cost = bowl.cost(x, y)
    assert cost is not None
    assert cost.value == pytest.approx(100 * math.expm1(0.003 * (x - y) + 0.02 * (x * x - y * y)))
    assert [cost.low, cost.high] == pytest.approx(
        (100 * np.expm1(np.quantile(logs, [0.025, 0.975]))).tolist(), rel=0.03
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"curvature": 1e18, "error": 0.1},
        {"curvature": 0.02, "error": 1e18},
        {"curvature": 0.02, "error": 0.1, "x_range": (-1e300, 1e300)},
        {"curvature": 0.02, "error": 0.1, "x_range": (1.0, -1.0)},
        {"curvature": 0.02},
        {"curvature": 0.02, "error": 0.1, "covariance": ((1, 0), (0, 1))},
        {"curvature": 0.02, "covariance": ((1, 2), (2, 1))},
    ],
)
def test_numbers_that_make_no_bowl_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Bowl.model_validate({"x_range": (-1.0, 1.0)} | fields)


def test_the_steepest_bowl_that_is_allowed_does_not_overflow() -> None:
    bowl = Bowl(slope=1e3, curvature=1e3, error=1e3, x_range=(-20, 20))
    assert bowl.cost(20, 0, place_error=20) is not None


def test_the_cost_of_a_depth_is_the_laws_own_bowl() -> None:
    best = float(LAW.depth(1e5).value[0])
    cost = depth_cost(2 * best, best, 1e5, LAW)
    assert cost is not None
    assert cost.value == pytest.approx(100 * math.expm1(0.02 * math.log(2) ** 2))
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low < cost.value < cost.high
    nearer = depth_cost(best, 2 * best, 1e5, LAW)
    assert nearer is not None
    assert nearer.value < 0
    assert depth_cost(30 * best, best, 1e5, LAW) is None


def test_what_another_depth_costs_is_as_unsure_as_where_the_best_one_is() -> None:
    """The law's depth may be off by its own error: half as deep then costs more, or less."""
    best = LAW.depth(1e5).at()
    unsure = LAW.model_copy(update={"covariance": ((0.04, 0.0), (0.0, 0.0))})
    there = unsure.depth(1e5).at()
    half, sure = (depth_cost(best.value / 2, best.value, 1e5, law) for law in (unsure, LAW))
    assert half is not None
    assert sure is not None
    moved = max(math.log((there.high or 0) / there.value), math.log(there.value / (there.low or 1)))
    curve, steep = 0.02, 1.96 * 0.002  # of BOWL
    x = math.log(2)
    expected = math.hypot(steep * x**2, 2 * curve * x * moved)
    assert math.log1p((half.high or 0) / 100) - math.log1p(half.value / 100) == pytest.approx(expected, rel=0.01)
    assert (half.high or 0) - (half.low or 0) > (sure.high or 0) - (sure.low or 0)
    lost = LAW.model_copy(update={"covariance": ((9.0, 0.0), (0.0, 0.0))})
    assert lost.depth(1e5).at().low == 0
    assert depth_cost(best.value / 2, best.value, 1e5, lost) is not None


def test_it_is_said_when_the_bowl_is_left() -> None:
    best = float(LAW.depth(1e5).value[0])
    assert outside_the_data(best, 1e5, LAW) is None
    assert "10K to 1M" in str(outside_the_data(best, 1e7, LAW))
    assert "times the best depth only" in str(outside_the_data(best / 4, 1e5, LAW))
    assert outside_the_data(24, 1e8) is None, "without a bowl of its own, all public sets'"


PREDICTING = [law for law in published_laws().values() if isinstance(law, DepthLaw)]
SIZES = st.floats(3, 17).map(lambda power: 10**power)


@pytest.mark.parametrize("law", PREDICTING, ids=lambda law: law.name)
def test_no_size_from_a_thousand_to_a_hundred_quadrillion_overflows(law: DepthLaw) -> None:
    """Warnings are errors here, so this also says that none is raised."""
    N = np.logspace(3, 17, 400)
    curve = law.depth(N)
    assert np.all(np.isfinite(curve.value))
    assert np.all(curve.value > 0)
    if not np.isnan(curve.low[0]):
        assert np.all(curve.low >= 0)
        assert np.all(curve.low <= curve.value)
        assert np.all(curve.value <= curve.high)


@pytest.mark.parametrize("law", PREDICTING, ids=lambda law: law.name)
def test_many_sizes_at_once_are_the_same_as_one_by_one(law: DepthLaw) -> None:
    N = np.logspace(5, 15, 37)
    assert law.depth(N).value.tolist() == pytest.approx([float(law.depth(n).value[0]) for n in N], rel=1e-12)


@pytest.mark.parametrize("name", ["levine", "nanochat", "depth-delusion"])
def test_a_larger_budget_is_never_shallower(name: str) -> None:
    law = depth_law(name)

    @given(SIZES, st.floats(1.0001, 1e6))
    def check(N: float, factor: float) -> None:
        smaller, larger = law.depth([N, N * factor]).value
        assert larger > smaller

    check()


@pytest.mark.parametrize("law", published_laws().values(), ids=lambda law: law.name)
def test_every_law_has_an_opinion_in_a_few_words(law: Law) -> None:
    opinion = law.opinion(1_300_000_000, 50_304)
    assert opinion.law == law.name
    assert opinion.status == law.status
    assert 0 < len(opinion.words) < 80
    assert (opinion.depth is not None) == isinstance(law, DepthLaw)
    assert (opinion.low is not None) == (law.name in ("levine", "pooled"))


def test_a_law_says_where_it_is_extrapolated() -> None:
    for law in published_laws().values():
        if law.fitted_block_params is None:
            assert not law.is_extrapolated(1)
            continue
        small, large = law.fitted_block_params
        assert 1e3 < small < large < 1e13, law.name
        for N in (0.995 * small, small, math.sqrt(small * large), large, 1.005 * large):  # plans are rounded
            assert not law.is_extrapolated(N), law.name
            assert "extrapolated" not in law.opinion(round(N), 50_304).words, law.name
        for N in (small * 0.9, large * 1.1):
            assert law.is_extrapolated(N), law.name
            assert "(extrapolated: fitted on" in law.opinion(round(N), 50_304).words, law.name
