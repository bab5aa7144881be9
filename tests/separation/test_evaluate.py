"""Three ways to the same values, tile by tile; points that anyone can draw again."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import evaluate
from deepwide.separation.evaluate import Points, case_network, evaluator
from deepwide.separation.field import PRIME, reduce
from deepwide.separation.network import Case, Network, random_network
from separation.builders import save_weights


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((np.mod(one - other, PRIME) == 0).all())


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (1, 16), (2, 1), (2, 9), (3, 3), (3, 6), (4, 2)])
def test_the_chain_is_the_gram_form_value_by_value(depth: int, width: int) -> None:
    case = Case(depth, width)
    points = Points.draw(case, 7, PRIME)
    wanted = list(range((3**depth - 1) // 2 + 1))
    for tile in ((slice(0, 3), slice(0, 7)), (slice(0, 1), slice(2, 7)), (slice(0, 7), slice(6, 7))):
        fast, slow = evaluator(case, "chain", True, points), evaluator(case, "gram", True, points)
        for k, (one, other) in enumerate(zip(fast(*tile, wanted), slow(*tile, wanted), strict=True)):
            assert same(one, other), k


@pytest.mark.parametrize(
    "case", [Case(2, 2), Case(2, 4, 2), Case(3, 2, 2), Case(2, 3, 3, sides="AAB"), Case(2, 2, weights="identity")]
)
def test_the_gram_form_is_eq_3_block_by_block(case: Case) -> None:
    points = Points.draw(case, 4, PRIME)
    wanted = list(range((3**case.depth - 1) // 2 + 1))
    everything = (slice(None), slice(None), wanted)
    for one, other in zip(
        evaluator(case, "gram", True, points)(*everything),
        evaluator(case, "eq3", True, points)(*everything),
        strict=True,
    ):
        assert same(one, other)


@pytest.mark.parametrize("method", ["gram", "eq3"])
def test_without_grading_the_value_is_the_sum_of_the_blocks(method: str) -> None:
    case = Case(2, 2, 2)
    points = Points.draw(case, 5, PRIME)
    (total,) = evaluator(case, method, False, points)(slice(None), slice(None), [0])  # type: ignore[arg-type]
    blocks = evaluator(case, method, True, points)(slice(None), slice(None), range(5))  # type: ignore[arg-type]
    assert same(total, sum(blocks))  # type: ignore[arg-type]


def test_fewer_points_are_a_beginning_of_more_and_the_hash_is_of_plain_integers() -> None:
    few, many = (Points.draw(Case(2, 3, seed=5), number, PRIME) for number in (4, 9))
    assert (few.a == many.a[..., :4]).all()
    assert (few.b == many.b[..., :4]).all()
    content = b"".join(
        int(value % PRIME).to_bytes(8, "little") for side in (few.a, few.b) for value in side.ravel().tolist()
    )
    assert few.digest() == hashlib.sha256(content).hexdigest()


def test_weights_of_another_shape_get_a_sentence(tmp_path: Path) -> None:
    path = save_weights(tmp_path / "w.npz", 0)
    assert case_network(Case(2, 2, weights=str(path)), PRIME).width == 2
    with pytest.raises(DeepwideError, match="holds depth 2 and width 2, not depth 2 and width 3"):
        case_network(Case(2, 3, weights=str(path)), PRIME)


def _isotropic(case: Case, v: np.ndarray, prime: int) -> Network:
    """Random weights changed so that v is isotropic for N_1 and N_2 and orthogonal to the readout's vector."""
    network = random_network(case.depth, case.width, 1, prime, case.seed)

    def times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return reduce(matrix @ vector, prime)

    def dot(a: np.ndarray, b: np.ndarray) -> int:
        return int(a @ b) % prime

    below = v  # B_{l−1} … B_1 v
    for layer in range(2):
        key, query = times(network.key[layer, 0], below), network.query[layer, 0]
        factor = dot(key, times(query, below)) * pow(dot(key, key) * dot(below, below), -1, prime) % prime
        query -= np.outer(key, reduce(below * factor, prime))
        reduce(query, prime)
        below = times(network.mix(layer)[0], below)
    below = times(network.mix(2)[0], below)
    factor = dot(network.readout, below) * pow(dot(below, below), -1, prime) % prime
    network.readout[:] = reduce(network.readout - reduce(below * factor, prime), prime)
    return network


def test_the_block_vanishes_at_an_isotropic_vector_and_the_one_before_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relation behind the four that L = 3, d = 4 lacks, by the Gram form: no word, no chain."""
    case = Case(3, 4, sides="BAAAA")
    points = Points.draw(case, 5, PRIME)
    network = _isotropic(case, points.b[0, :, 0], PRIME)
    monkeypatch.setattr(evaluate, "case_network", lambda *_: network)
    blocks = evaluator(case, "gram", True, points)(slice(None), slice(None), list(range(14)))
    for k, block in enumerate(blocks):
        assert (block[:, 0] == 0).all() == (k >= 7), k
        assert (block[:, 1] != 0).all(), k
