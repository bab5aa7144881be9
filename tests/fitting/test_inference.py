"""What the joint model infers from losses that follow it, and from some that do not."""

import math

import numpy as np
import pytest

from deepwide.fitting.inference import climb, draw_places, infer, settled
from deepwide.fitting.misfit import misfit_factors
from deepwide.fitting.mixed import Cells, Mixture
from deepwide.fitting.model import PRIORS, Design, by_name, log_loss, size_curve
from deepwide.quantities import Floats

S, X = (column.ravel() for column in np.meshgrid(np.linspace(-3, 3, 7), np.log([1.0, 2, 4, 8])))
DESIGN = Design(S, None, None, X)
TRUE = {"level": 0.4, "floor": 0.3, "size_power": math.log(0.25), "size2": 0.0, "curvature": 0.02,
        "curvature_size": 0.0, "skew": 0.15, "tail": 0.2, "depth": 1.1, "growth": 0.3, "bend": 0.0}  # fmt: skip


def _theta(design: Design, **changes: float) -> Floats:
    values = {name: mean for name, (mean, _) in PRIORS.items()} | TRUE | changes
    return np.array([values[name] for name in design.names])


def _cells(y: Floats) -> Cells:
    return Cells(np.arange(len(y)), y, np.eye(len(y)), np.zeros(len(y)), np.zeros(len(y)))


def test_losses_that_follow_it_give_it_back() -> None:
    y = log_loss(DESIGN.names, _theta(DESIGN)[None], DESIGN)[0]
    fit = infer(_cells(y + np.random.default_rng(1).normal(0, 3e-5, len(y))), DESIGN, number=400)
    values = dict(zip(fit.names, fit.mode, strict=True))
    for name in ("depth", "growth", "curvature", "skew", "tail"):
        assert values[name] == pytest.approx(TRUE[name], rel=0.03), name
    assert fit.flat == 0


def test_without_a_bowl_there_is_doubt() -> None:
    y = log_loss(DESIGN.names, _theta(DESIGN, curvature=0.0)[None], DESIGN)[0]
    fit = infer(_cells(y + np.random.default_rng(2).normal(0, 0.004, len(y))), DESIGN, number=400)
    assert fit.flat > 0.1


def test_the_bend_s_prior_decides_what_the_runs_do_not() -> None:
    y = log_loss(DESIGN.names, _theta(DESIGN)[None], DESIGN)[0]
    noisy = infer(_cells(y + np.random.default_rng(3).normal(0, 0.02, len(y))), DESIGN, number=400)
    i = noisy.names.index("bend")
    assert noisy.mixture.covariance[i, i] ** 0.5 == pytest.approx(PRIORS["bend"][1], rel=0.15)
    assert abs(noisy.mixture.mean[i]) < PRIORS["bend"][1]


def _checkpoints(seed: int) -> tuple[Cells, Design, Floats]:
    """Five lengths of each of 24 shapes, hardly any noise, and loss against size and tokens that is no sum of powers:
    like Gemstones, on which whole steps of Gauss and Newton ran in circles."""
    rng = np.random.default_rng(seed)
    s, x, t = (c.ravel() for c in np.meshgrid(np.linspace(-2, 2, 6), np.log([6.0, 12, 24, 48]), np.linspace(-1, 1, 5)))
    design = Design(s, t, None, x)
    theta = _theta(design, curvature=0.012, depth=3.0, depth_tokens=0.05)
    bumps = 0.008 * np.sin(1.3 * s + 2 * t) + 0.006 * np.cos(2.1 * t - s)
    shapes = np.unique(np.round(np.column_stack([s, x]), 6), axis=0, return_inverse=True)[1].reshape(-1)
    y = log_loss(design.names, theta[None], design)[0] + bumps + rng.normal(0, 0.001, 24)[shapes]
    return _cells(y + rng.normal(0, 0.001, len(y))), design, theta


@pytest.mark.parametrize("seed", range(3))
def test_checkpoints_whose_losses_are_no_sum_of_powers_do_not_move_the_bowl(seed: int) -> None:
    cells, design, theta = _checkpoints(seed)
    fit = infer(cells, design, number=400)
    assert fit.mixture.distance(fit.mixture.mean, fit.mode) < 0.5
    assert fit.different > 0.9
    for name in ("depth", "growth", "depth_tokens"):
        i = fit.names.index(name)
        low, high = np.quantile(fit.draws[:, i], (0.005, 0.995))
        assert low < theta[i] < high, name
        assert low < fit.mode[i] < high, name


