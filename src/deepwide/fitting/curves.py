"""Loss against size, one curve per depth: ln loss is a parabola in ln size, fitted jointly over depths and seeds.

Legend: x = ln(size / centre), δ(x) = ln loss of the shallower − ln loss of the deeper: above 0 the deeper wins.
"""

import math
from typing import NamedTuple

import numpy as np

from deepwide.answers import Answer, Interval
from deepwide.errors import DeepwideError
from deepwide.fitting.regression import Noise, Regression, as_tuples, regress, seed_columns, t95
from deepwide.fitting.runs import Counting, Runs
from deepwide.quantities import ArrayLike, Floats

OWN_BEND = 5  # sizes from which a depth has a curvature of its own
LEAST_SIZES = 3


class Curves(Answer):
    """The fitted curves: for depth i, θ[3i] + θ[3i+1]·x + θ[3i+2]·x²; a bend that depths share is in each."""

    depths: tuple[int, ...]
    ranges: tuple[tuple[float, float], ...]  # the sizes that each depth was trained at
    sizes: tuple[tuple[float, ...], ...]
    centre: float
    theta: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    dof: int
    noise: float
    noises: tuple[float, ...] = ()  # of each depth
    dofs: tuple[float, ...] = ()  # of each depth's noise, where it has its own

    def index(self, depth: int) -> int:
        """Which curve is that depth's."""
        if depth not in self.depths:
            raise DeepwideError(f"no curve was fitted for depth {depth}: there are {', '.join(map(str, self.depths))}.")
        return self.depths.index(depth)

    def gradient(self, depth: int, size: ArrayLike) -> Floats:
        """∂ ln loss / ∂θ at each size: (sizes, 3·depths)."""
        x = np.log(np.atleast_1d(np.asarray(size, dtype=float)) / self.centre)
        gradient = np.zeros((len(x), 3 * len(self.depths)))
        i = 3 * self.index(depth)
        gradient[:, i : i + 3] = np.column_stack([np.ones_like(x), x, x**2])
        return gradient

    def difference(self, shallow: int, deep: int, size: ArrayLike) -> tuple[Floats, Floats]:
        """δ and its standard error at each size."""
        g = self.gradient(shallow, size) - self.gradient(deep, size)
        return g @ np.array(self.theta), np.sqrt(self._variance(g))

    def freedom(self, shallow: int, deep: int, size: ArrayLike) -> Floats:
        """The degrees of freedom of δ's error; where depths have their own noise, by Welch (1947)."""
        if not self.dofs:
            return np.full(np.size(size), float(self.dof))
        depths = (shallow, deep)
        parts = np.array([self._variance(self.gradient(depth, size)) for depth in depths])
        dofs = np.array([[max(self.dofs[self.index(depth)], 1e-3)] for depth in depths])
        return np.asarray(parts.sum(axis=0) ** 2 / (parts**2 / dofs).sum(axis=0))

    def same_curve(self, shallow: int, deep: int) -> float:
        """The p-value of an F test that the two depths have one and the same curve."""
        from scipy.special import fdtrc

        D = np.zeros((3, len(self.theta)))
        for depth, sign in ((shallow, 1.0), (deep, -1.0)):
            i = 3 * self.index(depth)
            D[:, i : i + 3] = sign * np.eye(3)
        gap, C = D @ np.array(self.theta), D @ np.array(self.covariance) @ D.T
        rank = int(np.linalg.matrix_rank(C, hermitian=True))  # 2 where they share their bend
        dof = min(self.dofs[self.index(depth)] for depth in (shallow, deep)) if self.dofs else self.dof
        return float(fdtrc(rank, max(dof, 1e-3), gap @ np.linalg.pinv(C, hermitian=True) @ gap / max(rank, 1)))

    def loss(self, depth: int, size: ArrayLike) -> list[Interval]:
        """The curve with its 95% band."""
        g = self.gradient(depth, size)
        dof = self.dofs[self.index(depth)] if self.dofs else self.dof
        error = t95(dof) * np.sqrt(self._variance(g)) if dof >= 1 else np.full(len(g), np.nan)
        middle = g @ np.array(self.theta)
        return [
            Interval(math.exp(m), *((math.exp(m - e), math.exp(m + e)) if not math.isnan(e) else (None, None)))
            for m, e in zip(middle.tolist(), error.tolist(), strict=True)
        ]

    def common(self, shallow: int, deep: int) -> tuple[float, float]:
        """The sizes at which both depths have data around."""
        (low, high), (low2, high2) = (self.ranges[self.index(depth)] for depth in (shallow, deep))
        return max(low, low2), min(high, high2)

    def _variance(self, g: Floats) -> Floats:
        variance = np.einsum("ij,jk,ik->i", g, np.array(self.covariance), g)
        return np.asarray(np.maximum(variance, 0.0))


