"""Least squares with paired seeds and losses that are only known from below."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from deepwide.errors import DeepwideError
from deepwide.fitting.regression import (
    as_tuples,
    censored_least_squares,
    check_noise,
    check_positive,
    check_resamples,
    regress,
    seed_columns,
    span,
    span_known,
    t95,
)


def test_students_quantile_gives_statsmodels_intervals() -> None:
    book: dict[str, Any] = json.loads((Path(__file__).parent / "references/references.json").read_text())["ols"]
    errors = np.sqrt(np.diag(np.array(book["covariance"])))
    theta, limits = np.array(book["theta"]), np.array(book["interval95"])
    np.testing.assert_allclose(theta - t95(book["dof"]) * errors, limits[:, 0], rtol=1e-8)
    np.testing.assert_allclose(theta + t95(book["dof"]) * errors, limits[:, 1], rtol=1e-8)


def test_spans_leave_out_what_is_not_known() -> None:
    assert span(np.array([3.0, 1.0])) == (1, 3)
    assert span_known(np.array([math.nan, 2.0, 5.0])) == (2, 5)
    assert span_known(np.array([math.nan])) is None
    assert as_tuples(np.eye(2)) == ((1, 0), (0, 1))


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, [1.0, 2.0]])
def test_what_is_no_size_is_refused(value: Any) -> None:
    with pytest.raises(DeepwideError, match=r"depth"):
        check_positive(depth=value)
    check_positive(depth=3, tokens=None)


def test_words_and_numbers_of_settings_are_checked() -> None:
    with pytest.raises(DeepwideError, match="same or depth, not 'loud'"):
        check_noise("loud")
    for wrong in ((-1, 0), ("a", 0), (1.5, 0), (True, 0), (None, 0), (9, -1), (9, "a"), (9, 1.5)):
        with pytest.raises(DeepwideError, match="must be a whole number of at least 0, not '"):
            check_resamples(*wrong)
    check_resamples(0, np.int64(3))  # type: ignore[arg-type]


N = 24
DRAW = np.random.default_rng(0)
X = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
NOBODY = np.zeros(N, dtype=bool)


def line(noise: float = 0.1, seed: int = 1) -> np.ndarray:
    return X @ [1.0, 0.5] + np.random.default_rng(seed).normal(0, noise, N)


def test_without_seeds_or_divergence_it_is_the_textbooks_regression() -> None:
    y = line()
    made = regress(X, y, np.arange(N), NOBODY)
    book = stats.linregress(X[:, 1], y)
    np.testing.assert_allclose(made.theta, [book.intercept, book.slope])
    np.testing.assert_allclose(np.sqrt(np.diag(made.covariance)), [book.intercept_stderr, book.stderr])
    assert made.dof == N - 2


def test_repeating_every_run_under_another_seed_changes_no_error() -> None:
    """Two seeds that agree exactly are one observation of the model's misfit, not two."""
    y = line()
    once = regress(X, y, np.arange(N), NOBODY)
    twice = regress(np.tile(X, (2, 1)), np.tile(y, 2), np.tile(np.arange(N), 2), np.tile(NOBODY, 2))
    np.testing.assert_allclose(twice.theta, once.theta)
    np.testing.assert_allclose(twice.covariance, once.covariance, atol=1e-15)
    assert twice.dof == once.dof


def test_what_a_seed_shares_across_groups_is_not_noise() -> None:
    seeds = np.repeat([0, 1], N)
    y = np.tile(X @ [1.0, 0.5], 2) + 0.3 * seeds
    design = np.column_stack([np.tile(X, (2, 1)), seed_columns(seeds)])
    made = regress(design, y, np.tile(np.arange(N), 2), np.tile(NOBODY, 2), nuisance=1)
    np.testing.assert_allclose(made.theta[1:], [0.5, 0.3])
    assert made.noise < 1e-12
    assert made.dof == N - 2


def test_a_diverged_run_that_is_predicted_above_its_bound_changes_nothing() -> None:
    y = line()
    censored = NOBODY.copy()
    censored[-1] = True
    y[-1] = -5.0  # known to exceed −5, predicted about 1.5
    made = regress(X, y, np.arange(N), censored)
    np.testing.assert_allclose(made.theta, np.linalg.lstsq(X[:-1], y[:-1])[0], atol=1e-8)
    assert made.residuals[-1] == 0


def test_a_diverged_run_that_is_predicted_below_its_bound_pulls_up() -> None:
    y = line()
    censored = NOBODY.copy()
    censored[-1] = True
    without = np.linalg.lstsq(X[:-1], y[:-1])[0]
    y[-1] = X[-1] @ without + 0.5
    assert X[-1] @ regress(X, y, np.arange(N), censored).theta > X[-1] @ without + 0.02


