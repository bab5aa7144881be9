"""One network, evaluated as eq. 3 says, by its Gram matrix, and as one long product."""

from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.field import PRIME, reduce
from deepwide.separation.network import (
    Network,
    direct,
    exact_residues,
    file_shape,
    gram,
    identity_network,
    load_network,
    random_network,
    stream,
    times,
    word,
)  # fmt: skip

P = PRIME
SHAPES = [(1, 1, 1), (1, 4, 2), (2, 3, 1), (2, 4, 4), (3, 2, 2), (3, 4, 1), (4, 2, 1)]


def same(x: np.ndarray, y: np.ndarray) -> bool:
    return bool((np.mod(x - y, P) == 0).all())


def inputs(positions: int, width: int, batch: int = 5) -> np.ndarray:
    return stream("test/inputs", (positions, width, batch), P)


def gram_of(x: np.ndarray) -> np.ndarray:
    return reduce(np.einsum("nip,njp->ijp", x, x), P)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("depth", "width", "heads"), SHAPES)
def test_the_gram_form_is_eq_3(depth: int, width: int, heads: int, residual: bool) -> None:
    network = random_network(depth, width, heads, P, seed=3, residual=residual)
    x = inputs(5, width)
    for at in (0, 3):
        assert same(gram(network, gram_of(x), x[at]), direct(network, x, at))


def eq3_in_integers(network: Network, x: list[list[int]], at: int) -> int:
    """Eq. 3 once more, in Python integers, one index at a time: nothing shared with the package."""
    for layer in range(network.depth):
        new = []
        for i in range(len(x)):
            y = [int(v) for v in x[i]] if network.residual else [0] * network.width
            for j in range(i + 1 if network.causal else len(x)):
                for h in range(network.heads):
                    q, k, v = (
                        [sum(int(c) * value for c, value in zip(row, vector, strict=True)) for row in w[layer, h]]
                        for w, vector in ((network.query, x[i]), (network.key, x[j]), (network.value, x[j]))
                    )
                    score = sum(a * b for a, b in zip(q, k, strict=True))
                    for row, weights in enumerate(network.output[layer, h]):
                        y[row] += score * sum(int(c) * value for c, value in zip(weights, v, strict=True))
            new.append([value % P for value in y])
        x = new
    return sum(int(c) * value for c, value in zip(network.readout, x[at], strict=True)) % P


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_eq_3_itself_against_plain_integers(causal: bool, residual: bool) -> None:
    network = random_network(2, 4, 2, P, seed=1, residual=residual, causal=causal)
    x = inputs(3, 4, batch=2)
    for at in range(3):
        got = np.mod(direct(network, x, at), P)
        for sample in range(2):
            plain = [[int(v) for v in x[n, :, sample]] for n in range(3)]
            assert got[sample] == eq3_in_integers(network, plain, at)


@pytest.mark.parametrize(("depth", "width"), [(1, 3), (2, 3), (3, 2), (4, 2)])
def test_one_head_is_a_product_of_c_gram_matrices(depth: int, width: int) -> None:
    network = random_network(depth, width, 1, P, seed=2)
    matrices = word(network)
    assert len(matrices) == (3**depth - 1) // 2 + 1
    x = inputs(4, width)
    s, v = gram_of(x), x[1][:, None]
    v = times(matrices[0][..., None], v, P)
    for matrix in matrices[1:]:
        v = times(matrix[..., None], times(s, v, P), P)
    assert same(reduce(network.readout @ v[:, 0], P), direct(network, x, 1))


def test_identity_weights_give_a_power_of_the_gram_matrix() -> None:
    network = identity_network(2, 3, 1, P)
    x = inputs(4, 3)
    v = x[0][:, None]
    for _ in range(4):
        v = times(gram_of(x), v, P)
    assert same(gram(network, gram_of(x), x[0]), v.sum(axis=(0, 1)))


def test_permuting_the_other_positions_changes_nothing() -> None:
    network = random_network(2, 3, 3, P, seed=4)
    x = inputs(5, 3)
    assert same(direct(network, x, 0), direct(network, x[[0, 3, 1, 4, 2]], 0))
    assert same(direct(network, x, 2), direct(network, x[[2, 0, 1, 4, 3]], 0))


