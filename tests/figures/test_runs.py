"""Runs as points of a picture."""

import json
from dataclasses import replace

import numpy as np

from deepwide.figures import loss_curves, residual_plot, run_chart
from deepwide.fitting import fit_transition
from figures.fits import layers, runs, spec


def test_runs_that_diverged_are_explained_and_no_unit_of_the_loss_is_invented() -> None:
    diverged = np.zeros(len(runs()), dtype=bool)
    for chosen in (diverged, diverged | (np.arange(len(runs())) == 3)):
        fit = fit_transition(replace(runs(), diverged=chosen), bootstrap=0)
        for picture in (spec(loss_curves(fit)), spec(residual_plot(fit))):
            shapes = [e["shape"] for layer in layers(picture) if "shape" in (e := layer.get("encoding", {}))]
            assert shapes
            assert all((shape["legend"] is not None) == chosen.any() for shape in shapes)
            assert "nats" not in json.dumps(picture)


def test_runs_without_a_fit_are_points_with_a_unit_on_each_axis() -> None:
    rows = [{"depth": depth, "block_params": 1000 * depth, "loss": 3 / depth, "id": "x"} for depth in (1, 2, 10)]
    drawn = spec(run_chart(rows))
    (points,) = drawn["datasets"].values()
    assert [(row["size"], row["loss"]) for row in points] == [(1000, 3.0), (2000, 1.5), (10_000, 0.3)]
    assert drawn["encoding"]["color"]["scale"]["domain"] == ["1", "2", "10"]  # in order, not as texts
    titles = [drawn["encoding"][axis]["title"] for axis in "xy"]
    assert titles == ["block parameters", "loss (unit of the runs)"]
