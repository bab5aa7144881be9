"""A law: from a size to a depth with its error, or only a piece of advice; and the bowl, what leaving that depth costs.

Legend: N block parameters (the non-embedding parameters), L depth, d width, V vocabulary. Sizes may be numbers or
numpy arrays of them. A bowl is ln loss = slope·x + curvature·x² + const at equal size, x = ln(depth / best depth).
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from deepwide.answers import Z95, Interval
from deepwide.quantities import ArrayLike, Floats, show_count

SLACK = math.log(2)  # how far beyond the measured range of x a cost is still quoted
FARTHEST = 20.0  # |x| of a measured range: a factor 5e8 in depth
ANGLES = 72  # of the ellipse over which a cost is profiled
LARGEST_LOG = 100.0  # e^100: nobody reads the digits of a larger loss ratio

Covariance = tuple[tuple[float, float], tuple[float, float]]


class Bowl(BaseModel):
    """A parabola in x = ln(depth / reference depth at the same size), with the covariance of slope and curvature.

    The reference depth is that of the published law `reference`, or, when it is empty, that of the law this bowl
    belongs to. With the error of the curvature alone, the error of that law's depth is an error of the cost too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    slope: float = Field(default=0.0, ge=-1e3, le=1e3)
    curvature: float = Field(gt=0, le=1e3)
    covariance: Covariance | None = None  # of slope and curvature,
    error: float | None = Field(default=None, ge=0, le=1e3)  # or the standard error of the curvature alone,
    log_error: float | None = Field(default=None, ge=0, le=10)  # or that of its logarithm
    x_range: tuple[float, float]  # where it was measured
    sizes: tuple[float, float] | None = None  # block parameters it was measured at; None: those its law was fitted on
    reference: str = ""
    source: str = ""

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if [self.covariance, self.error, self.log_error].count(None) != 2:
            raise ValueError("give either the covariance of slope and curvature, or the error of the curvature alone")
        if self.covariance is not None:
            check_covariance(self.covariance)
        low, high = self.x_range
        if not -FARTHEST <= low <= high <= FARTHEST:
            raise ValueError(f"x_range must rise within {-FARTHEST:g} to {FARTHEST:g}")
        return self

    def cost(self, x: float, instead_of: float, place_error: float = 0.0) -> Interval | None:
        """Extra loss in percent at x instead of at another x; None far beyond the data.

        `place_error` is the half-width of the 95% interval of the reference depth, in x.
        """
        low, high = self.x_range
        if not (low - SLACK <= min(x, instead_of) and max(x, instead_of) <= high + SLACK):
            return None
        linear, square = x - instead_of, x * x - instead_of * instead_of
        if self.log_error is not None:
            return self._profile(linear, square, place_error)
        (v11, v12), (_, v22) = self.covariance or ((0.0, 0.0), (0.0, (self.error or 0.0) ** 2))
        variance = max(0.0, linear * linear * v11 + 2 * linear * square * v12 + square * square * v22)
        value = self.slope * linear + self.curvature * square
        error = math.hypot(Z95 * math.sqrt(variance), 2 * self.curvature * linear * place_error)
        return Interval(*(100 * math.expm1(min(v, LARGEST_LOG)) for v in (value, value - error, value + error)))

    def log_ratio(self, x: ArrayLike, instead_of: float) -> Floats:
        """ln of the loss at each x over that at another x, without its interval; NaN far beyond the data."""
        at, (low, high) = np.atleast_1d(np.asarray(x, dtype=float)), self.x_range
        slope = 0.0 if self.log_error is not None else self.slope
        ratio = slope * (at - instead_of) + self.curvature * (at * at - instead_of * instead_of)
        known = (low - SLACK <= np.minimum(at, instead_of)) & (np.maximum(at, instead_of) <= high + SLACK)
        return np.where(known, np.minimum(ratio, LARGEST_LOG), np.nan)

    def above_best(self, x: ArrayLike) -> Floats:
        """ln of the loss over that at x = 0 everywhere: far beyond the data it is as steep as 95% of them allow."""
        at, (low, high) = np.atleast_1d(np.asarray(x, dtype=float)), self.x_range
        variance = self.covariance[1][1] if self.covariance else (self.error or 0.0) ** 2
        steeper = Z95 * math.sqrt(variance)
        if self.log_error is not None:
            steeper = self.curvature * math.expm1(Z95 * self.log_error)
        slope, edge = 0.0 if self.log_error is not None else self.slope, np.where(at < 0, low - SLACK, high + SLACK)
        further = np.maximum(0.0, at * at - edge * edge)
        return np.asarray(np.minimum(slope * at + self.curvature * (at * at) + steeper * further, LARGEST_LOG))

    def _profile(self, linear: float, square: float, place_error: float) -> Interval:
        """The range over the ellipse of what 95% allow: a curvature above 0, however unsure, and a place."""
        limits = []
        for step in range(ANGLES):
            angle = 2 * math.pi * step / ANGLES
            curvature = self.curvature * math.exp(Z95 * (self.log_error or 0.0) * math.cos(angle))
            limits.append(curvature * (square + 2 * linear * place_error * math.sin(angle)))
        values = (self.curvature * square, min(limits), max(limits))
        return Interval(*(100 * math.expm1(min(v, LARGEST_LOG)) for v in values))

    def covers(self, x: float) -> bool:
        """Whether x was measured."""
        return self.x_range[0] <= x <= self.x_range[1]


