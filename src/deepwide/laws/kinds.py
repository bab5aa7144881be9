"""The kinds of law: one formula, a transition law, a loss surface, and published advice that predicts no depth.

Legend: N block parameters, P total parameters, L depth, d width, T training tokens.
"""

import math
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, field_validator, model_validator

from deepwide.answers import Z95, Interval
from deepwide.errors import DeepwideError, quoted
from deepwide.laws.law import LARGEST_LOG, AdviceLaw, Covariance, DepthCurve, DepthLaw, check_covariance, within
from deepwide.quantities import ArrayLike, Floats, show_count

SAME_LENGTH = 1.05  # lengths of runs within this factor are one
FARTHEST_LENGTH = 1000.0  # times the longest run, or the shortest over it: beyond it nothing is known
FARTHEST = 5.0  # tail times ln depth, beyond which a bowl's sides are parabolas again: no run is so far off


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

    `covariance` is of shift and drift. Without a base L₀ is 1: the depth is a power of the size. `growth_error` is the
    standard deviation of how growth may change beyond the sizes that the law was fitted on.
    """

    kind: Literal["ridge"] = "ridge"
    base_a: float | None = Field(gt=-20, lt=20)
    base_b: float | None = Field(gt=0, lt=5)
    shift: float = Field(gt=-20, lt=20)
    drift: float = Field(default=0.0, gt=-1, lt=1)
    centre_params: float = Field(gt=0)
    growth_error: float = Field(default=0.0, ge=0, le=1)

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
        beyond = 0.0 if self.fitted_block_params is None else np.log(N / np.clip(N, *self.fitted_block_params))
        variance = np.maximum(ss + 2 * far * sd + far**2 * dd, 0.0) + (self.growth_error * beyond) ** 2
        error = Z95 * np.sqrt(variance)
        return DepthCurve(L, L * np.exp(-error), L * np.exp(error))


class Lengths(BaseModel):
    """How a joint law moves with the tokens of a run: where its runs had several lengths.

    With τ = ln(tokens/centre), ln L also has rτ + uστ + vτ², and the bowl e^(mτ); what the law states is for
    τ = at + slope·σ.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    centre_tokens: PositiveFloat
    line: tuple[float, float]  # at, slope
    tokens: tuple[PositiveFloat, PositiveFloat]  # of the runs
    words: str  # what the law's cautions say of the length that it is stated for
    weight: float = Field(ge=0, le=1)  # of the growth at the end of the runs in that beyond them
    draws: tuple[tuple[float, float, float, float], ...]  # r, u, v, m of each


