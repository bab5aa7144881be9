"""Rank collapse: how far the rows of a layer's output are from being all the same (Dong, Cordonnier, Loukas 2021).

res(X) = X − 1·mᵀ with m the mean row. Under attention alone its norm r falls like r ← κ·r³ per layer, so double
precision is exhausted by the third layer. `attention_collapse` follows it to any depth in double precision, because it
keeps m and res(X) apart and takes the cube out of the formulas:

With X = 1mᵀ + ρR (ΣR_i = 0) and scores x_iᵀ W x_j/√E, what does not depend on j cancels in the softmax. What is left is
b_j + c_ij with b_j = ρ·mᵀWR_j/√E and c_ij = ρ²·R_iᵀWR_j/√E. With e_j = exp b_j, g_ij = e_j·expm1(c_ij), B = Σe_j and
G_i = Σ_j g_ij the weights are p_ij = e_j/B + Δ_ij, Δ_ij = (g_ij·B − e_j·G_i)/(B(B + G_i)). The first part is the same
for all rows; Σ_j Δ_ij = 0, so the rows of the output differ by Σ_j Δ_ij ρR_j, and Δ is of the order of ρ². Every factor
ρ is kept as a logarithm, and no difference of nearly equal numbers is ever taken.

The bound (its formula is recalled from the paper, γ is reconstructed here): with e_j/B as above and D_i = max_j c_ij −
min_j c_ij ≤ 1.256, |Δ_ij| ≤ (e_j/B)(exp D_i − 1) ≤ 2D_i·e_j/B ≤ (e_j/B)·4‖W‖₁r²/√E, since |R_iᵀWR_j|ρ² ≤ ‖W‖₁r². In
the composite norm that gives ‖ΔρRV‖ ≤ 4γ‖W‖₁‖V‖/√E·r³ with γ = √(n·max_j e_j/B), which is 1 for uniform attention. So
with β ≥ ‖W‖₁‖V‖ for all heads and layers, r_L ≤ c^((3^L−1)/2)·r_0^(3^L), c = 4γβH/√E.

Letters: n positions, D width, H heads, E head width, W = W_Q W_Kᵀ (D × D), V = W_V W_O (D × D), one per head.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepwide.quantities import Floats


class AttentionLayer(NamedTuple):
    """One layer of attention without skip connection, feed-forward or normalisation."""

    scores_HDD: Floats  # noqa: N815  W_Q W_Kᵀ / √E of each head
    values_HDD: Floats  # noqa: N815  W_V W_O of each head


class Residual(NamedTuple):
    """How far a layer's input or output is from equal rows, as natural logarithms."""

    log_norm: float  # of the composite norm of res(X)
    log_relative: float  # of that over the composite norm of X


def composite_norm(x_ND: Floats) -> float:
    """√(‖X‖₁·‖X‖_∞), the norm of the paper: the largest column sum times the largest row sum of absolute values."""
    magnitude = np.abs(x_ND)
    return math.sqrt(float(magnitude.sum(0).max()) * float(magnitude.sum(1).max()))


def relative_residual(x_ND: Floats) -> float:
    """‖res(X)‖ / ‖X‖ in the composite norm; 0 when all rows are equal."""
    norm = composite_norm(x_ND)
    return composite_norm(x_ND - x_ND.mean(0)) / norm if norm else 0.0


def random_layers(
    depth: int, width: int, heads: int, rng: np.random.Generator, scale: float = 1.0
) -> list[AttentionLayer]:
    """Layers whose four matrices have independent normal entries of variance scale²/fan-in."""
    head_dim = width // heads
    layers = []
    for _ in range(depth):
        q, k, v = rng.normal(0, scale / math.sqrt(width), (3, heads, width, head_dim))
        out = rng.normal(0, scale / math.sqrt(width), (heads, head_dim, width))
        layers.append(AttentionLayer(q @ k.transpose(0, 2, 1) / math.sqrt(head_dim), v @ out))
    return layers


def attention_collapse(x_ND: Floats, layers: Sequence[AttentionLayer]) -> list[Residual]:
    """The residual of the input and of every layer's output under attention alone, to any depth."""
    mean_D = x_ND.mean(0)
    direction_ND, log_size = _split(x_ND - mean_D, 0.0)
    residuals = [_residual(mean_D, direction_ND, log_size)]
    for layer in layers:
        mean_D, direction_ND, log_size = _attend(mean_D, direction_ND, log_size, layer)
        residuals.append(_residual(mean_D, direction_ND, log_size))
    return residuals


