"""The best depth at any size, with an interval that is meant to hold there: the posterior of one joint model (`model`).

What is reported at a size is the middle 95% of the posterior's draws. Where the runs do not show that loss has a
minimum in depth, the fit declines: it gives no best depth and no law.
"""

import math
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from deepwide.answers import Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions, summary
from deepwide.fitting.answer import By, Fit, Prediction, residual_table
from deepwide.fitting.bases import compare_bases
from deepwide.fitting.mixed import Cells, cell_means
from deepwide.fitting.model import BEYOND, RELAX, SOFT, Design, Posterior, by_name, infer, log_loss, size_curve
from deepwide.fitting.regression import (
    as_tuples,
    censored_least_squares,
    check_positive,
    check_resamples,
    expected_above,
    span,
    span_known,
)
from deepwide.fitting.runs import Counting, Runs
from deepwide.fitting.words import note
from deepwide.laws import Bowl, JointLaw
from deepwide.quantities import ArrayLike, Floats

CLAIM = "at equal size there is a depth of least loss"
RULE = (
    "seen if the curvature of ln loss in ln depth is above 0 with a probability of at least 97.5%, not seen if of at "
    "most 2.5%, else undecided"
)
SURE = 0.025
SAME_SHARE = 0.05  # of ln(total/block): less is the same for all shapes
SAME_LENGTH = 1.05
FEWEST_CELLS = 8
FEWEST_DRAWS = 200
MOST_CELLS = 1500


CORRELATED = 0.8  # probability from which a correlated misfit is mentioned; 0.51 before any run
COLLINEAR = 0.98
ASSUMED = 0.9  # a posterior as wide as its prior
FEW_CELLS = 4  # beyond the parameters


class Prior(NamedTuple):
    """What was assumed of a parameter beforehand."""

    mean: float
    sd: float


