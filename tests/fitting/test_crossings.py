"""Where two depths cross, and who surely wins where."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deepwide.fitting import (
    Runs,
    TransitionFit,
    fit_transition,
    simulate,
)
from deepwide.fitting.crossings import Line, _quantile
from deepwide.fitting.regression import t95
from fitting.builders import LAW, SIZES, UNEVEN, codes, curved, noted, parabolas, sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


@pytest.mark.parametrize("size", [3e4, 1e5, 7e5])
def test_the_crossing_of_exact_parabolas_is_found_exactly(size: float) -> None:
    (crossing,) = fit_transition(parabolas(size, SIZES), bootstrap=0).crossings
    assert crossing.size == pytest.approx(size)
    assert crossing.status == "bracketed"
    assert crossing.regimes == "seen"


def test_a_crossing_beyond_the_data_is_called_extrapolated_and_far_beyond_is_none() -> None:
    near, far = (fit_transition(parabolas(c, SIZES), bootstrap=0) for c in (8e6, 1e8))
    assert near.crossings[0].status == "extrapolated"
    assert near.crossings[0].size == pytest.approx(8e6)
    assert noted("crossing-outside", near.warnings) == {"shallow": 2, "deep": 4}
    assert far.crossings[0].status == "none"
    assert far.crossings[0].size is None


def test_the_deeper_must_start_to_win_not_stop() -> None:
    runs = parabolas(1e5, SIZES)
    swapped = Runs.of(depth=6 - runs.depth, block_params=runs.block_params, loss=runs.loss)
    assert fit_transition(swapped, bootstrap=0).crossings[0].size is None


def test_depths_without_sizes_in_common_do_not_cross() -> None:
    """Found by fuzzing: with a curvature that they share, what is left of the parabola was divided by."""
    sizes = np.concatenate([np.geomspace(1e7, 1e8, 4), np.geomspace(1e4, 1e5, 4)])
    depth = np.repeat([2, 4], 4)
    noise = 1e-3 * np.array([1, -1, 2, 0, -2, 1, 0, 1])
    runs = Runs.of(depth=depth, block_params=sizes, loss=np.exp(1 - 0.05 * np.log(sizes / 1e6) * depth / 2 + noise))
    (crossing,) = fit_transition(runs, bootstrap=200).crossings
    assert crossing.size is None


def test_a_crossings_limits_are_where_equal_curves_are_just_refused(fitted: TransitionFit) -> None:
    for crossing in fitted.crossings:
        for limit in (crossing.low, crossing.high):
            if limit is not None:
                delta, error = fitted.curves.difference(crossing.shallow, crossing.deep, limit)
                assert abs(delta[0]) / error[0] == pytest.approx(t95(fitted.curves.dof), rel=0.02)


def test_a_gap_that_closes_at_one_end_is_undecided() -> None:
    """From about their crossing on the deeper wins, first within the noise and then surely: one regime is not shown."""
    there = 12 * math.sqrt(8) * float(LAW.width(math.sqrt(8))[0]) ** 2
    runs = sweep(depths=(2, 4), sizes=list(there * np.geomspace(1.1, 40, 6)))
    (crossing,) = fit_transition(runs, bootstrap=0).crossings
    assert crossing.regimes == "undecided"


def test_a_crossing_must_lie_where_both_depths_were_trained() -> None:
    runs = parabolas(1e5, SIZES)
    short = runs.select((runs.depth == 2) | (runs.block_params < 6e4))
    assert fit_transition(short, bootstrap=0).crossings[0].status == "extrapolated"


def test_the_reverse_of_two_regimes_is_called_so() -> None:
    fit = fit_transition(curved(lambda x: -0.01 * x), bootstrap=0)
    (crossing,) = fit.crossings
    assert (crossing.status, crossing.size, crossing.regimes) == ("none", None, "not seen")
    assert (crossing.absent, crossing.evidence) == ("reversed", "both")
    assert crossing.until == pytest.approx(1e5, rel=0.1)
    assert fit.verdict().outcome == "not seen"


def test_a_deeper_that_wins_in_the_middle_only_is_no_regime() -> None:
    fit = fit_transition(curved(lambda x: 0.02 - 0.01 * x**2), bootstrap=0)
    (crossing,) = fit.crossings
    assert crossing.until == pytest.approx(1e5 * math.exp(math.sqrt(2)), rel=0.1)
    assert crossing.wins_again
    assert crossing.regimes == "undecided"


def test_depths_that_make_no_difference_get_no_crossing() -> None:
    """Equal curves cross at random; only if they can be told apart is that a crossing."""
    fits = []
    for seed in range(100, 130):
        x = np.tile(np.linspace(-3, 3, 9), 2)
        loss = np.exp(1 - 0.1 * x + np.random.default_rng(seed).normal(0, 0.002, 18))
        runs = Runs.of(depth=np.repeat([2, 4], 9), block_params=1e5 * np.exp(x), loss=loss)
        fits.append(fit_transition(runs, bootstrap=0))
    assert sum(fit.crossings[0].size is not None for fit in fits) <= 4
    assert all(fit.crossings[0].regimes != "seen" for fit in fits)
    same = fit_transition(curved(lambda x: 0 * x, noise=0.0), bootstrap=0)
    assert same.crossings[0].absent == "equal losses"
    assert "noise-unequal" not in codes(same.warnings), "rounding is no noise"


@pytest.mark.parametrize(("shallow", "deep", "halfway"), [(1, 4, 2), (2, 8, 4), (4, 16, 8)])
def test_equal_losses_put_the_best_depth_halfway_in_ln_depth(shallow: int, deep: int, halfway: int) -> None:
    """If loss is a bowl in ln depth about the law's, two depths are equal at the size where their middle is best."""
    there = 12 * halfway * float(LAW.width(halfway)[0]) ** 2
    runs = sweep(depths=(shallow, deep), sizes=list(there * np.geomspace(1 / 3, 3, 7)), noise=0.0001, off_size=0.0)
    (crossing,) = fit_transition(runs, bootstrap=0).crossings
    best_there = float(LAW.depth(crossing.size or 0).value[0])
    assert best_there == pytest.approx(halfway, rel=0.05)
    assert crossing.depth == pytest.approx(halfway)


