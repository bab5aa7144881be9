"""The best depth at any size, with an interval that is meant to hold there: the posterior of one joint model (`model`).

What is reported at a size is the middle 95% of the posterior's draws. Where the runs do not show that loss has a
minimum in depth, the fit declines: it gives no best depth and no law.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from deepwide.answers import Z95, Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.fitting import cautions, summary
from deepwide.fitting.answer import By, Fit, Prediction, Residual, residual_table
from deepwide.fitting.bases import compare_bases
from deepwide.fitting.examining import (
    FEWEST_DRAWS,
    about_assumptions,
    about_failed,
    about_runs,
    failed_runs,
    with_wider_bend,
)
from deepwide.fitting.inference import Posterior, infer
from deepwide.fitting.misfit import Carried, Missed, carry, misfit_factors
from deepwide.fitting.mixed import Cells, cell_means
from deepwide.fitting.model import (
    GOES_ON,
    RELAX,
    SOFT,
    WITH_TOKENS,
    Design,
    along,
    best_log_depth,
    by_name,
    jacobian,
    log_loss,
    shift,
    size_curve,
)
from deepwide.fitting.regression import (
    as_tuples,
    censored_least_squares,
    check_positive,
    check_resamples,
    expected_above,
    span,
    span_known,
)
from deepwide.fitting.runs import SAME_LENGTH, Counting, Runs
from deepwide.fitting.words import note
from deepwide.laws import Bowl, JointLaw, bowl_sides, without_limit
from deepwide.quantities import ArrayLike, Floats, show_count

CLAIM = "at equal size there is a depth of least loss"
RULE = (
    "seen if the curvature of ln loss in ln depth is above 0 with a probability of at least 97.5%, not seen if of at "
    "most 2.5%, else undecided"
)
SURE = 0.025
SAME_SHARE = 0.05  # of ln(total/block): less is the same for all shapes
FEWEST_CELLS = 8
MOST_DRAWS = 10_000  # of a law
MOST_ENDS = 200  # sizes that are looked at
AT_ONCE = 2000  # shapes that are predicted together
NEARBY = math.log(2)  # ln size, within which runs say together where the best depth is
ENOUGH = 0.7  # times the fit's own error of the best depth: what they may be off by and still show it
WELL = 0.07  # in ln depth: an error of theirs that is always small enough
FAR_ABOVE = 10.0  # times the best depth, in a profile that has no upper limit
DIFFERENT = 0.3  # of the draws that must differ: with fewer, the model was linearised in a wrong place
MOST_CARRIED = 1000  # runs from which what the model misses is carried to other places


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
    different: float = 1.0  # share of the draws that differ
    misfit: tuple[float, float]  # sd of what is missed smoothly, and by depth
    run_noise: float = 0.0  # sd of what all lengths of a shape share
    curve_misfit: float = 0.0  # sd of what the formula of loss in size and tokens misses
    with_wider_bend: Interval | None = None  # the best depth at ten times the largest size, were the bend freer
    x_range: tuple[float, float]
    known_sizes: tuple[float, float] | None = None  # at which runs show the best depth; None: all (older fits)
    bases: dict[str, float] = Field(default_factory=dict)  # laws of growth: AICc above the least

    def best_depth(self, params: ArrayLike) -> list[Interval]:
        """The depth of least loss at these sizes; raises where the runs show none."""
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth: {self.declined}.")
        curve = law.depth(_numbers("params", params))
        return [curve.at(i) for i in range(len(curve.value))]

    @property
    def declined(self) -> str:
        """Why there is no best depth; empty where there is one."""
        if self.flat > SURE:
            return f"the probability that loss has a minimum in depth is {1 - self.flat:.0%}, and 97.5% are asked for"
        if self.different < DIFFERENT:
            return "the model does not describe these losses: a few of its draws outweigh all others"
        if self.counting == "total":
            return "the joint fit compares depths at equal block parameters: for equal totals fit a ridge or crossings"
        return ""

    def law(self) -> JointLaw | None:
        """The law with the whole posterior; None where the fit declines."""
        if self.declined:
            return None
        return JointLaw(
            **self._origin(),
            about="least loss at equal size (fitted, with its posterior)",
            details=self.tokens_words,
            centre_params=self.centre,
            soft=SOFT,
            relax=RELAX,
            sizes=self.known,
            draws=self._law_draws(),
            may_end=True,
            bowl=self.bowl(),
            cautions=tuple(map(str, (*self._about_length(), *self.warnings))),
        )

    def _about_length(self) -> list[Note]:
        """What a law cannot follow: it has one best depth for a size, whatever the tokens."""
        if self.centre_tokens is None:
            return []
        by = self.shift_by_tokens(2.0)
        return [note("law-of-a-length", words=self.tokens_words, by=by.value, low=by.low, high=by.high)]

    @property
    def known(self) -> tuple[float, float]:
        """The sizes over which growth is taken to be seen."""
        return self.known_sizes or self.params_range

    @property
    def tokens_words(self) -> str:
        """Which length of runs the best depth is for."""
        if self.centre_tokens is None:
            return "at the length of its runs"
        at, slope = self.line
        if slope:
            return "at lengths that grow with size as its runs' do"
        tokens = f"{show_count(round(self.centre_tokens * math.exp(at)))} tokens"
        return f"at {tokens}" if self.tokens_line else f"at {tokens}, the mean of its runs"

    def _columns(self) -> dict[str, Floats]:
        """The draws by name; what earlier versions did not have is 0."""
        rows = np.array(self.resamples)
        later = ("tail", *(WITH_TOKENS[1:] if "depth_tokens" in self.names else ()))
        return dict.fromkeys(later, np.zeros(len(rows))) | dict(zip(self.names, rows.T, strict=True))

    def path(self) -> tuple[Floats, Floats, Floats]:
        """ln of the best depth at the centre, its growth and bend with ln size, of each draw, at the stated lengths."""
        return along(self._columns(), self.line)

    def _law_draws(self) -> tuple[Any, ...]:
        column = self._columns()
        place, growth, bend = self.path()
        curvature, change = column["curvature"], column["curvature_size"]
        if self.centre_tokens is not None:
            at, slope = self.line
            curvature = curvature * np.exp(at * column["curvature_tokens"])
            change = change + slope * column["curvature_tokens"]
        end = math.log(self.known[1] / self.centre)
        usual, weight, sd = GOES_ON
        rank = np.argsort(np.argsort(place + growth * end + bend * end**2))
        beyond = usual + weight * (growth + 2 * bend * end - usual) + sd * _spread_normals(len(place))[rank]
        beyond = np.where(beyond == 0, sd, beyond)
        rows = np.column_stack([place, growth, bend, beyond, curvature, change, column["skew"], column["tail"]])
        return tuple(map(tuple, np.round(rows, 6).tolist()))

    def bowl(self) -> Bowl:
        """The bowl at the centre as a parabola, for pictures and pages; `JointLaw.cost` has it in full."""
        curvature = np.array(self.resamples)[:, self.names.index("curvature")]
        return Bowl.model_validate(
            {"curvature": float(np.median(curvature)), "error": float(np.std(curvature)), "x_range": self.x_range}
        )

    def going_on(self, params: float) -> Interval:
        """The best depth at a size beyond the runs if growth there were that of the runs: what the data alone say."""
        place, growth, bend = self.path()
        far = math.log(params / self.centre)
        least, most = (math.log(size / self.centre) for size in self.known)
        end = min(max(far, least), most)
        place = place + growth * end + bend * end**2 + (growth + 2 * bend * end) * (far - end)
        low, middle, high = np.exp(np.clip(np.quantile(place, (0.025, 0.5, 0.975)), -700, 700))
        return Interval(float(middle), float(low), float(high))

    def growth(self) -> Interval:
        """The power of the size that the best depth grows like, at the centre, lengths growing as they are stated."""
        draws = self.path()[1]
        value = along(dict(zip(self.names, np.array(self.values), strict=True)), self.line)[1]
        return Interval(float(value), *map(float, np.quantile(draws, (0.025, 0.975))))

    def shift_by_tokens(self, times: float) -> Interval:
        """What so many times the tokens multiply the best depth by, at the centre's size."""
        at, more = self.line[0], math.log(times)
        column = self._columns()
        far, near = (shift(column, np.zeros(1), np.array([t])) for t in (at + more, at))
        low, middle, high = np.exp(np.quantile(far - near, (0.025, 0.5, 0.975)))
        return Interval(float(middle), float(low), float(high))

    def cost(self, factor: float) -> Interval:
        """Extra loss, in percent, of a depth that is `factor` times the best one, at the centre's size."""
        if not factor > 0:
            raise DeepwideError(f"a factor of depth must be above 0, not {factor:g}.")
        column = self._columns()
        curvature = column["curvature"]
        if self.centre_tokens is not None:
            curvature = curvature * np.exp(self.line[0] * column["curvature_tokens"])
        extra = curvature * bowl_sides(np.array(math.log(factor)), column["skew"], column["tail"], SOFT)
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

        Arrays are taken together as numpy broadcasts them. Without tokens, lengths are those of the runs. Near the runs
        what the model misses there is carried over (`misfit.carry`). Beyond the runs the loss is for growth that goes
        on, as the best depth is, and the limits hold where it ends too.
        """
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth, so they predict no loss at a depth: {self.declined}.")
        if "tail" not in self.names or ("depth_tokens" in self.names and "bend_both" not in self.names):
            raise DeepwideError("this fit is of an earlier version with another formula of loss: fit again.")
        if tokens is not None and self.centre_tokens is None and self.tokens_range is not None:
            most, asked = self.tokens_range[1], _numbers("tokens", tokens)
            if np.any((asked > SAME_LENGTH * most) | (asked < most / SAME_LENGTH)):
                raise DeepwideError(
                    f"all runs had {show_count(round(most))} tokens: they do not say what the loss is after others."
                )
        if total is None and self.embeddings_mean is not None:
            raise DeepwideError("this fit counts embeddings: give the total number of parameters too.")
        columns_of = {"depth": _numbers("depth", depth), "params": _numbers("params", params)}
        for name, given in (("tokens", tokens), ("total", total)):
            columns_of[name] = np.array([np.nan]) if given is None else _numbers(name, given)
        try:
            L, N, D, P = np.broadcast_arrays(*columns_of.values())
        except ValueError:
            lengths = ", ".join(f"{len(column)} of {name}" for name, column in columns_of.items() if len(column) > 1)
            raise DeepwideError(f"lists must be of one length, not {lengths}.") from None
        names = ("depth", "params", "loss", "low", "high", "run_low", "run_high")
        number = len(self.resamples)
        values = by_name(self.names, np.array(self.resamples * 2))  # as the law's: growth goes on, then it ends
        spread = _spread_normals(2 * number)[:, None]
        rows = []
        for i in range(0, len(L), AT_ONCE):
            part = slice(i, i + AT_ONCE)
            s = np.log(N[part] / self.centre)
            t = self._log_tokens(s, None if tokens is None else D[part])
            e = None if self.embeddings_mean is None else np.log(P[part] / N[part]) - self.embeddings_mean
            places = Design(s, t, e, np.log(L[part]))
            mean = size_curve(values, places) + self._above(law, values, L[part], N[part], t)
            carried = self._carried(places)
            mean += np.tile(self._off(np.array(self.resamples)) @ carried.weights, (2, 1))
            low, high = np.quantile(mean, (0.025, 0.975), axis=0)
            middle = np.clip(np.median(mean[:number], axis=0), low, high)
            one_run = np.sort(mean, axis=0) + np.sqrt(carried.left) * spread
            run_low, run_high = np.quantile(one_run, (0.025, 0.975), axis=0)
            columns = (L[part], N[part], *np.exp((middle, low, high, run_low, run_high)))
            rows += [dict(zip(names, row, strict=True)) for row in zip(*(c.tolist() for c in columns), strict=True)]
        return rows

    def _above(self, law: JointLaw, values: dict[str, Floats], L: Floats, N: Floats, t: Floats | None) -> Floats:
        """ln loss above that of the best depth, of each draw; the law's, at lengths that are not the law's too."""
        if t is None:
            return law.above(L, N)
        s = np.log(N / self.centre)
        at, slope = self.line
        longer = shift(values, s, t) - shift(values, s, at + slope * s)
        place = np.stack([law.place(size) for size in N.tolist()], axis=1) + longer
        change = values["curvature_size"] * s + values["curvature_tokens"] * t
        sides = bowl_sides(np.log(L) - place, values["skew"], values["tail"], SOFT)
        return np.asarray(values["curvature"] * np.exp(np.clip(change, -20, 20)) * sides)

    def profile(self, params: float, depths: ArrayLike | None = None) -> list[dict[str, float]]:
        """What the posterior says of each depth at one size: the probability that the best depth is shallower
        (`below`), and the loss above that of the best depth in percent with its 95% limits (cost, low, high)."""
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth: {self.declined}.")
        params = float(_numbers("params", params)[0])
        best = law.depth(params).at()
        if depths is None:
            high = FAR_ABOVE * best.value if without_limit(best) else best.high or best.value
            depths = np.unique(np.round(np.geomspace((best.low or best.value) / 1.5, 1.5 * high, 12)))
        L = np.atleast_1d(np.asarray(depths, dtype=float))
        L = L[L > 0]
        place = law.place(params)
        costs = 100 * np.expm1(np.quantile(np.clip(law.above(L, params), 0, 20), (0.5, 0.025, 0.975), axis=0))
        below = [float(np.mean(place < math.log(depth))) for depth in L]
        names = ("depth", "below", "cost", "low", "high")
        return [dict(zip(names, row, strict=True)) for row in zip(L.tolist(), below, *costs.tolist(), strict=True)]

    def _log_tokens(self, s: Floats, tokens: Floats | None) -> Floats | None:
        if self.centre_tokens is None:
            return None
        if tokens is not None:
            return np.asarray(np.log(tokens / self.centre_tokens))
        at, slope = self.line
        return np.asarray(at + slope * s)

    @property
    def line(self) -> tuple[float, float]:
        """τ against σ that the best depth is stated for."""
        return self.tokens_line or (0.0, 0.0)

    def knows_length(self, tokens: float) -> bool:
        """Whether the runs had several lengths, or this one."""
        if self.centre_tokens is not None or self.tokens_range is None:
            return True
        return 1 / SAME_LENGTH < self.tokens_range[1] / tokens < SAME_LENGTH

    @cached_property
    def _runs_at(self) -> tuple[Design, Floats]:
        """Where the runs are that finished, and their ln loss; none if there are too many, or older fits do not say."""
        runs = [run for run in self.residuals if not run.diverged and run.depth]
        unknown = self.embeddings_mean is not None and any(run.total is None for run in runs)
        if len(runs) > MOST_CARRIED or unknown or "tail" not in self.names:
            runs = []
        s, x, y = (np.log([float(value) for value in column]) for column in _columns_of(runs))
        t = None if self.centre_tokens is None else np.log([(run.tokens or 0.0) / self.centre_tokens for run in runs])
        e = None
        if self.embeddings_mean is not None:
            e = np.log([(run.total or 0.0) / run.params for run in runs]) - self.embeddings_mean
        return Design(s - math.log(self.centre), t, e, x), y

    def _carried(self, places: Design) -> Carried:
        """What the model misses at the runs, carried to places."""
        missed = Missed(*self.misfit, self.curve_misfit, self.run_noise)
        return carry(missed, self.noise, self._runs_at[0], places)

    def _off(self, theta: Floats) -> Floats:
        """ln loss of the runs less that of the model: (draws, runs)."""
        design, y = self._runs_at
        return np.asarray(y - log_loss(self.names, theta, design))

    @property
    def _run_spread(self) -> float:
        """Standard deviation of one run's ln loss about the model."""
        return math.hypot(self.noise, self.run_noise, self.curve_misfit, *self.misfit)

    def _place(self, run: Runs) -> Design:
        s = np.log(run.size(self.counting) / self.centre)
        e = None
        if self.embeddings_mean is not None:
            e = np.log(run.total_params / run.block_params) - self.embeddings_mean
        return Design(s, self._log_tokens(s, run.tokens), e, np.log(run.depth))

    def _expected(self, run: Runs) -> float:
        """The loss of one run, whether the fit shows a best depth or not."""
        place, mode = self._place(run), np.array([self.values])
        log = log_loss(self.names, mode, place) + self._off(mode) @ self._carried(place).weights
        return math.exp(min(max(float(log[0, 0]), -700.0), 700.0))

    def _error(self, run: Runs) -> float:
        """Standard deviation of ln loss of a new run there."""
        place, mode = self._place(run), np.array(self.values)
        carried = self._carried(place)
        X = jacobian(self.names, mode, place) - carried.weights.T @ jacobian(self.names, mode, self._runs_at[0])
        return math.sqrt(max(float((X @ np.array(self.covariance) @ X.T)[0, 0]), 0.0) + float(carried.left[0]))

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
        place, growth, bend = along(column, self.line)
        best = place, place + growth * far + bend * far**2
        cost = 100 * np.expm1(np.maximum(column["curvature"], 0.0) * math.log(2) ** 2)
        shown = {"best_depth": np.exp(best[0]), "best_depth_at_10x": np.exp(best[1])}
        return shown | {"growth": growth, "cost_of_factor_2": cost}


