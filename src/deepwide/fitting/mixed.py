"""Linear regression on cells with Gaussian priors, unknown variance components and correlated misfit.

    y = Xθ + u + ε,   θ ~ N(μ, diag(s²)) (s = ∞: flat),   cov(u + ε) = σ²·[G(w·M + (1 − w)·I)G + Σ rⱼ²·Kⱼ]

A cell is all runs that differ in nothing but the seed, y its mean ln loss, M the covariance of these means per unit of
seed variance (1/seeds on the diagonal). w is the seeds' share of a single run's variance, the rest belongs to the cell;
G = diag(e^(−hτ)) lets the noise fall with length, τ = ln tokens; K are correlation matrices of what the model misses
smoothly. Nobody knows σ, w, h and r, and one estimate of them would be taken for the truth, so they are summed over on
a grid: the posterior of θ is a mixture of normals.

σ has a prior (NOISE). Where parameters are nearly as many as cells, residuals say little about it: σ² estimated from
them was 0.58 of the truth with 8 shapes, and intervals were too narrow.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepwide.fitting.regression import seed_columns
from deepwide.quantities import Floats, Integers, Numbers

NOISE = (math.log(0.005), 1.0)  # prior of ln σ, mean and sd: 95% of sweeps have 0.07 to 3.5%
RANGE = (math.log(1e-5), math.log(0.3))  # of ln σ at first
POINTS = np.linspace(-1, 1, 9)  # of ln σ for each setting, in units of half its range
ZOOMS = 3  # times that the range is drawn closer
NEGLIGIBLE = 1e-6  # weight of a point of the grid
USUAL_NOISE = 0.01
SHARES = (1.0, 0.7, 0.4, 0.2, 0.08, 0.02)  # w, where cells were repeated
# h, where lengths differ: seeds of our own networks differ by 1.4% of loss after 2M tokens and by 0.6% after 8M (0.6),
# late checkpoints of large ones do not (0).
FALLS = ((0.0, 0.4), (0.3, 0.25), (0.6, 0.2), (0.9, 0.15))
FARTHEST = 5.0  # in ln tokens from their mean: noise falls no further, so that tokens in two units upset no arithmetic
KERNELS = 2  # the first column of a setting that is an r; before it w and h
# r of a smooth misfit and of each depth's own offset, with what is thought of it before any run: few sweeps could
# exclude a misfit as large as their noise, and without this doubt all intervals would be as wide as if it were there.
# Four times the noise is for runs that hardly have any: a bowl of two exponentials is no parabola to 0.1%.
MISFIT = ((0.0, 0.78), (0.5, 0.1), (1.0, 0.07), (2.0, 0.03), (4.0, 0.02))
# r of what all lengths of a shape share: nearly sure if they are checkpoints of one run, and a table does not say so.
# It is large beside the noise of many checkpoints: with at most 6, ten of a run said more about depth than two did.
ONE_RUN = ((0.0, 0.2), (1.0, 0.2), (2.5, 0.2), (6.0, 0.2), (15.0, 0.2))
# r of what a formula of loss in size and tokens misses at all depths: much, where checkpoints have hardly any noise.
CURVE = ((0.0, 0.25), (1.0, 0.25), (4.0, 0.25), (12.0, 0.25))
DOUBTS = {"smooth": MISFIT, "depth": MISFIT, "curve": CURVE, "run": ONE_RUN}
FEWER = 120  # cells above which the grid is thinned
MOST_RANK = 200  # of a kernel


def fall_of_noise(h: float, t: Floats | float) -> Floats:
    """e^(−hτ): the noise at these lengths over that at τ = 0; at lengths that are absurdly far, no more than there."""
    return np.asarray(np.exp(-h * np.clip(t, -FARTHEST, FARTHEST)))


class Cells(NamedTuple):
    """The mean of each cell, the covariance of these means per unit of seed variance, and what is left within each.

    The covariance is diag(M) + shared·sharedᵀ (M may also be the whole matrix).
    """

    first: Integers  # a row of each cell
    y: Floats
    M: Floats
    within: Floats  # sums of squares
    within_dof: Floats  # what seeds share takes a part of each
    shared: Floats | None = None  # (cells, seeds − 1): from removing what seeds share
    t: Floats | None = None  # ln tokens, where lengths differ

    def falling(self, h: float) -> Floats:
        """Of each cell, how its noise differs from that at τ = 0, if it falls with length as h says."""
        return np.ones(len(self.y)) if self.t is None else fall_of_noise(h, self.t)

    def between_seeds(self, h: float = 0.0) -> float | None:
        """Standard deviation between seeds, at τ = 0; None where no cell was repeated."""
        dof = float(self.within_dof.sum())
        return math.sqrt(float((self.within / self.falling(h) ** 2).sum()) / dof) if dof > 0 else None


def cell_means(y: Floats, groups: Integers, seed: Integers, censored: Numbers) -> Cells:
    """The cells' means, with what a seed shares across all cells removed.

    A censored value counts in its cell's mean and not in the noise within it.
    """
    _, first, cell = np.unique(groups, return_index=True, return_inverse=True)
    count = np.bincount(cell)
    effects = seed_columns(seed)
    spent, shared = 0, None
    if effects.shape[1] and len(y) > len(count):
        A = _by_cell(effects, cell, count)
        centred = effects - A[cell]
        off = y - (np.bincount(cell, y) / count)[cell]
        values, vectors = np.linalg.eigh(centred.T @ centred)
        identified = values > 1e-9 * values[-1]
        root = vectors[:, identified] / np.sqrt(values[identified])
        y = y - effects @ (root @ (root.T @ (centred.T @ off)))
        spent, shared = int(identified.sum()), A @ root
    means = np.bincount(cell, y) / count
    free = ~censored
    seen = np.bincount(cell, free)
    off = np.where(free, y - (np.bincount(cell, np.where(free, y, 0.0)) / np.maximum(seen, 1))[cell], 0.0)
    dof = np.maximum(seen - 1, 0.0)
    left = max(1 - spent / dof.sum(), 0.0) if dof.any() else 0.0
    within = np.bincount(cell, off**2) * (left > 0)
    return Cells(first, means, 1 / count, within, dof * left, shared)


def _by_cell(columns: Floats, cell: Integers, count: Integers) -> Floats:
    return np.stack([np.bincount(cell, column) / count for column in columns.T], axis=1)


def low_rank(column: Callable[[int], Floats], cells: int, tolerance: float = 1e-6) -> Floats:
    """U with U·Uᵀ a correlation matrix, to the tolerance, given its columns: a Cholesky factor with pivots.

    >>> U = low_rank(lambda i: np.array([[1, 0.5], [0.5, 1]])[i], 2)
    >>> np.round(U @ U.T, 6).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    left = np.ones(cells)
    factor: Floats = np.zeros((cells, 0))
    while left.max() > tolerance and factor.shape[1] < min(cells, MOST_RANK):
        i = int(left.argmax())
        new = (column(i) - factor @ factor[i]) / math.sqrt(left[i])
        factor = np.column_stack([factor, new])
        left = left - new**2
    return factor


