"""Least Huber loss of a sum of power laws, for one fit or for thousands of reweighted ones at once.

Legend: ln L = f(θ) = ln(e^c₀ + Σₖ e^(cₖ − pₖ·xₖ)) with xₖ = ln(size / its geometric mean), θ = (c₀…c_K, p₁…p_K);
r = ln loss − f, ρ Huber's loss with its corner at δ, ψ = ρ′ = clip(r, −δ, δ). Batches run along the first axis.

At δ = 1e-3 (Hoffmann et al. 2022) nearly every residual lies on ρ's straight part, so reweighted least squares creeps.
f is a log-sum-exp, so its Hessian is exact and cheap; Newton's method with it converges in tens of steps, through a
sequence of shrinking corners.
"""

from typing import NamedTuple

import numpy as np

from deepwide.quantities import Floats, Integers, Numbers

CORNERS = (100.0, 10.0, 1.0)  # times δ
EXPONENTS = (0.0, 4.0)
LEAST_SHARE = 1e-6  # of the loss; a term below it at the centre of the data is taken for absent
NEGLIGIBLE = 1e-22  # a run's share of the objective when it is met to 1e-11
PASS = 3  # evaluations that a pass with value, gradient and Hessian counts as
BATCH = 15_000  # runs × fits worked on at once: fits the cache


class Problem(NamedTuple):
    """What is fitted: x (K, n), ln loss (n,), whether that is only a lower bound (n,), Huber's corner."""

    x: Floats
    log_loss: Floats
    censored: Numbers
    delta: float

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Least and largest θ: a term is at least LEAST_SHARE of the least loss, exponents lie in EXPONENTS."""
        terms = len(self.x)
        low, high = float(self.log_loss.min()) + np.log(LEAST_SHARE), float(self.log_loss.max()) + 1
        ends = [[low] * (terms + 1) + [EXPONENTS[0]] * terms, [high] * (terms + 1) + [EXPONENTS[1]] * terms]
        return np.array(ends[0]), np.array(ends[1])


class Solution(NamedTuple):
    """For each fit of a batch: θ, the objective, whether it converged, and passes over the data in evaluations."""

    theta: Floats
    objective: Floats
    converged: Numbers
    evaluations: Integers


class _State(NamedTuple):
    objective: Floats
    gradient: Floats
    hessian: Floats
    scale: Floats  # root of the diagonal of Σ w·∇f ∇fᵀ, a length for each parameter


def forward(problem: Problem, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """f (B, n), each term's share of the loss (B, K+1, n) and ∇f (B, 2K+1, n)."""
    terms = len(problem.x)
    u = np.empty((len(theta), terms + 1, problem.x.shape[1]))
    u[:, 0] = theta[:, :1]
    u[:, 1:] = theta[:, 1 : terms + 1, None] - theta[:, terms + 1 :, None] * problem.x
    top = u.max(axis=1)
    share = np.exp(u - top[:, None])
    total = share.sum(axis=1)
    share /= total[:, None]
    return top + np.log(total), share, np.concatenate([share, -share[:, 1:] * problem.x], axis=1)


def psi(problem: Problem, residual: Floats, delta: float) -> tuple[Floats, Numbers]:
    """Huber's ψ and ψ′; 0 for a lower bound that the prediction respects."""
    respected = problem.censored & (residual < 0)
    return np.where(respected, 0.0, np.clip(residual, -delta, delta)), (np.abs(residual) <= delta) & ~respected


def objective(problem: Problem, theta: Floats, weights: Floats) -> Floats:
    """Σ w·ρ(r) for each θ of a batch."""
    residual = problem.log_loss - forward(problem, theta)[0]
    slope, _ = psi(problem, residual, problem.delta)
    return np.asarray((weights * slope * (residual - slope / 2)).sum(axis=1))


