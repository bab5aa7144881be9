"""Means with intervals, against numbers from a textbook's table and by simulation."""

import numpy as np
import pytest

from deepwide.answers import Interval
from deepwide.studies.estimates import geometric_interval, late_gain, mean_interval


def test_the_interval_of_three_values_uses_student_s_quantile() -> None:
    # mean 2, standard error 1/√3, t(0.975, 2 degrees of freedom) = 4.303 in any table
    interval = mean_interval([1.0, 2.0, 3.0])
    assert (interval.value, interval.low, interval.high) == pytest.approx(
        (2, 2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=1e-3
    )


def test_one_value_has_no_interval() -> None:
    assert mean_interval([2.5]) == Interval(2.5)


def test_the_interval_holds_the_mean_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(0)
    intervals = [mean_interval(list(rng.normal(7, 2, size=5))) for _ in range(2000)]
    assert np.mean([i.low < 7 < i.high for i in intervals]) == pytest.approx(0.95, abs=0.015)  # type: ignore[operator]


def test_the_geometric_mean_is_that_of_the_logarithms() -> None:
    interval = geometric_interval([1e-4, 1e-6, 1e-8])
    assert interval.value == pytest.approx(1e-6)
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low * interval.high == pytest.approx(1e-12)
    assert geometric_interval([0.5]).value == pytest.approx(0.5)


def test_the_late_gain_is_that_of_the_last_quarter_of_the_evaluations() -> None:
    records = [{"kind": "validation", "step": step, "accuracy": share} for step, share in
               ((0, 0.1), (60, 0.5), (75, 0.625), (80, 0.7), (100, 0.75))]  # fmt: skip
    assert late_gain([*records, {"kind": "train", "step": 100, "loss": 1.0}], "accuracy") == 0.125
    assert late_gain(records[:2], "accuracy") == 0.4
