"""One network, evaluated as eq. 3 says, by its Gram matrix, and as one long product."""

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.field import PRIME, reduce
from deepwide.separation.network import (
    Case,
    Network,
    direct,
    draw_residues,
    gram,
    identity_network,
    random_network,
    times,
    word,
)
from separation.builders import is_one_sentence


def test_the_output_is_always_on_side_a() -> None:
    assert Case(2, 2, sides="AABB", at=3).sides == "BBAA"
    assert Case(2, 2, sides="aabb", at=0).sides == "AABB"
    assert Case(2, 3).positions == (3, 3)
    assert Case(2, 3, sides=Case.with_positions(2, 1)).positions == (2, 1)


def test_equal_cases_are_equal_however_they_are_written() -> None:
    assert Case(2, 2) == Case(2, 2, sides="AABB", at=-1) == Case(2, 2, 1, "BBAA", 3)


def test_names_tell_cases_apart() -> None:
    cases = [
        Case(2, 2), Case(2, 2, 2), Case(2, 2, seed=1), Case(2, 2, sides="ABAB"), Case(2, 2, sides="ABAB", at=1),
        Case(2, 2, residual=True), Case(2, 2, causal=True), Case(2, 2, weights="identity"),
        Case(2, 2, weights="x/w.npz"),
    ]  # fmt: skip
    assert len({case.name() for case in cases}) == len(cases)
    assert Case(2, 3).name() == "L2-d3-H1-seed0"


def test_the_theorems_are_about_standard_cases_only() -> None:
    assert Case(2, 3).standard
    assert Case(2, 3, sides="BBBBAAAA").standard
    for other in ({"residual": True}, {"causal": True}, {"weights": "identity"}, {"sides": "AB"}, {"sides": "BBBAAAA"}):
        assert not Case(2, 3, **other).standard


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": 0, "width": 2}, "depth must be at least 1"),
        ({"depth": 2, "width": 3, "heads": 2}, "cannot be split evenly over '2' heads; it can over 1, 3"),
        ({"depth": 2, "width": 2, "sides": "AXB"}, "must name a side"),
        ({"depth": 2, "width": 2, "sides": "AB", "at": 2}, "positions are 0 to 1"),
        ({"depth": 30, "width": 2}, "cannot be measured"),
        ({"depth": 10**400, "width": 2}, "cannot be measured"),
        ({"depth": 2, "width": 3 * 10**7}, "at most 16384"),
        ({"depth": 2, "width": 10**400}, "at most 16384"),
        ({"depth": 2, "width": 3, "heads": 10**400}, "cannot be split"),
        ({"depth": 2, "width": 3, "heads": -(10**400)}, "at least 1"),
        ({"depth": 1, "width": 1, "sides": "AB" * 10**6}, "positions"),
        ({"depth": 1, "width": 1, "weights": "a\0b"}, "path of a file"),
        ({"depth": 1, "width": 1, "weights": ""}, "path of a file"),
        ({"depth": 1, "width": 1, "seed": 10**400}, "seed"),
    ],
)
def test_cases_that_are_none_get_a_sentence(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(DeepwideError, match=words) as stopped:
        Case(**arguments)  # type: ignore[arg-type]
    assert is_one_sentence(str(stopped.value))


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0), (10**9, 1)])
def test_sides_that_are_none_get_a_sentence(a: int, b: int) -> None:
    with pytest.raises(DeepwideError, match="position"):
        Case.with_positions(a, b)


P = PRIME
SHAPES = [(1, 1, 1), (1, 4, 2), (2, 3, 1), (2, 4, 4), (3, 2, 2), (3, 4, 1), (4, 2, 1)]


def same(x: np.ndarray, y: np.ndarray) -> bool:
    return bool((np.mod(x - y, P) == 0).all())


def inputs(positions: int, width: int, batch: int = 5) -> np.ndarray:
    return draw_residues("test/inputs", (positions, width, batch), P)


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


def test_residues_are_beginnings_of_longer_draws_and_differ_by_name() -> None:
    assert (draw_residues("a", (10,), P) == draw_residues("a", (99,), P)[:10]).all()
    assert (draw_residues("a", (10,), P) != draw_residues("b", (10,), P)).any()


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


def test_two_primes_see_the_same_integers() -> None:
    """The network that two primes measure is one integer network: 64-bit draws, reduced."""
    import hashlib

    raw = hashlib.shake_256(b"deepwide/weights/query/3").digest(8 * 4)
    integers = [int.from_bytes(raw[8 * i : 8 * i + 8], "little") for i in range(4)]
    for prime in (101, 65_521, P):
        query = random_network(1, 2, 1, prime, seed=3).query
        assert [int(value) % prime for value in query.ravel()] == [n % prime for n in integers]
