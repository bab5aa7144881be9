"""What further runs would do to an interval, before they are run: the joint model as a Gaussian process.

A run's ln loss is J·θ plus what the model misses (smoothly, by depth, by cell) plus noise, with J its features at a
draw of θ (`model.jacobian`). The target is linear in θ too: T = g·θ. So its variance after any runs follows from where
they are, not from what they find, and a run lowers it by cov(T, run)² / (var(run) + noise): a rank-one update.

The target is the one that a fitted law states (`laws.JointLaw`): beyond the largest size growth goes over to a prior,
which no run changes. So a larger run helps in two ways, by its features and by bringing that size nearer to the target.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from deepwide.fitting.joint import SAME_LENGTH, SAME_SHARE, JointFit
from deepwide.fitting.model import BEYOND, LENGTHS, PRIORS, RELAX, Design, best_log_depth, by_name, jacobian
from deepwide.fitting.runs import Runs
from deepwide.quantities import Floats

Goal = Literal["depth", "loss"]
DRAWS = 12
# What is assumed until runs can be fitted: a bowl as of published sweeps, noise of small ones, a misfit half as large.
ASSUMED_CURVATURE, CURVATURE_SPREAD = 0.02, 0.5
ASSUMED_NOISE = 0.005
ASSUMED_MISFIT = 0.5
WIDE = {"level": 3.0, "curvature": 0.3, "depth": 3.0}  # standard deviations instead of flat priors
CELL_SHARE = 0.5  # of a run's variance that its seeds share, where no shape was repeated
FEWEST_DRAWS = 50


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
    noise: float  # sd of a single run about its cell
    cell: float  # sd of a cell about the smooth misfit
    misfit: tuple[float, float]  # sd of what is missed smoothly, and by depth
    assumed: bool  # no fit stands behind it

    def coordinates(self, places: Places) -> Design:
        """The model's coordinates of places."""
        t = None if self.centre_tokens is None else np.log(places.tokens / self.centre_tokens)
        share = np.log(places.total_params / places.block_params)
        e = None if self.share_mean is None else share - self.share_mean
        return Design(np.log(places.block_params / self.centre), t, e, np.log(places.depth))

    def gradient(self, goal: Goal, params: float, ends: Floats, share: float) -> tuple[Floats, Floats]:
        """∂T/∂θ of each draw with the runs' sizes ending at each of `ends` (D, E, k), and the variance of the rest (E).

        T is ln of the best depth, or of the loss there, at a size; `share` is ln(total/block) there.
        """
        far = math.log(params / self.centre)
        at, slope = self.tokens_line
        if goal == "loss":
            s = np.array([far])
            t = None if self.centre_tokens is None else np.array([at + slope * far])
            e = None if self.share_mean is None else np.array([share - self.share_mean])
            rows = []
            for draw in self.draws:
                best = best_log_depth(by_name(self.names, draw[None]), Design(s, t, e, s))[0]
                rows.append(jacobian(self.names, draw, Design(s, t, e, best))[0])
            g = np.repeat(np.array(rows)[:, None, :], len(ends), axis=1)
            return g, np.zeros(len(ends))
        end = np.minimum(far, np.log(ends / self.centre))
        tail = RELAX * -np.expm1(-(far - end) / RELAX)
        reach = {"depth": np.ones_like(end), "growth": end + tail, "bend": end**2 + 2 * end * tail}
        reach["depth_tokens"] = at + slope * (end + tail)
        row = np.stack([reach.get(name, np.zeros_like(end)) for name in self.names], axis=1)
        return np.repeat(row[None], len(self.draws), axis=0), (BEYOND[1] * (far - end - tail)) ** 2

    def covariances(
        self, before: Places, pool: Places, goal: Goal, params: float, ends: Floats, share: float
    ) -> "Covariances":
        """The pool and the target (for each end of the runs' sizes), given the runs before."""
        whole = _joined(before, pool)
        n, design = len(before), self.coordinates(whole)
        same = _same(design)
        missed = self._missed(design) + self.cell**2 * same
        g, rest = self.gradient(goal, params, ends, share)
        J = np.stack([jacobian(self.names, draw, design) for draw in self.draws])
        S = self.prior_sd**2
        K = np.einsum("dik,k,djk->dij", J, S, J) + missed
        B = np.einsum("dek,k,djk->dej", g, S, J)
        v = np.einsum("dek,k,dek->de", g, S, g)
        if n:
            seen = K[:, :n, :n] + np.diag(self.noise**2 / before.seeds + 1e-10)
            gain = np.linalg.solve(seen, np.concatenate([K[:, :n, n:], B[:, :, :n].transpose(0, 2, 1)], axis=2))
            P = len(pool)
            v = v - np.einsum("den,dne->de", B[:, :, :n], gain[:, :, P:])
            B = B[:, :, n:] - np.einsum("den,dnp->dep", B[:, :, :n], gain[:, :, :P])
            K = K[:, n:, n:] - np.einsum("dnp,dnq->dpq", K[:, :n, n:], gain[:, :, :P])
        return Covariances(K, B, np.maximum(v, 1e-12), rest, self.noise**2)

    def _missed(self, design: Design) -> Floats:
        """Covariance of what the model misses: smooth over ln size and ln depth, and each depth's own."""
        far_s, far_x = (np.subtract.outer(column, column) for column in (design.s, design.x))
        smooth = np.exp(-((far_s / LENGTHS[0]) ** 2 + (far_x / LENGTHS[1]) ** 2) / 2)
        return np.asarray(self.misfit[0] ** 2 * smooth + self.misfit[1] ** 2 * (np.abs(far_x) < 1e-6))