def _state(problem: Problem, theta: Floats, weights: Floats, delta: float) -> _State:
    f, share, G = forward(problem, theta)
    residual = problem.log_loss - f
    slope, curved = psi(problem, residual, delta)
    pull = weights * slope
    value = (pull * (residual - slope / 2)).sum(axis=1)
    # ∇²f = Σ share·z zᵀ − ∇f ∇fᵀ with z the gradient of a term's exponent: (1, −x) at the term's own two places.
    H = (G * (weights * curved + pull)[:, None]) @ G.swapaxes(1, 2)
    terms = len(problem.x)
    own = share * pull[:, None]
    c, p = np.arange(terms + 1), np.arange(terms + 1, 2 * terms + 1)
    H[:, c, c] -= own.sum(axis=2)
    own = own[:, 1:] * problem.x
    H[:, c[1:], p] += own.sum(axis=2)
    H[:, p, c[1:]] += own.sum(axis=2)
    H[:, p, p] -= (own * problem.x).sum(axis=2)
    scale = np.sqrt((G * G * weights[:, None]).sum(axis=2))
    return _State(value, -(G @ pull[..., None])[..., 0], H, np.maximum(scale, 1e-9 * scale.max(axis=1, keepdims=True)))


def projected(problem: Problem, exponents: Floats) -> tuple[Floats, Integers]:
    """θ for each row of exponents (B, K), its coefficients solved: variable projection (Golub and Pereyra 1973).

    With the exponents fixed the loss is linear in e^c ≥ 0, and (loss − prediction) / loss is ln loss − f to first
    order: non-negative least squares, reweighted twice for Huber's sake. Lower bounds on a loss take no part here.
    """
    from scipy.optimize import nnls

    rows = ~problem.censored
    x, loss = problem.x[:, rows], np.exp(problem.log_loss[rows])
    corner = CORNERS[0] * problem.delta
    thetas = []
    for p in exponents:
        basis = np.concatenate([np.ones((1, x.shape[1])), np.exp(-p[:, None] * x)]).T / loss[:, None]
        root = np.ones(len(loss))
        for _ in range(3):
            coefficients, _ = nnls(basis * root[:, None], root)
            root = np.sqrt(np.minimum(1, corner / np.maximum(np.abs(1 - basis @ coefficients), 1e-300)))
        thetas.append(np.concatenate([np.log(np.maximum(coefficients, 1e-3 * loss.min())), p]))
    return np.array(thetas), np.full(len(exponents), 4)


def best_fit(problem: Problem) -> tuple[Solution, Solution]:
    """The best fit, as a batch of one with all that was spent on it, and the three that were polished.

    Exponents from a low-discrepancy sequence (Roberts 2018) with their coefficients projected; the best three are
    polished in all parameters.
    """
    terms = len(problem.x)
    ratio = 2.0
    for _ in range(40):
        ratio = (1 + ratio) ** (1 / (terms + 1))
    spread = (0.5 + np.outer(np.arange(8 * terms), ratio ** -np.arange(1.0, terms + 1))) % 1
    theta, spent = projected(problem, 0.1 + 0.9 * spread)
    everything = np.ones((len(theta), problem.x.shape[1]))
    first = np.argsort(objective(problem, theta, everything))[:3]
    polished = minimise(problem, theta[first], everything[first])
    total = spent.sum() + len(theta) + polished.evaluations.sum()
    least = int(np.argmin(polished.objective))
    one = slice(least, least + 1)
    best = Solution(polished.theta[one], polished.objective[one], polished.converged[one], np.array([total]))
    return best, polished


class Sandwich(NamedTuple):
    """A covariance, and how many residuals it could be estimated from: with fewer than parameters it says nothing."""

    covariance: Floats
    inside: int
    enough: bool


def sandwich(problem: Problem, theta: Floats, units: Integers) -> Sandwich:
    """Covariance A⁻¹BA⁻¹ of an M-estimator, B summed within units (Huber 1967; Powell 1991 for A).

    A = Σ E[ψ′]·∇f ∇fᵀ. Few residuals fall inside a narrow corner, so E[ψ′] = P(|r| ≤ δ) is taken from a window of
    n^−⅓ of the residuals' spread where that is wider. Scaled by units / (units − parameters); a parameter at a bound
    has no variance. Two losses per run leave no residual near zero: then A is not determined and there is no estimate.
    """
    f, _, G = (part[0] for part in forward(problem, theta[None]))
    residual = problem.log_loss - f
    slope, _ = psi(problem, residual, problem.delta)
    seen = residual[~problem.censored]
    spread = min(seen.std(), float(np.subtract(*np.percentile(seen, [75, 25]))) / 1.349)
    window = max(problem.delta, 1.06 * spread * len(seen) ** (-1 / 3))
    low, high = problem.bounds
    free = (theta > low) & (theta < high)
    respected = problem.censored & (residual < 0)
    inside = (np.abs(residual) <= window) & ~respected
    A = (G[free] * inside * problem.delta / window) @ G[free].T
    pulls = np.zeros((int(units.max()) + 1, int(free.sum())))
    np.add.at(pulls, units, (G[free] * slope).T)
    inverse = np.linalg.pinv(A, hermitian=True)
    out = np.zeros((len(theta), len(theta)))
    few = len(pulls) / max(1, len(pulls) - int(free.sum()))
    out[np.ix_(free, free)] = few * inverse @ (pulls.T @ pulls) @ inverse
    return Sandwich(out, int(inside.sum()), bool(inside.sum() >= free.sum()))