@dataclass(frozen=True, eq=False)
class Mixture:
    """The posterior of θ: for each point of the grid its weight, mean and covariance."""

    weights: Floats  # (C,)
    means: Floats  # (C, k)
    scales: Floats  # (C, k, k): covariances
    dof: float  # cells and repeats beyond the parameters without a prior
    sigma2: Floats  # (C,): variance of a single run about the smooth misfit
    settings: Floats  # (C, 2 + kernels): w, h and r
    setting: Integers  # (C,): number of these settings among those given

    @property
    def mean(self) -> Floats:
        return np.asarray(self.weights @ self.means)

    @property
    def covariance(self) -> Floats:
        """Of the whole mixture."""
        spread = self.means - self.mean
        within = np.einsum("c,cij->ij", self.weights, self.scales)
        return np.asarray(within + np.einsum("c,ci,cj->ij", self.weights, spread, spread))

    def distance(self, one: Floats, other: Floats) -> float:
        """The greatest difference of two θ, in standard deviations."""
        return float(np.max(np.abs(one - other) / np.sqrt(np.maximum(np.diag(self.covariance), 1e-30))))

    def draw(self, number: int, seed: int) -> tuple[Floats, Integers]:
        """So many θ, and which point of the grid each is from."""
        random = np.random.default_rng(seed)
        which = evenly(self.weights, number, random)
        roots = np.linalg.cholesky(positive(self.scales))
        z = normals(number, self.means.shape[1], random)
        return self.means[which] + np.einsum("nij,nj->ni", roots[which], z), which


