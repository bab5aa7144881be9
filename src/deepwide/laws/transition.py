"""Transition laws: ln d = a + b·L, as published and as shifted by a fit.

Legend: N block parameters, L depth, d width.
"""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from deepwide.answers import Z95
from deepwide.arrays import ArrayLike, Floats
from deepwide.laws.bowl import Covariance, check_covariance
from deepwide.laws.law import DepthCurve, DepthLaw


class _WithErrors(DepthLaw):
    """A law of two fitted numbers with their covariance."""

    covariance: Covariance | None = None

    @model_validator(mode="after")
    def _covariance_is_one(self) -> Self:
        if self.covariance is not None:
            check_covariance(self.covariance)
        return self


class TransitionLaw(_WithErrors):
    """ln d = a + b·L with N = 12·L·d², as Levine et al. 2021 fitted it."""

    kind: Literal["transition"] = "transition"
    a: float = Field(gt=-20, lt=20)
    b: float = Field(gt=0, lt=5)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """Solve ln L + 2bL = ln(N/12) − 2a by Newton in u = ln L, with the error of a and b propagated."""
        L = _solve(block_params, self.a, self.b)
        if self.covariance is None:
            return DepthCurve.exact(L)
        (aa, ab), (_, bb) = self.covariance
        # dL = −(2·da + 2L·db) / (1/L + 2b)
        error = 2 * np.sqrt(aa + 2 * L * ab + L * L * bb) / (1 / L + 2 * self.b)
        return DepthCurve(L, np.maximum(L - Z95 * error, 0.0), L + Z95 * error)

    def width(self, depth: ArrayLike) -> Floats:
        """The transition width of a depth, e^(a + b·L)."""
        return np.exp(self.a + self.b * np.atleast_1d(np.asarray(depth, dtype=float)))


class RidgeLaw(_WithErrors):
    """A transition law's depth times a fitted factor, which may drift: L = L₀(N)·e^(shift + drift·ln(N/centre)).

    `covariance` is of shift and drift. Without a base L₀ is 1: the depth is a power of the size.
    """

    kind: Literal["ridge"] = "ridge"
    base_a: float | None = Field(gt=-20, lt=20)
    base_b: float | None = Field(gt=0, lt=5)
    shift: float = Field(gt=-20, lt=20)
    drift: float = Field(default=0.0, gt=-1, lt=1)
    centre_params: float = Field(gt=0)

    @model_validator(mode="after")
    def _base_is_whole(self) -> Self:
        if (self.base_a is None) != (self.base_b is None):
            raise ValueError("base_a and base_b belong to one law: give both or neither")
        return self

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The base law's depth, shifted; the interval is symmetric in ln depth."""
        N = np.atleast_1d(np.asarray(block_params, dtype=float))
        far = np.log(N / self.centre_params)
        L = np.ones_like(N)
        if self.base_a is not None and self.base_b is not None:
            L = _solve(N, self.base_a, self.base_b)
        L = L * np.exp(self.shift + self.drift * far)
        if self.covariance is None:
            return DepthCurve.exact(L)
        (ss, sd), (_, dd) = self.covariance
        error = Z95 * np.sqrt(np.maximum(ss + 2 * far * sd + far**2 * dd, 0.0))
        return DepthCurve(L, L * np.exp(-error), L * np.exp(error))


def _solve(block_params: ArrayLike, a: float, b: float) -> Floats:
    target = np.log(np.atleast_1d(np.asarray(block_params, dtype=float)) / 12) - 2 * a
    # u + 2b·e^u is convex and increasing, so Newton steps approach from the right after the first at the latest.
    # Both terms are below the target only near the root: start where the larger of the two alone reaches it.
    # (scipy.special.lambertw gives the same and would cost every plan the import of scipy.)
    u = np.minimum(target, np.log(np.maximum(target, 1) / (2 * b)))
    for _ in range(60):
        step = (u + 2 * b * np.exp(u) - target) / (1 + 2 * b * np.exp(u))
        u = u - step
        if np.all(np.abs(step) < 1e-13 * np.maximum(1, np.abs(u))):
            break
    return np.asarray(np.exp(u))
