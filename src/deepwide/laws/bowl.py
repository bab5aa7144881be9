"""What leaving the best depth costs at equal size: ln loss = slope·x + curvature·x² + const."""

import math
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deepwide.answers import Z95, Interval

SLACK = math.log(2)  # how far beyond the measured range of x a cost is still quoted
FARTHEST = 20.0  # |x| of a measured range: a factor 5e8 in depth
LARGEST_LOG = 100.0  # e^100: nobody reads the digits of a larger loss ratio

Covariance = tuple[tuple[float, float], tuple[float, float]]


class Bowl(BaseModel):
    """A parabola in x = ln(depth / reference depth at the same size), with the covariance of slope and curvature.

    The reference depth is that of the published law `reference`, or, when it is empty, that of the law this bowl
    belongs to; then the error of that law's depth is an error of the cost too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    slope: float = Field(default=0.0, ge=-1e3, le=1e3)
    curvature: float = Field(gt=0, le=1e3)
    covariance: Covariance | None = None  # of slope and curvature,
    error: float | None = Field(default=None, ge=0, le=1e3)  # or the standard error of the curvature alone
    x_range: tuple[float, float]  # where it was measured
    sizes: tuple[float, float] | None = None  # block parameters it was measured at; None: those its law was fitted on
    reference: str = ""
    source: str = ""

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if (self.covariance is None) == (self.error is None):
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
        (v11, v12), (_, v22) = self.covariance or ((0.0, 0.0), (0.0, (self.error or 0.0) ** 2))
        variance = max(0.0, linear * linear * v11 + 2 * linear * square * v12 + square * square * v22)
        value = self.slope * linear + self.curvature * square
        error = math.hypot(Z95 * math.sqrt(variance), 2 * self.curvature * linear * place_error)
        return Interval(*(100 * math.expm1(min(v, LARGEST_LOG)) for v in (value, value - error, value + error)))

    def covers(self, x: float) -> bool:
        """Whether x was measured."""
        return self.x_range[0] <= x <= self.x_range[1]


def check_covariance(covariance: Covariance) -> None:
    """Refuse what is not the covariance of two numbers."""
    (aa, ab), (ba, bb) = covariance
    if aa < 0 or bb < 0 or ab != ba or ab * ab > aa * bb * (1 + 1e-9):
        raise ValueError("covariance must be symmetric and positive")
