"""Laws that come from fits: a ridge, and a bowl of one's own."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from deepwide.laws import Bowl, RidgeLaw, TransitionLaw, depth_cost, outside_the_data, transition_law

BOWL = Bowl(curvature=0.02, error=0.002, x_range=(-1.0, 1.5))
LAW = TransitionLaw(name="mine", a=3.2, b=0.25, bowl=BOWL, fitted_block_params=(1e4, 1e6))


def test_a_ridge_without_shift_is_its_base() -> None:
    base = transition_law()
    law = RidgeLaw(name="r", base_a=base.a, base_b=base.b, shift=0.0, centre_params=1e8)
    np.testing.assert_allclose(law.depth([1e6, 1e9]).value, base.depth([1e6, 1e9]).value)
    assert np.isnan(law.depth(1e6).low).all()


def test_a_drift_turns_about_the_centre() -> None:
    base = transition_law()
    law = RidgeLaw(name="r", base_a=base.a, base_b=base.b, shift=0.5, drift=0.1, centre_params=1e8)
    ratio = law.depth([1e7, 1e8, 1e9]).value / base.depth([1e7, 1e8, 1e9]).value
    np.testing.assert_allclose(np.log(ratio), 0.5 + 0.1 * np.log([0.1, 1, 10]))


def test_a_ridges_error_grows_away_from_the_centre() -> None:
    law = RidgeLaw(
        name="r", base_a=5.0, base_b=0.05, shift=0.0, centre_params=1e8, covariance=((0.01, 0.0), (0.0, 0.001))
    )
    low, value, high = (law.depth([1e8, 1e10])[i] for i in (1, 0, 2))
    np.testing.assert_allclose(np.log(high / value), np.log(value / low))
    assert math.log(high[0] / value[0]) == pytest.approx(1.96 * 0.1, rel=1e-3)
    assert high[1] / value[1] > high[0] / value[0]


@pytest.mark.parametrize("covariance", [((1.0, 0.5), (0.4, 1.0)), ((-1.0, 0.0), (0.0, 1.0)), ((1.0, 2.0), (2.0, 1.0))])
def test_a_covariance_that_is_none_is_refused(covariance: tuple[tuple[float, float], tuple[float, float]]) -> None:
    with pytest.raises(ValidationError, match="symmetric and positive"):
        RidgeLaw(name="r", base_a=5.0, base_b=0.05, shift=0.0, centre_params=1e8, covariance=covariance)


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
    curve, steep = LAW.bowl.curvature, 1.96 * LAW.bowl.error  # type: ignore[union-attr]
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
    assert "10K to 1M" in (outside_the_data(best, 1e7, LAW) or "")
    assert "times the law's depth only" in (outside_the_data(best / 4, 1e5, LAW) or "")
    assert outside_the_data(24, 1e8) is None, "without a bowl of its own, Gemstones'"


def test_half_a_base_is_refused() -> None:
    with pytest.raises(ValueError, match="both or neither"):
        RidgeLaw(name="r", base_a=5.0, base_b=None, shift=0.0, centre_params=1e8)