def test_a_causal_network_does_not_see_later_positions() -> None:
    network = random_network(2, 3, 1, P, seed=4, causal=True)
    x = inputs(4, 3)
    changed = x.copy()
    changed[2:] = 1
    assert same(direct(network, x, 1), direct(network, changed, 1))
    assert not same(direct(network, x, 3), direct(network, changed, 3))


def test_scaling_a_position_in_the_sums_is_scaling_it_by_a_root() -> None:
    for causal in (False, True):
        network = random_network(3, 2, 1, P, seed=5, causal=causal)
        x = inputs(3, 2)
        scaled = x.copy()
        scaled[0] = reduce(scaled[0] * 7, P)
        assert same(direct(network, scaled, 2), direct(network, x, 2, scale=np.array([49.0, 1.0, 1.0])))


def save(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)  # type: ignore[arg-type]
    else:
        from safetensors.numpy import save_file

        save_file(arrays, path)
    return path


def some_weights(depth: int, width: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    names = [f"{layer}.{name}" for layer in range(depth) for name in ("query", "key", "value", "output")]
    return {name: draw.normal(size=(width, width)).astype(np.float32) for name in names}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_weights_from_a_file_are_the_network_that_floats_compute(tmp_path: Path, suffix: str) -> None:
    arrays = {name: np.round(array * 2) / 2 for name, array in some_weights(2, 4).items()}
    path = save(tmp_path / f"w{suffix}", arrays | {"readout": np.ones(4, dtype=np.float32)})
    assert file_shape(path) == (2, 4)
    network = load_network(path, 2, P)
    x = np.random.default_rng(1).integers(-3, 4, (3, 4)).astype(float)
    y = x.copy()
    for layer in range(2):
        w = {name: arrays[f"{layer}.{name}"].astype(float) for name in ("query", "key", "value", "output")}
        new = np.zeros_like(y)
        for h in range(2):
            rows = slice(2 * h, 2 * h + 2)
            q, k, v = (y @ w[name][rows].T for name in ("query", "key", "value"))
            new += (q @ k.T) @ v @ w["output"][:, rows].T
        y = new
    exact = exact_residues(np.array([y[1].sum()]), P, "y")
    assert same(direct(network, x[..., None], 1), exact)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.pop("1.key"), "no array '1.key'"),
        (lambda a: a.update({"0.querry": a["0.query"]}), "did you mean '0.query'"),
        (lambda a: a.update({"0.key": np.zeros((3, 4))}), "all must be"),
        (lambda a: a.update({"0.key": np.full((4, 4), np.nan)}), "finite"),
        (lambda a: a.clear(), "holds no weights"),
    ],
)
def test_a_weight_file_that_is_wrong_gets_a_sentence(tmp_path: Path, change: object, words: str) -> None:
    arrays = some_weights(2, 4)
    change(arrays)  # type: ignore[operator]
    with pytest.raises(DeepwideError, match=words):
        load_network(save(tmp_path / "w.npz", arrays), 1, P)


def test_a_weight_file_that_is_none_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "w.npz").write_bytes(b"not a file of arrays")
    (tmp_path / "w.txt").write_text("")
    for name, words in (("w.npz", "cannot be read"), ("w.txt", "must end in"), ("v.npz", "no file")):
        with pytest.raises(DeepwideError, match=words):
            load_network(tmp_path / name, 1, P)


def test_streams_are_beginnings_of_longer_ones_and_differ_by_name() -> None:
    assert (stream("a", (10,), P) == stream("a", (99,), P)[:10]).all()
    assert (stream("a", (10,), P) != stream("b", (10,), P)).any()


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_gap_i_of_the_word_holds_the_matrix_of_layer_one_plus_how_often_3_divides_i(depth: int) -> None:
    network = random_network(depth, 3, 1, P, seed=5)
    below, between = np.eye(3), {}  # B_{l−1} … B_1, and N_l = (B_{l−1} … B_1)ᵀ A_l (B_{l−1} … B_1)
    for layer in range(depth):
        between[layer] = reduce(reduce(below.T @ network.score(layer)[0], P) @ below, P)
        below = reduce(network.mix(layer)[0] @ below, P)
    matrices = word(network)[::-1]
    assert same(matrices[0], below)
    for gap in range(1, len(matrices) - 1):
        n = between[next(n for n in range(depth) if gap % 3 ** (n + 1))]
        assert same(matrices[gap], n) or same(matrices[gap], n.T), gap
