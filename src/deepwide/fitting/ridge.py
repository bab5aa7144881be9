"""The best depth as a function of size: a bowl in ln depth about a law, at equal size.

    ln loss = c + s·σ + s₂·σ² [+ e·ln(total/block)] [+ t·θ + t₂·θ²] + b₁·x + b₂·x² [+ b₃·σ·x]

σ = ln(N / centre), θ = ln(tokens / centre), x = ln(depth / law's depth at N). Its minimum is at x* = −(b₁ + b₃σ)/2b₂,
and a depth f times the best one costs b₂·ln²f of ln loss. The terms in square brackets are optional.
Without a law, x = ln depth and the b₃ term stays: the best depth is then a power of the size.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from deepwide.answers import Z95, Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions, summary
from deepwide.fitting.answer import Fit, Prediction, residual_table
from deepwide.fitting.regression import (
    Noise,
    Regression,
    as_tuples,
    check_noise,
    check_positive,
    check_resamples,
    regress,
    seed_columns,
    span,
    span_known,
    t95,
)
from deepwide.fitting.runs import Counting, Runs
from deepwide.fitting.words import note
from deepwide.laws import Bowl, RidgeLaw, TransitionLaw, find_law
from deepwide.quantities import ArrayLike, Floats

SEARCHED = math.log(1000)  # how far from the minimum its limits are searched for
GROWTH_ERROR = 0.2  # sd of a change of growth beyond the runs
CLAIM = "at equal size there is a depth of least loss"
RULE = (
    "seen if the 95% interval of the curvature of ln loss in ln depth lies above 0, not seen if it lies below, else "
    "undecided"
)


class Other(NamedTuple):
    """A term that was left out and is significant: where the minimum would be with it, and how it would drift."""

    term: str
    minimum: float
    drift: float


class RidgeFit(Fit):
    """The regression, and the bowl's minimum as a factor on the base law's depth, or in layers."""

    kind: Literal["ridge"] = "ridge"
    base: TransitionLaw | None  # None: depths are measured from one layer
    centre: float
    centre_tokens: float | None
    x_range: tuple[float, float]
    minimum: Interval | None  # depth / base depth at the centre's size; None: no bowl
    others: tuple[Other, ...] = ()  # terms left out that the data want

    def law(self) -> RidgeLaw | None:
        """The base law's depth times the fitted factor; None where the data show no bowl.

        A law is asked about block parameters, so a drift in total parameters gives none either; nor does a depth that
        grows faster than the size, which no width could follow.
        """
        if self.minimum is None or (self.counting == "total" and "drift" in self.names) or abs(self.drift.value) >= 1:
            return None
        shift, error = self._at_minimum()
        error *= (t95(self.dof) / Z95) ** 2  # a law's limits are the normal's
        # What other terms would make of the minimum is an error too; the saved law carries it.
        error[0, 0] += max(((math.log(other.minimum) - shift) ** 2 for other in self.others), default=0.0)
        error[1, 1] += max((other.drift**2 for other in self.others), default=0.0)
        return RidgeLaw(
            **self._origin(),
            about="least loss at equal size (fitted)",
            details=f"{math.exp(shift):.2f} {self.unit}",
            base_a=self.base.a if self.base else None,
            base_b=self.base.b if self.base else None,
            shift=shift,
            drift=self.drift.value,
            centre_params=self.centre,
            growth_error=GROWTH_ERROR,
            covariance=as_tuples(error),
            bowl=self.bowl(),
            cautions=tuple(map(str, self.warnings)),
        )

    @property
    def drift(self) -> Interval:
        """The power of the size that the best depth has above the base's own."""
        if "drift" not in self.names:
            return Interval(0.0)
        value = -self["drift"] / (2 * self["b2"])
        error = t95(self.dof) * math.sqrt(self._at_minimum()[1][1, 1]) if self.dof else math.inf
        return Interval(value, value - error, value + error)

    @property
    def unit(self) -> str:
        """What the minimum is measured in."""
        return f"times the depth of the law '{self.base.name}'" if self.base else "layers"

    def bowl(self) -> Bowl | None:
        """The curvature, for laws; None where the data show none."""
        if self.minimum is None:
            return None
        ends = tuple(x - math.log(self.minimum.value) for x in self.x_range)
        return Bowl.model_validate({"curvature": self["b2"], "error": self.standard_errors["b2"], "x_range": ends})

    def _at_minimum(self) -> tuple[float, Floats]:
        """x* at the centre and the covariance of x* and its drift, by the delta method."""
        b1, b2 = self["b1"], self["b2"]
        b3 = self["drift"] if "drift" in self.names else 0.0
        J = np.zeros((2, len(self.names)))
        i1, i2 = self.names.index("b1"), self.names.index("b2")
        J[0, i1], J[0, i2] = -1 / (2 * b2), b1 / (2 * b2**2)
        if "drift" in self.names:
            i3 = self.names.index("drift")
            J[1, i3], J[1, i2] = -1 / (2 * b2), b3 / (2 * b2**2)
        C = J @ np.array(self.covariance) @ J.T
        return -b1 / (2 * b2), (C + C.T) / 2

    def cost(self, factor: float) -> Interval:
        """Extra loss, in percent, of a depth that is `factor` times the best one at equal size."""
        if not factor > 0:
            raise DeepwideError(f"a factor of depth must be above 0, not {factor:g}.")
        curve = self.interval("b2")
        limits = (curve.value, curve.low, curve.high)
        values = [None if b is None else 100 * math.expm1(b * math.log(factor) ** 2) for b in limits]
        assert values[0] is not None
        return Interval(values[0], values[1], values[2])

    def predict_rows(
        self, depth: ArrayLike, params: ArrayLike, *, tokens: ArrayLike | None = None, total: ArrayLike | None = None
    ) -> list[dict[str, float | None]]:
        """`predict` of many shapes, taken together as numpy broadcasts them: depth, params, loss, low, high."""
        given = [value for value in (depth, params, tokens, total) if value is not None]
        names = [name for name, value in (("tokens", tokens), ("total", total)) if value is not None]
        rows = []
        for L, N, *more in np.broadcast(*(np.atleast_1d(np.asarray(value, dtype=float)) for value in given)):
            at = self.predict(float(L), float(N), **dict(zip(names, map(float, more), strict=True)))
            rows.append({"depth": float(L), "params": float(N), "loss": at.value, "low": at.low, "high": at.high})
        return rows

    def predict(
        self, depth: float, params: float, *, tokens: float | None = None, total: float | None = None
    ) -> Prediction:
        """The regression's loss at a number of block parameters, with its 95% interval; of many, `predict_rows`.

        A fit by the total, or with embeddings, needs the total as well. The notes say what lies outside the runs.
        """
        check_positive(depth=depth, params=params, tokens=tokens, total=total)
        if total is None and (self.counting == "total" or "embeddings" in self.names):
            raise DeepwideError("this fit counts embeddings: give the total number of parameters too.")
        x = np.log(depth / _base_depth(self.base, np.array([params])))
        size = params if self.counting == "block" or total is None else total
        s = np.log([size / self.centre])
        t = None if self.centre_tokens is None else np.log([(tokens or self.centre_tokens) / self.centre_tokens])
        e = np.log([total / params]) if total is not None and "embeddings" in self.names else None
        columns = _columns(s, x, t, e, "drift" in self.names, "tokens2" in self.names)
        g = np.array([float(columns[name][0]) for name in self.names])
        middle = float(g @ np.array(self.values))
        notes = self._outside(size=size, depth=depth, tokens=tokens)
        if not self.dof:
            return Prediction(math.exp(middle), notes=notes)
        error = t95(self.dof) * math.sqrt(max(0.0, float(g @ np.array(self.covariance) @ g)))
        return Prediction(math.exp(middle), math.exp(middle - error), math.exp(middle + error), notes)

    def verdict(self) -> Verdict:
        """Whether the runs show a best depth; measured is the curvature of ln loss in ln depth."""
        curvature = self.interval("b2")
        below = curvature.high is not None and curvature.high < 0
        outcome = "seen" if self.minimum is not None else "not seen" if below else "undecided"
        return Verdict(claim=CLAIM, outcome=outcome, rule=RULE, measured=curvature, notes=self.warnings)

    def headline(self) -> list[str]:
        """Where the bowl is and what missing it costs."""
        return summary.ridge_headline(self)

    def resampled(self) -> dict[str, Floats]:
        """The best depth at the centre's size, the cost of a factor 2 in percent, and the growth where it is fitted.

        Without a bowl its coefficients; resamples without a bowl are left out.
        """
        column = dict(zip(self.names, np.array([self.values, *self.resamples]).T, strict=True))
        b1, b2 = column["b1"], column["b2"]
        if self.minimum is None:
            return {"b1": b1, "b2": b2}
        with np.errstate(divide="ignore", invalid="ignore"):
            best = -b1 / (2 * b2)
            drift = -column.get("drift", 0 * b1) / (2 * b2)
        bowl = (b2 > 0) & (np.abs(best - best[0]) < SEARCHED)
        shown = {"best_depth": np.exp(best[bowl]), "cost_of_factor_2": 100 * np.expm1(b2[bowl] * math.log(2) ** 2)}
        return shown | ({"growth": drift[bowl]} if "drift" in column else {})


