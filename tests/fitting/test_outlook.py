"""What further runs would do to an interval: the updates are right, and what no run changes stays."""

import math

import numpy as np
import pytest

from deepwide.fitting import Covariances, JointFit, Outlook, Places, Runs, fit_joint, outlook_of, simulate
from deepwide.fitting.model import BEYOND, jacobian
from deepwide.laws import TransitionLaw
from deepwide.quantities import Floats

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
SIZES = np.geomspace(1e4, 1e6, 5)
ENDS = np.array([1e6, 4e6])


@pytest.fixture(scope="module")
def runs() -> Runs:
    return simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, seeds=1, seed=3)


@pytest.fixture(scope="module")
def fit(runs: Runs) -> JointFit:
    return fit_joint(runs, bootstrap=400, examine=False)


def places(depths: list[float], sizes: list[float], tokens: float = math.nan) -> Places:
    L, N = np.array(depths, dtype=float), np.array(sizes, dtype=float)
    return Places(L, N, N, np.full(len(L), tokens), np.ones(len(L)))


POOL = places([2, 4, 8, 4, 4], [1e6, 1e6, 1e6, 4e6, 2e4])


def view(fit: JointFit | None, runs: Runs | None) -> tuple[Outlook, Covariances]:
    before = Places.none() if runs is None else Places.of(runs)
    ahead = outlook_of(fit, before, POOL)
    return ahead, ahead.covariances(before, POOL, "depth", 1e7, ENDS, 0.0)


def test_taking_runs_one_by_one_is_conditioning_on_all_at_once(fit: JointFit, runs: Runs) -> None:
    ahead, step = view(fit, runs)
    for run in (0, 3, 2):
        step.take(run)
    taken = places([2, 4, 8], [1e6, 4e6, 1e6])
    columns = zip(Places.of(runs).__dict__.values(), taken.__dict__.values(), strict=True)
    whole = Places(*(np.concatenate(pair) for pair in columns))
    direct = ahead.covariances(whole, POOL, "depth", 1e7, ENDS, 0.0)
    np.testing.assert_allclose(step.v, direct.v, rtol=1e-3)
    assert step.log_sd(1) == pytest.approx(direct.log_sd(1), abs=1e-3)


def test_without_misfit_it_is_bayesian_regression(fit: JointFit, runs: Runs) -> None:
    """Computed a second way: the covariance of θ by its precision."""
    before = Places.of(runs)
    ahead = outlook_of(fit, before, POOL)
    plain = Outlook(**(ahead.__dict__ | {"misfit": (0.0, 0.0), "cell": 0.0, "noise": 0.01}))
    cov = plain.covariances(before, POOL, "depth", 1e7, ENDS, 0.0)
    g, _ = plain.gradient("depth", 1e7, ENDS, 0.0)
    design = plain.coordinates(before)
    for d, draw in enumerate(plain.draws):
        X: Floats = jacobian(plain.names, draw, design)
        Sigma = np.linalg.inv(X.T @ X / 0.01**2 + np.diag(1 / plain.prior_sd**2))
        assert cov.v[d, 0] == pytest.approx(float(g[d, 0] @ Sigma @ g[d, 0]), rel=1e-3)


def test_a_gain_is_what_taking_the_run_gives(fit: JointFit, runs: Runs) -> None:
    _, cov = view(fit, runs)
    gains, before = cov.gains(0), cov.log_sd(0)
    for run in range(len(POOL)):
        after = cov.copy()
        after.take(run)
        assert before - after.log_sd(0) == pytest.approx(float(gains[run]), abs=1e-9)
        assert gains[run] > 0
    assert cov.log_sd(0) == before, "a copy is conditioned by itself"


def test_no_run_lowers_what_is_assumed_beyond_the_largest_size(fit: JointFit, runs: Runs) -> None:
    _, cov = view(fit, runs)
    assert cov.rest[0] > cov.rest[1] > 0, "a larger run brings the runs nearer to the target"
    assert math.sqrt(cov.rest[0]) < BEYOND[1] * math.log(10)
    lowest = cov.floor(0)
    assert math.exp(2 * lowest) >= cov.rest[0]
    for _ in range(40):
        cov.take(int(np.argmax(cov.gains(0))))
    assert lowest - 1e-6 <= cov.log_sd(0)


def test_repeating_a_shape_helps_less_and_less(fit: JointFit, runs: Runs) -> None:
    _, cov = view(fit, runs)
    first = cov.gains(0)[0]
    cov.take(0)
    assert cov.gains(0)[0] < 0.7 * first


def test_without_any_run_everything_is_open_and_assumed() -> None:
    ahead, cov = view(None, None)
    assert ahead.assumed
    assert (ahead.draws[:, ahead.names.index("curvature")] > 0).all()
    assert math.exp(cov.log_sd(0)) > 1.5


def test_lengths_and_embeddings_enter_where_the_pool_varies_them() -> None:
    total = np.array([1.5e6, 1.2e6, 1.1e6])
    pool = Places(np.array([2.0, 4, 8]), np.full(3, 1e6), total, np.array([1e6, 2e6, 4e6]), np.ones(3))
    ahead = outlook_of(None, Places.none(), pool)
    assert {"data", "depth_tokens", "embeddings"} <= set(ahead.names)
    cov = ahead.covariances(Places.none(), pool, "loss", 1e7, np.array([1e6]), 0.1)
    assert np.isfinite(cov.log_sd(0))
    assert {"data", "embeddings"} & set(view(None, None)[0].names) == set()


def test_a_target_of_loss_has_the_features_of_a_run_at_the_best_depth(fit: JointFit, runs: Runs) -> None:
    ahead = outlook_of(fit, Places.of(runs), POOL)
    g, rest = ahead.gradient("loss", 1e7, ENDS, 0.0)
    assert (rest == 0).all()
    np.testing.assert_allclose(g[:, 0, ahead.names.index("level")], 1, rtol=1e-6)
    np.testing.assert_allclose(g[:, 0, ahead.names.index("curvature")], 0, atol=1e-6)
