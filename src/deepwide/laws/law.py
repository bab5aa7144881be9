"""A law: from a budget to a depth with its error, from a shape to a judgement.

Legend: N block parameters, L depth, d width, V vocabulary. Sizes may be numbers or numpy arrays of them.
"""

from abc import abstractmethod
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from deepwide.answers import Z95, Interval
from deepwide.arrays import ArrayLike, Floats
from deepwide.quantities import show_count


class DepthCurve(NamedTuple):
    """The law's depth for each budget, with the limits of its 95% interval (NaN where the law has none)."""

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def exact(cls, depth: Floats) -> "DepthCurve":
        """A curve whose law publishes no errors."""
        nothing = np.full_like(depth, np.nan)
        return cls(depth, nothing, nothing)

    def at(self, index: int = 0) -> Interval:
        """One of them."""
        if np.isnan(self.low[index]):
            return Interval(float(self.value[index]))
        return Interval(float(self.value[index]), float(self.low[index]), float(self.high[index]))


class Opinion(BaseModel):
    """What a law says about one budget, in one line of a table."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    law: str
    kind: str
    depth: float | None  # None: the law does not name one
    low: float | None
    high: float | None
    words: str
    status: str


class Bowl(BaseModel):
    """What leaving a fitted law's depth costs, by the runs it was fitted on: ln loss grows by curvature·x²,
    x = ln(depth / the law's)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    curvature: float = Field(gt=0)
    error: float = Field(ge=0)
    x_range: tuple[float, float]  # where it was measured


class Law(BaseModel):
    """What all laws share. `names_a_depth` tells whether `depth` may be asked."""

    # Built when first needed: a plan must answer at once, and laws are read through one union.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    names_a_depth: ClassVar[bool] = True
    name: str = Field(min_length=1, max_length=80)
    about: str = ""  # a few words, for a table
    details: str = ""
    citation: str = ""
    status: str = ""
    tested: str = ""
    fitted_block_params: tuple[float, float] | None = None  # sizes the law was fitted on, where known
    bowl: Bowl | None = None  # None: the cost of another depth is Gemstones' (cost.py)
    cautions: tuple[str, ...] = ()  # what the fit warned of

    @abstractmethod
    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The depth this law gives to each budget of block parameters."""

    def opinion(self, block_params: int, vocab: int) -> Opinion:
        """The law's line in a table of laws."""
        del vocab
        depth = self.depth(block_params).at()
        words = self.about + (f" (extrapolated: {self.fitted_words})" if self.is_extrapolated(block_params) else "")
        return self._say(words, depth.value, depth.low, depth.high)

    def is_extrapolated(self, block_params: float) -> bool:
        """Whether this size lies outside what the law was fitted on, as far as that is known."""
        fitted = self.fitted_block_params
        return fitted is not None and not fitted[0] <= block_params <= fitted[1]

    @property
    def fitted_words(self) -> str:
        """fitted on 3.34M to 2.83B."""
        return "fitted on " + " to ".join(show_count(size) for size in self.fitted_block_params or ())

    def _say(
        self, words: str, depth: float | None = None, low: float | None = None, high: float | None = None
    ) -> Opinion:
        kind: str = getattr(self, "kind")  # noqa: B009 - each law declares its own literal
        return Opinion.model_construct(
            law=self.name, kind=kind, depth=depth, low=low, high=high, words=words, status=self.status
        )


Errant = TypeVar("Errant", "TransitionLaw", "RidgeLaw")


def _checked(law: Errant) -> Errant:
    if law.covariance is not None:
        (aa, ab), (ba, bb) = law.covariance
        if aa < 0 or bb < 0 or ab != ba or ab * ab > aa * bb * (1 + 1e-9):
            raise ValueError("covariance must be symmetric and positive")
    return law


class TransitionLaw(Law):
    """ln d = a + b·L with N = 12·L·d², as Levine et al. 2021 fitted it."""

    kind: Literal["transition"] = "transition"
    a: float = Field(gt=-20, lt=20)
    b: float = Field(gt=0, lt=5)
    covariance: tuple[tuple[float, float], tuple[float, float]] | None = None

    @model_validator(mode="after")
    def _covariance_is_one(self) -> "TransitionLaw":
        return _checked(self)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """Solve ln L + 2bL = ln(N/12) − 2a by Newton in u = ln L, with the error of a and b carried over."""
        target = np.log(np.atleast_1d(np.asarray(block_params, dtype=float)) / 12) - 2 * self.a
        b = self.b
        # u + 2b·e^u is convex and increasing, so Newton steps approach from the right after the first at the latest.
        # Both terms are below the target only near the root: start where the larger of the two alone reaches it.
        u = np.minimum(target, np.log(np.maximum(target, 1) / (2 * b)))
        for _ in range(60):
            step = (u + 2 * b * np.exp(u) - target) / (1 + 2 * b * np.exp(u))
            u = u - step
            if np.all(np.abs(step) < 1e-13 * np.maximum(1, np.abs(u))):
                break
        L = np.exp(u)
        if self.covariance is None:
            return DepthCurve.exact(L)
        (aa, ab), (_, bb) = self.covariance
        # dL = −(2·da + 2L·db) / (1/L + 2b)
        error = 2 * np.sqrt(aa + 2 * L * ab + L * L * bb) / (1 / L + 2 * b)
        return DepthCurve(L, np.maximum(L - Z95 * error, 0.0), L + Z95 * error)

    def width(self, depth: ArrayLike) -> Floats:
        """The transition width of a depth, e^(a + b·L)."""
        return np.exp(self.a + self.b * np.atleast_1d(np.asarray(depth, dtype=float)))


class RidgeLaw(Law):
    """A transition law's depth times a fitted factor, which may drift: L = L₀(N)·e^(shift + drift·ln(N/centre)).

    `covariance` is of shift and drift. Without a base L₀ is 1: the depth is a power of the size.
    """

    kind: Literal["ridge"] = "ridge"
    base_a: float | None = Field(gt=-20, lt=20)
    base_b: float | None = Field(gt=0, lt=5)
    shift: float = Field(gt=-20, lt=20)
    drift: float = Field(default=0.0, gt=-1, lt=1)
    centre_params: float = Field(gt=0)
    covariance: tuple[tuple[float, float], tuple[float, float]] | None = None

    @model_validator(mode="after")
    def _covariance_is_one(self) -> "RidgeLaw":
        if (self.base_a is None) != (self.base_b is None):
            raise ValueError("base_a and base_b are of one law: give both or neither")
        return _checked(self)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The base law's depth, shifted; the interval is symmetric in ln depth."""
        N = np.atleast_1d(np.asarray(block_params, dtype=float))
        far = np.log(N / self.centre_params)
        L = np.ones_like(N)
        if self.base_a is not None and self.base_b is not None:
            L = TransitionLaw(name="base", a=self.base_a, b=self.base_b).depth(N).value
        L = L * np.exp(self.shift + self.drift * far)
        if self.covariance is None:
            return DepthCurve.exact(L)
        (ss, sd), (_, dd) = self.covariance
        error = Z95 * np.sqrt(np.maximum(ss + 2 * far * sd + far**2 * dd, 0.0))
        return DepthCurve(L, L * np.exp(-error), L * np.exp(error))


class SurfaceLaw(Law):
    """A loss fitted in width, depth, total parameters and tokens; its optimum at equal total parameters.

    Each term is [ln coefficient, exponent]; the loss is Σ e^c·x^−p + e^floor. Total parameters are counted in the
    fit's own architecture: layer_matrices·L·d² + embedding_rows·d. `errors` are rows of block parameters and the 95%
    limits of the depth there, as factors of it; outside them the nearest row holds.
    """

    kind: Literal["surface"] = "surface"
    width_term: tuple[float, float]
    depth_term: tuple[float, float]
    params_term: tuple[float, float]
    tokens_term: tuple[float, float]
    floor: float
    layer_matrices: float = Field(gt=0)
    embedding_rows: float = Field(ge=0)
    tokens_per_param: float = Field(gt=0)
    errors: tuple[tuple[PositiveFloat, PositiveFloat, PositiveFloat], ...] = ()

    def loss(self, depth: ArrayLike, width: ArrayLike, tokens: ArrayLike | None = None) -> Floats:
        """Predicted loss, in nats per token of the fit's data."""
        L, d = np.asarray(depth, dtype=float), np.asarray(width, dtype=float)
        P = self.layer_matrices * L * d**2 + self.embedding_rows * d
        T = self.tokens_per_param * P if tokens is None else np.asarray(tokens, dtype=float)
        terms = ((self.width_term, d), (self.depth_term, L), (self.params_term, P), (self.tokens_term, T))
        return np.asarray(sum(np.exp(c) * x**-p for (c, p), x in terms) + np.exp(self.floor))

    def optimum(self, total_params: ArrayLike) -> tuple[Floats, Floats]:
        """Depth and width of least loss at equal total parameters (and so equal tokens)."""
        P = np.atleast_1d(np.asarray(total_params, dtype=float))[:, None]
        low, high = np.full_like(P, -3.0), np.full_like(P, 8.0)
        for _ in range(6):  # shrink a grid in ln L around its best point; the loss has one minimum
            grid = low + (high - low) * np.linspace(0, 1, 33)
            best = np.argmin(self._loss_at(np.exp(grid), P), axis=1)[:, None]
            step = (high - low) / 32
            centre = np.take_along_axis(grid, best, axis=1)
            low, high = centre - step, centre + step
        L = np.exp((low + high) / 2)
        return L[:, 0], self._width(L, P)[:, 0]

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The optimum whose blocks, without its embeddings, have this size."""
        N = np.atleast_1d(np.asarray(block_params, dtype=float))
        log_N, log_L = _surface_table(self)
        L = np.exp(np.interp(np.log(N), log_N, log_L))
        if not self.errors:
            return DepthCurve.exact(L)
        at, low, high = np.log(sorted(self.errors)).T
        return DepthCurve(L, L * np.exp(np.interp(np.log(N), at, low)), L * np.exp(np.interp(np.log(N), at, high)))

    def _width(self, L: Floats, P: Floats) -> Floats:
        m, e = self.layer_matrices * L, self.embedding_rows
        return np.asarray((np.sqrt(e * e + 4 * m * P) - e) / (2 * m))

    def _loss_at(self, L: Floats, P: Floats) -> Floats:
        return self.loss(L, self._width(L, P), self.tokens_per_param * P)


@lru_cache(maxsize=64)  # not in the law: arrays there would make two equal laws incomparable
def _surface_table(law: SurfaceLaw) -> tuple[Floats, Floats]:
    L, d = law.optimum(np.logspace(4, 18, 281))
    return np.log(law.layer_matrices * L * d**2), np.log(L)


class AspectLaw(Law):
    """d = ratio·L."""

    kind: Literal["aspect"] = "aspect"
    ratio: float = Field(gt=0)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """L = (N / 12·ratio²)^⅓."""
        L = np.cbrt(np.atleast_1d(np.asarray(block_params, dtype=float)) / (12 * self.ratio**2))
        return DepthCurve.exact(L)


class PowerLaw(Law):
    """L = anchor_depth·(N / anchor_params)^exponent."""

    kind: Literal["power"] = "power"
    exponent: float = Field(gt=0, lt=1)
    anchor_params: float = Field(gt=0)
    anchor_depth: float = Field(gt=0)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The power of N through the anchor."""
        N = np.atleast_1d(np.asarray(block_params, dtype=float))
        L = self.anchor_depth * (N / self.anchor_params) ** self.exponent
        return DepthCurve.exact(L)


class _NoDepth(Law):
    names_a_depth: ClassVar[bool] = False

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """Programmers ask `names_a_depth` first."""
        del block_params
        raise TypeError(f"the law '{self.name}' names no depth")


class IndifferentLaw(_NoDepth):
    """Depth does not matter within a span of aspect ratios."""

    kind: Literal["indifferent"] = "indifferent"
    aspect_span: float = Field(gt=1)

    def opinion(self, block_params: int, vocab: int) -> Opinion:
        """Any depth."""
        del block_params, vocab
        return self._say(self.about)


class CeilingLaw(_NoDepth):
    """Depth pays up to a ceiling."""

    kind: Literal["ceiling"] = "ceiling"
    low: float = Field(gt=0)
    high: float = Field(gt=0)

    def opinion(self, block_params: int, vocab: int) -> Opinion:
        """At most so many layers."""
        del block_params, vocab
        return self._say(f"at most {self.low:g}–{self.high:g} layers")


class VocabularyLaw(_NoDepth):
    """Width pays up to the vocabulary, so a budget has a least depth."""

    kind: Literal["vocabulary"] = "vocabulary"

    def opinion(self, block_params: int, vocab: int) -> Opinion:
        """At least so many layers, given the vocabulary."""
        least = block_params / (12 * vocab**2)
        return self._say(self.about + (": no limit here" if least < 1 else f", so at least {least:.1f} layers"))


AnyLaw = Annotated[
    TransitionLaw | RidgeLaw | SurfaceLaw | AspectLaw | PowerLaw | IndifferentLaw | CeilingLaw | VocabularyLaw,
    Field(discriminator="kind"),
]
