"""Resampling of runs by the units that are independent, as weights on the rows."""

from typing import Literal

import numpy as np

from deepwide.answers import Interval
from deepwide.arrays import Floats, Integers
from deepwide.errors import DeepwideError, quoted
from deepwide.fitting.runs import Runs

FEWEST = 20  # resamples that give an interval
Unit = Literal["group", "shape"]


def units_of(runs: Runs, unit: Unit) -> Integers:
    """A number for each run: the same in a group (only the seed differs), or in a shape (tokens differ too)."""
    if unit not in ("group", "shape"):
        raise DeepwideError(f"the unit to resample must be 'group' or 'shape', not {quoted(unit)}.")
    return runs.groups if unit == "group" else runs.shapes


def draws_of(units: Integers, parameters: int, bootstrap: int, seed: int) -> Floats:
    """How often each run is in each resample of the units; one with too few different runs is drawn again."""
    random = np.random.default_rng(seed)
    count = int(units.max()) + 1
    draws = np.empty((bootstrap, len(units)))
    for row in draws:
        for _ in range(100):
            row[:] = np.bincount(random.integers(count, size=count), minlength=count)[units]
            if np.count_nonzero(row) > parameters:
                break
    return draws


def spread(draws: Floats) -> Interval:
    """The first, with the middle 95% of the others; alone where there are fewer than 20 of them."""
    if len(draws) <= FEWEST:
        return Interval(float(draws[0]))
    low, high = np.percentile(draws[1:], [2.5, 97.5])
    return Interval(float(draws[0]), float(low), float(high))