def fit_joint(
    runs: Runs,
    *,
    counting: Counting = "block",
    length: float | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    examine: bool = True,
) -> JointFit:
    """The joint model's posterior; `bootstrap` is the number of its draws, 200 to 10,000.

    `length` is the tokens of a run for which the best depth is stated, where runs have several (default: their mean,
    or lengths that grow with size as theirs do). `examine` also looks for what a reader must beware of.
    """
    check_resamples(bootstrap, seed)
    if not FEWEST_DRAWS <= bootstrap <= MOST_DRAWS:
        raise DeepwideError(
            f"a joint fit, whose intervals are its posterior's draws, has {FEWEST_DRAWS} to {MOST_DRAWS:,} of them "
            f"(bootstrap), not {bootstrap:,}."
        )
    runs.need("depth")
    size = runs.size(counting)
    failed = failed_runs(runs, size)
    failures = about_failed(runs, size, failed)
    if failed.any():
        runs, size = runs.select(~failed), size[~failed]
    centre = float(np.exp(np.mean(np.log(size))))
    if length is not None:
        _check_length(runs, length)
    centre_tokens = float(np.exp(np.mean(np.log(runs.tokens)))) if runs.several_lengths else None
    share = np.log(runs.total_params / runs.block_params)
    counted = counting == "block" and not np.isnan(share).any() and float(np.ptp(share)) > SAME_SHARE
    counted = counted and not cautions.about_totals(runs)
    s, x = np.log(size / centre), np.log(runs.depth)
    t = np.log(runs.tokens / centre_tokens) if centre_tokens else None
    e = share - share.mean() if counted else None
    y = _observed(runs, counting, s, x, t, e)
    cells = cell_means(y, runs.groups, runs.seed, runs.diverged)
    at = cells.first
    _check(cells, x[at])
    design = Design(s[at], None if t is None else t[at], None if e is None else e[at], x[at])
    try:
        inferred = infer(cells, design, number=bootstrap, seed=seed)
    except np.linalg.LinAlgError:
        raise DeepwideError("these runs do not determine the joint model: more sizes or depths are needed.") from None
    whole = Design(s, t, e, x)
    fitted = log_loss(inferred.names, inferred.mode[None], whole)[0]
    residual = np.where(runs.diverged, np.maximum(y - fitted, 0.0), y - fitted)
    mixture = inferred.mixture
    sigma2 = float(mixture.weights @ mixture.sigma2)
    within = math.sqrt(cells.within / cells.within_dof) if cells.within_dof else None
    r2 = dict(zip(misfit_factors(design), mixture.settings[:, 1:].T ** 2, strict=True))
    missed = {name: math.sqrt(float(mixture.weights @ (mixture.sigma2 * part))) for name, part in r2.items()}
    assumed = zip(inferred.names, inferred.prior_mean.tolist(), inferred.prior_sd.tolist(), strict=True)
    place = float(inferred.mode[inferred.names.index("depth")])
    line = _line(design, length, centre_tokens)
    known = _known_sizes(inferred, design, math.sqrt(sigma2), line or (0.0, 0.0))
    leverage = _leverage(inferred, design, cells)[np.unique(runs.groups, return_inverse=True)[1]]
    separate = examine and "run" not in r2  # lengths that may be of one run are no evidence each
    fit = JointFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=inferred.names,
        values=tuple(map(float, inferred.mode)),
        covariance=as_tuples(mixture.covariance),
        dof=int(mixture.dof),
        resamples=as_tuples(inferred.draws),
        residuals=residual_table(runs, counting, y, fitted, residual, leverage),
        noise=math.sqrt(sigma2),
        seed_noise=within,
        params_range=span(size),
        depth_range=span(runs.depth),
        tokens_range=span_known(runs.tokens),
        embedding_share=span_known(runs.embedding_share),
        notes=runs.notes,
        warnings=tuple(about_assumptions(runs, inferred, design, cells, centre, known)) if examine else (),
        centre=centre,
        centre_tokens=centre_tokens,
        embeddings_mean=float(share.mean()) if counted else None,
        tokens_line=line,
        priors={name: Prior(mean, sd) for name, mean, sd in assumed if math.isfinite(sd)},
        flat=inferred.flat,
        different=inferred.different,
        misfit=(missed["smooth"], missed.get("depth", 0.0)),
        run_noise=missed.get("run", 0.0),
        curve_misfit=missed.get("curve", 0.0),
        x_range=(float(x.min() - place), float(x.max() - place)),
        known_sizes=(centre * math.exp(known[0]), centre * math.exp(known[1])),
        bases=compare_bases(_without_embeddings(cells.y, inferred, design), design, np.log(size[at]))
        if separate
        else {},
    )
    if not examine:
        return fit

    def again(some: Runs, draws: int) -> JointFit:
        return fit_joint(some, counting=counting, length=length, bootstrap=draws, examine=False)

    wider = with_wider_bend(fit, cells, design, seed)
    return fit.model_copy(update={"with_wider_bend": wider, "warnings": (*failures, *about_runs(fit, runs, again))})


