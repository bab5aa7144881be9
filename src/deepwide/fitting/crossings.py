"""Where the curves of two depths cross, and which of the two surely wins where. Numbers only: `summary` has the words.

Legend: δ(x) = ln loss of the shallower − ln loss of the deeper at x = ln(size / centre); above 0 the deeper wins.

The line ln width = a + b·depth through crossings, by generalised least squares.

Errors of neighbouring crossings are correlated, since they share a curve. That the best depth is only known to lie
between the two depths that cross is an error in depth of its own (uniform in ln depth), which `placed` adds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from deepwide.fitting.curves import Curves
from deepwide.fitting.runs import BLOCK_MATRICES, FEWEST
from deepwide.quantities import Floats

REACH = math.log(4)  # how far beyond the data a crossing is still called one
SEARCHED = math.log(1000)  # how far from a crossing its limits are searched for
ROUNDING = 1e-9  # a gap of ln loss this small is no gap
SAME_CURVE = 0.05  # the p-value above which two curves cannot be told apart

Status = Literal["bracketed", "extrapolated", "none"]
Outcome = Literal["seen", "not seen", "undecided"]
Evidence = Literal[
    "no sizes in common", "no error", "deeper everywhere", "shallower everywhere", "within error", "both"
]
Absence = Literal["no sizes in common", "equal losses", "same curve", "reversed", "one side"]


@dataclass(frozen=True)
class Crossing:
    """Two depths: where the deeper starts to win, and whether both regimes show."""

    shallow: int
    deep: int
    status: Status = "none"
    size: float | None = None  # N*, None where there is none
    low: float | None = None  # 95% limits; None: not limited by these data
    high: float | None = None
    regimes: Outcome = "undecided"
    evidence: Evidence = "no sizes in common"  # what decided about the regimes
    shallow_wins: tuple[float, ...] = ()  # sizes at which it surely wins, at 95% for all sizes together
    deep_wins: tuple[float, ...] = ()
    absent: Absence | None = None  # why there is no crossing
    lower: Literal["shallow", "deep"] | None = None  # which has the lower loss at the largest size
    until: float | None = None  # where, still among the sizes trained, the deeper stops winning
    vanished: float | None = None  # share of resamples without this crossing
    resampled: tuple[float, float] | None = None  # the middle 95% of the resamples' crossings

    @property
    def depth(self) -> float:
        """Halfway between the two on the scale of a bowl in ln depth."""
        return math.sqrt(self.shallow * self.deep)

    @property
    def wins_again(self) -> bool:
        """Whether the shallower surely wins at small sizes and again at sizes beyond those of the deeper."""
        if not (self.shallow_wins and self.deep_wins):
            return False
        return self.in_order and max(self.shallow_wins) > max(self.deep_wins)

    @property
    def in_order(self) -> bool:
        """Whether the shallower surely wins at a size below one at which the deeper does."""
        return bool(self.shallow_wins and self.deep_wins) and min(self.shallow_wins) < max(self.deep_wins)


def find_crossing(curves: Curves, shallow: int, deep: int) -> Crossing:
    """The size at which the deeper starts to win, with its limits, and who surely wins where."""
    low, high = curves.common(shallow, deep)
    if low >= high:
        return Crossing(shallow, deep, absent="no sizes in common")
    sizes = np.array(sorted({s for depth in (shallow, deep) for s in curves.sizes[curves.index(depth)]}))
    sizes = sizes[(sizes >= low * 0.999) & (sizes <= high * 1.001)]
    delta, error = curves.difference(shallow, deep, sizes)
    judged = _judged(curves, shallow, deep, sizes, delta, error)
    if np.max(np.abs(delta)) < ROUNDING:
        return replace(judged, regimes="undecided", absent="equal losses")
    log_root = log_crossing(curves, np.array(curves.theta), shallow, deep)
    falls = math.exp(log_crossing(curves, np.array(curves.theta), shallow, deep, rising=False))
    if math.isnan(log_root):
        if low <= falls <= high:
            return replace(judged, absent="reversed", until=falls)
        return replace(judged, absent="one side", lower="deep" if delta[-1] > 0 else "shallow")
    if curves.dof and curves.same_curve(shallow, deep) > SAME_CURVE:
        return replace(judged, absent="same curve")
    size = math.exp(log_root)
    left, right = _limits(curves, shallow, deep, log_root)
    return replace(
        judged,
        status="bracketed" if low <= size <= high else "extrapolated",
        size=size,
        low=left,
        high=right,
        until=falls if size < falls <= high else None,
    )


def _judged(curves: Curves, shallow: int, deep: int, sizes: Floats, delta: Floats, error: Floats) -> Crossing:
    """Whether two regimes show: the shallower surely wins at some size, and from a larger one on the deeper."""
    sure = _quantile(len(sizes), curves.freedom(shallow, deep, sizes)) * error  # for all these sizes together
    shallow_wins, deep_wins = delta < -sure, delta > sure
    wins = Crossing(
        shallow, deep, shallow_wins=tuple(sizes[shallow_wins].tolist()), deep_wins=tuple(sizes[deep_wins].tolist())
    )
    if not curves.dof:
        return replace(wins, regimes="undecided", evidence="no error")
    if deep_wins.all():
        return replace(wins, regimes="not seen", evidence="deeper everywhere")
    if shallow_wins.all():
        return replace(wins, regimes="not seen", evidence="shallower everywhere")
    if not (shallow_wins.any() and deep_wins.any()):
        return replace(wins, regimes="undecided", evidence="within error")
    again = max(wins.shallow_wins) > max(wins.deep_wins)
    return replace(wins, regimes="not seen" if not wins.in_order else "undecided" if again else "seen", evidence="both")


def with_resamples(crossing: Crossing, log_roots: Floats) -> Crossing:
    """The crossing with what the resamples say of it: ln N* of each, NaN where it has none."""
    there = np.exp(log_roots[~np.isnan(log_roots)])
    if crossing.size is None or len(there) < FEWEST:
        return crossing
    low, high = np.percentile(there, [2.5, 97.5])
    return replace(crossing, vanished=1 - len(there) / len(log_roots), resampled=(float(low), float(high)))


def log_crossing(curves: Curves, theta: Floats, shallow: int, deep: int, rising: bool = True) -> float:
    """ln N at which the deeper starts to win, or stops, in the data or not far outside; NaN without such a size."""
    i, j = (3 * curves.index(depth) for depth in (shallow, deep))
    c, b, a = theta[i : i + 3] - theta[j : j + 3]
    low, high = (math.log(size / curves.centre) for size in curves.common(shallow, deep))
    reach = abs(high - low)  # sizes need not overlap
    if abs(a) * reach**2 <= 1e-12 * (abs(b) * reach + abs(c)):
        roots = [-c / b] if b else []
    else:
        square = b * b - 4 * a * c
        roots = [] if square < 0 else [(-b - math.sqrt(square)) / (2 * a), (-b + math.sqrt(square)) / (2 * a)]
    near = [x for x in roots if (b + 2 * a * x > 0) == rising and low - REACH <= x <= high + REACH]
    if not near:
        return math.nan
    return float(math.log(curves.centre) + min(near, key=lambda x: max(low - x, x - high, 0.0)))


def bracketed_size(curves: Curves | None, shallow: int, deep: int) -> float | None:
    """Where two depths cross among the sizes of these curves, None where they do not."""
    if curves is None or not {shallow, deep} <= set(curves.depths):
        return None
    low, high = curves.common(shallow, deep)
    size = math.exp(log_crossing(curves, np.array(curves.theta), shallow, deep)) if low < high else math.nan
    return size if low <= size <= high else None


def _limits(curves: Curves, shallow: int, deep: int, log_root: float) -> tuple[float | None, float | None]:
    """Sizes around the root at which δ = 0 is not refused at 95% (Fieller 1954); None: not limited by the data."""
    if not curves.dof:
        return None, None
    steps = np.linspace(0, SEARCHED, 4001)
    limits: list[float | None] = []
    for sign in (-1, 1):
        sizes = np.exp(log_root + sign * steps)
        delta, error = curves.difference(shallow, deep, sizes)
        outside = np.flatnonzero(np.abs(delta) > _quantile(1, curves.freedom(shallow, deep, sizes)) * error)
        limits.append(math.exp(log_root + sign * float(steps[outside[0]])) if outside.size else None)
    return limits[0], limits[1]


def _quantile(comparisons: int, dof: Floats) -> Floats:
    """How many standard errors are beyond chance, at 95% for so many comparisons together."""
    from scipy.special import stdtrit

    return np.where(dof >= 1, stdtrit(np.maximum(dof, 1.0), 1 - 0.025 / comparisons), math.inf)


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