def test_censoring_finds_the_maximum_of_tobits_likelihood() -> None:
    y, sigma = line(), 0.1
    censored = np.arange(N) % 5 == 0
    y = np.where(censored, y - 0.05, y)

    def loss(theta: np.ndarray) -> float:
        z = (y - X @ theta) / sigma
        return -float(np.sum(np.where(censored, stats.norm.logsf(z), stats.norm.logpdf(z))))

    best = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(censored_least_squares(X, y, censored, sigma), best, atol=1e-6)


def test_resamples_spread_as_the_likelihood_says() -> None:
    made = regress(X, line(), np.arange(N), NOBODY)
    spread = made.resample(4000, seed=0).std(axis=0)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(made.covariance)), rtol=0.3)


def test_resamples_keep_the_runs_of_a_group_together() -> None:
    y = np.repeat(line()[::2], 2)
    made = regress(X, y, np.arange(N) // 2, NOBODY)
    apart = regress(X, y, np.arange(N), NOBODY)
    assert made.resample(4000, 0)[:, 0].std() > 1.2 * apart.resample(4000, 0)[:, 0].std()


def test_resampling_is_the_same_for_the_same_seed() -> None:
    made = regress(X, line(), np.arange(N), NOBODY)
    np.testing.assert_array_equal(made.resample(5, 7), made.resample(5, 7))
    assert not np.array_equal(made.resample(5, 7), made.resample(5, 8))


def test_leverage_sums_to_the_parameters_and_is_one_for_a_group_alone() -> None:
    design = np.column_stack([X, np.arange(N) == 3])
    made = regress(design, line(), np.arange(N), NOBODY)
    assert made.leverage.sum() == pytest.approx(3)
    assert made.leverage[3] == pytest.approx(1)


def test_a_design_that_determines_nothing_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="of its 3 parameters they tell apart 2"):
        regress(np.column_stack([X, X[:, 1]]), line(), np.arange(N), NOBODY)


def uneven(seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two lines of their own, the second with a tenth of the first's noise."""
    draw = np.random.default_rng(seed)
    groups = np.repeat([0, 1], N)
    design = np.kron(np.eye(2), X)
    y = design @ [1.0, 0.5, 2.0, -0.5] + draw.normal(0, 0.1, 2 * N) * np.where(groups, 0.1, 1.0)
    return design, y, groups


def test_groups_of_their_own_noise_are_two_regressions() -> None:
    design, y, groups = uneven()
    both = np.tile(NOBODY, 2)
    made = regress(design, y, np.arange(2 * N), both, strata=groups, own_noise=True)
    for i in range(2):
        mine = groups == i
        alone = regress(X, y[mine], np.arange(N), NOBODY)
        np.testing.assert_allclose(made.theta[2 * i : 2 * i + 2], alone.theta)
        part = made.covariance[2 * i : 2 * i + 2, 2 * i : 2 * i + 2]
        np.testing.assert_allclose(part, alone.covariance, rtol=1e-6, atol=1e-15)
        assert made.noises[i] == pytest.approx(alone.noise)
        assert made.dofs[i] == pytest.approx(N - 2)
    np.testing.assert_allclose(made.covariance[:2, 2:], 0, atol=1e-12)


def test_a_parameter_in_common_is_weighted_by_each_groups_noise() -> None:
    """One mean of two groups: the textbook's weights 1/σ², with each σ found from its own group."""
    _, _, groups = uneven()
    y = np.random.default_rng(6).normal(0, np.where(groups, 0.01, 0.1))
    made = regress(np.ones((2 * N, 1)), y, np.arange(2 * N), np.tile(NOBODY, 2), strata=groups, own_noise=True)
    weights = 1 / made.noises[groups] ** 2
    assert made.theta[0] == pytest.approx(np.average(y, weights=weights), abs=1e-9)
    assert made.covariance[0, 0] == pytest.approx(1 / weights.sum(), rel=1e-3)
    assert made.noises[1] == pytest.approx(np.std(y[groups == 1]), rel=0.1)
    spread = made.resample(2000, seed=0).std()
    assert spread == pytest.approx(made.covariance[0, 0] ** 0.5, rel=0.15)


def test_unequal_noise_is_noticed_as_bartlett_says() -> None:
    design, y, groups = uneven()
    made = regress(design, y, np.arange(2 * N), np.tile(NOBODY, 2), strata=groups)
    assert made.unequal < 1e-10
    draw = np.random.default_rng(2).normal(size=(2, N)) * np.array([[1.0], [1.3]])
    means: np.ndarray = np.kron(np.eye(2), np.ones((N, 1)))
    made = regress(means, draw.ravel(), np.arange(2 * N), np.tile(NOBODY, 2), strata=groups)
    assert made.unequal == pytest.approx(stats.bartlett(*draw).pvalue)
    assert regress(X, line(), np.arange(N), NOBODY).unequal == 1.0
    rounding = regress(
        design, design @ np.ones(4) + 1e-11 * (y - 1), np.arange(2 * N), np.tile(NOBODY, 2), strata=groups
    )
    assert rounding.unequal == 1.0


REFERENCES = json.loads((Path(__file__).parent / "references/references.json").read_text())


def reference(name: str) -> dict[str, np.ndarray]:
    return {key: np.array(value) for key, value in REFERENCES[name].items()}


def test_statsmodels_ols_gives_the_same_estimate_errors_and_leverage() -> None:
    book = reference("ols")
    made = regress(book["X"], book["y"], np.arange(len(book["y"])), np.zeros(len(book["y"]), dtype=bool))
    np.testing.assert_allclose(made.theta, book["theta"], rtol=1e-9)
    np.testing.assert_allclose(made.covariance, book["covariance"], rtol=1e-9)
    np.testing.assert_allclose(made.leverage, book["leverage"], rtol=1e-9)
    assert (made.dof, made.noise) == pytest.approx((float(book["dof"]), float(book["noise"])))


def test_leaving_a_run_out_gives_statsmodels_estimate_without_it() -> None:
    book = reference("ols")
    for row, expected in zip((0, 9), book["without rows 0 and 9"], strict=True):
        others = np.arange(len(book["y"])) != row
        made = regress(
            book["X"][others], book["y"][others], np.arange(others.sum()), np.zeros(others.sum(), dtype=bool)
        )
        np.testing.assert_allclose(made.theta, expected, rtol=1e-8)


def test_wild_resamples_spread_as_statsmodels_hc2_errors() -> None:
    book = reference("ols")
    made = regress(book["X"], book["y"], np.arange(len(book["y"])), np.zeros(len(book["y"]), dtype=bool))
    spread = made.resample(20_000, seed=0).std(axis=0)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(book["HC2"])), rtol=0.03)


