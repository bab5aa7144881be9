"""The posterior of the model's parameters: the model linearised at its mode, where it is a regression with unknown
variance components (`mixed`), and draws that keep what is not linear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepwide.fitting.misfit import misfit_factors
from deepwide.fitting.mixed import (
    Cells,
    Mixture,
    evenly,
    grid,
    normal_equations,
    normals,
    positive,
    posterior,
    squares,
)
from deepwide.fitting.model import PLACE, PRIORS, Design, by_name, jacobian, log_loss, size_curve
from deepwide.quantities import Floats, Integers

LEAST_CURVATURE = 1e-3  # that the model is linearised at
FLATTEST = 1e3  # times flatter than at the mode: no place at all
CURVE = ("level", "floor", "size_power", "data", "data_power", "size2", "embeddings")
MOST_SETTLED = 200  # cells at which a draw keeps its curve
PROPOSED = 6  # draws for each that is kept
SETTLING = 4  # steps
LONGEST = 1.0  # of a step in ln
STEPS = 12
CLIMBS = 40  # steps towards a mode
DAMPED = (1e-3, 4.0, 5.0)  # of such a step: at first, times as much when it fails, and as little when it does not
HARDLY = 1e-4  # of −2 ln(posterior): no gain
FIRST_NOISE = 0.01  # until the runs have said something of it
NEAR_ENOUGH = 0.01  # of a standard deviation: found
NEAR = 0.1  # and to be taken at all
HOPELESS = 1e-6  # weight of a setting that is not looked at again
BEST_SETTINGS = 8  # of the grid, until the mode has been found


@dataclass(frozen=True, eq=False)
class Posterior:
    """The mode that the model was linearised at, the mixture there, and draws with a bowl."""

    names: tuple[str, ...]
    mode: Floats
    mixture: Mixture
    draws: Floats  # (draws, k), of those with a curvature above 0
    settings: Floats  # of each draw: which point of the grid
    flat: float  # probability that the curvature is not above 0
    prior_mean: Floats
    prior_sd: Floats
    different: float = 1.0  # share of the draws that differ: few where the mode is no place to linearise at


def infer(
    cells: Cells, design: Design, *, number: int = 2000, seed: int = 0, widened: Mapping[str, float] | None = None
) -> Posterior:
    """The posterior of the model's parameters by linearising it at its mode.

    `widened` multiplies priors' standard deviations by name, to see what they decide.
    """
    names = design.names
    mean, sd = np.array([PRIORS[name] for name in names]).T
    sd = sd * np.array([(widened or {}).get(name, 1.0) for name in names])
    kernels = misfit_factors(design)
    factors = list(kernels.values())
    cells = cells._replace(t=design.t)
    settings, prior = grid(len(cells.y), bool(cells.within_dof.any()), kernels, design.t is not None)
    everything = np.arange(len(prior))

    def linearised(theta: Floats, among: Integers) -> Mixture:
        X = jacobian(names, theta, design)
        linear = cells._replace(y=cells.y - log_loss(names, theta[None], design)[0] + X @ theta)
        return posterior(linear, X, mean, sd, factors, settings[among], prior[among])

    def climbed(theta: Floats, setting: Floats, sigma2: float) -> tuple[Floats, float]:
        return climb(cells, design, theta, mean, sd, factors, setting, sigma2)

    usual = settings[prior.argmax()]
    ends = [climbed(start, usual, FIRST_NOISE**2) for start in _starts(cells.y, design, names)]
    theta, among = min(ends, key=lambda end: end[1])[0], everything
    for _ in range(STEPS):  # to a mode with the likeliest variances
        mixture = linearised(theta, among)
        if among is everything:
            weights = np.bincount(mixture.setting, mixture.weights, len(prior))
            among, everything = np.argsort(-weights)[:BEST_SETTINGS], np.flatnonzero(weights > HOPELESS)
        likeliest = int(mixture.weights.argmax())
        new, _ = climbed(theta, mixture.settings[likeliest], float(mixture.sigma2[likeliest]))
        far, theta = mixture.distance(new, theta), new
        if far < NEAR_ENOUGH:
            break
    mode, last = theta, np.inf
    for _ in range(STEPS):  # and from there to the mean over all variances, if it is near
        mixture = linearised(theta, among)
        new = tamed(names, mixture.mean, design)
        far = mixture.distance(new, theta)
        if far >= last:
            break
        theta, last = new, far
        if far < NEAR_ENOUGH:
            break
    if last > NEAR:
        theta = mode
    mixture = linearised(theta, everything)
    drawn = draw_places(names, theta, mixture, mean, sd, number, seed, _largest(design))
    noise = float(np.sqrt(mixture.weights @ mixture.sigma2))
    return replace(drawn, draws=settled(names, theta, drawn.draws, design, sd, noise))


def draw_places(
    names: tuple[str, ...],
    mode: Floats,
    mixture: Mixture,
    mean: Floats,
    sd: Floats,
    number: int,
    seed: int,
    far: tuple[float, float],
) -> Posterior:
    """Draws of the parameters, those of the place of the bowl made exact given the others.

    The loss is linear in the slopes −2c·(l − l̂), not in l itself (Fieller 1954): a flatter bowl is known less well.
    Given the curvature, what the runs say of the place is Gaussian, and so are its priors: the place is drawn from
    their product, and the draw weighted by the product's integral. (Weights of whole draws would have no variance: one
    draw of a nearly flat bowl could outweigh all others.) Many are drawn, and so chosen by their weights that they are
    spread evenly in the best depth at (σ, τ) = `far`: limits there then vary little from seed to seed.
    """
    draws, which = mixture.draw(PROPOSED * number, seed)
    c = names.index("curvature")
    flat = float(np.mean(draws[:, c] <= 0))
    random = np.random.default_rng(seed + 1)
    keep = draws[:, c] > 0
    if keep.mean() < 1 / 8:
        return Posterior(names, mode, mixture, draws[:0], which[:0].astype(float), flat, mean, sd)
    draws, which = draws[keep], which[keep]
    place = np.array([names.index(name) for name in PLACE if name in names])
    rest = np.setdiff1d(np.arange(len(names)), place)
    proper = np.isfinite(sd[place])
    pull = np.where(proper, 1 / np.where(proper, sd[place], 1.0) ** 2, 0.0)
    precision = np.linalg.inv(positive(mixture.scales))
    inner = precision[:, place][:, :, place][which]
    means, off = mixture.means[which], draws - mixture.means[which]
    towards = np.einsum("nij,nj->ni", inner, means[:, place] - mode[place])
    towards -= np.einsum("nij,nj->ni", precision[:, place][:, :, rest][which], off[:, rest])
    prior = pull * np.where(proper, mean[place] - mode[place], 0.0)
    flatter = np.minimum(max(mode[c], LEAST_CURVATURE) / draws[:, c], FLATTEST)
    own = np.diag(pull)
    exact = (inner - own) / flatter[:, None, None] ** 2 + own
    linear = (towards - prior) / flatter[:, None] + prior
    root = np.linalg.cholesky(exact)
    middle = np.linalg.solve(exact, linear[:, :, None])[:, :, 0]
    noise = np.linalg.solve(root.transpose(0, 2, 1), normals(len(draws), len(place), random)[:, :, None])[:, :, 0]
    draws[:, place] = mode[place] + middle + noise
    before = np.linalg.solve(inner, towards[:, :, None])[:, :, 0]
    squares = np.einsum("ni,ni->n", linear, middle) - np.einsum("ni,ni->n", towards, before)
    log = squares / 2 - np.log(np.einsum("nii->ni", root)).sum(axis=1)
    log += np.linalg.slogdet(inner)[1] / 2 - (~proper).sum() * np.log(flatter)
    weights = np.exp(log - log.max())
    s, t = far
    powers = dict(zip(PLACE, (1.0, s, s**2, t, s * t, t**2), strict=True))
    order = np.argsort(sum(draws[:, names.index(name)] * x for name, x in powers.items() if name in names))
    rows = random.permutation(order[evenly(weights[order], number, random)])  # whoever takes some takes any
    different = len(np.unique(rows)) / len(rows)
    return Posterior(names, mode, mixture, draws[rows], which[rows].astype(float), flat, mean, sd, different)


def _largest(design: Design) -> tuple[float, float]:
    """σ of the largest size, and τ of the lengths there, if they follow the size."""
    if design.t is None or np.ptp(design.s) == 0:
        return float(design.s.max()), 0.0
    slope, at = np.polyfit(design.s, design.t, 1)
    return float(design.s.max()), float(at + slope * design.s.max())


def settled(names: tuple[str, ...], mode: Floats, draws: Floats, design: Design, sd: Floats, noise: float) -> Floats:
    """Draws whose loss against size and tokens is, at the runs, what the linear model made of it.

    Floor, terms and powers are known together far better than each by itself (on a ladder hardly any of them is).
    A draw of the linear model keeps them together; put into the formula it would not. So each draw is moved to the
    nearest parameters that give its own linear curve, in units of the noise and of the priors (Gauss–Newton; compare
    Bardsley et al. 2014, randomise then optimise).
    """
    some = np.unique(np.linspace(0, len(design.s) - 1, MOST_SETTLED).astype(int))[: len(design.s)]
    order = np.argsort(design.s, kind="stable")[some]
    here = Design(*(None if column is None else column[order] for column in design))  # type: ignore[arg-type]
    which = np.array([i for i, name in enumerate(names) if name in CURVE])
    towards = _curve(names, mode[None], here) + (draws - mode)[:, which] @ _slopes(names, mode[None], here, which)[0].T
    pull = np.where(np.isfinite(sd[which]), (noise / np.where(np.isfinite(sd[which]), sd[which], 1.0)) ** 2, 1e-12)
    moved, first = draws.copy(), draws[:, which]
    for _ in range(SETTLING):
        J = _slopes(names, moved, here, which)
        off = towards - _curve(names, moved, here)
        A = np.einsum("nik,nil->nkl", J, J) + np.diag(pull)
        b = np.einsum("nik,ni->nk", J, off) + pull * (first - moved[:, which])
        step = np.linalg.solve(A, b[:, :, None])[:, :, 0]
        moved[:, which] += np.clip(step, -LONGEST, LONGEST)
        moved = tamed(names, moved.T, here, CURVE).T
    return moved


def _curve(names: tuple[str, ...], theta: Floats, design: Design) -> Floats:
    return size_curve(by_name(names, theta), design)


def _slopes(names: tuple[str, ...], theta: Floats, design: Design, which: Integers) -> Floats:
    """∂ size_curve / ∂θ of some parameters: (draws, cells, parameters)."""
    base = _curve(names, theta, design)
    steps = 1e-6 * np.eye(len(names))[which]
    return np.stack([(_curve(names, theta + step, design) - base) / 1e-6 for step in steps], axis=2)


def climb(
    cells: Cells,
    design: Design,
    theta: Floats,
    mean: Floats,
    sd: Floats,
    factors: Sequence[Floats],
    setting: Floats,
    sigma2: float,
) -> tuple[Floats, float]:
    """A mode of the posterior with these variances, uphill from θ, and −2 ln of it there (Levenberg 1944, Marquardt
    1963). Whole steps of Gauss and Newton run in circles where a bowl is flat."""
    names = design.names
    proper = np.isfinite(sd)
    pull = np.where(proper, 1 / np.where(proper, sd, 1.0) ** 2, 0.0)
    middle = np.where(proper, mean, 0.0)

    def height(theta: Floats) -> tuple[Floats, float]:
        off = cells.y - log_loss(names, theta[None], design)[0]
        return off, squares(cells, off, factors, setting) / sigma2 + float(pull @ (theta - middle) ** 2)

    damping, more, less = DAMPED
    off, now = height(theta)
    for _ in range(CLIMBS):
        A, b = normal_equations(cells, jacobian(names, theta, design), off, factors, setting)
        A, b = A / sigma2 + np.diag(pull), b / sigma2 - pull * (theta - middle)
        gain = 0.0
        while gain <= 0 and damping < 1e9:
            new = tamed(names, theta + np.linalg.solve(A + damping * np.diag(np.diag(A) + 1e-12), b), design)
            left, value = height(new)
            gain = now - value
            damping *= more if gain <= 0 else 1 / less
        if gain <= 0:
            break
        theta, off, now = new, left, value
        if gain < HARDLY:
            break
    return theta, now


def _starts(y: Floats, design: Design, names: tuple[str, ...]) -> list[Floats]:
    """Where to climb from: what is assumed of any sweep, and a parabola in ln depth."""
    s, x = design.s, design.x
    columns = [np.ones_like(s), s, s**2, x, x**2, s * x]
    columns += [] if design.t is None else [design.t]
    columns += [] if design.e is None else [design.e]
    X = np.column_stack(columns)
    scale = np.std(X, axis=0) + 1e-9
    # A little shrinkage, in units of the columns: ladders are collinear.
    theta = np.linalg.solve(X.T @ X + 1e-6 * len(s) * np.diag(scale**2), X.T @ y)
    usual = {name: mean for name, (mean, _) in PRIORS.items()}
    usual |= {"level": float(np.mean(y)), "curvature": 0.01, "depth": float(np.mean(x))}
    b1, b2, b3 = theta[3:6]
    starts = [usual]
    if b2 > LEAST_CURVATURE:
        growth = float(np.clip(-b3 / (2 * b2), -0.2, 0.8))
        starts.append(usual | {"curvature": b2, "depth": -b1 / (2 * b2), "growth": growth})
    return [tamed(names, np.array([values[name] for name in names]), design) for values in starts]


def tamed(names: tuple[str, ...], theta: Floats, design: Design, some: tuple[str, ...] = ()) -> Floats:
    """θ (its first axis) within what the model can be linearised at; only some of the names, if any are given."""
    theta = theta.copy()
    low, high = design.x.min() - 2, design.x.max() + 2
    limits = {"curvature": (LEAST_CURVATURE, 10.0), "depth": (low, high), "skew": (-0.9, 0.9), "tail": (-3.0, 3.0)}
    limits |= {"size_power": (-5.0, 1.5), "data_power": (-5.0, 1.5), "floor": (-6.0, 6.0), "data": (-6.0, 6.0)}
    limits |= {"embeddings": (-2.0, 3.0)}
    for name, (least, most) in limits.items():
        if name in (some or names) and name in names:
            i = names.index(name)
            theta[i] = np.clip(theta[i], least, most)
    return theta
