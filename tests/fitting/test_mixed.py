"""The regression on cells: every number against a slow, dense or integrated form by scipy."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import multivariate_normal

from deepwide.fitting.mixed import (
    DOUBTS,
    NOISE,
    Cells,
    cell_means,
    fall_of_noise,
    grid,
    low_rank,
    normals,
    posterior,
    strata,
)
from deepwide.quantities import Floats

DRAW = np.random.default_rng(5)


def _cells(n: int, within: float = 0.0, within_dof: float = 0.0) -> tuple[Cells, Floats]:
    x = np.linspace(-1, 1, n)
    X = np.column_stack([np.ones(n), x, x**2])
    y = X @ [1.0, 0.3, 0.2] + DRAW.normal(0, 0.1, n)
    return Cells(np.arange(n), y, 1 / DRAW.integers(1, 4, n), np.full(n, within / n), np.full(n, within_dof / n)), X


def _kernel(n: int) -> Floats:
    x = np.linspace(-1, 1, n)
    return np.asarray(np.exp(-(np.subtract.outer(x, x) ** 2)))


def _factor(n: int) -> Floats:
    return low_rank(lambda i: _kernel(n)[i], n, 1e-12)


FLAT = np.full(3, np.inf)


def _covariance(cells: Cells, w: float, h: float, r: float) -> Floats:
    n = len(cells.y)
    falling = np.ones(n) if cells.t is None else np.exp(-h * cells.t)
    return np.asarray((w * np.diag(cells.M) + (1 - w) * np.eye(n)) * falling**2 + r**2 * _kernel(n))


@pytest.mark.parametrize("falls", [0.0, 0.7])
def test_given_the_noise_it_is_generalised_least_squares(falls: float) -> None:
    cells, X = _cells(12)
    cells = cells._replace(t=DRAW.normal(0, 1, 12))
    fit = posterior(cells, X, np.zeros(3), FLAT, [_factor(12)], np.array([[0.4, falls, 0.5]]), np.ones(1))
    V = _covariance(cells, 0.4, falls, 0.5)
    factor = cho_factor(V)
    inverse = np.linalg.inv(X.T @ cho_solve(factor, X))
    theta = inverse @ X.T @ cho_solve(factor, cells.y)
    assert fit.mean == pytest.approx(theta)
    assert fit.dof == 9
    for sigma2, scale in zip(fit.sigma2, fit.scales, strict=True):
        assert scale == pytest.approx(sigma2 * inverse)
    # With its prior the noise is that of the residuals and what is thought of noise, one against the other.
    off = cells.y - X @ theta
    squares = off @ cho_solve(factor, off)

    def density(log: float) -> float:
        return float(
            np.exp(-9 * (log + 2.3) - squares / 2 * (np.exp(-2 * log) - np.exp(4.6)) - (log - NOISE[0]) ** 2 / 2)
        )

    whole, first = (quad(lambda x, k=k: x**k * density(x), -6, 1, limit=400)[0] for k in (0, 1))
    assert fit.weights @ np.log(fit.sigma2) / 2 == pytest.approx(first / whole, abs=0.01)


def test_settings_are_weighted_by_the_integrated_likelihood() -> None:
    cells, X = _cells(9)
    cells = cells._replace(t=DRAW.normal(0, 1, 9), within=DRAW.uniform(0, 0.01, 9), within_dof=DRAW.uniform(0, 1, 9))
    settings = np.array([[1.0, 0, 0.0], [0.4, 0, 0.0], [1.0, 0.5, 2.0], [0.2, 0.3, 1.0], [0.4, 0.3, 0.0]])
    fit = posterior(cells, X, np.zeros(3), FLAT, [_factor(9)], settings, np.full(5, 0.2))
    logs = []
    for w, h, r in settings:
        falling = np.exp(-2 * h * (cells.t if cells.t is not None else 0))

        def likelihood(
            log_s2: float, V: Floats = _covariance(cells, w, h, r), seeds: Floats = w * falling, cells: Cells = cells
        ) -> float:
            s2 = np.exp(log_s2)
            log = multivariate_normal.logpdf(cells.y, np.zeros(9), s2 * V + 1e5 * X @ X.T, allow_singular=True)
            log -= ((log_s2 / 2 - NOISE[0]) / NOISE[1]) ** 2 / 2
            repeats = cells.within_dof * np.log(s2 * seeds) + cells.within / (s2 * seeds)
            return float(np.exp(log + 15 - repeats.sum() / 2))

        logs.append(np.log(quad(likelihood, -9, 3, limit=300, epsabs=0)[0]))
    expected = np.exp(logs - np.logaddexp.reduce(logs))
    assert np.bincount(fit.setting, fit.weights, 5) == pytest.approx(expected, rel=0.03)
    assert (fit.settings == settings[fit.setting]).all()


def test_a_prior_is_another_observation() -> None:
    cells, X = _cells(15)
    sd = np.array([np.inf, np.inf, 0.05])
    fit = posterior(cells, X, np.array([0, 0, 0.4]), sd, [], np.array([[1.0, 0.0]]), np.ones(1))
    logs = []
    for sigma2, mean in zip(fit.sigma2, fit.means, strict=True):
        sigma = sigma2**0.5
        rows = np.vstack([X / np.sqrt(cells.M)[:, None], [0, 0, sigma / 0.05]])
        seen = np.append(cells.y / np.sqrt(cells.M), 0.4 * sigma / 0.05)
        assert mean == pytest.approx(np.linalg.lstsq(rows, seen)[0])
        V = sigma2 * np.diag(cells.M) + X @ np.diag([1e4, 1e4, 0.05**2]) @ X.T
        log = multivariate_normal.logpdf(cells.y, X @ [0, 0, 0.4], V, allow_singular=True)
        logs.append(log - (np.log(sigma) - NOISE[0]) ** 2 / 2)
    assert fit.weights == pytest.approx(np.exp(logs - np.logaddexp.reduce(logs)), rel=0.03, abs=1e-5)


@pytest.mark.parametrize("noise", [1e-4, 0.004, 0.1])
def test_the_noise_of_as_many_cells_as_parameters_is_that_of_the_prior(noise: float) -> None:
    """A fit that goes through every cell says nothing about it; 40 more cells say nearly everything."""
    draw = np.random.default_rng(0)
    found = []
    for n in (3, 43):
        x = np.linspace(-1, 1, n)
        X = np.column_stack([np.ones(n), x, x**2])
        cells = Cells(np.arange(n), X @ [1, 0.3, 0.2] + draw.normal(0, noise, n), np.ones(n), np.zeros(n), np.zeros(n))
        fit = posterior(cells, X, np.zeros(3), FLAT, [], np.array([[1.0, 0.0]]), np.ones(1))
        found.append(float(fit.weights @ np.log(fit.sigma2) / 2))
    assert found[0] == pytest.approx(NOISE[0], abs=0.05)
    assert found[1] == pytest.approx(np.log(noise), abs=0.3)


def test_draws_have_the_mixture_s_mean_and_covariance() -> None:
    cells, X = _cells(20)
    settings, prior = grid(20, False, ["smooth"])
    fit = posterior(cells, X, np.zeros(3), FLAT, [_factor(20)], settings, prior)
    draws, which = fit.draw(60_000, 1)
    assert draws.mean(axis=0) == pytest.approx(fit.mean, abs=0.01)
    assert np.cov(draws.T) == pytest.approx(fit.covariance, rel=0.1, abs=1e-3)
    assert np.bincount(which, minlength=len(fit.weights)) / len(which) == pytest.approx(fit.weights, abs=0.01)


def test_cells_are_a_regression_on_cells_and_seeds() -> None:
    groups = np.array([0, 0, 1, 1, 1, 2, 3, 3])
    seed = np.array([0, 1, 0, 1, 2, 0, 0, 2])
    y = DRAW.normal(size=8)
    cells = cell_means(y, groups, seed, np.zeros(8, dtype=bool))
    seeds = np.array([[s == level for level in (1, 2)] for s in seed], dtype=float)
    X = np.column_stack([np.eye(4)[groups], seeds - seeds.mean(axis=0)])
    theta, squares = np.linalg.lstsq(X, y)[:2]
    assert cells.y == pytest.approx(theta[:4])
    assert cells.shared is not None
    whole = np.diag(cells.M) + cells.shared @ cells.shared.T
    assert np.allclose(whole, np.linalg.inv(X.T @ X)[:4, :4])
    assert cells.within.sum() == pytest.approx(squares[0])
    assert cells.within_dof.sum() == pytest.approx(2)


def test_a_covariance_may_be_given_whole() -> None:
    cells, X = _cells(10)
    factor = DRAW.normal(0, 0.3, (10, 2))
    parts = cells._replace(shared=factor)
    whole = cells._replace(M=np.diag(cells.M) + factor @ factor.T)
    settings, prior = np.array([[0.4, 0, 0.5], [1.0, 0, 0.0], [0.4, 0, 2.0]]), np.ones(3)
    one, other = (posterior(each, X, np.zeros(3), FLAT, [_factor(10)], settings, prior) for each in (parts, whole))
    assert one.weights == pytest.approx(other.weights)
    assert one.scales == pytest.approx(other.scales)
    V = 0.4 * whole.M + 0.6 * np.eye(10) + 0.25 * _kernel(10)
    assert one.means[0] == pytest.approx(
        np.linalg.solve(X.T @ np.linalg.solve(V, X), X.T @ np.linalg.solve(V, cells.y))
    )


def test_a_kernel_of_many_cells_has_a_low_rank() -> None:
    x = np.linspace(-3, 3, 400)
    U = low_rank(lambda i: np.exp(-((x - x[i]) ** 2) / 2), 400)
    assert U.shape[1] < 25
    assert np.allclose(U @ U.T, np.exp(-(np.subtract.outer(x, x) ** 2) / 2), atol=1e-5)


def test_a_diverged_run_is_no_noise() -> None:
    cells = cell_means(np.array([1.0, 1.2, 3.0, 2.0]), np.array([0, 0, 0, 1]), np.zeros(4, dtype=int),
                       np.array([False, False, True, False]))  # fmt: skip
    assert cells.within_dof.tolist() == [1, 0]
    assert cells.y == pytest.approx([5.2 / 3, 2.0])
    assert cells.within == pytest.approx([0.02, 0])


def test_the_grid_is_a_prior() -> None:
    for repeated, kernels in ((False, ["smooth"]), (True, ["smooth", "depth"]), (False, list(DOUBTS))):
        settings, prior = grid(30, repeated, kernels)
        assert prior.sum() == pytest.approx(1)
        assert settings.shape == (len(prior), 2 + len(kernels))
    assert len(grid(500, True, ["smooth", "depth"])[0]) < len(grid(30, True, ["smooth", "depth"])[0])
    settings, _ = grid(30, True, DOUBTS)
    smooth, depth = (settings[:, 2 + list(DOUBTS).index(name)] for name in ("smooth", "depth"))
    assert not np.any((smooth > 0) & (depth > 0)), "with lengths that differ, one misfit that depends on depth"


def test_stratified_numbers_fill_every_part_of_every_column() -> None:
    random = np.random.default_rng(3)
    parts = np.sort(np.floor(50 * strata(50, 3, random)), axis=0)
    assert (parts == np.arange(50)[:, None]).all()
    z = normals(1000, 2, random)
    assert np.abs(z.mean(axis=0)).max() < 0.002  # 0.03 if they were independent
    assert abs(np.corrcoef(z.T)).min() < 0.1


def test_noise_falls_no_further_than_lengths_are_near() -> None:
    """Tokens of 5 and 5e9 in one table had given weights over 16 decades, which no factorisation survives."""
    t = np.log([1e-4, 0.1, 1.0, 10.0, 1e6])
    falls = fall_of_noise(0.5, t)
    assert falls[1:4] == pytest.approx([10**0.5, 1, 10**-0.5])
    assert falls[[0, 4]] == pytest.approx([np.exp(2.5), np.exp(-2.5)])
