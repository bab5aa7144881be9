"""The best depth against size, in the runs and beyond."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.figures.growth import growth_plot
from deepwide.fitting import fit_joint, fit_ridge, simulate
from figures.fits import SIZES, TRUTH, data, layers, runs, spec


def test_the_band_goes_a_hundred_times_beyond_the_runs_and_shows_what_is_assumed() -> None:
    fit = fit_joint(runs(), bootstrap=200)
    band = data(growth_plot(fit), "low")
    blue = [row for row in band if "end" not in row]
    assert max(row["size"] for row in blue) == pytest.approx(100 * fit.params_range[1])
    last, widest = blue[-1], fit.best_depth(100 * fit.params_range[1])[0]
    assert (last["low"], last["high"]) == (pytest.approx(widest.low), pytest.approx(widest.high))
    dashed = [row for row in band if "end" in row]
    assert dashed
    assert all(row["size"] > fit.params_range[1] for row in dashed)
    marks = [layer["mark"]["type"] for layer in layers(spec(growth_plot(fit)))]
    assert marks == ["area", "line", "point", "rule", "line"]


def test_a_ridge_has_a_band_and_a_fit_without_a_law_none() -> None:
    ridge = fit_ridge(runs(), base="power", bootstrap=0)
    assert len(layers(spec(growth_plot(ridge)))) == 4
    flat = simulate(TRUTH, depths=(1, 2, 4), sizes=SIZES.tolist(), curvature=0.0)
    with pytest.raises(DeepwideError, match="no law"):
        growth_plot(fit_ridge(flat, bootstrap=0))