def test_scaling_every_loss_moves_no_crossing() -> None:
    runs = sweep()
    scaled = Runs.of(depth=runs.depth, block_params=runs.block_params, loss=3 * runs.loss, seed=runs.seed)
    first, second = (fit_transition(each, bootstrap=0) for each in (runs, scaled))
    assert [p.size for p in first.crossings] == pytest.approx([p.size for p in second.crossings])


def test_the_line_goes_through_two_crossings_when_there_are_two() -> None:
    fit = fit_transition(sweep(depths=(2, 4, 8)), bootstrap=0)
    for pair in fit.crossings:
        assert pair.size is not None
        width = math.sqrt(pair.size / (12 * pair.depth))
        assert math.log(width) == pytest.approx(fit["a"] + fit["b"] * pair.depth)


def test_the_lines_error_is_that_of_moving_the_curves() -> None:
    """The delta method against finite differences: move each of the curves' parameters, find the line again."""
    fit = fit_transition(sweep(depths=(2, 4, 8)), bootstrap=0)
    theta, C = np.array(fit.curves.theta), np.array(fit.curves.covariance)

    def line(moved: np.ndarray) -> np.ndarray:
        curves = fit.curves.model_copy(update={"theta": tuple(moved)})
        sizes = []
        for pair in fit.crossings:
            grid = np.geomspace(0.5 * (pair.size or 1), 2 * (pair.size or 1), 200_001)
            sizes.append(grid[np.argmin(np.abs(curves.difference(pair.shallow, pair.deep, grid)[0]))])
        L = np.array([pair.depth for pair in fit.crossings])
        y = np.log(np.sqrt(np.array(sizes) / (12 * L)))
        b = (y[1] - y[0]) / (L[1] - L[0])
        return np.array([y[0] - b * L[0], b])

    step = 1e-3
    J = np.stack([(line(theta + step * e) - line(theta - step * e)) / (2 * step) for e in np.eye(len(theta))], axis=1)
    np.testing.assert_allclose(np.diag(J @ C @ J.T), np.diag(np.array(fit.covariance)), rtol=0.05)


def test_a_crossing_whose_depth_is_known_less_well_counts_less() -> None:
    """Depths 2 and 16 bracket the best depth far more loosely than 4 and 8 do: by ln 8 against ln 2."""
    fit = fit_transition(sweep(depths=(2, 4, 8, 16)), bootstrap=0)
    size = next(pair.size for pair in fit.crossings if pair.size)
    tight, loose = (replace(fit.crossings[0], shallow=s, deep=d, size=size) for s, d in ((4, 8), (2, 16)))
    curves = fit.curves.model_copy(update={"covariance": tuple((0.0,) * len(row) for row in fit.curves.covariance)})
    line = Line.through(curves, [tight, loose], slope=0.0)
    assert line.weights[0, 0] / line.weights[0, 1] == pytest.approx((math.log(8) / math.log(2)) ** 2, rel=1e-6)


def test_many_comparisons_need_more_standard_errors() -> None:
    dof = np.array([10.0])
    assert float(_quantile(1, dof)[0]) == pytest.approx(stats.t.ppf(0.975, 10))
    assert float(_quantile(5, dof)[0]) == pytest.approx(stats.t.ppf(0.995, 10))


def test_the_lines_freedom_is_that_of_the_depths_it_hangs_on() -> None:
    runs = sweep(noise=UNEVEN, seeds=1)
    small = simulate(LAW, depths=(16,), sizes=SIZES[4:8], noise=0.03, seeds=1)
    names = ("depth", "width", "block_params", "loss")
    columns: dict[str, Any] = {name: np.concatenate([getattr(runs, name), getattr(small, name)]) for name in names}
    both = Runs.of(**columns)
    fit = fit_transition(both, bootstrap=0, noise="depth")
    assert min(fit.curves.dofs) < 2
    used = {depth for i in fit.used for depth in (fit.crossings[i].shallow, fit.crossings[i].deep)}
    assert 16 not in used
    assert fit.dof == 5
