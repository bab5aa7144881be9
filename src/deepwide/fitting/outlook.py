"""What further runs would do to an interval, before they are run: the joint model as a Gaussian process.

A run's ln loss is J·θ plus what the model misses (smoothly, by depth, by cell) plus noise, with J its features at a
draw of θ (`model.jacobian`). The target is linear in θ too: T = g·θ. So its variance after any runs follows from where
they are, not from what they find, and a run lowers it by cov(T, run)² / (var(run) + noise): a rank-one update.

The target is the one that a fitted law states (`laws.JointLaw`): beyond the sizes at which runs show the best depth,
growth ends in one half of the draws and goes on in the other, and no run tells which. So there are two targets, T of
either case, and the interval is that of their mixture. A larger run helps in two ways, by its features and by bringing
the known sizes nearer to the target.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from deepwide.fitting.inference import tamed
from deepwide.fitting.joint import NEARBY, SAME_SHARE, WELL
from deepwide.fitting.joint_answer import JointFit
from deepwide.fitting.misfit import Missed, RunNoise, joined
from deepwide.fitting.mixed import FALLS, fall_of_noise
from deepwide.fitting.model import (
    ENDS,
    GOES_ON,
    PRIORS,
    RELAX,
    WITH_TOKENS,
    Design,
    best_log_depth,
    by_name,
    jacobian,
    log_loss,
)
from deepwide.fitting.runs import SAME_LENGTH, Runs
from deepwide.quantities import Floats, Integers

Goal = Literal["depth", "loss"]
DRAWS = 12
# What is assumed until runs can be fitted: a bowl as of published sweeps and ours, the noise of small ones, and half of
# it as misfit.
CURVED, FLATTENS = (1e8, 0.02), 0.095  # the curvature after so many tokens, and how fast it falls with ln tokens
CURVATURE_SPREAD = 0.5  # sd of its ln
ASSUMED_NOISE = 0.005  # of runs of at least ASSUMED_FROM tokens; shorter ones have more (`assumed_noise`)
ASSUMED_FROM = 1e7
MOST_NOISE = 0.05
ASSUMED_MISFIT = 0.5
ASSUMED_CURVE = 2.0  # times the noise: what a formula of loss in size and tokens misses, where lengths differ
WIDE = {"level": 3.0, "curvature": 0.3, "depth": 3.0}  # standard deviations instead of flat priors
ASSUMED_FALLS = sum(h * weight for h, weight in FALLS)
CELL_SHARE = 0.5  # of a run's variance that its seeds share, where no shape was repeated
FEWEST_DRAWS = 50
SPREADS = (0.5, 3.2)  # of depths a factor e apart, and a factor 12 apart: with more noise a fit asks for less
MARGIN = 1.6  # that a spread is asked for, so that a fit which finds more noise still takes the size for known
NEWTON = 4  # steps to a quantile


def assumed_noise(tokens: float = math.nan) -> float:
    """Standard deviation of one run's loss until runs tell: 0.5%, and like one over the root of the tokens below 10M.

    Seeds of our own networks of 5K to 400K differ by 0.6% at 8M tokens, 0.7 to 1.5% at 2M, several percent at 100K.

    >>> [f"{assumed_noise(tokens):.2%}" for tokens in (1e5, 1e6, 2e6, 8e6, 1e9)]
    ['5.00%', '1.58%', '1.12%', '0.56%', '0.50%']
    """
    short = max(ASSUMED_FROM / tokens, 1.0) if tokens > 0 else 1.0
    return min(ASSUMED_NOISE * math.sqrt(short), MOST_NOISE)


def assumed_curvature(tokens: float = math.nan) -> float:
    """Of the bowl in ln loss against ln depth, until runs tell.

    Our sweeps of 2M tokens have 0.023 to 0.037 (five fits) and that of 8M 0.025; Morph's runs of about 10B have 0.013,
    Gemstones' of 100B and 350B 0.010 and 0.008.

    >>> [f"{assumed_curvature(tokens):.3f}" for tokens in (2e6, 8e6, 1e10, 1e11, 3.5e11)]
    ['0.029', '0.025', '0.013', '0.010', '0.009']
    """
    usual, curvature = CURVED
    return float(curvature * (tokens / usual if tokens > 0 else 1.0) ** -FLATTENS)


@dataclass(frozen=True, eq=False)
class Places:
    """Where runs are, or may be."""

    depth: Floats
    block_params: Floats
    total_params: Floats
    tokens: Floats
    seeds: Floats  # that each was run with; 1 for what may be run

    def __len__(self) -> int:
        return len(self.depth)

    @classmethod
    def of(cls, runs: Runs) -> "Places":
        """One per cell of some runs."""
        _, first, counts = np.unique(runs.groups, return_index=True, return_counts=True)
        depth, block, total, tokens = (
            column[first] for column in (runs.depth, runs.block_params, runs.total_params, runs.tokens)
        )
        return cls(depth, block, total, tokens, counts.astype(float))

    def at(self, rows: Sequence[int] | Integers) -> "Places":
        """Some of them."""
        which = np.asarray(rows, dtype=int)
        columns = (self.depth, self.block_params, self.total_params, self.tokens, self.seeds)
        return Places(*(column[which] for column in columns))

    @classmethod
    def none(cls) -> "Places":
        """No runs."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Outlook:
    """Draws of the model's parameters, and what its misfit and noise are taken to be."""

    names: tuple[str, ...]
    draws: Floats  # (D, k)
    prior_sd: Floats
    centre: float
    centre_tokens: float | None
    share_mean: float | None
    tokens_line: tuple[float, float]  # τ of the target against σ
    noise: float  # sd of a single run of the mean length about its cell
    cell: float  # sd of such a cell about the smooth misfit
    falls: float  # how fast both fall with ln tokens
    misfit: Missed  # but by run: a design may repeat a shape for its noise alone
    assumed: bool  # no fit stands behind it

    @property
    def run_noise(self) -> float:
        """Standard deviation of a single run of the mean length, its cell's included."""
        return math.hypot(self.noise, self.cell)

    def noise_at(self, tokens: float | None) -> float:
        """The same of a run of this length (None: the mean)."""
        if tokens is None or self.centre_tokens is None:
            return self.run_noise
        return float(self.run_noise * fall_of_noise(self.falls, math.log(tokens / self.centre_tokens)))

    @property
    def spread(self) -> float:
        """`spread_near` from which a fit will take a size for known (`joint`)."""
        curvature = float(np.median(self.draws[:, self.names.index("curvature")]))
        alone = self.run_noise / (2 * max(curvature, 1e-6))
        return float(np.clip(MARGIN * (alone / WELL) ** 2, *SPREADS))

    def noisier(self, times: float) -> "Outlook":
        """The same with so many times the noise and misfit."""
        misfit = Missed(*(times * sd for sd in self.misfit))
        return replace(self, noise=times * self.noise, cell=times * self.cell, misfit=misfit)

    def worth(self, places: Places) -> Floats:
        """What a run says of the best depth at its size, over what one of the mean length does: (curvature/noise)²."""
        if self.centre_tokens is None:
            return np.ones(len(places))
        change = float(np.median(self.draws[:, self.names.index("curvature_tokens")]))
        return np.asarray((places.tokens / self.centre_tokens) ** (2 * (self.falls + change)))

    def coordinates(self, places: Places) -> Design:
        """The model's coordinates of places."""
        t = None if self.centre_tokens is None else np.log(places.tokens / self.centre_tokens)
        share = np.log(places.total_params / places.block_params)
        e = None if self.share_mean is None else share - self.share_mean
        return Design(np.log(places.block_params / self.centre), t, e, np.log(places.depth))

    def gradient(self, goal: Goal, params: float, ends: Floats, share: float) -> "Target":
        """The target with the known sizes ending at each of `ends`: ln of the best depth at a size, or of the loss
        there; `share` is ln(total/block) there."""
        far = math.log(params / self.centre)
        at, slope = self.tokens_line
        if goal == "loss":
            best = self._best_places(params, share)
            rows = [jacobian(self.names, draw, place)[0] for draw, place in zip(self.draws, best, strict=True)]
            g = np.repeat(np.array(rows)[:, None, None, :], len(ends), axis=1)
            return Target(np.repeat(g, 2, axis=2), np.zeros((len(ends), 2)), np.zeros((len(self.draws), len(ends))))
        end = np.minimum(far, np.log(ends / self.centre))
        tail = RELAX * -np.expm1(-(far - end) / RELAX)
        usual, weight, sd = GOES_ON
        on = far - end - tail  # e-folds over which growth goes on, if it does
        zero = np.zeros_like(end)
        t = at + slope * end
        place = {"depth": zero + 1, "growth": end, "bend": end**2}
        growth = {"growth": zero + 1, "bend": 2 * end}  # ∂(growth at the end)/∂θ
        place |= dict(zip(WITH_TOKENS, (t, t * end, t**2), strict=True))
        growth |= dict(zip(WITH_TOKENS, (zero + slope, t + slope * end, 2 * slope * t), strict=True))
        g0, g1 = (np.stack([part.get(name, zero) for name in self.names], axis=1) for part in (place, growth))
        both = np.stack([g0, g0 + (tail + weight * on)[:, None] * g1], axis=1)
        grown = self.draws @ g1.T
        apart = tail * grown + on * (usual + weight * (grown - usual))
        rest = np.stack([zero, (sd * on) ** 2], axis=1)
        return Target(np.repeat(both[None], len(self.draws), axis=0), rest, apart)

    def _best_places(self, params: float, share: float) -> list[Design]:
        """The best shape of a size by each draw."""
        far = math.log(params / self.centre)
        at, slope = self.tokens_line
        s = np.array([far])
        t = None if self.centre_tokens is None else np.array([at + slope * far])
        e = None if self.share_mean is None else np.array([share - self.share_mean])
        places = best_log_depth(by_name(self.names, self.draws), Design(s, t, e, s))
        return [Design(s, t, e, best) for best in places]

    def made_up(self, places: Places, random: np.random.Generator) -> Floats:
        """Losses of runs at places, as they may be by the first draw; places that are the same share their cell."""
        design = self.coordinates(places)
        falling = RunNoise(1.0, self.falls).at(design)
        shared = self.misfit.covariance(design) + self.cell**2 * _same(design) * np.outer(falling, falling)
        root = np.linalg.cholesky(shared + 1e-12 * np.eye(len(places)))
        mean = log_loss(self.names, self.draws[:1], design)[0]
        own = self.noise * falling * random.normal(size=len(places))
        return np.asarray(np.exp(mean + root @ random.normal(size=len(places)) + own))

    def covariances(
        self, before: Places, pool: Places, goal: Goal, params: float, ends: Floats, share: float
    ) -> "Covariances":
        """The pool and the target (for each end of the known sizes), given the runs before."""
        whole = _joined(before, pool)
        n, design = len(before), self.coordinates(whole)
        falling = RunNoise(1.0, self.falls).at(design)
        missed = self.misfit.covariance(design) + self.cell**2 * _same(design) * np.outer(falling, falling)
        noise2 = (self.noise * falling) ** 2
        target = self.gradient(goal, params, ends, share)
        g = target.gradient.reshape(len(self.draws), 2 * len(ends), -1)
        J = np.stack([jacobian(self.names, draw, design) for draw in self.draws])
        S = self.prior_sd**2
        K = np.einsum("dik,k,djk->dij", J, S, J) + missed
        B = np.einsum("dek,k,djk->dej", g, S, J)
        v = np.einsum("dek,k,dek->de", g, S, g)
        if goal == "loss":  # what the model misses there is part of it
            best = self._best_places(params, share)
            missing = np.stack([self.misfit.column(joined(design, place), len(whole)) for place in best])
            B, v = B + missing[:, None, :-1], v + missing[:, -1:]
        if n:
            seen = K[:, :n, :n] + np.diag(noise2[:n] / before.seeds + 1e-10)
            gain = np.linalg.solve(seen, np.concatenate([K[:, :n, n:], B[:, :, :n].transpose(0, 2, 1)], axis=2))
            P = len(pool)
            v = v - np.einsum("den,dne->de", B[:, :, :n], gain[:, :, P:])
            B = B[:, :, n:] - np.einsum("den,dnp->dep", B[:, :, :n], gain[:, :, :P])
            K = K[:, n:, n:] - np.einsum("dnp,dnq->dpq", K[:, :n, n:], gain[:, :, :P])
        return Covariances(K, B, np.maximum(v, 1e-12), target.rest, target.apart, noise2[n:], self.spread, self.worth)


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be known if growth ends with the known sizes (0) and if it goes on (1), for each end of them."""

    gradient: Floats  # (D, E, 2, k): ∂T/∂θ
    rest: Floats  # (E, 2): variance that no run lowers
    apart: Floats  # (D, E): how far the second lies above the first


@dataclass(eq=False)
class Covariances:
    """Of the pool's runs (K), with the targets (B) and of them (v), for each draw; `take` conditions on a run.

    K is left as it is: what each run that was taken has lowered it by is a column, K − Σ column·columnᵀ.
    """

    K: Floats  # (D, P, P), without a run's own noise
    B: Floats  # (D, 2E, P)
    v: Floats  # (D, 2E)
    rest: Floats  # (E, 2)
    apart: Floats  # (D, E)
    noise2: Floats  # (P,)
    spread: float  # see `Outlook`
    worth: Callable[[Places], Floats]  # likewise
    columns: tuple[Floats, ...] = ()  # (D, P) each
    own: Floats = field(default_factory=lambda: np.zeros(0))  # (D, P): the runs' variances now
    _widths: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)  # of ends, since the last run was taken

    def __post_init__(self) -> None:
        if not self.own.size:
            self.own = np.einsum("dpp->dp", self.K)

    def copy(self) -> "Covariances":
        """One that can be conditioned by itself."""
        return replace(self, _widths={})

    def gains(self, end: int) -> Floats:
        """How much each run of the pool would lower the log of the target's interval: the mean over draws."""
        both = slice(2 * end, 2 * end + 2)
        spread = np.maximum(self.own, 0.0) + self.noise2
        now = self.v[:, both] + self.rest[end]
        lower = np.minimum(self.B[:, both] ** 2 / np.maximum(spread, 1e-300)[:, None], self.v[:, both, None])
        fall = np.sqrt(now)[:, :, None] - np.sqrt(now[:, :, None] - lower)
        width, slopes = self._width(end)
        share = np.einsum("dc,dcp->dp", slopes, fall) / width[:, None]
        return np.asarray(-np.log1p(-np.minimum(share, 1 - 1e-9)).mean(axis=0))

    def take(self, run: int) -> None:
        """As if this run had been run."""
        column = self.K[:, :, run].copy()
        for taken in self.columns:
            column -= taken * taken[:, run, None]
        column /= np.sqrt(np.maximum(column[:, run], 0.0) + self.noise2[run])[:, None]
        target = self.B[:, :, run] / np.sqrt(np.maximum(self.own[:, run], 0.0) + self.noise2[run])[:, None]
        self.v = np.maximum(self.v - target**2, 1e-12)
        self.B = self.B - target[:, :, None] * column[:, None, :]
        self.own = self.own - column**2
        self.columns = (*self.columns, column)
        self._widths.clear()

    def log_width(self, end: int) -> float:
        """ln of ln(high/low) of the target's 95% interval: the mean over draws."""
        return float(np.log(self._width(end)[0]).mean())

    def _width(self, end: int) -> tuple[Floats, Floats]:
        if end not in self._widths:
            sd = np.sqrt(self.v[:, 2 * end : 2 * end + 2] + self.rest[end])
            self._widths[end] = mixture_width(sd, self.apart[:, end])
        return self._widths[end]

    def _if_known(self, v: Floats, end: int) -> float:
        return float(np.log(mixture_width(np.sqrt(v + self.rest[end]), self.apart[:, end])[0]).mean())

    def floor(self, end: int) -> float:
        """`log_width` if every run of the pool were repeated without end."""
        K = self.K + np.diag(1e-4 * self.noise2 + 1e-12)
        for taken in self.columns:
            K -= taken[:, :, None] * taken[:, None, :]
        B = self.B[:, 2 * end : 2 * end + 2]
        lower = np.einsum("dcp,dpc->dc", B, np.linalg.solve(K, B.transpose(0, 2, 1)))
        return self._if_known(np.maximum(self.v[:, 2 * end : 2 * end + 2] - lower, 1e-12), end)

    def beyond(self, end: int) -> float:
        """The log of the interval if everything were known up to this end of the sizes."""
        return self._if_known(np.full((len(self.apart), 2), 1e-12), end)


