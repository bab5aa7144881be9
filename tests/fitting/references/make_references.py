"""What statsmodels makes of small data sets that this script writes down with its answers.

python3 -m venv /tmp/venv && /tmp/venv/bin/pip install statsmodels
/tmp/venv/bin/python tests/fitting/references/make_references.py

statsmodels is not needed to run the tests: they read references.json, which says the versions it was made with.
"""

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import statsmodels  # type: ignore[import-not-found]
import statsmodels.api as sm  # type: ignore[import-not-found]
from statsmodels.stats.sandwich_covariance import cov_cluster  # type: ignore[import-not-found]

HERE = Path(__file__).parent


def design() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A ridge's columns on a small table: 14 groups, some with repeats; y ln loss; groups; strata (depths)."""
    random = np.random.default_rng(7)
    depth = np.repeat([1.0, 2.0, 4.0, 8.0], [3, 4, 4, 3])
    size = np.concatenate([np.geomspace(1e4, 1e6, n) for n in (3, 4, 4, 3)])
    repeats = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1, 2, 1, 1, 1, 2])
    groups = np.repeat(np.arange(14), repeats)
    s, x = np.log(size / 1e5), np.log(depth / 3)
    X = np.column_stack([np.ones(14), s, s**2, x, x**2, s * x])[groups]
    theta = np.array([0.5, -0.05, 0.01, -0.02, 0.03, -0.02])
    noise = random.normal(0, 0.01, 14)[groups] + random.normal(0, 0.005, len(groups))
    return X, X @ theta + noise, groups, np.searchsorted([1, 2, 4, 8], depth)[groups]


def balanced() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with two seeds of each group."""
    X, _, groups, _ = design()
    first = np.unique(groups, return_index=True)[1]
    X = np.repeat(X[first], 2, axis=0)
    random = np.random.default_rng(8)
    noise = np.repeat(random.normal(0, 0.01, 14), 2) + random.normal(0, 0.005, 28)
    return X, X @ np.array([0.5, -0.05, 0.01, -0.02, 0.03, -0.02]) + noise, np.repeat(np.arange(14), 2)


def ols() -> dict[str, Any]:
    """Every run a group of its own: ordinary least squares, its leverage and its influence."""
    X, y, _, _ = design()
    fit = sm.OLS(y, X).fit()
    influence = fit.get_influence()
    without = [sm.OLS(np.delete(y, i), np.delete(X, i, axis=0)).fit().params.tolist() for i in (0, 9)]
    return {
        "X": X, "y": y, "theta": fit.params, "covariance": fit.cov_params(), "dof": fit.df_resid,
        "noise": fit.mse_resid**0.5, "leverage": influence.hat_matrix_diag, "interval95": fit.conf_int(0.05),
        "HC2": fit.get_robustcov_results("HC2").cov_params(), "without rows 0 and 9": without,
    }  # fmt: skip


def group_means() -> dict[str, Any]:
    """Two seeds of each group: the regression on the groups' means."""
    X, y, groups = balanced()
    means = sm.OLS(y.reshape(-1, 2).mean(axis=1), X[::2]).fit()
    runs = sm.OLS(y, X).fit()
    return {
        "X": X, "y": y, "groups": groups, "theta": means.params, "covariance": means.cov_params(),
        "dof": means.df_resid, "leverage of a group": means.get_influence().hat_matrix_diag,
        "cluster": cov_cluster(runs, groups, use_correction=False),
    }  # fmt: skip


def weighted() -> dict[str, Any]:
    """Given weights of the rows."""
    X, y, _, strata = design()
    weights = np.array([1.0, 4.0, 0.5, 2.0])[strata]
    fit = sm.WLS(y, X, weights=weights).fit()
    return {"X": X, "y": y, "weights": weights, "theta": fit.params, "covariance": fit.cov_params()}


def huber() -> dict[str, Any]:
    """Huber's norm and its derivative at the residuals of a regression, some on its straight part."""
    X, y, _, _ = design()
    residual = sm.OLS(y, X).fit().resid
    corner = 0.008
    norm = sm.robust.norms.HuberT(t=corner)
    return {"residual": residual, "delta": corner, "rho": norm.rho(residual), "psi": norm.psi(residual)}


def main() -> None:
    """Write references.json."""
    versions = {module.__name__: module.__version__ for module in (statsmodels, np, scipy)}
    found = {
        "made by": "tests/fitting/references/make_references.py",
        "versions": versions | {"python": platform.python_version()},
        "ols": ols(),
        "group means": group_means(),
        "weighted": weighted(),
        "huber": huber(),
    }
    text = json.dumps(found, default=lambda array: np.asarray(array).tolist(), indent=None)
    (HERE / "references.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