class JointFit(Fit):
    """The joint model's parameters, whose draws are `resamples`; the best depth of any size, and the law."""

    estimated_by: ClassVar[By] = "posterior"

    kind: Literal["joint"] = "joint"
    centre: float
    centre_tokens: float | None
    embeddings_mean: float | None
    tokens_line: tuple[float, float] | None  # τ against σ where lengths follow the size
    priors: dict[str, Prior]
    flat: float  # probability that there is no bowl
    misfit: tuple[float, float]  # sd of what is missed smoothly, and by depth
    x_range: tuple[float, float]
    bases: dict[str, float] = Field(default_factory=dict)  # laws of growth: AICc above the least

    def best_depth(self, params: ArrayLike) -> list[Interval]:
        """The depth of least loss at these sizes; raises where the runs show none."""
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth: {self.declined}.")
        curve = law.depth(params)
        return [curve.at(i) for i in range(len(curve.value))]

    @property
    def declined(self) -> str:
        """Why there is no best depth; empty where there is one."""
        if self.flat > SURE:
            return f"the probability that loss has a minimum in depth is {1 - self.flat:.0%}, and 97.5% are asked for"
        if self.counting == "total":
            return "the size is counted with embeddings, and a law is asked about block parameters"
        return ""

    def law(self) -> JointLaw | None:
        """The law with the whole posterior; None where the fit declines."""
        if self.declined:
            return None
        return JointLaw(
            **self._origin(),
            about="least loss at equal size (fitted, with its posterior)",
            details=self._tokens_words(),
            centre_params=self.centre,
            soft=SOFT,
            relax=RELAX,
            sizes=self.params_range,
            draws=self._law_draws(),
            bowl=self.bowl(),
            cautions=tuple(map(str, self.warnings)),
        )

    def _tokens_words(self) -> str:
        if self.centre_tokens is None:
            return "at the length of its runs"
        return "at lengths that grow with size as its runs' do" if self.tokens_line else "at its runs' mean length"

    def _law_draws(self) -> tuple[Any, ...]:
        column = dict(zip(self.names, np.array(self.resamples).T, strict=True))
        place, growth, bend = column["depth"], column["growth"], column["bend"]
        change = column["curvature_size"]
        curvature = column["curvature"]
        if self.tokens_line is not None:
            at, slope = self.tokens_line
            place, growth = place + at * column["depth_tokens"], growth + slope * column["depth_tokens"]
            curvature = curvature * np.exp(at * column["curvature_tokens"])
            change = change + slope * column["curvature_tokens"]
        random = np.random.default_rng(len(place))
        beyond = BEYOND[0] + BEYOND[1] * random.permutation(_normal_quantiles(len(place)))
        rows = np.column_stack([place, growth, bend, beyond, curvature, change, column["skew"]])
        return tuple(map(tuple, np.round(rows, 6).tolist()))

    def bowl(self) -> Bowl:
        """The bowl at the centre as a parabola, for pictures and pages; `JointLaw.cost` has it in full."""
        curvature = np.array(self.resamples)[:, self.names.index("curvature")]
        return Bowl.model_validate(
            {"curvature": float(np.median(curvature)), "error": float(np.std(curvature)), "x_range": self.x_range}
        )

    def going_on(self, params: float) -> Interval:
        """The best depth at a size beyond the runs if growth there were that of the runs: what the data alone say."""
        column = dict(zip(self.names, np.array(self.resamples).T, strict=True))
        far = math.log(params / self.centre)
        end = min(max(far, math.log(self.params_range[0] / self.centre)), math.log(self.params_range[1] / self.centre))
        slope = column["growth"] + 2 * column["bend"] * end
        place = column["depth"] + column["growth"] * end + column["bend"] * end**2 + slope * (far - end)
        low, middle, high = np.exp(np.quantile(place, (0.025, 0.5, 0.975)))
        return Interval(float(middle), float(low), float(high))

    def cost(self, factor: float) -> Interval:
        """Extra loss, in percent, of a depth that is `factor` times the best one, at the centre's size."""
        if not factor > 0:
            raise DeepwideError(f"a factor of depth must be above 0, not {factor:g}.")
        column = dict(zip(self.names, np.array(self.resamples).T, strict=True))
        z = math.log(factor)
        extra = column["curvature"] * z**2 * (1 - column["skew"] * z / math.hypot(z, SOFT))
        low, middle, high = 100 * np.expm1(np.quantile(extra, (0.025, 0.5, 0.975)))
        return Interval(float(middle), float(low), float(high))

    def predict(
        self, depth: float, params: float, *, tokens: float | None = None, total: float | None = None
    ) -> Prediction:
        """Loss at a shape with the 95% interval of its mean; for many shapes, and for a new run, `predict_rows`."""
        check_positive(depth=depth, params=params, tokens=tokens, total=total)
        row = self.predict_rows(depth, params, tokens=tokens, total=total)[0]
        notes = self._outside(size=params, depth=depth, tokens=tokens)
        return Prediction(row["loss"], row["low"], row["high"], notes)

    def predict_rows(
        self, depth: ArrayLike, params: ArrayLike, *, tokens: ArrayLike | None = None, total: ArrayLike | None = None
    ) -> list[dict[str, float]]:
        """One row per shape: loss, the 95% limits of its mean (low, high) and of one new run (run_low, run_high).

        Arrays are taken together as numpy broadcasts them. Without tokens, lengths are those of the runs.
        """
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth, so they predict no loss at a depth: {self.declined}.")
        if total is None and self.embeddings_mean is not None:
            raise DeepwideError("this fit counts embeddings: give the total number of parameters too.")
        given = (depth, params, np.nan if tokens is None else tokens, np.nan if total is None else total)
        L, N, D, P = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, dtype=float)) for v in given))
        if not np.all((L > 0) & (N > 0)):
            raise DeepwideError("depth and params must be above 0.")
        s = np.log(N / self.centre)
        t = self._log_tokens(s, None if tokens is None else D)
        e = None if self.embeddings_mean is None else np.log(P / N) - self.embeddings_mean
        values = by_name(self.names, np.array(self.resamples))
        curve = size_curve(values, Design(s, t, e, np.log(L)))
        mean = curve + np.stack([law.above(float(a), float(b)) for a, b in zip(L, N, strict=True)], axis=1)
        noise = math.hypot(self.noise, *self.misfit)
        new = mean + noise * np.random.default_rng(0).normal(size=mean.shape)
        low, middle, high = np.exp(np.quantile(mean, (0.025, 0.5, 0.975), axis=0))
        run_low, run_high = np.exp(np.quantile(new, (0.025, 0.975), axis=0))
        names = ("depth", "params", "loss", "low", "high", "run_low", "run_high")
        table = zip(L.tolist(), N.tolist(), *(v.tolist() for v in (middle, low, high, run_low, run_high)), strict=True)
        return [dict(zip(names, row, strict=True)) for row in table]

    def _log_tokens(self, s: Floats, tokens: Floats | None) -> Floats | None:
        if self.centre_tokens is None:
            return None
        if tokens is not None:
            return np.asarray(np.log(tokens / self.centre_tokens))
        at, slope = self.tokens_line or (0.0, 0.0)
        return np.asarray(at + slope * s)

    def verdict(self) -> Verdict:
        """Whether the runs show a best depth; measured is the curvature of ln loss in ln depth."""
        outcome = "seen" if self.flat <= SURE else "not seen" if self.flat >= 1 - SURE else "undecided"
        return Verdict(
            claim=CLAIM, outcome=outcome, rule=RULE, measured=self.interval("curvature"), notes=self.warnings
        )

    def headline(self) -> list[str]:
        """The best depth at the runs' sizes and beyond, with honest intervals."""
        return summary.joint_headline(self)

    def resampled(self) -> dict[str, Floats]:
        """The best depth at the centre and at ten times the largest size, growth, and the cost of a factor 2."""
        law = self.law()
        if law is None:
            return {}
        column = dict(zip(self.names, np.array([self.values, *self.resamples]).T, strict=True))
        far = math.log(10 * self.params_range[1] / self.centre)
        best = column["depth"], column["depth"] + column["growth"] * far + column["bend"] * far**2
        cost = 100 * np.expm1(np.maximum(column["curvature"], 0.0) * math.log(2) ** 2)
        shown = {"best_depth": np.exp(best[0]), "best_depth_at_10x": np.exp(best[1])}
        return shown | {"growth": column["growth"], "cost_of_factor_2": cost}