def test_two_seeds_of_each_group_are_statsmodels_regression_on_means() -> None:
    book = reference("group means")
    groups = book["groups"].astype(int)
    made = regress(book["X"], book["y"], groups, np.zeros(len(groups), dtype=bool))
    np.testing.assert_allclose(made.theta, book["theta"], rtol=1e-8)
    np.testing.assert_allclose(made.covariance, book["covariance"], rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(made.leverage[::2], book["leverage of a group"], rtol=1e-9)
    assert made.dof == book["dof"]


def test_resamples_of_whole_groups_spread_as_statsmodels_cluster_errors() -> None:
    """With residuals scaled by their leverage, the wild bootstrap's spread is a little above the plain cluster's."""
    book = reference("group means")
    groups = book["groups"].astype(int)
    made = regress(book["X"], book["y"], groups, np.zeros(len(groups), dtype=bool))
    scaled = made.resample(20_000, seed=0).std(axis=0)
    plain = np.sqrt(np.diag(book["cluster"]))
    assert (scaled > plain).all()
    unscaled = (
        replace(made, y=made.fitted + made.residuals * np.sqrt(1 - made.leverage)).resample(20_000, 0).std(axis=0)
    )
    np.testing.assert_allclose(unscaled, plain, rtol=0.03)


def test_weights_give_statsmodels_weighted_least_squares() -> None:
    book = reference("weighted")
    root = np.sqrt(book["weights"])
    rows = np.arange(len(root))
    made = regress(book["X"] * root[:, None], book["y"] * root, rows, np.zeros(len(root), dtype=bool))
    np.testing.assert_allclose(made.theta, book["theta"], rtol=1e-8)
    np.testing.assert_allclose(made.covariance, book["covariance"], rtol=1e-8)


def test_a_bound_far_beyond_an_exact_fit_is_no_overflow() -> None:
    """Two runs on a line to the last digit, and a third that exceeds it by very much more than their spread."""
    design = np.column_stack([np.ones(3), np.arange(3.0)])
    with np.errstate(over="raise", invalid="raise"):
        theta = censored_least_squares(design, np.array([0.0, 1.0, 1e3]), np.array([False, False, True]), 1e-9)
    assert design[2] @ theta == pytest.approx(1e3, rel=0.4)