def collapse_bound(x_ND: Floats, layers: Sequence[AttentionLayer]) -> list[float]:
    """The logarithm of the bound on the residual, of the input (its own) and after every layer: see above.

    Residuals here are those from the mean row, which are at most twice those from the best row, of which it holds.
    """
    mean_D = x_ND.mean(0)
    direction_ND, log_size = _split(x_ND - mean_D, 0.0)
    start, log_gammas, log_betas = log_size, [0.0], []
    for layer in layers:
        size = math.exp(log_size) if log_size > -700 else 0.0
        for w_DD, v_DD in zip(layer.scores_HDD, layer.values_HDD, strict=True):
            b_N = size * (mean_D @ w_DD @ direction_ND.T)
            share_N = np.exp(b_N - b_N.max())
            log_gammas.append(0.5 * math.log(len(b_N) * float(share_N.max() / share_N.sum())))
            norm_1 = float(np.abs(w_DD).sum(0).max())  # ‖W‖₁/√E
            log_betas.append(math.log(norm_1 * composite_norm(v_DD)))
        mean_D, direction_ND, log_size = _attend(mean_D, direction_ND, log_size, layer)
    heads = len(layers[0].scores_HDD) if layers else 1
    log_c = math.log(4 * heads) + max(log_gammas) + max(log_betas, default=0.0)
    return [(3**depth - 1) / 2 * log_c + 3**depth * start for depth in range(len(layers) + 1)]


def _attend(m_D: Floats, r_ND: Floats, log_size: float, layer: AttentionLayer) -> tuple[Floats, Floats, float]:
    """Mean, direction and log size of the residual after one layer."""
    size = math.exp(max(log_size, -700.0)) if log_size > -700 else 0.0
    shared_D = np.zeros_like(m_D)
    differing_ND = np.zeros_like(r_ND)  # over ρ³
    for w_DD, v_DD in zip(layer.scores_HDD, layer.values_HDD, strict=True):
        b_N = size * (m_D @ w_DD @ r_ND.T)
        e_N = np.exp(b_N - b_N.max())
        c_NN = r_ND @ w_DD @ r_ND.T  # over ρ²
        mean_weights_N, delta_NN = _weights(e_N, c_NN, size)
        shared_D += (m_D + size * (mean_weights_N @ r_ND)) @ v_DD
        differing_ND += delta_NN @ r_ND @ v_DD
    common_D = differing_ND.mean(0)
    direction_ND, log_direction = _split(differing_ND - common_D, 0.0)
    return shared_D + size**3 * common_D, direction_ND, 3 * log_size + log_direction


def _weights(e_N: Floats, c_NN: Floats, size: float) -> tuple[Floats, Floats]:
    """The weights that rows share, and how each row's differ from them, over ρ²."""
    total = float(e_N.sum())
    c = size**2 * c_NN
    if np.abs(c).max() > 1:  # far from collapse: plain differences lose nothing
        scores = np.log(np.maximum(e_N, np.finfo(float).tiny)) + c
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        return e_N / total, (weights - e_N / total) / size**2
    ratio = np.where(np.abs(c) > 1e-300, np.expm1(c) / np.where(c == 0, 1.0, c), 1.0)  # expm1(c) / c
    g_NN = e_N * c_NN * ratio
    G_N1 = g_NN.sum(1, keepdims=True)
    return e_N / total, (g_NN * total - e_N * G_N1) / (total * (total + size**2 * G_N1))


def _split(x_ND: Floats, log_size: float) -> tuple[Floats, float]:
    """A residual as a direction of norm 1 and the logarithm of its size."""
    norm = composite_norm(x_ND)
    if norm == 0:
        return x_ND, -math.inf
    return x_ND / norm, log_size + math.log(norm)


def _residual(mean_D: Floats, direction_ND: Floats, log_size: float) -> Residual:
    size = math.exp(log_size) if log_size > -700 else 0.0
    whole = composite_norm(mean_D + size * direction_ND)
    return Residual(log_size, log_size - math.log(whole) if whole else 0.0)
