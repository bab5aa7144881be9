"""The line ln width = a + b·depth through crossings, by generalised least squares.

Errors of neighbouring crossings are correlated, since they share a curve. That the best depth is only known to lie
between the two depths that cross is an error in depth of its own (uniform in ln depth), which `placed` adds.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deepwide.arrays import Floats
from deepwide.fitting.crossings import Crossing, bracketed_size
from deepwide.fitting.curves import Curves
from deepwide.fitting.runs import BLOCK_MATRICES

PLACEMENT = 1 / math.sqrt(12)  # standard deviation of a uniform of length 1


class Line(NamedTuple):
    """ln d = a + b·L through crossings; b may be given, and is then no parameter."""

    names: tuple[str, ...]
    values: Floats
    covariance: Floats
    placed: tuple[tuple[float, float], tuple[float, float]]  # of a and b, with the depths' own error
    depths: Floats
    weights: Floats
    slope: float | None

    @classmethod
    def through(cls, curves: Curves, crossings: Sequence[Crossing], slope: float | None) -> "Line":
        """The line through these crossings of the curves."""
        L = np.array([crossing.depth for crossing in crossings])
        log_size = np.log([crossing.size or math.nan for crossing in crossings])
        J = np.array([_gradient(curves, crossing, x) for crossing, x in zip(crossings, log_size, strict=True)])
        C = J @ np.array(curves.covariance) @ J.T / 4  # of ln d at given L
        free = slope is None
        D = np.column_stack([np.ones_like(L), L]) if free else np.ones((len(L), 1))
        tau = np.array([PLACEMENT * math.log(crossing.deep / crossing.shallow) for crossing in crossings])
        b = 0.05 if slope is None else slope
        weights = values = np.zeros(0)
        for _ in range(50):  # the error in L counts by the slope, which it helps to estimate
            E = np.diag(((0.5 + b * L) * tau) ** 2)
            W = np.linalg.inv(C + E + 1e-18 * np.eye(len(L)))
            weights = np.linalg.solve(D.T @ W @ D, D.T @ W)
            values = weights @ _targets(log_size, L, slope)
            if not free or abs(values[1] - b) < 1e-12:
                break
            b = float(values[1])
        placed = np.zeros((2, 2))
        placed[: len(values), : len(values)] = weights @ (C + E) @ weights.T
        names = ("a", "b") if free else ("a",)
        (aa, ab), (_, bb) = placed.tolist()
        return cls(names, values, weights @ C @ weights.T, ((aa, ab), (ab, bb)), L, weights, slope)

    def again(self, log_size: Floats) -> Floats:
        """The same line through other crossings of the same pairs."""
        return np.asarray(self.weights @ _targets(log_size, self.depths, self.slope))


def line_through_neighbours(curves: Curves | None, slope: float | None) -> Floats | None:
    """a and b through the bracketed crossings of neighbouring depths, None where these do not give a line."""
    if curves is None:
        return None
    crossings = [
        Crossing(shallow, deep, size=size)
        for shallow, deep in pairwise(curves.depths)
        if (size := bracketed_size(curves, shallow, deep)) is not None
    ]
    return Line.through(curves, crossings, slope).values if len(crossings) >= needed(slope) else None


def needed(slope: float | None) -> int:
    """How many crossings give a line."""
    return 2 if slope is None else 1


def _gradient(curves: Curves, crossing: Crossing, log_size: float) -> Floats:
    """∂ ln N* / ∂θ, by the implicit function δ(N*) = 0."""
    size = math.exp(log_size)
    g = (curves.gradient(crossing.shallow, size) - curves.gradient(crossing.deep, size))[0]
    i, j = (3 * curves.index(depth) for depth in (crossing.shallow, crossing.deep))
    theta = np.array(curves.theta)
    _, b, a = theta[i : i + 3] - theta[j : j + 3]
    return np.asarray(-g / (b + 2 * a * (log_size - math.log(curves.centre))))


def _targets(log_size: Floats, L: Floats, slope: float | None) -> Floats:
    return np.asarray((log_size - np.log(BLOCK_MATRICES * L)) / 2 - (0.0 if slope is None else slope * L))
