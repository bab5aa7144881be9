"""The least Huber loss of a sum of power laws."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from deepwide.fitting import Runs, fit_surface
from deepwide.fitting.huber import Problem, forward, objective, projected, psi, sandwich
from deepwide.fitting.huber import minimise as polish
from deepwide.fitting.runs import draws_of, units_of
from fitting.builders import TRUTH, chinchilla_like, codes, huber_of_ln


@pytest.mark.parametrize("delta", [1e-3, 1e-1])
def test_scipy_cannot_improve_the_objective(delta: float) -> None:
    runs = chinchilla_like(0.01, seed=3)
    fit = fit_surface(runs, bootstrap=0, delta=delta)
    assert fit.objective == pytest.approx(huber_of_ln(fit.values, runs, delta), rel=1e-9)
    start = np.array([*np.log(fit.values[:3]), *fit.values[3:]])

    def scaled(v: Any) -> float:
        return huber_of_ln([*np.exp(v[:3]), *v[3:]], runs, delta) / fit.objective

    for method in ("Nelder-Mead", "BFGS", "L-BFGS-B"):
        assert minimize(scaled, start, method=method).fun > 1 - 1e-8


def test_the_gradient_and_the_hessian_are_the_objectives() -> None:
    from deepwide.fitting.huber import _state

    random = np.random.default_rng(1)
    censored = np.arange(30) < 8
    problem = Problem(random.normal(0, 1, (2, 30)), random.normal(0.8, 0.5, 30), censored, 0.4)
    theta, weights = random.uniform(0.2, 0.8, (3, 5)), random.uniform(0, 2, (3, 30))
    state = _state(problem, theta, weights, 0.4)
    step = 1e-6
    for i in range(5):
        move = step * np.eye(5)[i]
        up, down = (_state(problem, theta + sign * move, weights, 0.4) for sign in (1, -1))
        assert (up.objective - down.objective) / (2 * step) == pytest.approx(state.gradient[:, i], rel=1e-5, abs=1e-7)
        assert (up.gradient - down.gradient) / (2 * step) == pytest.approx(state.hessian[:, i], rel=1e-4, abs=1e-5)
    assert state.objective == pytest.approx(objective(problem, theta, weights), rel=1e-12)


def test_projection_finds_the_coefficients_of_given_exponents() -> None:
    runs = chinchilla_like()
    x = np.log([runs.total_params, runs.tokens])
    centre = x.mean(axis=1, keepdims=True)
    problem = Problem(x - centre, np.log(runs.loss), runs.diverged, 1e-3)
    theta, _ = projected(problem, np.array([TRUTH[3:]]))
    assert np.exp(theta[0, :3] + [0, *(theta[0, 3:] * centre[:, 0])]) == pytest.approx(TRUTH[:3], rel=1e-8)


def test_a_batch_gives_what_its_members_give_alone() -> None:
    runs = chinchilla_like(0.01)
    x = np.log([runs.total_params, runs.tokens])
    problem = Problem(x - x.mean(axis=1, keepdims=True), np.log(runs.loss), runs.diverged, 1e-3)
    weights = draws_of(units_of(runs, "group"), 5, 6, seed=0)
    start = np.tile([0.6, -1.0, -1.0, 0.3, 0.3], (6, 1))
    together = polish(problem, start, weights)
    assert together.converged.all()
    for i in range(6):
        repeated = np.repeat(np.arange(len(runs)), weights[i].astype(int))
        alone = Problem(problem.x[:, repeated], problem.log_loss[repeated], problem.censored[repeated], 1e-3)
        found = polish(alone, start[:1], np.ones((1, len(repeated))))
        assert found.objective[0] == pytest.approx(together.objective[i], rel=1e-8)


def sandwich_of(runs: Runs) -> Any:
    """At the same θ, with the same window, copies of a run in one unit are no news."""
    x = np.log([runs.total_params, runs.tokens])
    problem = Problem(x - x.mean(axis=1, keepdims=True), np.log(runs.loss), runs.diverged, 1.0)
    return sandwich(problem, np.array([0.6, -1.0, -1.0, 0.3, 0.3]), units_of(runs, "group")).covariance


def test_with_a_wide_corner_the_sandwich_is_least_squares_own() -> None:
    runs = chinchilla_like(0.01)
    x = np.log([runs.total_params, runs.tokens])
    problem = Problem(x - x.mean(axis=1, keepdims=True), np.log(runs.loss), runs.diverged, 1.0)
    theta = np.array([0.6, -1.0, -1.0, 0.3, 0.3])
    f, _, G = (part[0] for part in forward(problem, theta[None]))
    bread = np.linalg.inv(G @ G.T)
    meat = (G * (problem.log_loss - f) ** 2) @ G.T
    assert sandwich_of(runs) == pytest.approx(48 / 43 * bread @ meat @ bread, rel=1e-6)


def test_copies_of_a_run_in_one_unit_are_no_news() -> None:
    runs = chinchilla_like(0.01)
    doubled = runs.select(np.repeat(np.arange(len(runs)), 2))
    one, two = (sandwich_of(r) for r in (runs, doubled))
    assert two == pytest.approx(one, rel=1e-6)


def test_the_objective_and_its_slope_are_statsmodels_huber_norm() -> None:
    book = json.loads((Path(__file__).parent / "references/references.json").read_text())["huber"]
    residual = np.array(book["residual"])
    nobody = np.zeros(len(residual), dtype=bool)
    # A surface of floor 1 and no terms: ln loss − f is the residual.
    problem = Problem(np.zeros((0, len(residual))), residual, nobody, book["delta"])
    total = objective(problem, np.zeros((1, 1)), np.ones((1, len(residual))))
    assert total[0] == pytest.approx(sum(book["rho"]))
    assert psi(problem, residual, book["delta"])[0] == pytest.approx(np.array(book["psi"]))


def test_two_losses_per_run_give_no_standard_errors_and_a_warning() -> None:
    """No residual lies near zero then; the errors were exactly 0, without a word."""
    runs = chinchilla_like(0.0)
    doubled = runs.select(np.tile(np.arange(len(runs)), 2))
    loss = doubled.loss * np.exp(np.repeat([0.02, -0.02], len(runs)))
    fit = fit_surface(replace(doubled, loss=loss, seed=np.repeat([0, 1], len(runs))), bootstrap=0)
    assert "errors-unknown" in codes(fit.warnings)
    assert {interval.low for interval in fit.intervals().values()} == {None}
    assert " 0  " not in fit.summary()
    assert "errors-unknown" not in codes(fit_surface(chinchilla_like(0.01), bootstrap=0).warnings)