@dataclass(eq=False)
class Covariances:
    """Of the pool's runs (K), with the target (B) and of the target (v), for each draw; `take` conditions on a run."""

    K: Floats  # (D, P, P), without a run's own noise
    B: Floats  # (D, E, P)
    v: Floats  # (D, E)
    rest: Floats  # (E,): variance of the target that no run lowers
    noise2: float

    def copy(self) -> "Covariances":
        """One that can be conditioned by itself."""
        return Covariances(self.K.copy(), self.B.copy(), self.v.copy(), self.rest, self.noise2)

    def gains(self, end: int) -> Floats:
        """How much each run of the pool would lower ln of the target's standard deviation: the mean over draws."""
        spread = np.einsum("dpp->dp", self.K) + self.noise2
        lower = self.B[:, end] ** 2 / np.maximum(spread, 1e-300)
        share = np.minimum(lower / (self.v[:, end] + self.rest[end])[:, None], 1 - 1e-9)
        return np.asarray(-np.log1p(-share).mean(axis=0) / 2)

    def take(self, run: int) -> None:
        """As if this run had been run."""
        column = self.K[:, :, run].copy()
        scale = 1 / (column[:, run] + self.noise2)
        target = self.B[:, :, run].copy()
        self.v = np.maximum(self.v - target**2 * scale[:, None], 1e-12)
        self.B = self.B - np.einsum("de,dp,d->dep", target, column, scale)
        self.K = self.K - np.einsum("dp,dq,d->dpq", column, column, scale)

    def log_sd(self, end: int) -> float:
        """ln of the target's standard deviation: the mean over draws."""
        return float(np.log(self.v[:, end] + self.rest[end]).mean() / 2)

    def floor(self, end: int) -> float:
        """`log_sd` if every run of the pool were repeated without end."""
        K = self.K + np.eye(self.K.shape[1]) * (1e-4 * self.noise2 + 1e-12)
        lower = np.einsum("dp,dp->d", self.B[:, end], np.linalg.solve(K, self.B[:, end][:, :, None])[:, :, 0])
        return float(np.log(np.maximum(self.v[:, end] - lower, 1e-12) + self.rest[end]).mean() / 2)


def outlook_of(fit: JointFit | None, before: Places, pool: Places, *, draws: int = DRAWS, seed: int = 0) -> Outlook:
    """What the fit of the runs before leaves open; without a fit, what is assumed of any sweep."""
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
    if "embeddings" in names:
        sd[names.index("embeddings")] = fit.priors["embeddings"].sd if fit and "embeddings" in fit.priors else 0.05
    usable = fit is not None and len(fit.resamples) >= FEWEST_DRAWS
    theta = _prior_draws(names, pool, draws, seed)
    noise = ASSUMED_NOISE
    misfit = (ASSUMED_MISFIT * noise, ASSUMED_MISFIT * noise)
    line = _line(whole, centre, centre_tokens)
    cell = CELL_SHARE
    if fit is not None:
        noise, misfit = fit.noise, fit.misfit
        if fit.centre_tokens is not None:
            line = fit.tokens_line or (0.0, 0.0)
        if fit.seed_noise is not None:
            cell = float(np.clip(1 - (fit.seed_noise / max(fit.noise, 1e-12)) ** 2, 0.05, 0.95))
    if usable and fit is not None:
        rows = np.array(fit.resamples)[np.linspace(0, len(fit.resamples) - 1, draws).astype(int)]
        for i, name in enumerate(names):
            if name in fit.names:
                theta[:, i] = rows[:, fit.names.index(name)]
    own = noise * math.sqrt(1 - cell)
    return Outlook(
        names, theta, sd, centre, centre_tokens, share_mean, line, own, noise * math.sqrt(cell), misfit, not usable
    )


def _prior_draws(names: Sequence[str], pool: Places, number: int, seed: int) -> Floats:
    """Parameters as they may be before any run: the best depth at the centre somewhere among the depths."""
    random = np.random.default_rng(seed)
    x = np.log(pool.depth)
    middle, reach = (x.max() + x.min()) / 2, float(np.ptp(x))
    means = {name: PRIORS[name][0] for name in names}
    spreads = {name: 0.5 * PRIORS[name][1] for name in names}
    means |= {"level": 0.7, "depth": middle, "curvature": math.log(ASSUMED_CURVATURE)}
    spreads |= {"level": 0.0, "depth": reach / 6, "curvature": CURVATURE_SPREAD}
    if "embeddings" in means:
        means["embeddings"], spreads["embeddings"] = -0.05, 0.0
    theta = np.array([means[name] + spreads[name] * random.normal(size=number) for name in names]).T
    theta[:, list(names).index("curvature")] = np.exp(theta[:, list(names).index("curvature")])
    return theta


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