class CurveFit(NamedTuple):
    """The curves, the regression behind them, and the matrix that takes its parameters to the curves' θ."""

    curves: Curves
    regression: Regression
    into: Floats


def fit_curves(runs: Runs, counting: Counting = "block", noise: Noise = "same") -> CurveFit:
    """One curve for each depth that finished at three sizes or more."""
    runs.need("depth")
    size = runs.size(counting)
    if np.any(runs.depth != np.round(runs.depth)):
        raise DeepwideError("depth must be whole numbers of layers.")
    tokens = runs.tokens[~np.isnan(runs.tokens)]
    if tokens.size and tokens.max() > 1.05 * tokens.min():
        raise DeepwideError(
            "the runs were trained on different numbers of tokens, so their losses are not one curve against size: "
            "fit one length at a time (where tokens=NUMBER), or fit a surface."
        )
    trained = [(int(depth), np.unique(size[(runs.depth == depth) & ~runs.diverged])) for depth in np.unique(runs.depth)]
    trained = [(depth, sizes) for depth, sizes in trained if len(sizes) >= LEAST_SIZES]
    if len(trained) < 2:
        raise DeepwideError(
            f"curves of loss against size need at least two depths with {LEAST_SIZES} finished sizes each; "
            f"{runs.source or 'these runs'} has {len(trained)}."
        )
    depths = tuple(depth for depth, _ in trained)
    enough = np.isin(runs.depth, depths)
    runs, size = runs.select(enough), size[enough]
    centre = float(np.exp(np.mean(np.log(size))))
    x = np.log(size / centre)
    own = [len(sizes) >= OWN_BEND for _, sizes in trained]
    # Columns: level and slope of each depth, a bend for each that has sizes enough, one bend for the others together.
    columns: list[Floats] = []
    into = np.zeros((3 * len(depths), 0))

    def column(values: Floats, *places: int) -> None:
        nonlocal into
        columns.append(values)
        unit = np.zeros((3 * len(depths), 1))
        unit[list(places)] = 1.0
        into = np.hstack([into, unit])

    here = [(runs.depth == depth).astype(float) for depth in depths]
    for i, mine in enumerate(here):
        column(mine, 3 * i)
        column(mine * x, 3 * i + 1)
        if own[i]:
            column(mine * x**2, 3 * i + 2)
    shared = [i for i in range(len(depths)) if not own[i]]
    if shared:
        column(sum((here[i] for i in shared), np.zeros_like(x)) * x**2, *(3 * i + 2 for i in shared))
    seeds = seed_columns(runs.seed)
    X = np.column_stack([*columns, seeds])
    y = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    strata = np.searchsorted(depths, runs.depth)
    own_noise = noise == "depth"
    regression = regress(X, y, runs.groups, runs.diverged, seeds.shape[1], strata, own_noise)
    into = np.hstack([into, np.zeros((len(into), seeds.shape[1]))])
    curves = Curves(
        depths=depths,
        ranges=tuple((float(sizes.min()), float(sizes.max())) for _, sizes in trained),
        sizes=tuple(tuple(map(float, sizes)) for _, sizes in trained),
        centre=centre,
        theta=tuple(map(float, into @ regression.theta)),
        covariance=as_tuples(np.nan_to_num(into @ regression.covariance @ into.T)),
        dof=regression.dof,
        noise=0.0 if math.isnan(regression.noise) else regression.noise,
        noises=tuple(regression.noises.tolist()),
        dofs=tuple(regression.dofs.tolist()) if own_noise else (),
    )
    return CurveFit(curves, regression, into)
