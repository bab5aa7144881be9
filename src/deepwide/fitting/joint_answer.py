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

from deepwide.answers import Interval, Note, Verdict
from deepwide.errors import DeepwideError
from deepwide.fitting import summary
from deepwide.fitting.answer import By, Fit, Prediction, Residual
from deepwide.fitting.misfit import Carried, Missed, RunNoise, carry
from deepwide.fitting.mixed import fall_of_noise
from deepwide.fitting.model import (
    GOES_ON,
    RELAX,
    SOFT,
    WITH_TOKENS,
    Design,
    along,
    by_name,
    jacobian,
    log_loss,
    shift,
    size_curve,
)
from deepwide.fitting.regression import (
    check_positive,
)
from deepwide.fitting.runs import SAME_LENGTH, Runs
from deepwide.fitting.words import note
from deepwide.laws import Bowl, JointLaw, Lengths, bowl_sides, without_limit
from deepwide.quantities import ArrayLike, Floats, parse_count, show_count

CLAIM = "at equal size there is a depth of least loss"
RULE = (
    "seen if the curvature of ln loss in ln depth is above 0 with a probability of at least 97.5%, not seen if of at "
    "most 2.5%, else undecided"
)
SURE = 0.025
AT_ONCE = 2000  # shapes that are predicted together
FAR_ABOVE = 10.0  # times the best depth, in a profile that has no upper limit
DIFFERENT = 0.3  # of the draws that must differ: with fewer, the model was linearised in a wrong place
SEEN_TO_FALL = 1.1  # times the mean noise that the shortest runs have
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
    noise_falls: float = 0.0  # ln of the noise, per e-fold of tokens; `noise` is that at their mean
    with_wider_bend: Interval | None = None  # the best depth at ten times the largest size, were the bend freer
    x_range: tuple[float, float]
    known_sizes: tuple[float, float] | None = None  # at which runs show the best depth; None: all (older fits)
    bases: dict[str, float] = Field(default_factory=dict)  # laws of growth: AICc above the least
    left_out: tuple[int, ...] = ()  # rows, from 0, of runs that did not train or whose loss the others do not expect

    def best_depth(self, params: ArrayLike) -> list[Interval]:
        """The depth of least loss at these sizes; raises where the runs show none."""
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth: {self.declined}.")
        curve = law.depth(positive_numbers("params", params))
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
            lengths=self._lengths(),
            run_tokens=self.tokens_range[1] if self.centre_tokens is None and self.tokens_range else None,
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

    def _lengths(self) -> Lengths | None:
        """How the law moves with tokens; None where lengths do not differ, or the fit is of an earlier version."""
        if self.centre_tokens is None or self.tokens_range is None or "bend_both" not in self.names:
            return None
        column = self._columns()
        rows = np.column_stack([column[name] for name in (*WITH_TOKENS, "curvature_tokens")])
        return Lengths(
            centre_tokens=self.centre_tokens,
            line=self.line,
            tokens=self.tokens_range,
            words=str(self._about_length()[0]),
            weight=GOES_ON[1],
            draws=tuple(map(tuple, np.round(rows, 6).tolist())),
        )

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
        """One row per shape: loss, the 95% limits of its mean over seeds (low, high) and of one new run (run_low,
        run_high).

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
            most, asked = self.tokens_range[1], positive_numbers("tokens", tokens)
            if np.any((asked > SAME_LENGTH * most) | (asked < most / SAME_LENGTH)):
                raise DeepwideError(
                    f"all runs had {show_count(round(most))} tokens: they do not say what the loss is after others."
                )
        if total is None and self.embeddings_mean is not None:
            raise DeepwideError("this fit counts embeddings: give the total number of parameters too.")
        columns_of = {"depth": positive_numbers("depth", depth), "params": positive_numbers("params", params)}
        for name, given in (("tokens", tokens), ("total", total)):
            columns_of[name] = np.array([np.nan]) if given is None else positive_numbers(name, given)
        try:
            L, N, D, P = np.broadcast_arrays(*columns_of.values())
        except ValueError:
            lengths = ", ".join(f"{len(column)} of {name}" for name, column in columns_of.items() if len(column) > 1)
            raise DeepwideError(f"lists must be of one length, not {lengths}.") from None
        if np.any(N > P):
            raise DeepwideError("the total number of parameters is less than that of the blocks: give both, exactly.")
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
            luck = carried.left - carried.missed
            several, one = (
                np.quantile(np.sort(mean, axis=0) + np.sqrt(variance) * spread, (0.025, 0.975), axis=0)
                for variance in (carried.missed + self._cell_share * luck, carried.left)
            )
            middle = np.clip(np.median(mean[:number], axis=0), *several)
            columns = (L[part], N[part], *np.exp(np.clip((middle, *several, *one), -700, 700)))
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
        (`below`, growth beyond the runs counted both ways), and the loss above that of the best depth in percent with
        its 95% limits (cost, low, high); the cost is for growth that goes on, as the best depth is."""
        law = self.law()
        if law is None:
            raise DeepwideError(f"these runs show no best depth: {self.declined}.")
        sizes = positive_numbers("params", params)
        if len(sizes) != 1:
            raise DeepwideError(f"a profile is of one size, and {len(sizes)} were given: ask for each by itself.")
        params = float(sizes[0])
        best = law.depth(params).at()
        if depths is None:
            high = FAR_ABOVE * best.value if without_limit(best) else best.high or best.value
            depths = np.unique(np.round(np.geomspace((best.low or best.value) / 1.5, 1.5 * high, 12)))
            depths = depths[depths > 0]
        L = positive_numbers("depths", depths)
        place = law.place(params)
        costs = 100 * np.expm1(np.array(law.middle_and_limits(np.clip(law.above(L, params), 0, 20))))
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
        return carry(missed, RunNoise(self.noise, self.noise_falls), self._runs_at[0], places)

    def _off(self, theta: Floats) -> Floats:
        """ln loss of the runs less that of the model: (draws, runs)."""
        design, y = self._runs_at
        return np.asarray(y - log_loss(self.names, theta, design))

    def falling(self, tokens: float | None) -> float:
        """The noise of a run of so many tokens, over that at their mean."""
        if tokens is None or self.centre_tokens is None:
            return 1.0
        return float(fall_of_noise(self.noise_falls, math.log(tokens / self.centre_tokens)))

    def noise_elsewhere(self) -> str:
        """The noise at the shortest and the longest runs, where it falls with length."""
        if self.tokens_range is None or self.falling(self.tokens_range[0]) < SEEN_TO_FALL:
            return ""
        ends = (f"{100 * self.noise * self.falling(end):.2g}% at {show_count(round(end))}" for end in self.tokens_range)
        return f" at {show_count(round(self.centre_tokens or 0))} tokens, " + " and ".join(ends)

    @property
    def _cell_share(self) -> float:
        """Of a run's variance, what all seeds of its shape share; 0 where no shape was repeated."""
        return 0.0 if self.seed_noise is None else max(1 - (self.seed_noise / max(self.noise, 1e-12)) ** 2, 0.0)

    @property
    def run_spread(self) -> float:
        """Standard deviation of one run's ln loss about the model."""
        return math.hypot(self.noise, self.run_noise, self.curve_misfit, *self.misfit)

    def _place(self, run: Runs) -> Design:
        s = np.log(run.size(self.counting) / self.centre)
        e = None
        if self.embeddings_mean is not None:
            e = np.log(run.total_params / run.block_params) - self.embeddings_mean
        return Design(s, self._log_tokens(s, run.tokens), e, np.log(run.depth))

    def expected(self, run: Runs) -> float:
        """The loss of one run, whether the fit shows a best depth or not."""
        place, mode = self._place(run), np.array([self.values])
        log = log_loss(self.names, mode, place) + self._off(mode) @ self._carried(place).weights
        return math.exp(min(max(float(log[0, 0]), -700.0), 700.0))

    def error(self, run: Runs) -> float:
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


def _columns_of(runs: Sequence[Residual]) -> Iterator[list[float]]:
    """Size, depth and loss."""
    yield [run.params for run in runs]
    yield [run.depth or 1.0 for run in runs]
    yield [run.loss for run in runs]


def positive_numbers(name: str, given: ArrayLike) -> Floats:
    """A number above 0 (1.3B too) or a list of them, as an array."""
    try:
        values = np.atleast_1d(np.asarray(parse_count(given) if isinstance(given, str) else given, dtype=float))
    except (TypeError, ValueError):  # DeepwideError is one
        values = np.array([np.nan])
    if values.ndim > 1 or not np.all((values > 0) & (values < np.inf)):
        raise DeepwideError(f"{name} must be a number above 0, or a list of them, not {str(given)[:40]}.")
    return values


def _spread_normals(number: int) -> Floats:
    """Standard normal values, every stretch of which is spread like the whole (multiples of the golden ratio)."""
    from scipy.special import ndtri

    return np.asarray(ndtri((np.arange(number) + 0.5) * (math.sqrt(5) - 1) / 2 % 1))
