"""Runs as points of a picture."""

import json
from dataclasses import replace

import numpy as np

from deepwide.figures import loss_curves, residual_plot
from deepwide.fitting import fit_transition
from figures.fits import layers, runs, spec


def test_runs_that_diverged_are_explained_and_the_loss_has_no_unit() -> None:
    diverged = np.zeros(len(runs()), dtype=bool)
    for chosen in (diverged, diverged | (np.arange(len(runs())) == 3)):
        fit = fit_transition(replace(runs(), diverged=chosen), bootstrap=0)
        for picture in (spec(loss_curves(fit)), spec(residual_plot(fit))):
            shapes = [e["shape"] for layer in layers(picture) if "shape" in (e := layer.get("encoding", {}))]
            assert shapes
            assert all((shape["legend"] is not None) == chosen.any() for shape in shapes)
            assert "nats" not in json.dumps(picture)
