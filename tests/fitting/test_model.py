"""The joint model: its formula and its parameters."""

import math

import numpy as np
import pytest

from deepwide.fitting.model import PRIORS, SOFT, Design, along, best_log_depth, by_name, log_loss
from deepwide.quantities import Floats

S, X = (column.ravel() for column in np.meshgrid(np.linspace(-3, 3, 7), np.log([1.0, 2, 4, 8])))
DESIGN = Design(S, None, None, X)
TRUE = {"level": 0.4, "floor": 0.3, "size_power": math.log(0.25), "size2": 0.0, "curvature": 0.02,
        "curvature_size": 0.0, "skew": 0.15, "tail": 0.2, "depth": 1.1, "growth": 0.3, "bend": 0.0}  # fmt: skip


def _theta(design: Design, **changes: float) -> Floats:
    values = {name: mean for name, (mean, _) in PRIORS.items()} | TRUE | changes
    return np.array([values[name] for name in design.names])


def test_the_formula_is_that_of_the_page() -> None:
    design = Design(np.array([0.7]), np.array([-0.4]), np.array([0.2]), np.array([1.5]))
    changes = {"data": -0.3, "curvature_tokens": 0.05, "depth_tokens": 0.02, "bend": 0.01, "curvature_size": -0.1}
    changes |= {"embeddings": 0.6, "size2": 0.001, "bend_both": 0.03, "bend_tokens": -0.02}
    theta = dict(zip(design.names, _theta(design, **changes).tolist(), strict=True))
    alpha, beta = math.exp(theta["size_power"]), math.exp(theta["data_power"])
    f, g = math.exp(theta["floor"]), math.exp(theta["data"])
    z = 1.5 - (1.1 + 0.3 * 0.7 + 0.01 * 0.49 + 0.02 * -0.4 + 0.03 * 0.7 * -0.4 - 0.02 * 0.16)
    curve = math.log((f + math.exp(-alpha * (0.7 + 0.6 * 0.2)) + g * math.exp(beta * 0.4)) / (f + 1 + g))
    sides = 2 * (math.exp(-0.2 * z) - 1 + 0.2 * z) / 0.2**2 * (1 - 0.15 * z / math.hypot(z, SOFT))
    bowl = 0.02 * math.exp(-0.1 * 0.7 - 0.05 * 0.4) * sides
    expected = 0.4 + curve + 0.001 * 0.49 + bowl
    assert log_loss(design.names, np.array([list(theta.values())]), design)[0, 0] == pytest.approx(expected)


def test_one_length_has_no_terms_of_tokens() -> None:
    assert "data" not in DESIGN.names
    assert "embeddings" not in DESIGN.names
    assert set(Design(S, S, S, X).names) == set(PRIORS)


def test_along_a_line_of_tokens_the_best_depth_is_a_power_that_bends() -> None:
    changes = {"depth_tokens": 0.2, "bend_both": 0.03, "bend_tokens": -0.02, "bend": 0.01}
    at, slope = 0.7, 0.9
    whole = Design(S, at + slope * S, S, X)
    theta = by_name(whole.names, _theta(whole, **changes)[None])
    place, growth, bend = along(theta, (at, slope))
    assert (place + growth * S + bend * S**2)[0] == pytest.approx(best_log_depth(theta, whole)[0])
    one = by_name(DESIGN.names, _theta(DESIGN)[None])
    assert [float(part[0, 0]) for part in along(one, (at, slope))] == [1.1, 0.3, 0.0]
