"""Resamples of runs by the units that are independent."""

from dataclasses import replace

import numpy as np

from deepwide.fitting import fit_surface
from deepwide.fitting.resampling import draws_of, units_of
from fitting.builders import chinchilla_like, gemstones_like


def test_runs_of_one_group_are_resampled_together() -> None:
    runs = chinchilla_like(0.01)
    doubled = runs.select(np.repeat(np.arange(len(runs)), 2))
    draws = draws_of(units_of(doubled, "group"), 5, 20, seed=0)
    assert (draws[:, ::2] == draws[:, 1::2]).all()
    assert (draws.sum(axis=1) == len(doubled)).all()


def test_resampling_checkpoints_with_their_shape_widens_the_intervals() -> None:
    runs = gemstones_like(0.003)
    shift = np.exp(np.random.default_rng(2).normal(0, 0.01, 30))[units_of(runs, "shape")]
    runs = replace(runs, loss=runs.loss * shift)
    widths = []
    for unit in ("group", "shape"):
        fit = fit_surface(runs, terms="shape", unit=unit, bootstrap=60)
        interval = fit.interval("depth_exponent", "bootstrap")
        widths.append(interval.high - interval.low)  # type: ignore[operator]
        assert fit.dof == (90 if unit == "group" else 30) - 9
    assert widths[1] > 1.2 * widths[0]


def test_the_same_seed_gives_the_same_resamples_and_another_does_not() -> None:
    runs = chinchilla_like(0.01)
    one, same, other = (fit_surface(runs, bootstrap=25, seed=seed).resamples for seed in (1, 1, 2))
    assert one == same
    assert one != other