def _known_sizes(inferred: Posterior, design: Design, noise: float, line: tuple[float, float]) -> tuple[float, float]:
    """σ of the least and the largest size at which the runs from there on show the best depth about as well as the fit
    states.

    Runs that know the bowl and how the best depth grows are off by noise / 2c·√Σ(z − z̄)², z their ln depth over the
    best. Where that is much more than the fit's error, the fit has carried the best depth there from other sizes: one
    depth at a size tells nothing. What counts is all runs within a factor 2 of a size and beyond it, so that several
    thin sizes show together what none of them does alone. Growth is taken to be seen between these two sizes only.
    """
    s = design.s
    draws = dict(zip(inferred.names, inferred.draws.T, strict=True))
    if not len(inferred.draws):
        return float(s.min()), float(s.max())
    order = np.argsort(s)
    at = s[order]
    middle = {name: np.array([float(np.median(values))]) for name, values in draws.items()}
    c, change = (float(middle[name][0]) for name in ("curvature", "curvature_size"))
    z = (design.x - best_log_depth(middle, design))[order]
    weight = np.exp(2 * np.clip(change * at, -10, 10))
    ends = sorted({0, len(at) - 1, *np.linspace(0, len(at) - 1, MOST_ENDS).astype(int).tolist()})
    place = np.column_stack([np.ones(len(ends)), at[ends], at[ends] ** 2]) @ along(draws, line)
    stated = np.ptp(np.quantile(place, (0.025, 0.975), axis=1), axis=0) / (2 * Z95)
    sums = [np.append(0.0, np.cumsum(weight * z**power)) for power in (0, 1, 2)]
    known = []
    for up in (False, True):
        low = np.searchsorted(at, at[ends] - NEARBY, "left") if up else np.zeros(len(ends), dtype=int)
        high = np.full(len(ends), len(at)) if up else np.searchsorted(at, at[ends] + NEARBY, "right")
        whole, first, second = (total[high] - total[low] for total in sums)
        off = noise / (2 * c * np.sqrt(np.maximum(second - first**2 / np.maximum(whole, 1e-300), 1e-12)))
        times = off / np.maximum(stated, WELL / ENOUGH)
        enough = np.flatnonzero(times <= max(ENOUGH, float(times.min())))
        known.append(float(at[ends[enough[-1 if up else 0]]]))
    half = (known[0] + known[1]) / 2  # of runs that show it only together
    return min(known[0], half), max(known[1], half)