def minimise(
    problem: Problem, theta: Floats, weights: Floats, *, tolerance: float = 1e-11, steps: int = 600
) -> Solution:
    """Damped Newton steps from each θ with its own weights (B, n), in batches, through shrinking corners."""
    size = max(1, BATCH // problem.x.shape[1])
    parts = [
        _minimise(problem, theta[i : i + size], weights[i : i + size], tolerance, steps)
        for i in range(0, len(theta), size)
    ]
    return Solution(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _minimise(problem: Problem, theta: Floats, weights: Floats, tolerance: float, steps: int) -> Solution:
    evaluations = np.zeros(len(theta), dtype=np.int64)
    for corner in CORNERS:
        last = corner == CORNERS[-1]
        theta, value, converged, spent = _newton(
            problem, theta, weights, corner * problem.delta, tolerance if last else 1e-4, steps if last else steps // 4
        )
        evaluations += spent
    return Solution(theta, value, converged, evaluations)


def _newton(
    problem: Problem, theta: Floats, weights: Floats, delta: float, tolerance: float, steps: int
) -> tuple[Floats, Floats, Numbers, Integers]:
    """Steps −(|H| + λ·S²)⁻¹g, |H| with the signs of its eigenvalues dropped; λ by whether the objective fell."""
    low, high = problem.bounds
    theta = np.clip(theta, low, high)
    state = _state(problem, theta, weights, delta)
    damping = np.full(len(theta), 1e-3)
    spent = np.full(len(theta), PASS)
    converged = np.zeros(len(theta), dtype=bool)
    live = np.arange(len(theta))
    for _ in range(steps):
        value, g, H, scale = (part[live] for part in state)
        at = theta[live]
        held = ((at <= low) & (g > 0)) | ((at >= high) & (g < 0))
        g = np.where(held, 0.0, g) / scale
        H = H / (scale[:, :, None] * scale[:, None, :])
        H = np.where(held[:, :, None] | held[:, None, :], 0.0, H)
        e, V = np.linalg.eigh(H)
        along = (V.swapaxes(1, 2) @ g[..., None])[..., 0]
        # An eigenvalue of S⁻¹HS⁻¹ is at most about 1: below 1e-12 it is rounding, and the gradient along it too.
        inverse = 1 / (np.maximum(np.abs(e), 1e-12) + damping[live, None])
        step = -(V @ (inverse * along)[..., None])[..., 0] / scale
        step /= np.maximum(1, np.abs(step).max(axis=1, keepdims=True))
        promised = 0.5 * (inverse * along**2).sum(axis=1)
        done = 0.5 * (along**2 / np.maximum(np.abs(e), 1e-12)).sum(axis=1) <= tolerance * value + NEGLIGIBLE
        converged[live[done]] = True
        go = ~done & (damping[live] < 1e9)
        live, step, value = live[go], step[go], value[go]
        if not len(live):
            break
        trial = np.clip(theta[live] + step, low, high)
        new = _state(problem, trial, weights[live], delta)
        spent[live] += PASS
        better = new.objective < value
        rows = live[better]
        theta[rows] = trial[better]
        for old, fresh in zip(state, new, strict=True):
            old[rows] = fresh[better]
        good = (value - new.objective)[better] > 0.5 * promised[go][better]
        damping[rows] = np.where(good, np.maximum(damping[rows] / 8, 1e-14), damping[rows])
        damping[live[~better]] *= 6
    return theta, state.objective, converged, spent