class JointLaw(DepthLaw):
    """L = e^(l + pσ + qσ²), σ = ln(N/centre), with draws of the posterior: what runs and priors leave open.

    Beyond the sizes of the runs growth (the derivative of ln L by σ) goes from what it is at their end towards g, which
    the runs say nothing about: e-fold by e-fold, over `relax` of them. In draws with g = 0 it ends there at once; where
    it `may_end`, each draw counts twice, as it is and with g = 0. A draw is l, p, q, g and the bowl's curvature c, its
    change k, its skew a and its tail t: ln loss above the best is c·e^(kσ)·`bowl_sides`(ln depth − ln L, a, t).
    Intervals are the middle 95% of all draws.
    """

    kind: Literal["joint"] = "joint"
    centre_params: float = Field(gt=0)
    soft: float = Field(gt=0, le=10)
    relax: float = Field(gt=0, le=100)
    sizes: tuple[PositiveFloat, PositiveFloat]  # block parameters of the runs
    draws: tuple[tuple[float, float, float, float, float, float, float, float], ...] = Field(
        min_length=100, max_length=10_000
    )
    may_end: bool = False
    lengths: Lengths | None = None
    run_tokens: PositiveFloat | None = None  # of all its runs, where they had one length
    far_length: str = ""  # what makes it doubtful at the length that it was asked for

    @model_validator(mode="after")
    def _lengths_are_of_these_draws(self) -> Self:
        if self.lengths is not None and len(self.lengths.draws) != len(self.draws):
            raise ValueError(f"lengths have {len(self.lengths.draws)} draws, and the law {len(self.draws)}")
        return self

    @field_validator("draws", mode="before")
    @classmethod
    def _laws_saved_before_tails(cls, draws: Any) -> Any:
        """Draws that were saved with seven numbers have a tail of 0."""
        if not isinstance(draws, list | tuple):
            return draws
        return tuple((*row, 0.0) if isinstance(row, list | tuple) and len(row) == 7 else row for row in draws)

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The median of the draws in which growth goes on, and the limits of the middle 95% of all."""
        places = self._place(np.atleast_1d(np.asarray(block_params, dtype=float)))
        return DepthCurve(*map(np.exp, self.middle_and_limits(np.clip(places, -50, 50))))

    def at_length(self, tokens: float) -> "JointLaw":
        """The law for runs of so many tokens. One whose runs had a single length says so, if this is another."""
        if not (isinstance(tokens, int | float) and 0 < tokens < math.inf):
            raise DeepwideError(f"a length must be a number of tokens above 0, not {quoted(tokens)}.")
        if self.lengths is None:
            if self.run_tokens is None or 1 / SAME_LENGTH < tokens / self.run_tokens < SAME_LENGTH:
                return self
            far = f"all its runs had {show_count(round(self.run_tokens))} tokens: they do not say what others do to it"
            return self.model_copy(update={"far_length": far})
        least, most = self.lengths.tokens
        runs = f"its runs had {show_count(round(least))} to {show_count(round(most))} tokens"
        if not least / FARTHEST_LENGTH <= tokens <= most * FARTHEST_LENGTH:
            raise DeepwideError(f"the {self.name} law says nothing of {show_count(round(tokens))} tokens: {runs}.")
        moves, (at, slope) = self.lengths, self.lengths.line
        t = math.log(tokens / moves.centre_tokens)
        r, u, v, m = np.array(moves.draws).T
        place, growth, bend, grows_to, curvature, change, skew, tail = np.array(self.draws).T
        steeper = u * t - (r * slope + u * at + 2 * v * at * slope)
        bends = -(u * slope + v * slope**2)
        end = math.log(self.sizes[1] / self.centre_params)
        goes_on = grows_to + moves.weight * (steeper + 2 * bends * end)
        columns = (
            place + r * (t - at) + v * (t**2 - at**2),
            growth + steeper,
            bend + bends,
            np.where(grows_to == 0, 0.0, goes_on),
            curvature * np.exp(np.clip(m * (t - at), -20, 20)),
            change - slope * m,
            skew,
            tail,
        )
        beyond = f"{runs}: how its best depth shifts beyond them is assumed to go on"
        return self.model_copy(
            update={
                "draws": tuple(map(tuple, np.column_stack(columns).tolist())),
                "details": f"at {show_count(round(tokens))} tokens",
                "lengths": None,
                "run_tokens": None,
                "cautions": tuple(caution for caution in self.cautions if caution != moves.words),
                "far_length": "" if within(tokens, moves.tokens) else beyond,
            }
        )

    def middle_and_limits(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """The median of the draws in which growth goes on, and the limits of the middle 95% of all: (draws, …)."""
        low, high = np.quantile(values, (0.025, 0.975), axis=0)
        return np.clip(self._middle(values), low, high), low, high

    def _middle(self, values: Floats) -> Floats:
        goes_on = _columns(self)[:, 3] != 0
        return np.asarray(np.median(values[goes_on] if goes_on.any() else values, axis=0))

    def cost_of(self, depth: float, block_params: float, than: tuple[float, float]) -> Interval:
        """Extra loss, in percent, that a shape owes to its depth, over what another (depth, size) owes to its own.

        As with the depth, the value is for growth that goes on, and the limits are for growth either way.
        """
        extra = np.clip(self.above(depth, block_params) - self.above(*than), -LARGEST_LOG, LARGEST_LOG)
        return Interval(*(100 * math.expm1(v) for v in self.middle_and_limits(extra)))

    def costs_of(self, depths: Floats, block_params: Floats, than: tuple[float, float]) -> Floats:
        """`cost_of` of many shapes at once, without its interval."""
        extra = self.above(depths, block_params) - self.above(*than)[:, None]
        return np.asarray(100 * np.expm1(self._middle(np.clip(extra, -LARGEST_LOG, LARGEST_LOG))))

    def place(self, block_params: float) -> Floats:
        """ln of the best depth at a size, of each draw."""
        return np.asarray(self._place(np.array([float(block_params)]))[:, 0])

    def _place(self, N: Floats) -> Floats:
        far = np.log(N / self.centre_params)
        end = np.clip(far, *np.log(np.array(self.sizes) / self.centre_params))
        at, p, q, g = _columns(self).T[:4, :, None]
        beyond = far - end
        tail = np.sign(beyond) * self.relax * -np.expm1(-np.abs(beyond) / self.relax)
        goes_on = g * beyond + (p + 2 * q * end - g) * tail
        return np.asarray(at + p * end + q * end**2 + np.where(g == 0, 0.0, goes_on))

    def above(self, depth: ArrayLike, N: ArrayLike) -> Floats:
        """ln loss above that of the best depth at this size, of each draw: (draws,), of arrays (draws, shapes)."""
        L, sizes = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, dtype=float)) for v in (depth, N)))
        c, k, a, t = _columns(self).T[4:, :, None]
        z = np.log(L) - self._place(sizes)
        above = c * np.exp(np.clip(k * np.log(sizes / self.centre_params), -20, 20)) * bowl_sides(z, a, t, self.soft)
        return np.asarray(above if np.ndim(depth) or np.ndim(N) else above[:, 0])


def bowl_sides(z: Floats, skew: Floats | float, tail: Floats | float, soft: float) -> Floats:
    """A bowl in z = ln depth − ln best depth, as curved as z² at its bottom if it is even there.

    2·(e^(−tz) − 1 + tz)/t² · (1 − a·z/√(z² + soft²)): the skew a makes one side steeper everywhere, the tail t makes
    it ever steeper farther out, as a loss does that is a sum of powers of depth and width. With neither it is z².

    >>> float(bowl_sides(np.array([2.0]), 0.0, 0.0, 0.25)[0])
    4.0
    """
    u = np.clip(tail * z, -FARTHEST, FARTHEST)
    small = np.abs(u) < 1e-3
    far = np.where(small, 1.0, u)
    steeper = np.where(small, 1 - u / 3 + u**2 / 12, 2 * (np.expm1(-far) + far) / far**2)
    return np.asarray(z**2 * steeper * (1 - skew * z / np.sqrt(z**2 + soft**2)))


@lru_cache(maxsize=16)
def _columns(law: JointLaw) -> Floats:
    draws = np.array(law.draws)
    return np.concatenate([draws, np.where(np.arange(8) == 3, 0.0, draws)]) if law.may_end else draws


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


class SurfaceLaw(DepthLaw):
    """A loss fitted in width, depth, total parameters and tokens; its optimum at equal total parameters.

    Each term is [ln coefficient, exponent]; the loss is Σ e^c·x^−p + e^floor. Total parameters are counted in the
    fit's own architecture: layer_matrices·L·d² + embedding_rows·d. `errors` are rows of block parameters and the 95%
    limits of the depth there, as factors of it; outside them the nearest row holds.
    """

    kind: Literal["surface"] = "surface"
    width_term: tuple[float, float]
    depth_term: tuple[float, float]
    params_term: tuple[float, float] | None = None
    tokens_term: tuple[float, float]
    floor: float
    layer_matrices: float = Field(ge=1e-3, le=1e6)
    embedding_rows: float = Field(ge=0, le=1e9)
    tokens_per_param: float = Field(ge=1e-6, le=1e9)
    errors: tuple[tuple[PositiveFloat, PositiveFloat, PositiveFloat], ...] = ()

    def loss(self, depth: ArrayLike, width: ArrayLike, tokens: ArrayLike | None = None) -> Floats:
        """Predicted loss, in nats per token of the fit's data."""
        L, d = np.asarray(depth, dtype=float), np.asarray(width, dtype=float)
        P = self.layer_matrices * L * d**2 + self.embedding_rows * d
        T = self.tokens_per_param * P if tokens is None else np.asarray(tokens, dtype=float)
        terms = ((self.width_term, d), (self.depth_term, L), (self.params_term, P), (self.tokens_term, T))
        return np.asarray(sum(np.exp(t[0]) * x ** -t[1] for t, x in terms if t is not None) + np.exp(self.floor))

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