def _leverage(inferred: Posterior, design: Design, cells: Cells) -> Floats:
    """Of each cell: how much of the variance of its own mean its fitted value has, 1 where it decides itself."""
    mixture = inferred.mixture
    X = jacobian(inferred.names, inferred.mode, design)
    w, r2 = mixture.settings[:, 0], (mixture.settings[:, 1:] ** 2).sum(axis=1)
    M = cells.M if cells.M.ndim == 1 else np.diag(cells.M)
    own = (mixture.weights * mixture.sigma2) @ (w[:, None] * M + (1 - w + r2)[:, None])
    return np.asarray(np.clip(np.einsum("ij,jk,ik->i", X, mixture.covariance, X) / own, 0, 1))


def _columns_of(runs: Sequence[Residual]) -> Iterator[list[float]]:
    """Size, depth and loss."""
    yield [run.params for run in runs]
    yield [run.depth or 1.0 for run in runs]
    yield [run.loss for run in runs]


def _numbers(name: str, given: ArrayLike) -> Floats:
    """A number above 0 or a list of them, as an array."""
    try:
        values = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.ndim > 1 or not np.all((values > 0) & (values < np.inf)):
        raise DeepwideError(f"{name} must be a number above 0, or a list of them, not {str(given)[:40]}.")
    return values


