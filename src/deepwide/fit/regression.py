"""Least squares for runs: losses that are only known from below, seeds that are paired, errors by cell and by resample.

Legend: y ln loss, X design (runs × parameters), θ parameters. Runs of one cell (same shape, same tokens) differ in the
seed; what the model misses they miss together, so the cell, not the run, is the unit of every error.
"""

from dataclasses import dataclass

import numpy as np

from deepwide.arrays import Floats, Integers, Numbers
from deepwide.errors import DeepwideError

STEPS = 200


@dataclass(frozen=True, eq=False)
class Regression:
    """θ with its covariance, and what it takes to resample it."""

    X: Floats
    y: Floats  # for a diverged run, the bound that its loss exceeds
    censored: Numbers
    cells: Integers
    theta: Floats
    covariance: Floats
    dof: int  # cells beyond the parameters
    noise: float  # of a single cell

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
        """The diagonal of X (XᵀX)⁻¹ Xᵀ, summed over the runs of a cell: 1 when the cell decides its own fit."""
        hat = np.einsum("ij,ij->i", self.X, np.linalg.pinv(self.X).T)
        return np.asarray(np.bincount(self.cells, hat)[self.cells])

    def resample(self, number: int, seed: int) -> Floats:
        """θ for so many wild resamples: each cell's residuals keep together and change sign at random.

        Residuals are first divided by √(1 − leverage) (HC2, MacKinnon & White 1985), since a fit bends towards the
        cells that have most of it. Diverged runs keep their bounds.
        """
        draw = np.random.default_rng(seed)
        cells = np.unique(self.cells, return_inverse=True)[1]
        scaled = self.residuals / np.sqrt(np.clip(1 - self.leverage, 0.05, 1))
        signs = draw.choice([-1.0, 1.0], size=(number, cells.max() + 1))
        ys = np.where(self.censored, self.y, self.fitted + scaled * signs[:, cells])
        if not self.censored.any():
            return np.asarray(ys @ np.linalg.pinv(self.X).T)
        sigma = max(self.noise, 1e-12)
        return np.stack([solve(self.X, y, self.censored, sigma) for y in ys])


def regress(X: Floats, y: Floats, cells: Integers, censored: Numbers, nuisance: int = 0) -> Regression:
    """Fit y = Xθ; the last `nuisance` columns are seeds' effects, which cost no cell.

    With balanced seeds the errors are the classical ones of a regression on cell means.
    """
    k = X.shape[1]
    rank = np.linalg.matrix_rank(X)
    if rank < k:
        raise DeepwideError(
            f"these runs do not determine the fit: {k} parameters, of which they tell apart {rank}. "
            "More sizes or depths are needed."
        )
    theta = solve(X, y, censored, None)
    numbers = np.unique(cells, return_inverse=True)[1]
    residuals = np.where(censored, np.maximum(y - X @ theta, 0.0), y - X @ theta)
    count = np.bincount(numbers)
    mean = np.bincount(numbers, residuals) / count
    observed = np.bincount(numbers, ~censored) > 0
    dof = int(observed.sum()) - (k - nuisance)
    between = float(np.sum(count * mean**2) / dof) if dof > 0 else float("nan")
    covariance = between * np.linalg.inv(X.T @ X)
    noise = (between / float(np.mean(count))) ** 0.5 if dof > 0 else float("nan")
    return Regression(X, y, censored, cells, theta, np.asarray(covariance, dtype=float), max(dof, 0), noise)


def solve(X: Floats, y: Floats, censored: Numbers, sigma: float | None) -> Floats:
    """θ of greatest likelihood when some y are only lower bounds (Tobin 1958), by EM.

    A censored value is replaced by its mean given that it exceeds its bound, and the fit repeated until it stands.
    """
    pinv = np.linalg.pinv(X)
    if not censored.any():
        return np.asarray(pinv @ y)
    from scipy.stats import norm

    free = ~censored
    theta = np.linalg.lstsq(X[free], y[free])[0] if np.linalg.matrix_rank(X[free]) == X.shape[1] else pinv @ y
    for _ in range(STEPS):
        fitted = X @ theta
        spread = sigma or max(float(np.sqrt(np.mean((y - fitted)[free] ** 2))), 1e-9)
        beyond = (y - fitted) / spread
        expected = fitted + spread * np.exp(norm.logpdf(beyond) - norm.logsf(beyond))
        new = pinv @ np.where(censored, np.maximum(expected, y), y)
        if np.max(np.abs(X @ (new - theta))) < 1e-10:
            return np.asarray(new)
        theta = new
    return np.asarray(theta)


def seed_columns(seed: Integers) -> Floats:
    """One column a seed beyond the first, centred, so that what a seed shares across all cells is not noise."""
    levels = np.unique(seed)
    columns = np.array([(seed == level).astype(float) for level in levels[1:]]).reshape(len(levels) - 1, len(seed)).T
    return columns - columns.mean(axis=0, keepdims=True) if len(levels) > 1 else columns
