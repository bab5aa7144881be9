"""The meta-analysis: known answers at its limits, and coverage of a new set."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.pooling import combine
from deepwide.pooling.random_effects import log_density, spread

ONE = [np.eye(1)]


def test_without_variation_between_sets_it_is_the_weighted_mean() -> None:
    both = combine([np.array([0.0]), np.array([1.0])], ONE * 2, [np.eye(1) * 0.01, np.eye(1) * 0.04], [1e-9])
    assert both.interval(0, "mean").value == pytest.approx(0.2, abs=0.002)
    assert spread(both.mean[:, 0]) == pytest.approx(math.sqrt(1 / (100 + 25)), rel=0.02)


def test_a_new_set_is_less_sure_than_the_mean() -> None:
    both = combine([np.array([0.0]), np.array([0.3])], ONE * 2, [np.eye(1) * 1e-4] * 2, [0.3])
    mean, new = both.interval(0, "mean"), both.interval(0, "new")
    assert new.low is not None
    assert mean.low is not None
    assert new.low < mean.low < 0.15
    assert both.interval(0, "between").value == pytest.approx(0.25, abs=0.1)


def test_one_set_and_the_prior_give_an_interval() -> None:
    """Where Hartung and Knapp's has no degree of freedom."""
    one = combine([np.array([0.5])], ONE, [np.eye(1) * 1e-6], [0.3])
    assert spread(one.new[:, 0]) == pytest.approx(0.45, abs=0.06)


@given(st.floats(-2, 2))
def test_moving_the_estimates_moves_the_answer(by: float) -> None:
    here, there = (
        combine([np.array([0.1 + far]), np.array([0.4 + far])], ONE * 2, [np.eye(1) * 0.01] * 2, [0.3])
        for far in (0.0, by)
    )
    assert there.interval(0).value - here.interval(0).value == pytest.approx(by, abs=1e-6)


def test_a_slope_is_seen_within_and_between_sets() -> None:
    """ln curvature at the reference and its slope, from one set with both and one at another length."""
    designs = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 2.0]])]
    estimates, errors = [np.array([1.0, -0.1]), np.array([0.8])], [np.eye(2) * 1e-4, np.eye(1) * 1e-4]
    answer = combine(estimates, designs, errors, [1e-4] * 2)
    assert answer.interval(1, "mean").value == pytest.approx(-0.1, abs=0.01)
    moved = answer.moved(0, 1, 2.0)
    assert moved.interval(0, "mean").value == pytest.approx(0.8, abs=0.02)


@pytest.mark.slow
def test_a_new_set_is_covered_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        tau = abs(random.normal(0, 0.3))
        true = random.normal(0, tau, 4)
        errors = random.uniform(0.1, 0.3, 3)
        y = [np.array([t + random.normal(0, e)]) for t, e in zip(true, errors, strict=False)]
        new = combine(y, ONE * 3, [np.eye(1) * e * e for e in errors], [0.3]).interval(0)
        assert new.low is not None
        assert new.high is not None
        hits += new.low <= true[3] <= new.high
    assert 0.91 < hits / 300 < 0.99


def test_the_density_is_a_normal_s() -> None:
    assert log_density(1.0, 0.0, 4.0) == pytest.approx(math.log(math.exp(-1 / 8) / math.sqrt(8 * math.pi)))
