"""The joint model: its formula, its priors, and what it infers from losses that follow it."""

import math

import numpy as np
import pytest

from deepwide.fitting.inference import draw_places, infer, settled
from deepwide.fitting.mixed import Cells, Mixture
from deepwide.fitting.model import PRIORS, SOFT, Design, by_name, log_loss, size_curve
from deepwide.quantities import Floats

S, X = (column.ravel() for column in np.meshgrid(np.linspace(-3, 3, 7), np.log([1.0, 2, 4, 8])))
DESIGN = Design(S, None, None, X)
TRUE = {"level": 0.4, "floor": 0.3, "size_power": math.log(0.25), "size2": 0.0, "curvature": 0.02,
        "curvature_size": 0.0, "skew": 0.15, "tail": 0.2, "depth": 1.1, "growth": 0.3, "bend": 0.0}  # fmt: skip


def _theta(design: Design, **changes: float) -> Floats:
    values = {name: mean for name, (mean, _) in PRIORS.items()} | TRUE | changes
    return np.array([values[name] for name in design.names])


def _cells(y: Floats) -> Cells:
    return Cells(np.arange(len(y)), y, np.eye(len(y)), 0.0, 0)


def test_the_formula_is_that_of_the_page() -> None:
    design = Design(np.array([0.7]), np.array([-0.4]), np.array([0.2]), np.array([1.5]))
    changes = {"data": -0.3, "curvature_tokens": 0.05, "depth_tokens": 0.02, "bend": 0.01, "curvature_size": -0.1}
    changes |= {"embeddings": 0.6, "size2": 0.001}
    theta = dict(zip(design.names, _theta(design, **changes).tolist(), strict=True))
    alpha, beta = math.exp(theta["size_power"]), math.exp(theta["data_power"])
    f, g = math.exp(theta["floor"]), math.exp(theta["data"])
    z = 1.5 - (1.1 + 0.3 * 0.7 + 0.01 * 0.49 + 0.02 * -0.4)
    curve = math.log((f + math.exp(-alpha * (0.7 + 0.6 * 0.2)) + g * math.exp(beta * 0.4)) / (f + 1 + g))
    sides = 2 * (math.exp(-0.2 * z) - 1 + 0.2 * z) / 0.2**2 * (1 - 0.15 * z / math.hypot(z, SOFT))
    bowl = 0.02 * math.exp(-0.1 * 0.7 - 0.05 * 0.4) * sides
    expected = 0.4 + curve + 0.001 * 0.49 + bowl
    assert log_loss(design.names, np.array([list(theta.values())]), design)[0, 0] == pytest.approx(expected)


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


def test_one_length_has_no_terms_of_tokens() -> None:
    assert "data" not in DESIGN.names
    assert "embeddings" not in DESIGN.names
    assert set(Design(S, S, S, X).names) == set(PRIORS)


NAMES = ("level", "curvature", "depth", "growth")
MEAN, SD = np.array([0.0, 0.0, 0.0, 0.25]), np.array([np.inf, np.inf, np.inf, 0.05])


def _linear(error: float) -> Mixture:
    """What a linear regression says of level, curvature, place and growth, its curvature with this error."""
    spread = np.array([0.003, error, 0.1, 0.035])
    correlation = np.eye(4) + 0.3 * (1 - np.eye(4)) * np.array([[1, -1, 1, 1]] * 4) * np.array([[1, -1, 1, 1]] * 4).T
    scale = correlation * np.outer(spread, spread)
    mean = np.array([[0.5, 0.02, 1.1, 0.3]])
    return Mixture(np.ones(1), mean, scale[None], 30.0, np.array([1e-5]), np.zeros((1, 1)), np.zeros(1, dtype=int))


def test_places_follow_the_exact_posterior() -> None:
    """Against weights of whole draws, of which many are enough where the bowl is known to 15%."""
    mixture, mode = _linear(0.003), np.array([0.5, 0.021, 1.05, 0.28])
    got = draw_places(NAMES, mode, mixture, MEAN, SD, 40_000, 0, 0.0).draws
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
        draws = draw_places(NAMES, np.array([0.5, 0.02, 1.1, 0.3]), _linear(0.008), MEAN, SD, 1000, seed, 0.0).draws
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
    draws = draw_places(NAMES, np.array([0.5, 0.02, 1.1, 0.3]), _linear(0.004), MEAN, SD, 1000, 0, 1.0).draws
    assert np.all(np.abs(np.corrcoef(np.arange(1000), draws.T)[0, 1:]) < 0.15)
