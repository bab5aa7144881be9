"""The whole fit of a transition: line, law, verdict."""

import math
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import (
    Runs,
    TransitionFit,
    fit_transition,
    simulate,
)
from deepwide.fitting.regression import t95
from deepwide.laws import TransitionLaw
from deepwide.planning import plan
from fitting.builders import DEPTHS, LAW, SIZES, sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


def test_a_known_law_is_recovered_within_its_interval(fitted: TransitionFit) -> None:
    for name, truth in (("a", LAW.a), ("b", LAW.b)):
        limits = fitted.interval(name)
        assert limits.low is not None
        assert limits.high is not None
        assert limits.low < truth < limits.high
        assert abs(fitted[name] - truth) < 0.15 * truth


def test_the_law_plans(fitted: TransitionFit) -> None:
    law = fitted.law()
    assert law is not None
    made = plan("1M", law=law)
    assert made.shape.depth == pytest.approx(float(LAW.depth(1e6).value[0]), abs=1.5)
    assert made.law_depth.low is not None
    assert law.bowl is not None
    assert law.bowl.curvature == pytest.approx(0.02, rel=0.3)
    assert made.measured_depth is None, "the law's own runs say what a wrong depth costs"


def test_the_laws_error_includes_that_depths_are_only_bracketed(fitted: TransitionFit) -> None:
    law = fitted.law()
    assert law is not None
    assert law.covariance is not None
    assert law.covariance[0][0] > fitted.covariance[0][0]
    assert law.covariance[1][1] > fitted.covariance[1][1]


def test_an_assumed_slope_needs_one_crossing_only() -> None:
    runs = sweep(depths=(2, 4))
    assert fit_transition(runs, bootstrap=0).law() is None
    fit = fit_transition(runs, bootstrap=50, slope=0.25)
    assert fit.names == ("a",)
    assert fit["a"] == pytest.approx(LAW.a, abs=0.2)
    law = fit.law()
    assert law is not None
    assert law.b == 0.25
    assert "assumed" in fit.summary()


@pytest.mark.parametrize("a", [0.0, 7.0])
def test_a_sweep_without_a_crossing_says_so_instead_of_inventing_one(a: float) -> None:
    runs = simulate(TransitionLaw(name="far", a=a, b=0.25), depths=DEPTHS, sizes=SIZES)
    fit = fit_transition(runs, bootstrap=50)
    assert all(pair.status != "bracketed" for pair in fit.crossings)
    assert fit.names == ()
    assert fit.law() is None
    assert fit.verdict().outcome == "not seen"
    assert "no crossing" in fit.summary()
    assert "No law" in fit.summary()


def test_noise_alone_is_undecided() -> None:
    runs = sweep(curvature=0.0, noise=0.02)
    assert fit_transition(runs, bootstrap=0).verdict().outcome == "undecided"


def test_pairs_that_are_not_neighbours_can_be_asked_for() -> None:
    fit = fit_transition(sweep(), bootstrap=0, pairs=((2, 8),))
    asked = fit.crossings[-1]
    assert (asked.shallow, asked.deep) == (2, 8)
    assert asked.size == pytest.approx(12 * 4 * float(LAW.width(4)[0]) ** 2, rel=0.5)
    assert len(fit.used) == 3, "the line goes through neighbours only"
    for wrong in ((8, 2), (2, 16)):
        with pytest.raises(DeepwideError):
            fit_transition(sweep(), bootstrap=0, pairs=(wrong,))


def test_a_diverged_run_is_counted_and_moves_the_curve_up() -> None:
    runs = sweep()
    row = int(np.flatnonzero((runs.depth == 8) & (runs.seed == 1))[-1])
    loss, diverged = runs.loss.copy(), np.zeros(len(runs))
    loss[row], diverged[row] = np.nan, 1
    broken = Runs.of(
        depth=runs.depth, width=runs.width, block_params=runs.block_params, loss=loss, seed=runs.seed, diverged=diverged
    )
    fit, whole = fit_transition(broken, bootstrap=20), fit_transition(runs, bootstrap=20)
    assert fit.diverged == 1
    assert sum(residual.diverged for residual in fit.residuals) == 1
    size = float(runs.block_params[row])
    assert fit.predict(8, size).value > whole.predict(8, size).value
    assert "1 of them diverged" in fit.summary()


def test_the_order_of_rows_does_not_matter() -> None:
    runs = sweep()
    order = np.random.default_rng(0).permutation(len(runs))
    first, second = (fit_transition(each, bootstrap=0) for each in (runs, runs.select(order)))
    np.testing.assert_allclose(first.values, second.values, rtol=1e-9)


def test_transition_sizes_follow_the_line(fitted: TransitionFit) -> None:
    at = fitted.transition(4)
    assert at.value == pytest.approx(48 * math.exp(2 * (fitted["a"] + 4 * fitted["b"])))
    assert at.low is not None
    assert at.high is not None
    assert at.low < at.value < at.high
    assert fitted.placed is not None
    gradient = np.array([2.0, 8.0])
    error = math.sqrt(gradient @ np.array(fitted.placed) @ gradient)
    assert math.log(at.high / at.value) == pytest.approx(t95(fitted.dof) * error)


@pytest.mark.slow
def test_intervals_of_simulated_sweeps_cover() -> None:
    """The whole calibration is benchmarks/fit_calibration.py; this is a fifth of its first line."""
    sizes = list(np.geomspace(2e4, 2e6, 7))
    sweeps = [simulate(LAW, depths=DEPTHS, sizes=sizes, seed=seed) for seed in range(40)]
    fits = [fit for runs in sweeps if (fit := fit_transition(runs, bootstrap=100)).names]
    assert len(fits) >= 36, "nearly every sweep gives a line"
    for by in ("likelihood", "bootstrap"):
        limits = [fit.interval("b", by) for fit in fits]
        assert all(i.low is not None and i.high is not None for i in limits), "a missing limit is no hit"
        ends = np.array([(i.low, i.high) for i in limits], dtype=float)
        assert np.mean((ends[:, 0] <= LAW.b) & (ends[:, 1] >= LAW.b)) >= 0.86
        spread = np.std([fit["b"] for fit in fits])
        assert np.median(ends[:, 1] - ends[:, 0]) < 6 * spread, "and not by being wide: 3.9 would be exact"


def test_crossings_in_total_parameters_give_no_law_in_blocks() -> None:
    runs = sweep()
    columns: dict[str, Any] = {"depth": runs.depth, "width": runs.width, "loss": runs.loss, "seed": runs.seed}
    fit = fit_transition(Runs.of(total_params=runs.block_params, **columns), counting="total", bootstrap=0)
    assert fit.names == ("a", "b")
    assert fit.law() is None
    assert "total parameters" in fit.headline()[-1]
