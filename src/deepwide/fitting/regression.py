"""Least squares for runs: losses that are only known from below, seeds that are paired, errors by group and resample.

Legend: y ln loss, X design (runs × parameters), θ parameters. Runs of one group (same shape, same tokens) differ in the
seed; what the model misses they miss together, so the group, not the run, is the unit of every error. The noise is the
same everywhere, or one for each stratum of groups (in our fits a depth): each is then weighted by its own, estimated by
repeating the fit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np

from deepwide.errors import DeepwideError, quoted
from deepwide.quantities import Floats, Integers, Numbers


def t95(dof: float) -> float:
    """Student's two-sided 95% quantile.

    >>> round(t95(10), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(dof, 0.975))


def as_tuples(matrix: Any) -> tuple[tuple[float, ...], ...]:
    """A matrix as the tuples that a frozen model holds."""
    return tuple(map(tuple, np.asarray(matrix, dtype=float).tolist()))


def span(column: Floats) -> tuple[float, float]:
    """Least and largest."""
    return float(column.min()), float(column.max())


def span_known(column: Floats) -> tuple[float, float] | None:
    """Least and largest of what is known, None where nothing is."""
    known: Floats = column[~np.isnan(column)]
    return span(known) if known.size else None


def variance_inflation(column: Floats, others: Sequence[Floats]) -> float:
    """How many times the variance of its coefficient is that without the others: 1/(1 − R²).

    >>> x = np.arange(5.0)
    >>> variance_inflation(x, [np.ones(5), np.array([1.0, -2, 2, -2, 1])])
    1.0
    """
    X = np.column_stack(list(others))
    off = column - X @ np.linalg.lstsq(X, column)[0]
    spread = column - column.mean()
    return (
        round(float(spread @ spread) / max(float(off @ off), 1e-300), 6)
        if off @ off > 1e-12 * (spread @ spread)
        else math.inf
    )


def check_positive(**numbers: float | None) -> None:
    """Refuse what is no size: a list, a number that is not above 0."""
    for name, value in numbers.items():
        if value is None:
            continue
        if np.ndim(value):
            raise DeepwideError(
                f"predict takes one {name} at a time: use predict_rows for many, or a transition's curves.loss."
            )
        if not (value > 0 and math.isfinite(value)):
            raise DeepwideError(f"{name} must be above 0, not {value:g}.")


def check_noise(noise: str) -> None:
    """Refuse a word that says nothing about the noise."""
    if noise not in ("same", "depth"):
        raise DeepwideError(f"noise is the same for all runs or each depth's own: same or depth, not {quoted(noise)}.")


