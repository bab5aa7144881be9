"""Laws of one formula: a fixed aspect ratio, and a power of the size."""

from typing import Literal

import numpy as np
from pydantic import Field

from deepwide.arrays import ArrayLike
from deepwide.laws.law import DepthCurve, DepthLaw


class AspectLaw(DepthLaw):
    """d = ratio·L."""

    kind: Literal["aspect"] = "aspect"
    ratio: float = Field(gt=0, le=1e100)  # its square must be a float

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """L = (N / 12·ratio²)^⅓."""
        L = np.cbrt(np.atleast_1d(np.asarray(block_params, dtype=float)) / (12 * self.ratio**2))
        return DepthCurve.exact(L)


class PowerLaw(DepthLaw):
    """L = anchor_depth·(N / anchor_params)^exponent."""

    kind: Literal["power"] = "power"
    exponent: float = Field(gt=0, lt=1)
    anchor_params: float = Field(gt=0)
    anchor_depth: float = Field(gt=0)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The power of N through the anchor."""
        N = np.atleast_1d(np.asarray(block_params, dtype=float))
        return DepthCurve.exact(self.anchor_depth * (N / self.anchor_params) ** self.exponent)