def fit_ridge(
    runs: Runs,
    *,
    base: str | TransitionLaw | None = "levine",
    counting: Counting = "block",
    embeddings: bool = False,
    drift: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
    noise: Noise = "same",
) -> RidgeFit:
    """The bowl about a transition law; `embeddings` adds their share as a term, `drift` lets the minimum move.

    With base None or "power" no law is assumed and the best depth is a power of the size.
    """
    check_noise(noise)
    check_resamples(bootstrap, seed)
    law = None if base in (None, "power") else find_law(base)
    if not isinstance(law, TransitionLaw | None):
        raise DeepwideError(
            f"a ridge is measured from a transition law, and '{law.name}' is none: use levine or power."
        )
    runs.need("depth")
    if np.any(runs.depth != np.round(runs.depth)):
        raise DeepwideError("depth must be whole numbers of layers.")
    block = runs.block_params if counting == "total" and not np.isnan(runs.block_params).any() else runs.size(counting)
    size = runs.size(counting)
    x = np.log(runs.depth / _base_depth(law, block))
    centre = float(np.exp(np.mean(np.log(size))))
    s = np.log(size / centre)
    lengths = np.unique(runs.tokens[~np.isnan(runs.tokens)])
    centre_tokens = float(np.exp(np.mean(np.log(runs.tokens)))) if lengths.size > 1 else None
    t = None if centre_tokens is None else np.log(runs.tokens / centre_tokens)
    if embeddings:
        runs.need("total_params", "block_params")
    e = np.log(runs.total_params / runs.block_params) if embeddings else None
    columns = _columns(s, x, t, e, drift or law is None, lengths.size > 2)
    collinear = cautions.about_collinear(columns)
    seeds = seed_columns(runs.seed)
    X = np.column_stack([*columns.values(), seeds])
    y = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    depths, strata = np.unique(runs.depth, return_inverse=True)
    regression = regress(X, y, runs.groups, runs.diverged, seeds.shape[1], strata, noise == "depth")
    noises = dict(zip(map(int, depths), regression.noises.tolist(), strict=True))
    k, names = len(columns), tuple(columns)
    covariance = np.nan_to_num(regression.covariance[:k, :k])
    draws = regression.resample(bootstrap, seed)[:, :k] if bootstrap and regression.dof else np.zeros((0, k))
    b1, b2 = (float(regression.theta[names.index(name)]) for name in ("b1", "b2"))
    minimum = _minimum(b1, b2, covariance[np.ix_(*[[names.index("b1"), names.index("b2")]] * 2)], regression.dof)
    others = _others(regression, columns, x, s, runs, seeds, minimum)
    return RidgeFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=names,
        values=tuple(map(float, regression.theta[:k])),
        covariance=as_tuples(covariance),
        dof=regression.dof,
        resamples=as_tuples(draws),
        residuals=residual_table(
            runs, counting, regression.y, regression.fitted, regression.residuals, regression.leverage
        ),
        noise=0.0 if math.isnan(regression.noise) else regression.noise,
        seed_noise=regression.between_seeds,
        noise_by_depth=noises if noise == "depth" else None,
        params_range=span(size),
        depth_range=span(runs.depth),
        tokens_range=span_known(runs.tokens),
        embedding_share=span_known(runs.embedding_share),
        notes=runs.notes,
        warnings=(
            *cautions.about_blocks(runs),
            *cautions.about_minimum(minimum, span(x), regression, names, runs, counting),
            *collinear,
            *_left_out(others, law, size),
            *cautions.about_noise(noises, regression),
            *cautions.about_checkpoints(runs),
        ),
        others=others,
        base=law,
        centre=centre,
        centre_tokens=centre_tokens,
        x_range=span(x),
        minimum=minimum,
    )