def _spread_normals(number: int) -> Floats:
    """Standard normal values, every stretch of which is spread like the whole (multiples of the golden ratio)."""
    from scipy.special import ndtri

    return np.asarray(ndtri((np.arange(number) + 0.5) * (math.sqrt(5) - 1) / 2 % 1))


def _without_embeddings(y: Floats, inferred: Posterior, design: Design) -> Floats:
    """ln loss less what the joint model gives to embeddings; a free term of their share could pass for growth."""
    if design.e is None:
        return y
    values = by_name(inferred.names, inferred.mode[None])
    blocks = size_curve(values, design._replace(e=np.zeros_like(design.e)))
    return np.asarray(y - (size_curve(values, design) - blocks)[0])


def _line(design: Design, length: float | None, centre_tokens: float | None) -> tuple[float, float] | None:
    """τ = at + slope·σ that the best depth is stated for: the length asked for, or lengths that follow the size, if
    the runs' do; None: their mean."""
    if design.t is None or centre_tokens is None:
        return None
    if length is not None:
        return math.log(length / centre_tokens), 0.0
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


def _check_length(runs: Runs, length: float) -> None:
    length = float(_numbers("length", length)[0])
    if np.isnan(runs.tokens).all():
        raise DeepwideError("these runs do not say how many tokens they had: a best depth at a length needs tokens.")
    most = float(np.nanmax(runs.tokens))
    if not runs.several_lengths and not 1 / SAME_LENGTH < length / most < SAME_LENGTH:
        raise DeepwideError(
            f"all runs had {show_count(round(most))} tokens: they do not say how the best depth changes with length."
        )


def _check(cells: Cells, x: Floats) -> None:
    if len(np.unique(np.round(x, 6))) < 3:
        raise DeepwideError("a best depth needs runs of at least three depths.")
    if len(cells.y) < FEWEST_CELLS:
        raise DeepwideError(f"a best depth needs at least {FEWEST_CELLS} shapes, and there are {len(cells.y)}.")
