"""Means over independent networks, with the interval that so few of them allow; slopes; whether one still learns."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deepwide.answers import Interval
from deepwide.errors import needs


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean with its 95% interval by Student's t; no interval from a single value."""
    if len(values) < 2:
        return Interval(float(values[0]))
    needs("scipy", "fit")
    from scipy.stats import t

    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = float(t.ppf(0.975, len(values) - 1)) * math.sqrt(variance / len(values))
    return Interval(mean, mean - half, mean + half)


def geometric_interval(values: Sequence[float]) -> Interval:
    """The geometric mean of positive values with its 95% interval."""
    logs = mean_interval([math.log(value) for value in values])
    low, high = (None if log is None else math.exp(log) for log in (logs.low, logs.high))
    return Interval(math.exp(logs.value), low, high)


def interval_row(name: str, interval: Interval) -> dict[str, float | None]:
    """The columns of a table for an estimate: its name, and low and high.

    >>> interval_row("loss", Interval(2.0, 1.5, 2.5))
    {'loss': 2.0, 'low': 1.5, 'high': 2.5}
    """
    return {name: interval.value, "low": interval.low, "high": interval.high}


def log_slope(x: Iterable[float], y: Iterable[float]) -> float:
    """The slope of log y against log x: the exponent of a power law.

    >>> round(log_slope([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    import numpy as np

    log_x, log_y = (np.log(np.array(list(values), dtype=float)) for values in (x, y))
    return float(np.polyfit(log_x, log_y, 1)[0])


def late_gain(records: Sequence[Mapping[str, Any]], name: str) -> float:
    """By how much a metric of a run's evaluations rose over the last quarter of training."""
    evaluations = [record for record in records if record["kind"] == "validation"]
    before = [record for record in evaluations if record["step"] <= 0.75 * evaluations[-1]["step"]]
    return float(evaluations[-1][name] - before[-1][name])
