"""What further runs would do to an interval: the updates are right, and what no run changes stays."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deepwide.fitting import Covariances, JointFit, Outlook, Places, Runs, fit_joint, outlook_of, simulate
from deepwide.fitting.misfit import Missed
from deepwide.fitting.model import jacobian, log_loss
from deepwide.fitting.outlook import mixture_width
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
    assert step.log_width(1) == pytest.approx(direct.log_width(1), abs=1e-3)


def test_without_misfit_it_is_bayesian_regression(fit: JointFit, runs: Runs) -> None:
    """Computed a second way: the covariance of θ by its precision."""
    before = Places.of(runs)
    ahead = outlook_of(fit, before, POOL)
    plain = Outlook(**(ahead.__dict__ | {"misfit": Missed(), "cell": 0.0, "noise": 0.01}))
    cov = plain.covariances(before, POOL, "depth", 1e7, ENDS, 0.0)
    g = plain.gradient("depth", 1e7, ENDS, 0.0).gradient
    design = plain.coordinates(before)
    for d, draw in enumerate(plain.draws):
        X: Floats = jacobian(plain.names, draw, design)
        Sigma = np.linalg.inv(X.T @ X / 0.01**2 + np.diag(1 / plain.prior_sd**2))
        for case in (0, 1):
            assert cov.v[d, case] == pytest.approx(float(g[d, 0, case] @ Sigma @ g[d, 0, case]), rel=1e-3)


def test_a_gain_is_what_taking_the_run_gives(fit: JointFit, runs: Runs) -> None:
    _, cov = view(fit, runs)
    gains, before = cov.gains(0), cov.log_width(0)
    for run in range(len(POOL)):
        after = cov.copy()
        after.take(run)
        assert before - after.log_width(0) == pytest.approx(float(gains[run]), rel=0.1), "to first order"
        assert gains[run] > 0
    assert cov.log_width(0) == before, "a copy is conditioned by itself"


def test_no_run_lowers_what_is_assumed_beyond_the_largest_size(fit: JointFit, runs: Runs) -> None:
    _, cov = view(fit, runs)
    assert cov.rest[0, 1] > cov.rest[1, 1] > cov.rest[0, 0] == 0, "a larger run brings the runs nearer to the target"
    assert (cov.apart[:, 0] > cov.apart[:, 1]).all()
    lowest = cov.floor(0)
    assert cov.beyond(1) < cov.beyond(0) <= lowest
    for _ in range(40):
        cov.take(int(np.argmax(cov.gains(0))))
    assert lowest - 1e-6 <= cov.log_width(0)


def test_repeating_a_shape_helps_less_and_less(fit: JointFit, runs: Runs) -> None:
    _, cov = view(fit, runs)
    first = cov.gains(0)[0]
    cov.take(0)
    assert cov.gains(0)[0] < 0.7 * first


def test_a_draw_whose_bowl_is_all_but_flat_breaks_nothing(fit: JointFit, runs: Runs) -> None:
    """Its place is anywhere (e^−314 layers, once), and features there are beyond any arithmetic."""
    draws = np.array(fit.resamples)
    draws[::2, fit.names.index("curvature")] = 1e-9
    draws[::2, fit.names.index("depth")] = -314.5
    _, cov = view(fit.model_copy(update={"resamples": tuple(map(tuple, draws.tolist()))}), runs)
    assert np.isfinite(cov.log_width(0))
    assert np.abs(cov.K).max() < 1e4


def test_long_runs_are_assumed_to_have_flatter_bowls() -> None:
    def expected(tokens: float) -> float:
        pool = replace(POOL, tokens=np.full(len(POOL), tokens))
        cov = outlook_of(None, Places.none(), pool, noise=0.005).covariances(
            Places.none(), pool, "depth", 1e6, np.array([1e6]), 0.0
        )
        for run in (0, 1, 2, 0, 1, 2):
            cov.take(run)
        return cov.log_width(0)

    assert expected(1e11) > expected(2e6)


def test_without_any_run_everything_is_open_and_assumed() -> None:
    ahead, cov = view(None, None)
    assert ahead.assumed
    assert (ahead.draws[:, ahead.names.index("curvature")] > 0).all()
    assert math.exp(cov.log_width(0)) > 1.5


def test_made_up_losses_follow_a_draw_and_seeds_of_a_shape_share_its_cell() -> None:
    ahead = outlook_of(None, Places.none(), POOL, noise=0.01)
    twice = POOL.at([*range(len(POOL)), *range(len(POOL))])
    many = np.log([ahead.made_up(twice, np.random.default_rng(seed)) for seed in range(300)])
    first, second = many[:, : len(POOL)], many[:, len(POOL) :]
    expected = log_loss(ahead.names, ahead.draws[:1], ahead.coordinates(POOL))[0]
    np.testing.assert_allclose(many.mean(axis=0), np.tile(expected, 2), atol=0.004)
    assert np.std(first - second) == pytest.approx(math.sqrt(2) * ahead.noise, rel=0.1)
    assert np.std(first - expected) > math.hypot(ahead.noise, 0.9 * ahead.cell)


def test_lengths_and_embeddings_enter_where_the_pool_varies_them() -> None:
    total = np.array([1.5e6, 1.2e6, 1.1e6])
    pool = Places(np.array([2.0, 4, 8]), np.full(3, 1e6), total, np.array([1e6, 2e6, 4e6]), np.ones(3))
    ahead = outlook_of(None, Places.none(), pool)
    assert {"data", "depth_tokens", "embeddings"} <= set(ahead.names)
    cov = ahead.covariances(Places.none(), pool, "loss", 1e7, np.array([1e6]), 0.1)
    assert np.isfinite(cov.log_width(0))
    assert {"data", "embeddings"} & set(view(None, None)[0].names) == set()


def test_a_target_of_loss_has_the_features_of_a_run_at_the_best_depth(fit: JointFit, runs: Runs) -> None:
    ahead = outlook_of(fit, Places.of(runs), POOL)
    target = ahead.gradient("loss", 1e7, ENDS, 0.0)
    assert (target.rest == 0).all()
    assert (target.apart == 0).all()
    np.testing.assert_allclose(target.gradient[..., ahead.names.index("level")], 1, rtol=1e-6)
    np.testing.assert_allclose(target.gradient[..., ahead.names.index("curvature")], 0, atol=1e-6)


def test_what_is_expected_of_a_loss_is_about_what_the_fit_states(fit: JointFit, runs: Runs) -> None:
    """What the model misses is part of the loss, in the promise as in the limits."""
    ahead = outlook_of(fit, Places.of(runs), POOL, draws=100)
    for size in (2e5, 4e6, 4e7):
        cov = ahead.covariances(Places.of(runs), POOL, "loss", size, np.array([size]), 0.0)
        row = fit.predict_rows(fit.best_depth(size)[0].value, size)[0]
        assert math.exp(cov.log_width(0)) == pytest.approx(math.log(row["high"] / row["low"]), rel=0.3)


def test_what_is_expected_now_is_about_what_the_law_states(fit: JointFit, runs: Runs) -> None:
    """The same interval, from the covariances and from the draws of the law."""
    _, cov = view(fit, runs)
    stated = fit.best_depth(1e7)[0]
    assert stated.low
    assert stated.high
    assert math.exp(cov.log_width(0)) == pytest.approx(math.log(stated.high / stated.low), rel=0.25)


@pytest.mark.parametrize(("sd", "apart"), [((0.1, 0.2), 0.5), ((0.5, 0.1), 0.2), ((0.05, 0.3), 2.0), ((1.0, 1.0), 0.0)])
def test_the_middle_of_a_mixture_is_that_of_its_draws(sd: tuple[float, float], apart: float) -> None:
    draw = np.random.default_rng(0)
    values = np.concatenate([draw.normal(0, sd[0], 400_000), draw.normal(apart, sd[1], 400_000)])
    low, high = np.quantile(values, (0.025, 0.975))
    width, slopes = mixture_width(np.array([sd]), np.array([apart]))
    assert width[0] == pytest.approx(high - low, rel=0.01)
    for case in (0, 1):
        more = np.array([sd])
        more[0, case] += 1e-4
        assert (mixture_width(more, np.array([apart]))[0] - width)[0] == pytest.approx(1e-4 * slopes[0, case], rel=0.01)


def test_noise_that_is_assumed_falls_with_length_and_is_that_of_the_length_asked_about() -> None:
    lengths = np.array([1e6, 2e6, 4e6])
    pool = Places(POOL.depth[:3], POOL.block_params[:3], POOL.total_params[:3], lengths, np.ones(3))
    ahead = outlook_of(None, Places.none(), pool, length=4e6)
    assert [ahead.noise_at(tokens) for tokens in (1e6, 2e6, 4e6)] == pytest.approx([0.0158, 0.0112, 0.0079], rel=0.01)
    given = outlook_of(None, Places.none(), pool, length=4e6, noise=0.003)
    assert given.noise_at(4e6) == pytest.approx(0.003)
    assert given.noise_at(1e6) == pytest.approx(0.006, rel=0.01)
    longest = outlook_of(None, Places.none(), pool, noise=0.003)
    assert longest.noise_at(4e6) == pytest.approx(0.003)
