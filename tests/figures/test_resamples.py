"""A fit over its resamples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.figures import resample_plot, save_chart
from deepwide.fitting import fit_ridge, fit_surface, fit_transition
from figures.fits import layers, runs, spec, transition


def test_a_ridge_is_resampled_as_its_best_depth_and_its_cost() -> None:
    fit = fit_ridge(runs(), base="power", bootstrap=50)
    assert fit.minimum is not None
    shown = {layer["encoding"][axis]["title"] for layer in layers(spec(resample_plot(fit))) for axis in "xy"}
    words = ("best depth (layers)", "cost of factor 2 in depth (% of loss)", "growth of best depth")
    assert {next(word for word in words if name.startswith(word)) for name in shown} == set(words)
    rows = [rows for rows in spec(resample_plot(fit))["datasets"].values() if len(rows) == 1]
    found = {value for (row,) in rows for value in row.values()}
    for value in (fit.minimum.value, fit.cost(2).value, fit.drift.value):
        assert min(abs(value - each) for each in found) < 1e-12


def test_resamples_without_a_bowl_are_counted_not_drawn() -> None:
    fit = fit_ridge(runs(), base="power", bootstrap=50)
    at = fit.names.index("b2")
    flat = tuple(-v if i == at else v for i, v in enumerate(fit.resamples[0]))
    chart = spec(resample_plot(fit.model_copy(update={"resamples": (flat, flat, *fit.resamples[2:])})))
    assert "2 have no best depth" in chart["title"]["subtitle"]
    assert {len(rows) for rows in chart["datasets"].values()} == {1, 48}


def test_a_surface_in_shape_is_resampled_by_its_exponents() -> None:
    rng = np.random.default_rng(0)
    many = replace(runs(), tokens=rng.choice([1e8, 2e8, 4e8, 8e8], len(runs())))
    fit = fit_surface(many, terms="shape", counting="block", bootstrap=20)
    titles = {layer["encoding"][axis]["title"] for layer in layers(spec(resample_plot(fit))) for axis in "xy"}
    assert titles == {f"exponent of {name}" for name in ("width", "depth", "params", "tokens")}


def test_a_slope_that_was_assumed_leaves_one_parameter(tmp_path: Path) -> None:
    chart = resample_plot(fit_transition(runs(), bootstrap=50, slope=0.25))
    assert "orange: the estimate" in spec(chart)["title"]["subtitle"]
    assert save_chart(chart, tmp_path / "a.png").stat().st_size > 1000


def test_what_cannot_be_resampled_says_why() -> None:
    with pytest.raises(DeepwideError, match="fit with a bootstrap of 1000"):
        resample_plot(transition().model_copy(update={"resamples": ()}))
    none = fit_transition(runs().select(runs().depth <= 2), bootstrap=50)
    assert not none.names
    with pytest.raises(DeepwideError, match="no law, so there is none to resample"):
        resample_plot(none)