def bowl_about(law: TransitionLaw, runs: Runs, *, counting: Counting, noise: Noise) -> Bowl | None:
    """What leaving a fitted law's depth costs, from a ridge about it; None where the runs show no bowl.

    The ridge has a drift, because the fitted line is not quite where the bowls of all sizes have their minima.
    """
    return fit_ridge(runs, base=law, counting=counting, drift=True, bootstrap=0, noise=noise).bowl()


def _base_depth(law: TransitionLaw | None, size: Floats) -> Floats:
    return np.ones_like(size) if law is None else law.depth(size).value


def _columns(s: Floats, x: Floats, t: Floats | None, e: Floats | None, drift: bool, bend: bool) -> dict[str, Floats]:
    columns = {"intercept": np.ones_like(s), "size": s, "size2": s**2}
    if e is not None:
        columns["embeddings"] = e
    if t is not None:
        columns |= {"tokens": t} | ({"tokens2": t**2} if bend else {})  # two lengths tell no bend
    columns |= {"b1": x, "b2": x**2}
    return columns | ({"drift": s * x} if drift else {})


def _minimum(b1: float, b2: float, covariance: Floats, dof: int) -> Interval | None:
    """e^x* with the x at which a slope of zero is not refused (Fieller 1954); None unless b₂ is surely above 0."""
    if not dof or b2 <= t95(dof) * math.sqrt(max(0.0, float(covariance[1, 1]))):
        return None
    best = -b1 / (2 * b2)
    steps = np.linspace(0, SEARCHED, 4001)
    limits: list[float | None] = []
    for sign in (-1, 1):
        z = best + sign * steps
        slope = b1 + 2 * b2 * z
        error = np.sqrt(covariance[0, 0] + 4 * z * covariance[0, 1] + 4 * z**2 * covariance[1, 1])
        outside = np.flatnonzero(np.abs(slope) > t95(dof) * error)
        limits.append(math.exp(z[outside[0]]) if outside.size else None)
    return Interval(math.exp(best), limits[0], limits[1])


