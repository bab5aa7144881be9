"""Means over independent networks, with the interval that so few of them allow."""

import math
from collections.abc import Sequence

from deepwide.answers import Interval
from deepwide.extras import needs


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
