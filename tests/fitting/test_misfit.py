"""What the model misses: its correlation, and how it is carried to other places."""

import numpy as np
import pytest

from deepwide.fitting.misfit import Missed, RunNoise, carry, misfit_factors
from deepwide.fitting.model import Design

S, X, T = (c.ravel() for c in np.meshgrid(np.linspace(-2, 2, 3), np.log([2.0, 4, 8]), np.linspace(-1, 1, 2)))
RUNS = Design(S, T, None, X)
MISSED = Missed(smooth=0.004, depth=0.002, curve=0.01, run=0.003)


def test_the_covariance_is_that_of_the_factors_a_fit_uses() -> None:
    factors = misfit_factors(RUNS)
    assert list(factors) == ["smooth", "depth", "curve", "run"]
    by_factors = sum(sd**2 * factors[name] @ factors[name].T for name, sd in MISSED._asdict().items())
    assert MISSED.covariance(RUNS) == pytest.approx(np.asarray(by_factors), abs=1e-8)


def test_one_length_has_no_misfit_of_a_curve_and_none_of_runs() -> None:
    assert list(misfit_factors(RUNS._replace(t=None))) == ["smooth", "depth"]


def test_without_noise_what_is_missed_at_a_run_is_carried_there_whole() -> None:
    off = np.random.default_rng(0).normal(0, 0.01, len(S))
    carried = carry(MISSED, RunNoise(1e-7), RUNS, RUNS)
    assert off @ carried.weights == pytest.approx(off, abs=1e-4)
    assert carried.left == pytest.approx(0, abs=1e-7)


def test_far_away_nothing_is_carried_but_a_depth_s_own_offset() -> None:
    far = Design(np.array([30.0, 30.0]), np.array([20.0, 20.0]), None, np.log([4.0, 5.0]))
    carried = carry(MISSED, RunNoise(0.001), RUNS, far)
    assert abs(carried.weights[:, 1]).max() < 1e-6
    assert abs(carried.weights[:, 0][np.exp(X) == 4]).max() > 0.01
    whole = sum(sd**2 for sd in MISSED) + 0.001**2
    assert carried.left[1] == pytest.approx(whole)
    assert carried.left[0] < whole
    assert carried.left - carried.missed == pytest.approx(0.001**2)


def test_no_runs_carry_nothing() -> None:
    none = Design(np.zeros(0), np.zeros(0), None, np.zeros(0))
    carried = carry(MISSED, RunNoise(0.001), none, RUNS)
    assert carried.weights.shape == (0, len(S))
    assert carried.left == pytest.approx(sum(sd**2 for sd in MISSED) + 1e-6)
