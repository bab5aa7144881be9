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


def with_variance(mean: Interval, values: int, variance: float, freedom: float = math.inf) -> Interval:
    """The interval of a mean of so many values with a variance of another source, such as the choice of examples.

    Variances are added. The quantile is Student's at the degrees of freedom of the sum (Satterthwaite 1946); the
    interval is no narrower than the mean's own. A mean without an interval stays without.

    >>> with_variance(Interval(0.0, -1.0, 1.0), 3, 0.0)
    Interval(value=0.0, low=-1.0, high=1.0)
    """
    if mean.low is None or mean.high is None:
        return mean
    needs("scipy", "fit")
    from scipy.stats import t

    half = (mean.high - mean.low) / 2
    own = (half / float(t.ppf(0.975, values - 1))) ** 2
    total = own + variance
    squares = own**2 / (values - 1) + variance**2 / freedom
    together = math.sqrt(total) * float(t.ppf(0.975, total**2 / squares if squares else math.inf))
    half = max(half, together)
    return Interval(mean.value, mean.value - half, mean.value + half)


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