def mixture_width(sd: Floats, apart: Floats) -> tuple[Floats, Floats]:
    """Length of the middle 95% of N(0, sd₀²) and N(apart, sd₁²), mixed, and its derivatives by either sd: (n,), (n, 2).

    >>> width, _ = mixture_width(np.array([[1.0, 1.0]]), np.array([0.0]))
    >>> round(float(width[0]), 3)
    3.92
    """
    from scipy.special import ndtr, ndtri

    weight = np.array([ENDS, 1 - ENDS])
    middle = np.stack([np.zeros_like(apart), apart], axis=-1) * np.array([-1.0, 1.0])[:, None, None]
    t = np.max(middle - ndtri(0.025 / weight) * sd, axis=-1)  # the inner side, from where Newton does not overshoot
    for _ in range(NEWTON):
        u = (t[..., None] - middle) / sd
        density = weight * np.exp(-(u**2) / 2) / (math.sqrt(2 * math.pi) * sd)
        whole = np.maximum(density.sum(axis=-1), 1e-300)
        t = t + (ndtr(-u) @ weight - 0.025) / whole
    return np.asarray(t.sum(axis=0)), np.asarray((density * u / whole[..., None]).sum(axis=0))


def outlook_of(
    fit: JointFit | None,
    before: Places,
    pool: Places,
    *,
    length: float | None = None,
    noise: float | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Outlook:
    """What the fit of the runs before leaves open; without a fit, what is assumed of any sweep.

    `length` is the tokens that the target is for, where lengths differ (default: as the fit's); `noise` what a run of
    that length is assumed to have without a fit.
    """
    whole = _joined(before, pool)
    lengths, share = whole.tokens, np.log(whole.total_params / whole.block_params)
    varied = not np.isnan(lengths).any() and float(lengths.max()) > SAME_LENGTH * float(lengths.min())
    shared = not np.isnan(share).any() and float(np.ptp(share)) > SAME_SHARE
    centre = fit.centre if fit else float(np.exp(np.log(whole.block_params).mean()))
    centre_tokens = fit.centre_tokens if fit and fit.centre_tokens else None
    if varied and centre_tokens is None:
        centre_tokens = float(np.exp(np.log(before.tokens if len(before) else lengths).mean()))
    share_mean = fit.embeddings_mean if fit and fit.embeddings_mean is not None else None
    if shared and share_mean is None:
        share_mean = float(share.mean())
    blank = np.zeros(1)
    absent = Design(blank, None if centre_tokens is None else blank, None if share_mean is None else blank, blank)
    names = absent.names
    sd = np.array([WIDE.get(name, PRIORS[name][1]) for name in names])
    usable = fit is not None and len(fit.resamples) >= FEWEST_DRAWS
    theta = _prior_draws(names, pool, draws, seed)
    usual, falls, scale = _assumed(whole.tokens, centre_tokens, length, noise)
    curve = ASSUMED_CURVE * scale if centre_tokens is not None else 0.0
    misfit = Missed(ASSUMED_MISFIT * scale, ASSUMED_MISFIT * scale, curve)
    line = _line(whole, centre, centre_tokens)
    cell = CELL_SHARE
    if fit is not None:
        usual, misfit = fit.noise, Missed(*fit.misfit, fit.curve_misfit if fit.centre_tokens is not None else curve)
        if fit.centre_tokens is not None:
            line, falls = fit.tokens_line or (0.0, 0.0), fit.noise_falls
        if fit.seed_noise is not None:
            cell = float(np.clip(1 - (fit.seed_noise / max(fit.noise, 1e-12)) ** 2, 0.05, 0.95))
    if usable and fit is not None:
        rows = np.array(fit.resamples)[np.linspace(0, len(fit.resamples) - 1, draws).astype(int)]
        for i, name in enumerate(names):
            if name in fit.names:
                theta[:, i] = rows[:, fit.names.index(name)]
    if length is not None and centre_tokens is not None:
        line = (math.log(length / centre_tokens), 0.0)
    view = Outlook(
        names,
        theta,
        sd,
        centre,
        centre_tokens,
        share_mean,
        line,
        usual * math.sqrt(1 - cell),
        usual * math.sqrt(cell),
        falls,
        misfit,
        not usable,
    )
    # A bowl that is all but flat has its place anywhere, and nothing can be linearised there.
    return replace(view, draws=tamed(names, theta.T, view.coordinates(whole)).T)


class _Assumed(NamedTuple):
    """Until runs can be fitted: noise of a run of the mean length, how fast it falls with ln tokens, and what misfit is
    measured by (the noise of the longest runs: that shorter ones may be run too makes no curve rougher)."""

    noise: float
    falls: float
    scale: float


def _assumed(tokens: Floats, centre: float | None, length: float | None, noise: float | None) -> _Assumed:
    """`noise` is what is known of a run of `length` (None: of the longest)."""
    if centre is None:
        noise = noise or assumed_noise(float(tokens.mean()))
        return _Assumed(noise, ASSUMED_FALLS, noise)
    least, most = float(tokens.min()), float(tokens.max())
    falls = math.log(assumed_noise(least) / assumed_noise(most)) / max(math.log(most / least), 1e-9)
    falls = max(falls, ASSUMED_FALLS)
    if noise:
        usual = noise * ((length or most) / centre) ** falls
    else:
        noise = assumed_noise(most)
        usual = min(assumed_noise(centre), noise * (most / centre) ** falls)
    return _Assumed(usual, falls, min(usual, noise))


def _prior_draws(names: Sequence[str], pool: Places, number: int, seed: int) -> Floats:
    """Parameters as they may be before any run: the best depth at the centre somewhere among the depths."""
    random = np.random.default_rng(seed)
    x = np.log(pool.depth)
    middle, reach = (x.max() + x.min()) / 2, float(np.ptp(x))
    means = {name: PRIORS[name][0] for name in names}
    spreads = {name: 0.5 * PRIORS[name][1] for name in names}
    means |= {"level": 0.7, "depth": middle, "curvature": math.log(assumed_curvature(_usual_length(pool)))}
    spreads |= {"level": 0.0, "depth": reach / 6, "curvature": CURVATURE_SPREAD}
    theta = np.array([means[name] + spreads[name] * random.normal(size=number) for name in names]).T
    theta[:, list(names).index("curvature")] = np.exp(theta[:, list(names).index("curvature")])
    return theta


def _usual_length(places: Places) -> float:
    """The tokens that parameters are stated at: the geometric mean."""
    return float(np.exp(np.log(places.tokens).mean()))


def spread_near(size: float, worth: Callable[[Places], Floats], *places: Places) -> float:
    """Σ worth·(ln depth − mean)² of the runs near a size."""
    near = [each.at(np.flatnonzero(np.abs(np.log(each.block_params / size)) < NEARBY)) for each in places]
    x, weight = np.log(np.concatenate([each.depth for each in near])), np.concatenate([worth(each) for each in near])
    return float(weight @ (x - weight @ x / weight.sum()) ** 2) if len(x) else 0.0


def _line(places: Places, centre: float, centre_tokens: float | None) -> tuple[float, float]:
    """τ against σ where lengths follow the size, as the fit would see it; else the mean length."""
    if centre_tokens is None:
        return 0.0, 0.0
    s, t = np.log(places.block_params / centre), np.log(places.tokens / centre_tokens)
    if np.ptp(s) == 0:
        return float(t.mean()), 0.0
    slope, at = np.polyfit(s, t, 1)
    off = t - at - slope * s
    return (float(at), float(slope)) if abs(slope) > 0.2 and float(off.std()) < 0.35 else (float(t.mean()), 0.0)


def _joined(one: Places, other: Places) -> Places:
    columns = ("depth", "block_params", "total_params", "tokens", "seeds")
    return Places(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in columns))


def _same(design: Design) -> Floats:
    """Which places are the same cell."""
    columns = [design.s, design.x, *([] if design.t is None else [design.t])]
    apart = [np.abs(np.subtract.outer(column, column)) < 1e-6 for column in columns]
    return np.asarray(np.logical_and.reduce(apart), dtype=float)