def strata(number: int, columns: int, random: np.random.Generator) -> Floats:
    """Numbers between 0 and 1, of which each column has one in each of `number` equal parts, in random order.

    What depends on the columns one by one then hardly varies (a Latin hypercube, McKay et al. 1979; Stein 1987).
    """
    order = random.permuted(np.tile(np.arange(number), (columns, 1)), axis=1).T
    return np.asarray((order + random.random((number, columns))) / number)


def normals(number: int, columns: int, random: np.random.Generator) -> Floats:
    """Standard normal numbers, stratified column by column."""
    from scipy.special import ndtri

    return np.asarray(ndtri(strata(number, columns, random)))


def evenly(weights: Floats, number: int, random: np.random.Generator) -> Integers:
    """So many indices in order, each as often as its weight says, give or take one (systematic resampling).

    >>> evenly(np.array([0.5, 0.25, 0.25]), 8, np.random.default_rng(0)).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    ends = np.cumsum(weights)
    at = (np.arange(number) + random.random()) / number
    return np.searchsorted(ends / ends[-1], at, side="right")


def positive(scales: Floats) -> Floats:
    """With rounding that left a scale not quite positive undone."""
    diagonal = np.einsum("cii->ci", scales)
    return np.asarray(scales + 1e-12 * np.einsum("ci,ij->cij", diagonal, np.eye(scales.shape[1])))


def grid(cells: int, repeated: bool, kernels: Iterable[str], lengths: bool = False) -> tuple[Floats, Floats]:
    """The settings (w, h, r of each kernel, by their names) and their prior weights.

    >>> grid(24, False, ("smooth", "depth"))[0].shape
    (25, 4)
    """
    names = tuple(kernels)
    many = cells > FEWER or "curve" in names
    shares = (SHARES[::2] if many else SHARES) if repeated else (1.0,)
    falls = FALLS if lengths else ((0.0, 1.0),)
    axes = [[(w, 1 / len(shares)) for w in shares], falls, *[DOUBTS[name] for name in names]]
    points = list(itertools.product(*axes))
    if "curve" in names and "depth" in names:  # one of the two misfits that depend on depth, to save time
        either = [KERNELS + names.index(name) for name in ("smooth", "depth")]
        points = [point for point in points if not all(point[i][0] for i in either)]
    settings = np.array([[value for value, _ in point] for point in points])
    prior = np.array([math.prod(weight for _, weight in point) for point in points])
    return settings, prior / prior.sum()


def posterior(
    cells: Cells, X: Floats, mean: Floats, sd: Floats, kernels: Sequence[Floats], settings: Floats, prior: Floats
) -> Mixture:
    """θ given everything, for each setting and each of several σ, weighted by the marginal likelihood and the priors.

    Kernels are factors U of K = U·Uᵀ. For each setting the σ are spread over where they are likely: a wide range is
    drawn closer a few times.
    """
    n, k = X.shape
    proper = np.isfinite(sd)
    start = _near(X, cells.y, mean, sd)  # what is left is small, so that sums of squares lose no digits
    gram, cross, square, log_det = _whitened(cells, np.column_stack([X, cells.y - X @ start]), kernels, settings)
    w, h = settings[:, 0], settings[:, 1]
    flat = int((~proper).sum())
    repeats = float(cells.within_dof.sum())
    dof = n - flat + repeats
    precision = np.where(proper, 1 / np.where(proper, sd, 1.0) ** 2, 0.0)
    centre = np.where(proper, mean, 0.0) - start
    within = np.array([float((cells.within / cells.falling(each) ** 2).sum()) for each in h])
    falls = np.array([float(cells.within_dof @ np.log(cells.falling(each))) for each in h])
    fixed = np.log(prior) - log_det / 2 - repeats / 2 * np.log(w) - falls

    def at(log_sigma: Floats) -> tuple[Floats, Floats, Floats]:
        """ln weight of each setting and σ, and A and b of which θ = A⁻¹b: (C, S), (C, S, k, k), (C, S, k)."""
        s2 = np.exp(2 * log_sigma)[:, :, None]
        P = s2 * precision
        A, b = gram[:, None] + P[..., None] * np.eye(k), cross[:, None] + P * centre
        most = square[:, None] + P @ centre**2
        log_root, taken = _solved(A, b[..., None], most)
        left = np.maximum(most - (taken[..., 0, :] ** 2).sum(axis=-1), 0.0) + (within / w)[:, None]
        log = fixed[:, None] - log_root - left / (2 * s2[:, :, 0])
        log -= (dof - proper.sum()) * log_sigma + ((log_sigma - NOISE[0]) / NOISE[1]) ** 2 / 2
        return log, A, b

    middle, half = np.full(len(w), sum(RANGE) / 2), np.full(len(w), (RANGE[1] - RANGE[0]) / 2)
    for _ in range(ZOOMS):
        log_sigma = middle[:, None] + half[:, None] * POINTS
        log = at(log_sigma)[0]
        weights = np.exp(log - log.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        middle = (weights * log_sigma).sum(axis=1)
        spread = np.sqrt((weights * (log_sigma - middle[:, None]) ** 2).sum(axis=1))
        half = np.minimum(half, 3 * spread + half / len(POINTS))
    log_sigma = middle[:, None] + half[:, None] * POINTS
    log, A, b = at(log_sigma)
    log = log + np.log(half)[:, None]  # each stands for a range of ln σ that is its setting's own
    weights = np.exp(log - log.max())
    likely = weights > NEGLIGIBLE * weights.sum()
    which = np.nonzero(likely)[0]
    sigma2 = np.exp(2 * log_sigma[likely])
    scales = sigma2[:, None, None] * _inverse(A[likely])
    theta = np.asarray(np.linalg.solve(A[likely], b[likely][..., None])[..., 0], dtype=float)
    weights = weights[likely] / weights[likely].sum()
    return Mixture(weights, theta + start, scales, float(max(dof, 1)), sigma2, settings[which], which)


def squares(cells: Cells, off: Floats, kernels: Sequence[Floats], setting: Floats) -> float:
    """offᵀV⁻¹off with one setting."""
    return float(_whitened(cells, off[:, None], kernels, setting[None])[2][0])


def normal_equations(
    cells: Cells, X: Floats, off: Floats, kernels: Sequence[Floats], setting: Floats
) -> tuple[Floats, Floats]:
    """XᵀV⁻¹X and XᵀV⁻¹off with one setting."""
    gram, cross, _, _ = _whitened(cells, np.column_stack([X, off]), kernels, setting[None])
    return gram[0], cross[0]


def _solved(A: Floats, b: Floats, most: Floats) -> tuple[Floats, Floats]:
    """ln|L| and (L⁻¹b)ᵀ of many A = L·Lᵀ, where no eigenvalue of bᵀA⁻¹b is above `most`.

    Both are in the root of [A, b; bᵀ, M] with M large enough: numpy has no triangular solve for many matrices at once,
    and its general one takes as long again.
    """
    R, k = b.shape[-2:]
    whole = np.empty((*A.shape[:-2], R + k, R + k))
    whole[..., :R, :R], whole[..., R:, :R] = A, b.swapaxes(-1, -2)  # cholesky reads the lower half
    whole[..., R:, R:] = (2 * most + 1)[..., None, None] * np.eye(k)
    root = np.linalg.cholesky(whole)
    return np.log(np.einsum("...rr->...r", root[..., :R, :R])).sum(axis=-1), root[..., R:, :R]


def _inverse(A: Floats) -> Floats:
    """Of positive matrices, by the factor of each in its own units, so that it is positive too."""
    unit = np.sqrt(np.einsum("cii->ci", A))
    scaled = A / (unit[:, :, None] * unit[:, None, :]) + 1e-12 * np.eye(A.shape[1])
    root = np.linalg.inv(np.linalg.cholesky(scaled)) / unit[:, None, :]
    return np.asarray(np.einsum("cki,ckj->cij", root, root))


def _near(X: Floats, y: Floats, mean: Floats, sd: Floats) -> Floats:
    """θ near the answer: least squares with the priors, as if noise were 1%.

    Without them columns that are collinear (tokens = 20·N) would give it entries of any size.
    """
    pull = np.where(np.isfinite(sd), USUAL_NOISE / np.where(np.isfinite(sd), sd, 1.0), 0.0)
    whole = np.vstack([X, np.diag(pull)])
    return np.asarray(np.linalg.lstsq(whole, np.append(y, pull * np.where(pull > 0, mean, 0.0)), rcond=1e-12)[0])


def _whitened(
    cells: Cells, table: Floats, kernels: Sequence[Floats], settings: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """XᵀV⁻¹X, XᵀV⁻¹y, yᵀV⁻¹y and ln|V| of each setting, of a table with the columns X and y.

    V is a diagonal plus factors of low rank, so no matrix of cells × cells is needed (Woodbury).
    """
    diagonal, shared = cells.M, cells.shared
    if diagonal.ndim == 2:
        least = np.linalg.eigvalsh(diagonal)[0] / 2
        shared, diagonal = np.linalg.cholesky(diagonal - least * np.eye(len(diagonal))), np.full(len(diagonal), least)
    noise = np.zeros((len(table), 0)) if shared is None else shared
    smooth = np.column_stack([*kernels, np.zeros((len(table), 0))])
    parts = np.repeat(np.arange(len(kernels)), [kernel.shape[1] for kernel in kernels])
    scale = np.column_stack([np.repeat(np.sqrt(settings[:, :1]), noise.shape[1], axis=1), settings[:, KERNELS + parts]])
    R, k = scale.shape[1], table.shape[1] - 1
    whole, log_det = np.empty((len(settings), k + 1, k + 1)), np.empty(len(settings))
    for w, h in np.unique(settings[:, :KERNELS], axis=0):
        here = (settings[:, :KERNELS] == (w, h)).all(axis=1)
        falling = cells.falling(h)
        D = (w * diagonal + 1 - w) * falling**2
        both = np.column_stack([falling[:, None] * noise, smooth, table]) / np.sqrt(D)[:, None]
        products = both.T @ both
        S = scale[here]
        B = np.eye(R) + S[:, :, None] * products[:R, :R] * S[:, None, :]
        b = S[:, :, None] * products[:R, R:]
        log_root, taken = _solved(B, b, np.einsum("crk,crk->c", b, b))
        whole[here] = products[R:, R:] - taken @ taken.transpose(0, 2, 1)
        log_det[here] = np.log(D).sum() + 2 * log_root
    return whole[:, :k, :k], whole[:, :k, k], whole[:, k, k], log_det