def fit_joint(
    runs: Runs, *, counting: Counting = "block", bootstrap: int = 1000, seed: int = 0, examine: bool = True
) -> JointFit:
    """The joint model's posterior; `bootstrap` is the number of its draws, at least 200.

    `examine` also looks for what a reader must beware of.
    """
    check_resamples(bootstrap)
    runs.need("depth")
    size = runs.size(counting)
    centre = float(np.exp(np.mean(np.log(size))))
    lengths = runs.tokens[~np.isnan(runs.tokens)]
    varied = bool(lengths.size and lengths.max() > SAME_LENGTH * lengths.min())
    centre_tokens = float(np.exp(np.mean(np.log(runs.tokens)))) if varied else None
    share = np.log(runs.total_params / runs.block_params)
    counted = counting == "block" and not np.isnan(share).any() and float(np.ptp(share)) > SAME_SHARE
    s, x = np.log(size / centre), np.log(runs.depth)
    t = np.log(runs.tokens / centre_tokens) if centre_tokens else None
    e = share - share.mean() if counted else None
    y = _observed(runs, counting, s, x, t, e)
    cells = cell_means(y, runs.groups, runs.seed, runs.diverged)
    at = cells.first
    _check(cells, x[at])
    design = Design(s[at], None if t is None else t[at], None if e is None else e[at], x[at])
    try:
        inferred = infer(cells, design, number=max(bootstrap, FEWEST_DRAWS), seed=seed)
    except np.linalg.LinAlgError:
        raise DeepwideError("these runs do not determine the joint model: more sizes or depths are needed.") from None
    whole = Design(s, t, e, x)
    fitted = log_loss(inferred.names, inferred.mode[None], whole)[0]
    residual = np.where(runs.diverged, np.maximum(y - fitted, 0.0), y - fitted)
    mixture = inferred.mixture
    sigma2 = float(mixture.weights @ mixture.sigma2)
    within = math.sqrt(cells.within / cells.within_dof) if cells.within_dof else None
    r2 = mixture.settings[:, 1:] ** 2
    missed = [float(mixture.weights @ (mixture.sigma2 * part.sum(axis=1))) for part in (r2[:, :1], r2[:, 1:])]
    assumed = zip(inferred.names, inferred.prior_mean.tolist(), inferred.prior_sd.tolist(), strict=True)
    place = _place_at_centre(inferred)
    return JointFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=inferred.names,
        values=tuple(map(float, inferred.mode)),
        covariance=as_tuples(mixture.covariance),
        dof=int(mixture.dof),
        resamples=as_tuples(inferred.draws),
        residuals=residual_table(runs, counting, y, fitted, residual, np.zeros(len(y))),
        noise=math.sqrt(sigma2),
        seed_noise=within,
        params_range=span(size),
        depth_range=span(runs.depth),
        tokens_range=span_known(runs.tokens),
        embedding_share=span_known(runs.embedding_share),
        notes=runs.notes,
        warnings=tuple(_warnings(runs, inferred, design, cells)) if examine else (),
        centre=centre,
        centre_tokens=centre_tokens,
        embeddings_mean=float(share.mean()) if counted else None,
        tokens_line=_ladder(design),
        priors={name: Prior(mean, sd) for name, mean, sd in assumed if math.isfinite(sd)},
        flat=inferred.flat,
        misfit=(math.sqrt(missed[0]), math.sqrt(missed[1])),
        x_range=(float(x.min() - place), float(x.max() - place)),
        bases=compare_bases(_without_embeddings(cells.y, inferred, design), design, np.log(size[at]))
        if examine
        else {},
    )


