"""Small numerical pieces that fits share: Student's quantile, matrices as tuples, checks of what a user gives."""

import math
from typing import Any

import numpy as np

from deepwide.arrays import Floats
from deepwide.errors import DeepwideError, quoted


def t95(dof: float) -> float:
    """Student's two-sided 95% quantile.

    >>> round(t95(10), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(dof, 0.975))


def as_tuples(matrix: Any) -> tuple[tuple[float, ...], ...]:
    """A matrix as the tuples that a frozen model holds."""
    return tuple(tuple(float(x) for x in row) for row in np.asarray(matrix))


def span(column: Floats) -> tuple[float, float]:
    """Least and largest."""
    return float(column.min()), float(column.max())


def span_known(column: Floats) -> tuple[float, float] | None:
    """Least and largest of what is known, None where nothing is."""
    known: Floats = column[~np.isnan(column)]
    return span(known) if known.size else None


def check_positive(**numbers: float | None) -> None:
    """Refuse what is no size: a list, a number that is not above 0."""
    for name, value in numbers.items():
        if value is None:
            continue
        if np.ndim(value):
            raise DeepwideError(
                f"predict takes one {name} at a time: loop over them, or use fit.curves.loss for sizes."
            )
        if not (value > 0 and math.isfinite(value)):
            raise DeepwideError(f"{name} must be above 0, not {value:g}.")


def check_noise(noise: str) -> None:
    """Refuse a word that says nothing about the noise."""
    if noise not in ("same", "depth"):
        raise DeepwideError(f"noise is the same for all runs or each depth's own: same or depth, not {quoted(noise)}.")


def check_resamples(bootstrap: int) -> None:
    """Refuse a negative number of resamples."""
    if bootstrap < 0:
        raise DeepwideError(f"the number of resamples (bootstrap) must be at least 0, not {bootstrap}.")
