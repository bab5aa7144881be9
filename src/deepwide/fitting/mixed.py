"""Linear regression on cells with Gaussian priors, unknown variance components and correlated misfit.

    y = Xθ + u + ε,   θ ~ N(μ, diag(s²)) (s = ∞: flat),   cov(u + ε) = σ²·[w·M + (1 − w)·I + Σ rⱼ²·Kⱼ]

A cell is all runs that differ in nothing but the seed, y its mean ln loss, M the covariance of these means per unit of
seed variance (1/seeds on the diagonal). w is the seeds' share of a single run's variance, the rest belongs to the cell;
K are correlation matrices of what the model misses smoothly. Nobody knows w and r, and one estimate of them would be
taken for the truth, so they are summed over on a grid: the posterior of θ is a mixture of Student's t.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepwide.fitting.regression import seed_columns
from deepwide.quantities import Floats, Integers, Numbers

ROUNDS = 4  # of finding σ² beside priors that are not in its units
SHARES = (1.0, 0.7, 0.4, 0.2, 0.08, 0.02)  # w, where cells were repeated
# r of a smooth misfit and of each depth's own offset, with what is thought of it before any run: few sweeps could
# exclude a misfit as large as their noise, and without this doubt all intervals would be as wide as if it were there.
MISFIT = ((0.0, 0.7), (0.5, 0.15), (1.0, 0.1), (2.0, 0.05))
FEWER = 120  # cells above which the grid is thinned


class Cells(NamedTuple):
    """The mean of each cell, its covariance per unit of seed variance, and what is left within cells."""

    first: Integers  # a row of each cell
    y: Floats
    M: Floats
    within: float  # sum of squares
    within_dof: int


def cell_means(y: Floats, groups: Integers, seed: Integers, censored: Numbers) -> Cells:
    """The cells' means, with what a seed shares across all cells removed.

    A censored value counts in its cell's mean and not in the noise within it.
    """
    _, first, cell = np.unique(groups, return_index=True, return_inverse=True)
    count = np.bincount(cell)
    effects = seed_columns(seed)
    if effects.shape[1] and len(y) > len(count):
        centred = effects - _by_cell(effects, cell, count)[cell]
        off = y - (np.bincount(cell, y) / count)[cell]
        shared = np.linalg.lstsq(centred, off)[0]
        y = y - effects @ shared
        spent = int(np.linalg.matrix_rank(centred))
        A = _by_cell(effects, cell, count)
        M = np.diag(1 / count) + A @ np.linalg.pinv(centred.T @ centred) @ A.T
    else:
        spent, M = 0, np.diag(1 / count)
    means = np.bincount(cell, y) / count
    free = ~censored
    seen = np.bincount(cell, free)
    off = (y - (np.bincount(cell, np.where(free, y, 0.0)) / np.maximum(seen, 1))[cell])[free]
    dof = int(free.sum() - len(np.unique(cell[free]))) - spent
    return Cells(first, means, M, float(off @ off) if dof > 0 else 0.0, max(dof, 0))


def _by_cell(columns: Floats, cell: Integers, count: Integers) -> Floats:
    return np.stack([np.bincount(cell, column) / count for column in columns.T], axis=1)


@dataclass(frozen=True, eq=False)
class Mixture:
    """The posterior of θ: for each point of the grid its weight, mean, scale and degrees of freedom."""

    weights: Floats  # (C,)
    means: Floats  # (C, k)
    scales: Floats  # (C, k, k): of the t, σ² included
    dof: float
    sigma2: Floats  # (C,): variance of a single run about the smooth misfit
    settings: Floats  # (C, 1 + kernels): w and r

    @property
    def mean(self) -> Floats:
        return np.asarray(self.weights @ self.means)

    @property
    def covariance(self) -> Floats:
        """Of the whole mixture; of a t with 2 degrees of freedom or fewer, its scale."""
        spread = self.means - self.mean
        inflation = self.dof / (self.dof - 2) if self.dof > 2 else 1.0
        within = np.einsum("c,cij->ij", self.weights, self.scales) * inflation
        return np.asarray(within + np.einsum("c,ci,cj->ij", self.weights, spread, spread))

    def draw(self, number: int, seed: int) -> tuple[Floats, Integers]:
        """So many θ, and which point of the grid each is from."""
        random = np.random.default_rng(seed)
        which = np.sort(random.choice(len(self.weights), size=number, p=self.weights))
        roots = np.linalg.cholesky(_positive(self.scales))
        z = random.normal(size=(number, self.means.shape[1]))
        z *= np.sqrt(self.dof / random.chisquare(self.dof, size=number))[:, None]
        return self.means[which] + np.einsum("nij,nj->ni", roots[which], z), which


def _positive(scales: Floats) -> Floats:
    """With rounding that left a scale not quite positive undone."""
    diagonal = np.einsum("cii->ci", scales)
    return np.asarray(scales + 1e-12 * np.einsum("ci,ij->cij", diagonal, np.eye(scales.shape[1])))


def grid(cells: int, repeated: bool, kernels: int) -> tuple[Floats, Floats]:
    """The settings (w, r of each kernel) and their prior weights.

    >>> grid(24, False, 2)[0].shape
    (16, 3)
    """
    shares = (SHARES if cells <= FEWER else SHARES[::2]) if repeated else (1.0,)
    axes = [[(w, 1 / len(shares)) for w in shares], *[MISFIT] * kernels]
    points = list(itertools.product(*axes))
    settings = np.array([[value for value, _ in point] for point in points])
    return settings, np.array([math.prod(weight for _, weight in point) for point in points])


def posterior(
    cells: Cells, X: Floats, mean: Floats, sd: Floats, kernels: Sequence[Floats], settings: Floats, prior: Floats
) -> Mixture:
    """θ given everything, for each setting and its weight by the marginal likelihood.

    Priors are in the units of θ, not of σ: for each setting σ² is found by repeating the regression.
    """
    n, k = X.shape
    proper = np.isfinite(sd)
    w = settings[:, 0]
    V = w[:, None, None] * cells.M + (1 - w)[:, None, None] * np.eye(n)
    for r, K in zip(settings[:, 1:].T, kernels, strict=True):
        V = V + (r**2)[:, None, None] * K
    root = np.linalg.cholesky(V)
    both = np.linalg.solve(root, np.broadcast_to(np.column_stack([X, cells.y]), (len(w), n, k + 1)))
    Xw, yw = both[:, :, :k], both[:, :, k]
    gram, cross = np.einsum("cni,cnj->cij", Xw, Xw), np.einsum("cni,cn->ci", Xw, yw)
    dof = n - int((~proper).sum()) + cells.within_dof
    precision = np.where(proper, 1 / np.where(proper, sd, 1.0) ** 2, 0.0)
    centre = np.where(proper, mean, 0.0)
    sigma2 = np.full(len(w), _residual_variance(X, cells.y))
    for _ in range(ROUNDS):
        P = sigma2[:, None] * precision
        A = gram + np.einsum("ci,ij->cij", P, np.eye(k))
        theta = np.linalg.solve(A, (cross + P * centre)[:, :, None])[:, :, 0]
        off = yw - np.einsum("cni,ci->cn", Xw, theta)
        squares = np.einsum("cn,cn->c", off, off) + np.einsum("ci,ci->c", P, (theta - centre) ** 2) + cells.within / w
        sigma2 = np.maximum(squares / max(dof, 1), 1e-14)
    log = -np.log(np.einsum("cii->ci", root)).sum(axis=1) - cells.within_dof / 2 * np.log(w)
    log += -np.linalg.slogdet(A)[1] / 2 + np.log(P[:, proper]).sum(axis=1) / 2 - dof / 2 * np.log(sigma2)
    weights = prior * np.exp(log - log.max())
    scales = sigma2[:, None, None] * np.linalg.inv(A)
    return Mixture(weights / weights.sum(), theta, scales, float(max(dof, 1)), sigma2, settings)


def _residual_variance(X: Floats, y: Floats) -> float:
    off = y - X @ np.linalg.lstsq(X, y)[0]
    spare = max(len(y) - int(np.linalg.matrix_rank(X)), 1)
    return max(float(off @ off) / spare, 1e-10)