ROUNDED = 1.01  # times the largest size: a plan's rounding goes so far, and that is no extrapolation


def within(block_params: float, sizes: tuple[float, float]) -> bool:
    """Whether a size lies in the range of some runs, but for rounding."""
    return sizes[0] / ROUNDED <= block_params <= sizes[1] * ROUNDED


def check_covariance(covariance: Covariance) -> None:
    """Refuse what is not the covariance of two numbers."""
    (aa, ab), (ba, bb) = covariance
    if aa < 0 or bb < 0 or ab != ba or ab * ab > aa * bb * (1 + 1e-9):
        raise ValueError("covariance must be symmetric and positive")


DEEPEST = 1000.0  # layers that anybody trains
FAR_ABOVE = 10.0


class DepthCurve(NamedTuple):
    """The law's depth at each size, with the limits of its 95% interval (NaN where the law has none)."""

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def exact(cls, depth: Floats) -> "DepthCurve":
        """A curve whose law publishes no errors."""
        nothing = np.full_like(depth, np.nan)
        return cls(depth, nothing, nothing)

    def at(self, index: int = 0) -> Interval:
        """One point of the curve."""
        if np.isnan(self.low[index]):
            return Interval(float(self.value[index]))
        return Interval(float(self.value[index]), float(self.low[index]), float(self.high[index]))


def without_limit(depth: Interval) -> bool:
    """Whether a depth has no upper limit: one that no network has, far above the value.

    >>> without_limit(Interval(26.0, 16.0, 54_000.0)), without_limit(Interval(400.0, 100.0, 1500.0))
    (True, False)
    """
    return depth.high is not None and depth.high > max(DEEPEST, FAR_ABOVE * depth.value)


@dataclass(frozen=True)
class Opinion:
    """What a law says about one size, in one line of a table."""

    law: str
    kind: str
    depth: float | None  # None: the law does not predict one
    low: float | None
    high: float | None
    words: str
    status: str


class Law(BaseModel):
    """What all laws share: where they come from, and what they say about a size."""

    # Built when first needed: a plan must answer at once, and laws are read through one union.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    kind: str
    name: str = Field(min_length=1, max_length=80)
    about: str = ""  # a few words, for a table
    details: str = ""
    citation: str = ""
    status: str = ""
    tested: str = ""
    fitted_block_params: tuple[PositiveFloat, PositiveFloat] | None = None  # sizes the law was fitted on, where known
    bowl: Bowl | None = None  # None: the cost of another depth is that of all public sets (cost.py)
    cautions: tuple[str, ...] = ()  # what the fit warned about

    @abstractmethod
    def opinion(self, block_params: float, vocab: int) -> Opinion:
        """The law's line in a table of laws."""

    def is_extrapolated(self, block_params: float) -> bool:
        """Whether this size lies outside what the law was fitted on, as far as that is known."""
        fitted = self.fitted_block_params
        return fitted is not None and not within(block_params, fitted)

    @property
    def fitted_words(self) -> str:
        """fitted on 3.34M to 2.83B."""
        return "fitted on " + " to ".join(show_count(size) for size in self.fitted_block_params or ())


class DepthLaw(Law):
    """A law that predicts the best depth of a size: the ones a plan can follow."""

    @abstractmethod
    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The depth this law gives to each size in block parameters."""

    def at_length(self, tokens: float) -> "DepthLaw":
        """The law for runs of so many tokens; itself, if it does not know what length does."""
        del tokens
        return self

    def depth_at(self, block_params: float) -> float:
        """The depth at one size, without its interval."""
        return float(self.depth(block_params).value[0])

    def opinion(self, block_params: float, vocab: int) -> Opinion:
        """The predicted depth with its interval."""
        del vocab
        depth = self.depth(block_params).at()
        words = self.about + (f" (extrapolated: {self.fitted_words})" if self.is_extrapolated(block_params) else "")
        return Opinion(self.name, self.kind, depth.value, depth.low, depth.high, words, self.status)


class AdviceLaw(Law):
    """A law that predicts no depth: it is shown beside a plan and cannot make one."""

    @abstractmethod
    def advice(self, block_params: float, vocab: int) -> str:
        """What it says about a size."""

    def opinion(self, block_params: float, vocab: int) -> Opinion:
        """The advice in words."""
        words = self.advice(block_params, vocab)
        return Opinion(self.name, self.kind, None, None, None, words, self.status)
