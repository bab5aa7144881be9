"""A random-effects meta-analysis of few sets, by its likelihood and stated priors on the variation between sets.

    yᵢ ~ N(Xᵢ·θᵢ, Vᵢ),   θᵢ ~ N(μ, diag(τ²)),   τⱼ ~ half-normal(scaleⱼ),   μ flat

yᵢ are a set's estimates and Vᵢ their covariance; τ is how much sets truly differ. With two or three sets the data
hardly say how large τ is: restricted maximum likelihood often gives 0, as if sets did not differ, and the t interval of
Hartung and Knapp with one degree of freedom is ±12.7 standard errors. So τ has a weakly informative prior and is summed
over on a grid of its quantiles. A new set differs from the mean by τ as well: that is the interval to plan with.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deepwide.answers import Interval
from deepwide.quantities import Floats

POINTS = 24  # of the grid, for each τ
DRAWS = 40_000


@dataclass(frozen=True, eq=False)
class RandomEffects:
    """The posterior as draws: of the mean over sets, and of a new set."""

    mean: Floats  # (draws, k)
    new: Floats
    between: Floats  # τ

    def interval(self, column: int, of: str = "new") -> Interval:
        """The median and the middle 95%, of the mean over sets or of a new set."""
        draws = {"mean": self.mean, "new": self.new, "between": self.between}[of][:, column]
        low, middle, high = np.quantile(draws, (0.025, 0.5, 0.975))
        return Interval(float(middle), float(low), float(high))

    def moved(self, level: int, slope: int, far: float) -> "RandomEffects":
        """The same with a level so far along its slope."""
        columns = []
        for draws in (self.mean, self.new):
            along = draws.copy()
            along[:, level] += far * draws[:, slope]
            columns.append(along)
        return RandomEffects(columns[0], columns[1], self.between)


def combine(
    estimates: Sequence[Floats], designs: Sequence[Floats], covariances: Sequence[Floats], scales: Sequence[float]
) -> RandomEffects:
    """The posterior of μ and of a new set, given each set's estimates, design and covariance.

    >>> one = combine([np.array([1.0])], [np.eye(1)], [np.eye(1) * 1e-6], [1e-6])
    >>> round(one.interval(0).value, 3)
    1.0
    """
    k = len(scales)
    nodes = [NormalDist().inv_cdf(0.5 + (i + 0.5) / (2 * POINTS)) for i in range(POINTS)]
    T = np.stack(np.meshgrid(*(np.multiply(nodes, scale) ** 2 for scale in scales), indexing="ij"), -1).reshape(-1, k)
    A, b, log = np.zeros((len(T), k, k)), np.zeros((len(T), k)), np.zeros(len(T))
    for y, X, V in zip(estimates, designs, covariances, strict=True):
        S = V + np.einsum("ij,gj,kj->gik", X, T, X)
        inverse = np.linalg.inv(S)
        A += np.einsum("ji,gjk,kl->gil", X, inverse, X)
        b += np.einsum("ji,gjk,k->gi", X, inverse, y)
        log -= (np.linalg.slogdet(S)[1] + np.einsum("i,gij,j->g", y, inverse, y)) / 2
    C = np.linalg.inv(A)
    mean = np.einsum("gij,gj->gi", C, b)
    log += np.einsum("gi,gi->g", mean, b) / 2 - np.linalg.slogdet(A)[1] / 2
    weights = np.exp(log - log.max())
    random = np.random.default_rng(0)
    which = random.choice(len(T), size=DRAWS, p=weights / weights.sum())
    roots = np.linalg.cholesky(C)
    mu = mean[which] + np.einsum("nij,nj->ni", roots[which], random.normal(size=(DRAWS, k)))
    tau = np.sqrt(T[which])
    return RandomEffects(mu, mu + tau * random.normal(size=(DRAWS, k)), tau)


def spread(draws: Floats) -> float:
    """The standard deviation of the normal whose middle 95% is as wide as that of the draws."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(high - low) / (2 * NormalDist().inv_cdf(0.975))


def log_density(value: float, mean: float, variance: float) -> float:
    """Of a normal.

    >>> round(log_density(0, 0, 1), 3)
    -0.919
    """
    return -0.5 * (math.log(2 * math.pi * variance) + (value - mean) ** 2 / variance)
