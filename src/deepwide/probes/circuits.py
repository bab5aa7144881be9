"""Circuits of attention heads, read from the weights (Elhage et al. 2021): what a head copies, and which head feeds it.

Vectors are rows and matrices act from the right, so that head h writes x W_OV with W_OV = W_V W_O, and looks by the
scores x W_QK yᵀ with W_QK = W_Q W_Kᵀ. The gains of norms before the heads and before the output belong to the matrices
that read. What else a norm does (centring, dividing by a size) is no matrix and is left out, as are rotary positions.

Shapes: L layers, H heads, D width, E head width, V vocabulary.
"""
# ruff: noqa: N815 - names end in their shapes

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from deepwide.quantities import Floats

if TYPE_CHECKING:
    from torch import nn

    from deepwide.model import Transformer

Route = Literal["K", "Q", "V"]
ROUTES: tuple[Route, ...] = get_args(Route)


class HeadWeights(NamedTuple):
    """The matrices of all heads in double precision."""

    q_LHDE: Floats
    k_LHDE: Floats
    v_LHDE: Floats
    o_LHED: Floats
    embedding_VD: Floats
    output_DV: Floats


def head_weights(model: "Transformer") -> HeadWeights:
    """Every head's matrices, embedding and output of a network; key/value heads are repeated for their queries."""
    s = model.design.shape
    H, K, E = s.heads, s.kv_heads, s.head_dim
    parts = []
    for block in model.blocks:
        before = None if block.place == "post" else block.attention_norm
        qkv = _array(block.attention.qkv.weight) * _gain(before)
        q, k, v = np.split(qkv, [H * E, (H + K) * E])
        reads = [part.reshape(-1, E, s.width).transpose(0, 2, 1) for part in (q, k, v)]
        reads[1:] = [part.repeat(H // K, axis=0) for part in reads[1:]]
        parts.append((*reads, _array(block.attention.out.weight).T.reshape(H, E, s.width)))
    embedding_VD = _array(model.embedding.weight)
    unembedding_VD = embedding_VD if model.head is None else _array(model.head.weight)
    q, k, v, o = (np.stack(part) for part in zip(*parts, strict=True))
    return HeadWeights(q, k, v, o, embedding_VD, (unembedding_VD * _gain(model.final_norm)).T)


def copying_scores(weights: HeadWeights) -> Floats:
    """Σ Re λ / Σ |λ| over the eigenvalues of W_E W_OV W_U, L × H: 1 for a head that writes each token it looks at.

    The V × V matrix has rank E, and its other eigenvalues are those of W_O W_U W_E W_V, which is E × E.
    """
    around_DD = weights.output_DV @ weights.embedding_VD
    values = np.linalg.eigvals(weights.o_LHED @ around_DD @ weights.v_LHDE)
    return np.asarray(values.real.sum(-1) / np.abs(values).sum(-1))


def composition_scores(weights: HeadWeights) -> Mapping[Route, Floats]:
    """How much of what an earlier head writes a later one reads, by its keys, queries and values.

    ‖W_OV W‖ / (‖W_OV‖ ‖W‖) in Frobenius norms with W = W_QKᵀ, W_QK and W_OV of the later head. L × H × L × H: first
    the layer and head that writes, then those that read; 0 where the reader does not come later.
    """
    q, k, v, o = weights[:4]
    readers: Mapping[Route, tuple[Floats, Floats]] = {"K": (k, q), "Q": (q, k), "V": (v, o.swapaxes(-1, -2))}
    layers = np.arange(len(q))
    later_LL = (layers[:, None] < layers[None, :])[:, None, :, None]
    return {route: np.where(later_LL, _composition(v, o, *readers[route]), 0.0) for route in ROUTES}


def random_composition(width: int, head_dim: int, pairs: int = 200, seed: int = 0) -> Floats:
    """Composition scores of pairs of heads whose matrices have independent normal entries: what chance gives.

    Keys, queries and values have the same distribution. About 1/√D.
    """
    rng = np.random.default_rng([seed, 2021])
    scores = []
    for _ in range(pairs):
        v, o, x, y = rng.normal(size=(4, 1, 1, width, head_dim))
        scores.append(float(_composition(v, o.swapaxes(-1, -2), x, y).item()))
    return np.array(scores)


def _composition(v: Floats, o: Floats, x: Floats, y: Floats) -> Floats:
    """‖(v o)(x yᵀ)‖ / (‖v o‖ ‖x yᵀ‖) of every pair of heads, one with v o, one with x yᵀ, by E × E matrices."""
    v_LHEE, y_LHEE = v.swapaxes(-1, -2) @ v, y.swapaxes(-1, -2) @ y
    between = np.einsum("lhed,mgdf->lhmgef", o, x, optimize=True)
    product = np.einsum("lhmgef,lhei,lhmgij,mgjf->lhmg", between, v_LHEE, between, y_LHEE, optimize=True)
    writes = np.einsum("lhij,lhji->lh", v_LHEE, o @ o.swapaxes(-1, -2))
    reads = np.einsum("lhij,lhji->lh", y_LHEE, x.swapaxes(-1, -2) @ x)
    return np.asarray(np.sqrt(product / (writes[:, :, None, None] * reads)))


def _array(parameter: "nn.Parameter") -> Floats:
    return np.asarray(parameter.detach().double().cpu().numpy())


def _gain(norm: "nn.Module | None") -> Floats | float:
    """What a norm multiplies each column by that is read behind it."""
    weight = getattr(norm, "weight", None)
    return 1.0 if weight is None else _array(weight)