def check_resamples(bootstrap: int, seed: int) -> None:
    """Refuse a number of resamples, or a seed of theirs, that is no whole number from 0 on."""
    for name, value in (("the number of resamples (bootstrap)", bootstrap), ("the seed", seed)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise DeepwideError(f"{name} must be a whole number of at least 0, not {quoted(value)}.")


STEPS = 200  # of EM, at most
ROUNDS = 20  # of weighting by the noise that the last fit left
FAR = 1e5  # standard deviations
CHUNK = 4_000_000  # numbers held at once
QUIETEST = 1e-4  # a stratum's variance is taken to be at least this share of all strata's together

Noise = Literal["same", "depth"]


@dataclass(frozen=True, eq=False)
class Regression:
    """θ with its covariance, and what it takes to resample it."""

    X: Floats
    y: Floats  # for a diverged run, the bound that its loss exceeds
    censored: Numbers
    groups: Integers
    root: Floats  # of each run's weight: 1 where the noise is the same
    theta: Floats
    covariance: Floats
    dof: int  # groups beyond the parameters
    noise: float  # of a single group
    strata: Integers
    noises: Floats  # as above, of each stratum
    dofs: Floats
    own_noise: bool

    @property
    def fitted(self) -> Floats:
        return self.X @ self.theta

    @property
    def residuals(self) -> Floats:
        """y − Xθ; none for a diverged run that the fit puts above its bound."""
        raw = self.y - self.fitted
        return np.where(self.censored, np.maximum(raw, 0.0), raw)

    @property
    def leverage(self) -> Floats:
        """The diagonal of X (XᵀX)⁻¹ Xᵀ, summed over the runs of a group: 1 when the group decides its own fit."""
        return np.asarray(np.bincount(self.groups, _hat(self.X * self.root[:, None]))[self.groups])

    @property
    def between_seeds(self) -> float | None:
        """The noise between the seeds of a group; None where none was repeated. The rest of the noise is misfit."""
        finished = ~self.censored
        groups = np.unique(self.groups[finished], return_inverse=True)[1]
        count = np.bincount(groups)
        repeats = len(groups) - len(count)
        residuals = self.residuals[finished]
        off = residuals - (np.bincount(groups, residuals) / count)[groups]
        return float((off @ off / repeats) ** 0.5) if repeats else None

    @property
    def unequal(self) -> float:
        """The p-value of Bartlett's test (1937) of equal noises; 1 where fewer than two can be estimated."""
        from scipy.special import chdtrc

        estimable = (self.dofs >= 1) & (self.noises > 1e-9)  # less is rounding, in simulated data
        f, s2 = self.dofs[estimable], self.noises[estimable] ** 2
        if len(f) < 2:
            return 1.0
        together = f.sum() * np.log(np.sum(f * s2) / f.sum()) - np.sum(f * np.log(s2))
        return float(chdtrc(len(f) - 1, together / (1 + (np.sum(1 / f) - 1 / f.sum()) / (3 * (len(f) - 1)))))

    def resample(self, number: int, seed: int) -> Floats:
        """θ for so many wild resamples: each group's residuals keep together and change sign at random.

        Residuals are first divided by √(1 − leverage) (HC2, MacKinnon & White 1985), since a fit bends towards the
        groups that have most of it. Diverged runs keep their bounds.
        """
        draw = np.random.default_rng(seed)
        groups = np.unique(self.groups, return_inverse=True)[1]
        scaled = self.residuals / np.sqrt(np.clip(1 - self.leverage, 0.05, 1))
        free, count = ~self.censored, int(groups.max()) + 1
        X = self.X * self.root[:, None]
        pinv: Floats = np.asarray(np.linalg.pinv(X), dtype=float)
        start = pinv @ np.where(free, self.fitted * self.root, 0.0)
        # What each group adds to θ: with these, no resample needs a pass over the runs.
        parts = np.stack([np.bincount(groups, row * scaled * self.root * free, count) for row in pinv], axis=1)
        signs = (draw.choice([-1.0, 1.0], size=(len(rows), count)) for rows in _chunks(number, count))
        moved: list[Floats] = [np.zeros((0, len(start))), *(np.asarray(sign @ parts, dtype=float) for sign in signs)]
        thetas: Floats = np.asarray(start + np.concatenate(moved), dtype=float)
        if free.all():
            return np.asarray(thetas)
        lost, sigma = self.censored, max(self.noise, 1e-12)
        bound = self.y[lost] * self.root[lost]
        return _above_bounds(X[lost], pinv[:, lost], bound, thetas, thetas + pinv[:, lost] @ bound, sigma)

    def most_influential(self, number: int) -> Integers:
        """The groups whose leaving would move θ most, in units of its errors, by the first step of a refit."""
        numbers, groups = np.unique(self.groups, return_inverse=True)
        if len(numbers) <= number:
            return np.asarray(numbers)
        X = self.X * self.root[:, None]
        pinv = np.linalg.pinv(X)
        pull = self.residuals * self.root / np.clip(1 - self.leverage, 1e-6, 1)
        errors = np.sqrt(np.einsum("ij,ij->i", pinv, pinv))
        moved = np.stack([np.bincount(groups, row * pull) for row in pinv]) / np.maximum(errors, 1e-300)[:, None]
        return np.asarray(np.sort(numbers[np.argsort(-np.abs(moved).max(axis=0), kind="stable")[:number]]))


def _chunks(number: int, width: int) -> list[range]:
    """Rows in parts of a few million numbers."""
    step = max(1, CHUNK // max(width, 1))
    return [range(i, min(i + step, number)) for i in range(0, number, step)]


def _above_bounds(X: Floats, pinv: Floats, bound: Floats, without: Floats, thetas: Floats, sigma: float) -> Floats:
    """`censored_least_squares` of many resamples at once: X, pinv and bound are of the censored rows alone, `without`
    is what the others make of θ."""
    for _ in range(STEPS):
        fitted = thetas @ X.T
        new = without + np.maximum(expected_above(fitted, bound, sigma), bound) @ pinv.T
        moved = np.max(np.abs((new - thetas) @ X.T))
        thetas = new
        if moved < 1e-10:
            break
    return np.asarray(thetas)


def regress(
    X: Floats,
    y: Floats,
    groups: Integers,
    censored: Numbers,
    nuisance: int = 0,
    strata: Integers | None = None,
    own_noise: bool = False,
) -> Regression:
    """Fit y = Xθ; the last `nuisance` columns are seeds' effects, which cost no degree of freedom.

    With balanced seeds the errors are the classical ones of a regression on group means. `strata` numbers the runs
    whose noise is reported together, and with `own_noise` is their own; a stratum too small to estimate it gets that of
    all.
    """
    k = X.shape[1]
    rank = np.linalg.matrix_rank(X)
    if rank < k:
        raise DeepwideError(
            f"these runs do not determine the fit: of its {k} parameters they tell apart {rank}; more sizes or depths "
            "are needed."
        )
    strata = np.zeros(len(y), dtype=np.int64) if strata is None else strata
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    count = np.bincount(numbers)
    observed = np.bincount(numbers, ~censored) > 0
    dof = int(observed.sum()) - (k - nuisance)
    root = np.ones(len(y))
    for _ in range(ROUNDS if own_noise else 1):
        theta = censored_least_squares(X * root[:, None], y * root, censored, None)
        residuals = np.where(censored, np.maximum(y - X @ theta, 0.0), y - X @ theta)
        squares = count * (np.bincount(numbers, residuals) / count) ** 2
        spent = np.bincount(strata, _hat(X[:, : k - nuisance] * root[:, None]))
        dofs = np.asarray(np.bincount(strata[first], observed) - spent)
        between = float(squares.sum() / dof) if dof > 0 else float("nan")
        variances = np.where(dofs < 1, between, np.bincount(strata[first], squares) / np.maximum(dofs, 1.0))
        if own_noise and between > 0:
            root = np.sqrt(between / np.maximum(variances, QUIETEST * between))[strata]
    weighted = X * root[:, None]
    covariance = between * np.linalg.inv(weighted.T @ weighted)
    single = float(np.mean(count)) ** 0.5
    return Regression(
        X, y, censored, groups, root, theta, np.asarray(covariance, dtype=float), max(dof, 0),
        between**0.5 / single if dof > 0 else float("nan"), strata, np.sqrt(variances) / single, dofs,
        own_noise,
    )  # fmt: skip


def _hat(X: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", X, np.linalg.pinv(X).T))


def censored_least_squares(X: Floats, y: Floats, censored: Numbers, sigma: float | None) -> Floats:
    """θ of greatest likelihood when some y are only lower bounds (Tobin 1958), by EM.

    A censored value is replaced by its mean given that it exceeds its bound, and the fit repeated until it converges.
    """
    pinv = np.linalg.pinv(X)
    if not censored.any():
        return np.asarray(pinv @ y)
    free = ~censored
    theta = np.linalg.lstsq(X[free], y[free])[0] if np.linalg.matrix_rank(X[free]) == X.shape[1] else pinv @ y
    for _ in range(STEPS):
        fitted = X @ theta
        spread = sigma or max(float(np.sqrt(np.mean((y - fitted)[free] ** 2))), 1e-9)
        new = pinv @ np.where(censored, np.maximum(expected_above(fitted, y, spread), y), y)
        if np.max(np.abs(X @ (new - theta))) < 1e-10:
            return np.asarray(new)
        theta = new
    return np.asarray(theta)


def expected_above(mean: Floats, bound: Floats, spread: float) -> Floats:
    """The mean of a normal value given that it exceeds a bound."""
    from scipy.stats import norm

    beyond = (bound - mean) / spread
    near = np.clip(beyond, -FAR, FAR)
    # Far beyond its bound the mean excess is the distance itself, and the difference of logarithms is rounding.
    excess = np.where(beyond > FAR, beyond, np.exp(norm.logpdf(near) - norm.logsf(near)))
    return np.asarray(mean + spread * excess)


def seed_columns(seed: Integers) -> Floats:
    """One column per seed beyond the first, centred, so that what a seed shares across all groups is not noise."""
    levels = np.unique(seed)
    columns = np.array([(seed == level).astype(float) for level in levels[1:]]).reshape(len(levels) - 1, len(seed)).T
    return columns - columns.mean(axis=0, keepdims=True) if len(levels) > 1 else columns
