"""The line through crossings."""

import math
from typing import Any

import numpy as np
import pytest

from deepwide.fitting import (
    Runs,
    fit_transition,
    simulate,
)
from fitting.builders import LAW, SIZES, UNEVEN, sweep


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
