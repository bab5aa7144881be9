"""The residual under attention alone, against plain double precision where it suffices and 900 digits where not."""

import math

import numpy as np
import pytest

from deepwide.probes import (
    AttentionLayer,
    attention_collapse,
    collapse_bound,
    composite_norm,
    random_layers,
    relative_residual,
)


def plain_layer(x: np.ndarray, layer: AttentionLayer) -> np.ndarray:
    """Attention as everybody writes it."""
    total = np.zeros_like(x)
    for w, v in zip(layer.scores_HDD, layer.values_HDD, strict=True):
        scores = x @ w @ x.T
        weights = np.exp(scores - scores.max(1, keepdims=True))
        total += weights / weights.sum(1, keepdims=True) @ x @ v
    return total


def digits_of_residual(x: np.ndarray, layers: list[AttentionLayer], digits: int) -> list[float]:
    """log ‖res‖ of every layer by mpmath, with so many digits and no thought."""
    mpmath = pytest.importorskip("mpmath")
    logs = []
    with mpmath.workdps(digits):
        state = mpmath.matrix(x.tolist())
        for layer in [None, *layers]:
            if layer is not None:
                result = mpmath.zeros(state.rows, state.cols)
                for w, v in zip(layer.scores_HDD, layer.values_HDD, strict=True):
                    scores = state * mpmath.matrix(w.tolist()) * state.T
                    weights = scores.apply(mpmath.exp)
                    for i in range(weights.rows):
                        row = sum(weights[i, j] for j in range(weights.cols))
                        for j in range(weights.cols):
                            weights[i, j] /= row
                    result += weights * state * mpmath.matrix(v.tolist())
                state = result
            means = [sum(state[i, j] for i in range(state.rows)) / state.rows for j in range(state.cols)]
            gap = [[abs(state[i, j] - means[j]) for j in range(state.cols)] for i in range(state.rows)]
            columns = max(sum(row[j] for row in gap) for j in range(state.cols))
            logs.append(float(mpmath.log(columns * max(sum(row) for row in gap)) / 2))
    return logs


def test_the_norm_is_the_geometric_mean_of_column_and_row_sums() -> None:
    assert composite_norm(np.array([[1.0, -2.0], [3.0, 4.0]])) == math.sqrt(6 * 7)
    assert relative_residual(np.ones((3, 2))) == 0
    assert relative_residual(np.zeros((3, 2))) == 0
    assert relative_residual(np.array([[1.0], [-1.0]])) == 1


@pytest.mark.parametrize(("heads", "scale", "size"), [(1, 1.0, 1.0), (4, 1.0, 0.3), (2, 3.0, 2.0), (2, 0.5, 10.0)])
def test_where_double_precision_suffices_it_is_plain_attention(heads: int, scale: float, size: float) -> None:
    rng = np.random.default_rng(1)
    x = size * rng.normal(size=(6, 8))
    layers = random_layers(1, 8, heads, rng, scale)
    outputs = [x, plain_layer(x, layers[0])]
    for residual, output in zip(attention_collapse(x, layers), outputs, strict=True):
        assert residual.log_norm == pytest.approx(math.log(composite_norm(output - output.mean(0))), abs=1e-9)
        assert residual.log_relative == pytest.approx(math.log(relative_residual(output)), abs=1e-9)


@pytest.mark.parametrize("heads", [1, 2])
def test_where_it_does_not_it_agrees_with_nine_hundred_digits(heads: int) -> None:
    rng = np.random.default_rng(2)
    x, layers = rng.normal(size=(4, 4)), random_layers(5, 4, heads, rng)
    exact = digits_of_residual(x, layers, 900)
    assert exact[-1] < math.log(1e-60), "far below double precision"
    assert [residual.log_norm for residual in attention_collapse(x, layers)] == pytest.approx(exact, rel=1e-9)


def test_the_logarithm_of_the_residual_trebles_with_every_layer() -> None:
    rng = np.random.default_rng(3)
    logs = [
        residual.log_norm for residual in attention_collapse(rng.normal(size=(8, 16)), random_layers(9, 16, 4, rng))
    ]
    assert logs[-1] / logs[-2] == pytest.approx(3, abs=0.05)
    assert logs[-1] < -5e3, "a residual with thousands of zeros behind the point"


def test_equal_rows_stay_equal() -> None:
    rng = np.random.default_rng(4)
    residuals = attention_collapse(np.ones((5, 1)) * [[1.0, 2.0, -3.0, 4.0]], random_layers(2, 4, 1, rng))
    assert all(residual.log_norm == -math.inf for residual in residuals)


@pytest.mark.parametrize("size", [1e-3, 1e-2, 0.1, 1.0, 3.0])
def test_the_residual_stays_below_the_bound(size: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, layers = size * rng.normal(size=(8, 12)) + rng.normal(size=12), random_layers(4, 12, 3, rng)
        measured = [residual.log_norm for residual in attention_collapse(x, layers)]
        bound = collapse_bound(x, layers)
        assert bound[0] == pytest.approx(measured[0])
        assert all(low <= high for low, high in zip(measured[1:], bound[1:], strict=True))


def test_the_bound_is_made_of_gamma_and_beta() -> None:
    """Both from a dense pass over the network: γ from the weights that all rows share, β from the matrices."""
    rng = np.random.default_rng(1)
    x, layers = rng.normal(size=(6, 8)), random_layers(2, 8, 2, rng)
    gammas, betas, stream = [], [], x
    for layer in layers:
        mean = stream.mean(0)
        output = np.zeros_like(stream)
        for w, v in zip(layer.scores_HDD, layer.values_HDD, strict=True):
            shared = np.exp((stream - mean) @ w.T @ mean)
            gammas.append(math.sqrt(6 * shared.max() / shared.sum()))
            betas.append(np.linalg.norm(w, 1) * composite_norm(v))
            weights = np.exp(stream @ w @ stream.T)
            output += weights / weights.sum(1, keepdims=True) @ stream @ v
        stream = output
    c = 4 * 2 * max(gammas) * max(betas)
    start = math.log(composite_norm(x - x.mean(0)))
    expected = [start, math.log(c) + 3 * start, 4 * math.log(c) + 9 * start]
    assert collapse_bound(x, layers) == pytest.approx(expected, rel=1e-9)