class IndifferentLaw(AdviceLaw):
    """Depth does not matter within a span of aspect ratios."""

    kind: Literal["indifferent"] = "indifferent"
    aspect_span: float = Field(gt=1)

    def advice(self, block_params: float, vocab: int) -> str:
        """Any depth."""
        del block_params, vocab
        return self.about


class NarrowerLaw(AdviceLaw):
    """Loss rises with width/depth without end: what width costs, and no best depth."""

    kind: Literal["narrower"] = "narrower"

    def advice(self, block_params: float, vocab: int) -> str:
        """The deeper the better."""
        del block_params, vocab
        return self.about


class CeilingLaw(AdviceLaw):
    """Depth pays up to a ceiling."""

    kind: Literal["ceiling"] = "ceiling"
    low: float = Field(gt=0)
    high: float = Field(gt=0)

    def advice(self, block_params: float, vocab: int) -> str:
        """At most so many layers."""
        del block_params, vocab
        return f"at most {self.low:g}–{self.high:g} layers"


class VocabularyLaw(AdviceLaw):
    """Width pays up to the vocabulary, so a size has a least depth."""

    kind: Literal["vocabulary"] = "vocabulary"

    def advice(self, block_params: float, vocab: int) -> str:
        """At least so many layers, given the vocabulary."""
        least = block_params / (12 * vocab**2)
        return self.about + (": no limit here" if least < 1 else f", so at least {least:.1f} layers")