def test_climbing_ends_higher_wherever_it_starts() -> None:
    cells, design, theta = _checkpoints(0)
    mean, sd = np.array([PRIORS[name] for name in design.names]).T
    factors = list(misfit_factors(design).values())
    setting = np.array([1.0, 0.0, 0.0, 0.0, 4.0, 1.0])
    ends = []
    for seed in range(4):
        start = theta + np.random.default_rng(seed).normal(0, 0.3, len(theta)) * np.where(np.isfinite(sd), sd, 0.05)
        end, height = climb(cells, design, start, mean, sd, factors, setting, 1e-6)
        again, same = climb(cells, design, end, mean, sd, factors, setting, 1e-6)
        assert same <= height
        assert again == pytest.approx(end, abs=0.05)
        ends.append(same)
    assert max(ends) - min(ends) < 1.0


NAMES = ("level", "curvature", "depth", "growth")
MEAN, SD = np.array([0.0, 0.0, 0.0, 0.25]), np.array([np.inf, np.inf, np.inf, 0.05])


def _linear(error: float) -> Mixture:
    """What a linear regression says of level, curvature, place and growth, its curvature with this error."""
    spread = np.array([0.003, error, 0.1, 0.035])
    correlation = np.eye(4) + 0.3 * (1 - np.eye(4)) * np.array([[1, -1, 1, 1]] * 4) * np.array([[1, -1, 1, 1]] * 4).T
    scale = correlation * np.outer(spread, spread)
    mean = np.array([[0.5, 0.02, 1.1, 0.3]])
    return Mixture(np.ones(1), mean, scale[None], 30.0, np.array([1e-5]), np.zeros((1, 2)), np.zeros(1, dtype=int))


def test_places_follow_the_exact_posterior() -> None:
    """Against weights of whole draws, of which many are enough where the bowl is known to 15%."""
    mixture, mode = _linear(0.003), np.array([0.5, 0.021, 1.05, 0.28])
    got = draw_places(NAMES, mode, mixture, MEAN, SD, 40_000, 0, (0.0, 0.0)).draws
    draws, _ = mixture.draw(400_000, 5)
    draws = draws[draws[:, 1] > 0]
    steeper = mode[1] / draws[:, 1]
    exact = mode + (draws - mode) * np.where(np.isin(np.arange(4), (2, 3)), steeper[:, None], 1.0)
    weights = steeper * np.exp((((draws[:, 3] - 0.25) / SD[3]) ** 2 - ((exact[:, 3] - 0.25) / SD[3]) ** 2) / 2)
    weights /= weights.sum()
    for i in range(4):
        middle = weights @ exact[:, i]
        error = math.sqrt(weights @ (exact[:, i] - middle) ** 2)
        assert got[:, i].mean() == pytest.approx(middle, abs=0.03 * error)
        assert got[:, i].std() == pytest.approx(error, rel=0.03)


def test_no_draw_of_a_flat_bowl_outweighs_the_others() -> None:
    for seed in range(20):
        draws = draw_places(NAMES, np.array([0.5, 0.02, 1.1, 0.3]), _linear(0.008), MEAN, SD, 1000, seed, (0, 0)).draws
        assert np.unique(draws[:, 1], return_counts=True)[1].max() < 50


def test_settled_draws_give_the_curve_of_the_linear_model() -> None:
    s, x = (c.ravel() for c in np.meshgrid(np.linspace(-3, 3, 6), np.log([1.0, 2, 4, 8])))
    design = Design(s, s.copy(), None, x)
    names = design.names
    mode = np.array([{"level": 1.0, "curvature": 0.02, "depth": 1.0}.get(name, PRIORS[name][0]) for name in names])
    sd = np.array([PRIORS[name][1] for name in names])
    draws = np.tile(mode, (50, 1))
    together = [names.index(name) for name in ("floor", "data", "size_power", "data_power")]
    draws[:, together] += np.random.default_rng(0).normal(0, 0.7, (50, 4))
    moved = settled(names, mode, draws, design, sd, 0.004)
    slopes = [(size_curve(by_name(names, mode + h), design) - size_curve(by_name(names, mode), design)) / 1e-6
              for h in 1e-6 * np.eye(len(names))]  # fmt: skip
    linear = size_curve(by_name(names, mode), design) + (draws - mode) @ np.array(slopes)
    off, before = (np.abs(size_curve(by_name(names, theta), design) - linear).max(axis=1) for theta in (moved, draws))
    assert np.median(before) > 0.02
    assert np.median(off) < 0.002
    others = [i for i, name in enumerate(names) if name in ("curvature", "skew", "depth", "growth", "bend")]
    assert (moved[:, others] == draws[:, others]).all()


def test_the_order_of_draws_says_nothing() -> None:
    draws = draw_places(NAMES, np.array([0.5, 0.02, 1.1, 0.3]), _linear(0.004), MEAN, SD, 1000, 0, (1.0, 0.0)).draws
    assert np.all(np.abs(np.corrcoef(np.arange(1000), draws.T)[0, 1:]) < 0.15)
