"""Non-negative least squares on relative errors, with intervals, and its error on shapes left out.

A point is one case: its work (bytes, FLOPs, layers, 1) and its seconds in each round. Cases of one shape stay together:
a shape is left out with all its cases, and the bootstrap draws shapes and rounds.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from deepwide.answers import Interval
from deepwide.quantities import Floats

REPLICATES = 200


def least_squares(features: Floats, seconds: Floats) -> Floats:
    """Coefficients ≥ 0 of least Σ (predicted / measured − 1)².

    The optimum is the plain least squares of some subset of columns with no negative coefficient (Karush, Kuhn and
    Tucker); there are 15 subsets of four columns, so all are tried.
    """
    scale = np.maximum(features.max(axis=0), 1e-300)
    A, ones = features / scale / seconds[:, None], np.ones(len(seconds))
    best, least = np.zeros(features.shape[1]), float(ones @ ones)
    columns = range(features.shape[1])
    for count in range(1, features.shape[1] + 1):
        for subset in map(list, combinations(columns, count)):
            x = np.linalg.lstsq(A[:, subset], ones, rcond=None)[0]
            left = ones - A[:, subset] @ x
            if x.min() >= 0 and left @ left < least - 1e-12:
                best, least = np.zeros(features.shape[1]), float(left @ left)
                best[subset] = x
    return np.asarray(best / scale)


def left_out(features: Floats, seconds: Floats, groups: Sequence[int]) -> Floats:
    """Every case predicted by the fit to the cases of all other groups."""
    group = np.asarray(groups)
    predicted = np.empty(len(seconds))
    for each in np.unique(group):
        inside = group == each
        predicted[inside] = features[inside] @ least_squares(features[~inside], seconds[~inside])
    return predicted


def with_intervals(features: Floats, by_round: Floats, groups: Sequence[int], seed: int = 0) -> list[Interval]:
    """The coefficients for the medians over rounds, with 95% percentile intervals over shapes and rounds drawn anew."""
    estimate = least_squares(features, np.median(by_round, axis=1))
    generator, group = np.random.default_rng(seed), np.asarray(groups)
    names, rounds = np.unique(group), by_round.shape[1]
    draws = []
    for _ in range(REPLICATES):
        cases = np.concatenate([np.flatnonzero(group == each) for each in generator.choice(names, len(names))])
        medians = np.median(by_round[:, generator.integers(rounds, size=rounds)], axis=1)
        draws.append(least_squares(features[cases], medians[cases]))
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    return [Interval(*map(float, row)) for row in zip(estimate, low, high, strict=True)]


def median_error(predicted: Floats, seconds: Floats) -> float:
    """The median of |predicted / measured − 1|."""
    return float(np.median(np.abs(predicted / seconds - 1)))