def _warnings(runs: Runs, inferred: Posterior, design: Design, cells: Cells) -> list[Note]:
    """What a careful reader must know."""
    notes = []
    mixture, names = inferred.mixture, inferred.names
    place = _place_at_centre(inferred)
    if not design.x.min() <= place <= design.x.max():
        notes.append(note("minimum-outside"))
    correlated = float(mixture.weights[(mixture.settings[:, 1:] > 0).any(axis=1)].sum())
    if correlated > CORRELATED:
        notes.append(note("misfit-correlated", probability=correlated))
    if design.t is not None:
        r = float(np.corrcoef(design.s, design.t)[0, 1])
        if abs(r) > COLLINEAR:
            notes.append(note("ladder", correlation=r))
    i = names.index("skew")
    skew, error = float(mixture.mean[i]), math.sqrt(mixture.covariance[i, i])
    if abs(skew) > 2 * error:
        notes.append(note("bowl-skewed", skew=skew))
    if error > ASSUMED * inferred.prior_sd[i]:
        notes.append(note("skew-assumed"))
    if len(cells.y) - len(names) < FEW_CELLS:
        notes.append(note("few-cells", cells=len(cells.y), parameters=len(names)))
    return [*notes, *cautions.about_checkpoints(runs)]


def _normal_quantiles(number: int) -> Floats:
    """So many values that are spread as the standard normal's."""
    from scipy.special import ndtri

    return np.asarray(ndtri((np.arange(number) + 0.5) / number))


def _without_embeddings(y: Floats, inferred: Posterior, design: Design) -> Floats:
    """ln loss less what the joint model gives to embeddings; a free term of their share could pass for growth."""
    return y if design.e is None else y - inferred.mode[inferred.names.index("embeddings")] * design.e


def _place_at_centre(inferred: Posterior) -> float:
    return float(inferred.mode[inferred.names.index("depth")])


def _ladder(design: Design) -> tuple[float, float] | None:
    """τ = at + slope·σ, where lengths follow the size."""
    if design.t is None:
        return None
    slope, at = np.polyfit(design.s, design.t, 1)
    off = design.t - at - slope * design.s
    return (float(at), float(slope)) if abs(slope) > 0.2 and float(off.std()) < 0.35 else None


def _observed(runs: Runs, counting: Counting, s: Floats, x: Floats, t: Floats | None, e: Floats | None) -> Floats:
    """ln loss; for a run that diverged, what a parabola expects of a loss above its bound (Tobin 1958)."""
    if not runs.diverged.any():
        return np.log(runs.loss)
    y = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    columns = [np.ones_like(s), s, s**2, x, x**2, s * x, *(c for c in (t, e) if c is not None)]
    X = np.column_stack(columns)
    theta = censored_least_squares(X, y, runs.diverged, None)
    free = ~runs.diverged
    spread = max(float(np.std((y - X @ theta)[free])), 1e-9)
    return np.where(runs.diverged, np.maximum(expected_above(X @ theta, y, spread), y), y)


def _check(cells: Cells, x: Floats) -> None:
    if len(np.unique(np.round(x, 6))) < 3:
        raise DeepwideError("a best depth needs runs of at least three depths.")
    if len(cells.y) < FEWEST_CELLS:
        raise DeepwideError(f"a best depth needs at least {FEWEST_CELLS} shapes, and there are {len(cells.y)}.")
    if len(cells.y) > MOST_CELLS:
        raise DeepwideError(
            f"{len(cells.y)} cells are more than the {MOST_CELLS} that this fit takes: keep one length of each run "
            "(where tokens=NUMBER)."
        )