def _others(
    regression: Regression,
    columns: dict[str, Floats],
    x: Floats,
    s: Floats,
    runs: Runs,
    seeds: Floats,
    minimum: Interval | None,
) -> tuple[Other, ...]:
    """Refit with each term that was left out; those that are significant at 95%."""
    if minimum is None or regression.dof < 4:
        return ()
    candidates = {"drift": s * x, "skew": x**3} | ({"bend": s**2 * x} if "drift" in columns else {})
    share = np.log(runs.total_params / runs.block_params)
    if not np.isnan(share).any() and float(np.ptp(share)) > 0.05:
        candidates["embeddings"] = share
    others = []
    for term, column in candidates.items():
        if term in columns:
            continue
        X = np.column_stack([*columns.values(), column, seeds])
        if np.linalg.matrix_rank(X) < X.shape[1]:
            continue
        again = regress(
            X, regression.y, regression.groups, regression.censored, seeds.shape[1], regression.strata,
            regression.own_noise,
        )  # fmt: skip
        k = len(columns)
        error = math.sqrt(max(0.0, float(again.covariance[k, k])))
        value = float(again.theta[k])
        if not again.dof or abs(value) <= t95(again.dof) * error:
            continue
        b1, b2 = (float(again.theta[list(columns).index(name)]) for name in ("b1", "b2"))
        at = math.log(minimum.value)
        if term == "skew":  # the root of b₁ + 2b₂x + 3b₃x² that is a minimum
            square = b2 * b2 - 3 * value * b1
            at = (-b2 + math.sqrt(square)) / (3 * value) if square > 0 else at
        elif b2 > 0:
            at = -b1 / (2 * b2)
        drifts = -value / (2 * b2) if term == "drift" and b2 > 0 else 0.0
        others.append(Other(term, math.exp(min(max(at, -20.0), 20.0)), max(min(drifts, 1.0), -1.0)))
    return tuple(others)


def _left_out(others: tuple[Other, ...], base: TransitionLaw | None, size: Floats) -> list[Note]:
    unit = "times the law's depth" if base else "layers"
    notes = [note(f"{term}-left-out", minimum=minimum, unit=unit) for term, minimum, _ in others]
    if base is not None and (base.is_extrapolated(float(size.min())) or base.is_extrapolated(float(size.max()))):
        notes.append(note("base-extrapolated", law=base.name, fitted=base.fitted_words))
    return notes
