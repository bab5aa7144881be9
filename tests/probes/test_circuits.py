"""Circuits from weights: against dense matrices, against the network's own outputs, and against TransformerLens."""

import numpy as np
import pytest
import torch

from deepwide.model import Transformer
from deepwide.probes import ROUTES, HeadWeights, composition_scores, copying_scores, head_weights, random_composition
from probes.lens import attention_only, hooked


def test_the_matrices_of_the_heads_give_the_network_s_own_outputs() -> None:
    """Attention computed from them, head by head; key/value heads are shared by two query heads."""
    model = attention_only(depth=1, heads=4, kv_heads=2, norm="rmsnorm", positions="none", final_norm=True)
    with torch.no_grad():
        model.blocks[0].attention_norm.weight.uniform_(0.5, 2)
        model.final_norm.weight.uniform_(0.5, 2)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    names = ["blocks.0.residual_before", "blocks.0.residual_after", "blocks.0.attention.head_outputs"]
    logits, seen = model.run_with_cache(tokens, names)
    x = seen["blocks.0.residual_before"][0].detach().numpy()
    weights = head_weights(model)
    assert x == pytest.approx(weights.embedding_VD[tokens[0].numpy()])
    y = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5)
    for head in range(4):
        q, k, v, o = (part[0, head] for part in weights[:4])
        scores = np.where(np.tri(8, dtype=bool), y @ q @ k.T @ y.T / np.sqrt(6), -np.inf)
        attention = np.exp(scores - scores.max(1, keepdims=True))
        attention /= attention.sum(1, keepdims=True)
        output = seen["blocks.0.attention.head_outputs"][0, :, head].detach().numpy()
        assert attention @ y @ v @ o == pytest.approx(output, abs=1e-10)
    z = seen["blocks.0.residual_after"][0].detach().numpy()
    z = z / np.sqrt((z**2).mean(1, keepdims=True) + 1e-5)
    assert z @ weights.output_DV == pytest.approx(logits[0].detach().numpy(), abs=1e-10)


def test_a_norm_behind_the_heads_is_no_part_of_what_they_read() -> None:
    model = attention_only(norm="layernorm", norm_place="post")
    with torch.no_grad():
        model.blocks[0].attention_norm.weight.fill_(3)
    qkv = model.blocks[0].attention.qkv.weight.detach().numpy()
    assert head_weights(model).q_LHDE[0, 1] == pytest.approx(qkv[8:16].T)


def dense(model: Transformer) -> dict[str, np.ndarray]:
    """Copying and composition by matrices of full size."""
    w = head_weights(model)
    L, H = w.q_LHDE.shape[:2]
    qk, ov = w.q_LHDE @ w.k_LHDE.swapaxes(-1, -2), w.v_LHDE @ w.o_LHED
    scores = {name: np.zeros((L, H, L, H)) for name in "KQV"} | {"copying": np.zeros((L, H))}
    norm = np.linalg.norm
    for layer, head in np.ndindex(L, H):
        values = np.linalg.eigvals(w.embedding_VD @ ov[layer, head] @ w.output_DV)
        scores["copying"][layer, head] = values.real.sum() / np.abs(values).sum()
        for late, reader in np.ndindex(L, H):
            if late > layer:
                reads = {"K": qk[late, reader].T, "Q": qk[late, reader], "V": ov[late, reader]}
                for name, w_DD in reads.items():
                    product = norm(ov[layer, head] @ w_DD)
                    scores[name][layer, head, late, reader] = product / norm(ov[layer, head]) / norm(w_DD)
    return scores


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("tied", [False, True])
def test_small_matrices_give_what_large_ones_give(depth: int, tied: bool) -> None:
    model = attention_only(depth, tied=tied, seed=depth)
    expected, weights = dense(model), head_weights(model)
    assert copying_scores(weights) == pytest.approx(expected["copying"], abs=1e-9)
    for route, scores in composition_scores(weights).items():
        assert scores == pytest.approx(expected[route], abs=1e-12)


def heads(writes: np.ndarray, reads: np.ndarray) -> HeadWeights:
    """Two layers of one head with E = 1: the first writes one direction, keys of the second read another."""
    D = len(writes)
    column, other = np.eye(D)[:, :1], np.eye(D)[:, 1:2]
    q = k = v = np.stack([column, other])[:, None]
    k = np.stack([column, reads[:, None]])[:, None]
    o = np.stack([writes[None, :], other.T])[:, None]
    return HeadWeights(q, k, v, o, np.eye(D), np.eye(D))


def test_composition_is_one_where_all_that_is_written_is_read_and_zero_where_nothing_is() -> None:
    third, fourth = np.eye(4)[2], np.eye(4)[3]
    for reads, score in ((third, 1.0), (fourth, 0.0), ((third + fourth), 0.5**0.5)):
        scores = composition_scores(heads(third, reads))
        assert scores["K"][0, 0, 1, 0] == pytest.approx(score)
        assert scores["Q"][0, 0, 1, 0] == scores["V"][0, 0, 1, 0] == 0
        assert scores["K"][1].max() == scores["K"][:, :, 0].max() == 0, "a head reads only from earlier layers"


def test_a_head_that_writes_what_it_sees_copies_and_its_negative_does_the_opposite() -> None:
    rng = np.random.default_rng(1)
    v = rng.normal(size=(1, 1, 6, 3))
    blank = np.ones_like(v)
    for sign in (1, -1):
        weights = HeadWeights(blank, blank, v, sign * v.swapaxes(-1, -2), np.eye(6), np.eye(6))
        assert copying_scores(weights) == pytest.approx(sign)
    turn = HeadWeights(blank, blank, np.eye(6)[None, None], np.roll(np.eye(6), 1, 0)[None, None], np.eye(6), np.eye(6))
    assert copying_scores(turn) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("width", "head_dim"), [(128, 32), (64, 16)])
def test_chance_gives_about_one_over_the_root_of_the_width(width: int, head_dim: int) -> None:
    scores = random_composition(width, head_dim, pairs=100)
    assert scores.mean() == pytest.approx(width**-0.5, rel=0.05)
    model = attention_only(width=width, heads=width // head_dim, depth=2)
    fresh = composition_scores(head_weights(model))
    for route in ROUTES:
        assert fresh[route][0, :, 1].mean() == pytest.approx(scores.mean(), rel=0.05), "a network before training"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_circuits_agree_with_transformer_lens(depth: int) -> None:
    model = attention_only(depth, seed=depth)
    other, weights = hooked(model), head_weights(model)
    lens = pytest.importorskip("transformer_lens")
    circuit = lens.FactoredMatrix(other.W_E @ other.W_V, other.W_O @ other.W_U)
    values = circuit.eigenvalues.detach()
    theirs = (values.real.sum(-1) / values.abs().sum(-1)).numpy()
    assert copying_scores(weights) == pytest.approx(theirs, abs=1e-6)
    for route, scores in composition_scores(weights).items():
        assert scores == pytest.approx(other.all_composition_scores(route).detach().numpy(), abs=1e-6)
