"""A law: from a size to a depth with its error, or only a piece of advice.

Legend: N block parameters (the non-embedding parameters), L depth, d width, V vocabulary. Sizes may be numbers or
numpy arrays of them.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from deepwide.answers import Interval
from deepwide.arrays import ArrayLike, Floats
from deepwide.laws.bowl import Bowl
from deepwide.quantities import show_count


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
    fitted_block_params: tuple[float, float] | None = None  # sizes the law was fitted on, where known
    bowl: Bowl | None = None  # None: the cost of another depth is measured on Gemstones (cost.py)
    cautions: tuple[str, ...] = ()  # what the fit warned about

    @abstractmethod
    def opinion(self, block_params: float, vocab: int) -> Opinion:
        """The law's line in a table of laws."""

    def is_extrapolated(self, block_params: float) -> bool:
        """Whether this size lies outside what the law was fitted on, as far as that is known."""
        fitted = self.fitted_block_params
        return fitted is not None and not fitted[0] <= block_params <= fitted[1]

    @property
    def fitted_words(self) -> str:
        """fitted on 3.34M to 2.83B."""
        return "fitted on " + " to ".join(show_count(size) for size in self.fitted_block_params or ())


class DepthLaw(Law):
    """A law that predicts the best depth of a size: the ones a plan can follow."""

    @abstractmethod
    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The depth this law gives to each size in block parameters."""

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
