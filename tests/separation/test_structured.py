"""Blocks from monomials: against sampling, and the proof that depth 2 meets the count at every width."""

from collections import Counter
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import (
    PRIME,
    SECOND_PRIME,
    Case,
    TooLargeError,
    matrix_rank,
    measure,
    side_dimensions,
    structured,
)
from deepwide.separation.dimensions import multiset
from deepwide.separation.field import flint_rank
from deepwide.separation.structured import (
    Forms,
    Kind,
    blocks_to_measure,
    class_bytes,
    class_matrix,
    class_rank,
    classes,
    forms,
    gaps,
    letter_keys,
    settled,
    thin,
    variables,
    weights,
)
from deepwide.separation.upper_bounds import gap_level


def saved_network(folder: Path, depth: int, width: int, seed: int = 0, kind: Kind = "diagonal") -> Path:
    """The same network as a file for the other road: eq. 3's matrices with A_l = N_l and B_l = I."""
    arrays: dict[str, np.ndarray] = {"readout": np.eye(width, dtype=np.int64)[0]}
    for layer, matrix in enumerate(weights(depth, width, seed, kind)):
        arrays[f"{layer}.query"] = matrix
        for name in ("key", "value", "output"):
            arrays[f"{layer}.{name}"] = np.eye(width, dtype=np.int64)
    path = folder / "structured.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("kind", ["diagonal", "pairs"])
@pytest.mark.parametrize(
    ("depth", "width", "prime"),
    [
        (1, 3, PRIME), (2, 1, PRIME), (2, 2, PRIME), (2, 3, SECOND_PRIME), (2, 4, PRIME), (2, 5, PRIME), (3, 2, PRIME),
        (3, 2, 65521), (3, 3, PRIME), (2, 4, 127), (3, 3, 131),
    ],
)  # fmt: skip
def test_every_block_has_the_rank_that_sampling_finds(
    depth: int, width: int, prime: int, kind: Kind, tmp_path: Path
) -> None:
    """No shared code: eq. 3's chain at random points there, coefficients of monomials here."""
    path = saved_network(tmp_path, depth, width, kind=kind)
    # In a small field random points are too few to be generic: there the same integers modulo a large prime.
    sampled = measure(Case(depth, width, weights=str(path)), prime if prime > 1000 else PRIME).blocks
    table = forms(depth, width, prime, kind=kind)
    written = [sum(class_rank(table, part) for part in classes(depth, width, k, kind)) for k in range(len(sampled))]
    assert tuple(written) == sampled


def test_weights_on_pairs_are_not_symmetric_and_stay_in_their_groups() -> None:
    for matrix in weights(3, 5, 0, "pairs"):
        assert len(set(matrix[matrix > 0].tolist())) == 9
        assert matrix.max() < 127
        assert (matrix != matrix.T).any()
        assert {(i, j) for i, j in zip(*np.nonzero(matrix), strict=True)} == {
            (0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4)
        }  # fmt: skip


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_the_gaps_hold_the_matrices_of_eq_9(depth: int) -> None:
    levels = [layer for layer, _ in gaps(depth)]
    assert levels == [gap_level(i) for i in range(1, len(levels))] + [1]


def test_at_depth_3_and_width_2_signs_take_one_away() -> None:
    """Special weights prove a lower bound and no more: generic ones have 42 in block 8."""
    table = forms(3, 2, PRIME)
    assert sum(class_rank(table, part) for part in classes(3, 2, 8)) == 41


def test_classes_share_out_all_rows_and_columns() -> None:
    for depth, width in ((2, 3), (2, 4), (3, 2)):
        by_a, by_b = side_dimensions(Case(depth, width))
        for k in range(len(by_b)):
            parts = list(classes(depth, width, k))
            assert sum(part.shape[1] for part in parts) <= by_b[k]
            assert sum(part.shape[0] for part in parts) <= by_a[-1 - k]
            if 0 < k < len(by_b) - 1 and k in blocks_to_measure(depth, width):
                assert sum(min(part.shape) for part in parts) >= min(by_b[k], by_a[-1 - k]) - 1


@pytest.mark.parametrize(("width", "power"), [(2, 13), (3, 4), (5, 4), (3, 5), (12, 2), (2, 4)])
def test_keys_identify_monomials_and_add_up(width: int, power: int) -> None:
    keys = letter_keys(width, power)
    sums = [
        int(sum(keys[letter] for letter in word)) for word in combinations_with_replacement(range(len(keys)), power)
    ]
    assert len(set(sums)) == len(sums) == multiset(len(keys), power)
    assert max(sums) < 2**63


def test_wide_and_shallow_keys_are_power_sums_deep_and_narrow_ones_exponents() -> None:
    assert letter_keys(24, 4).max() < 2**50  # 300 exponents would need 700 bits
    assert letter_keys(2, 364).tolist() == [365, 1, 0]


def test_the_forms_are_the_network(tmp_path: Path) -> None:
    """F_c by walks against the Gram form at one random matrix."""
    from deepwide.separation.network import gram
    from deepwide.separation.weights import load_network

    depth, width, prime = 2, 3, 10007
    network = load_network(saved_network(tmp_path, depth, width), 1, prime)
    draw = np.random.default_rng(5)
    half = draw.integers(0, prime, (width, width))
    s = (np.triu(half) + np.triu(half, 1).T).astype(np.float64)
    keys, pairs = letter_keys(width, 4), variables(width)
    words = list(combinations_with_replacement(range(len(pairs)), 4))
    for c in range(width):
        table = dict(zip(*(x.tolist() for x in forms(depth, width, prime).tables[c]), strict=True))
        value = 0
        for word in words:
            coefficient = int(table.get(int(sum(keys[letter] for letter in word)), 0))
            for times in Counter(word).values():
                for factor in range(2, times + 1):
                    coefficient = coefficient * pow(factor, -1, prime)
            value += coefficient * int(np.prod([int(s[pairs[letter]]) for letter in word], dtype=object))
        x = np.eye(width)[c]
        scale = int(weights(depth, width, 0)[0][c, c])  # the matrix before x
        assert (value * scale - int(gram(network, s, x))) % prime == 0


@pytest.mark.parametrize("kind", ["diagonal", "pairs"])
@pytest.mark.parametrize(
    ("depth", "width", "prime"), [(1, 3, 10007), (2, 5, PRIME), (3, 3, 131), (4, 2, PRIME), (2, 1, 127)]
)
def test_the_coefficients_add_up_to_the_gram_form(
    depth: int, width: int, prime: int, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = tuple(structured.random_symmetric(width, prime) for _ in range(3))
    assert all((point == point.T).all() for point in points)
    assert len({point.tobytes() for point in points}) > 1
    forms(depth, width, prime, 0, kind, points)
    honest = structured.gram_values
    monkeypatch.setattr(structured, "gram_values", lambda *given: (honest(*given) + 1) % prime)
    with pytest.raises(DeepwideError, match="do not add up"):
        forms(depth, width, prime, 0, kind, points)


def test_the_gram_form_is_that_of_the_other_road(tmp_path: Path) -> None:
    from deepwide.separation.network import gram
    from deepwide.separation.weights import load_network

    prime = 10007
    network = load_network(saved_network(tmp_path, 3, 3, kind="pairs"), 1, prime)
    s = structured.random_symmetric(3, prime)
    values = structured.gram_values(weights(3, 3, 0, "pairs"), s, prime)
    for c in range(3):
        assert (int(gram(network, s.astype(np.float64), np.eye(3)[c])) - int(values[c])) % prime == 0


def test_a_few_rows_have_the_rank_of_a_full_class_and_never_more() -> None:
    table, thinned = forms(2, 6, PRIME), 0
    for k in (1, 2, 3):
        for part in classes(2, 6, k):
            rank = flint_rank(class_matrix(table, part), PRIME)
            assert class_rank(table, part) == rank
            few = thin(part)
            thinned += few is not part
            assert class_rank(table, few) <= rank
            assert min(few.shape) == min(part.shape)
            assert class_bytes(few) <= class_bytes(part) == 8 * part.shape[0] * part.shape[1]
            if rank == min(part.shape):
                assert class_rank(table, few) == rank
    assert thinned > 5


def test_lemma_a_settles_the_other_blocks() -> None:
    sampled = measure(Case(3, 3)).blocks
    known = {k: sampled[k] for k in blocks_to_measure(3, 3)}
    assert settled(3, 3, known) == sampled
    # An operator that annihilates block 6 gives 6 for block 7: seven that are missing there settle nothing, five do.
    assert settled(3, 3, {7: 785, 8: 756}) == (*sampled[:6], 0, 785, *sampled[8:])
    assert settled(3, 3, {7: 787, 8: 756}) == (*sampled[:7], 787, *sampled[8:])
    assert settled(3, 3, {7: 792, 8: 750}) == (*sampled[:8], 750, 0, *sampled[10:])
    assert settled(3, 3, {7: 792, 8: 751}) == (*sampled[:8], 751, *sampled[9:])


@pytest.mark.parametrize(("depth", "width"), [(4, 5), (3, 9), (8, 2), (2, 300)])
def test_what_cannot_be_written_down_is_refused(depth: int, width: int) -> None:
    with pytest.raises(TooLargeError):
        forms(depth, width, PRIME)


def keys_of(width: int, *words: str) -> list[int]:
    """Keys of monomials such as "01 12": a word of two indices for each letter."""
    keys = letter_keys(width, 4)
    number = {pair: n for n, pair in enumerate(variables(width))}
    pairs = ([tuple(sorted(map(int, letter))) for letter in word.split()] for word in words)
    return [int(sum(keys[number[i, j]] for i, j in word)) for word in pairs]


def values_at(table: Forms, rows: list[tuple[int, int]], columns: list[int]) -> np.ndarray:
    """The block at chosen rows (key, c) and columns."""
    tables = [dict(zip(keys.tolist(), values.tolist(), strict=True)) for keys, values in table.tables]
    return np.array([[tables[c].get(row + column, 0.0) for column in columns] for row, c in rows])


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_equations_of_the_proof_for_depth_2_suffice(d: int) -> None:
    """docs/theory.md, 5.1, at the widths where its cases occur: no other equation is needed."""
    D = d * (d + 1) // 2
    table = forms(2, d, PRIME)
    others = range(1, d)
    two = [f"{i}{j} {k}{m}" for (i, j), (k, m) in combinations_with_replacement(variables(d), 2)]
    used = [("00 00", 0)]
    if d == 2:
        used += [("00 00", 1), ("11 11", 1)]
    used += [(f"{j}{j} {j}{j}", c) for j, c in product(others, range(d)) if j != c]
    for a, b in permutations(others, 2):
        used += [(f"0{a} {b}{b}", b), (f"0{a} {a}{a}", b), (f"0{a} 00", b), (f"0{a} {a}{b}", b)]
        used += [(f"{a}{b} 00", b), (f"{a}{b} {a}{a}", b), (f"{a}{b} {b}{b}", b), (f"0{b} {a}{a}", b)]
    used += [(f"0{e} {w}", e) for e in others for w in ("00", f"{e}{e}")]
    for a, b, e in permutations(others, 3):
        used += [(f"0{a} {b}{e}", e), (f"0{e} {a}{b}", e), (f"{b}{e} {b}{b}", a), (f"{b}{e} {a}{a}", a)]
    used += [(f"0{a} {b}{e}", f) for a, b, e, f in permutations(others, 4)]
    rows = sorted({(keys_of(d, word)[0], c) for word, c in used})
    assert matrix_rank(values_at(table, rows, keys_of(d, *two))) == D * (D + 1) // 2

    chosen = ["00 00 00"] + [f"{e}{e} {e}{e} {e}{e}" for e in others] + [f"0{e} 0{e} {e}{e}" for e in others]
    for b in others:
        chosen += [f"0{b} 00 00", f"0{b} {b}{b} {b}{b}", f"0{b} 00 {b}{b}"]
    for f, b in permutations(others, 2):
        chosen += [f"0{b} {f}{f} {f}{f}", f"0{f} {f}{b} {f}{f}", f"{f}{b} 00 00", f"{f}{b} {f}{f} {f}{f}"]
        chosen += [f"0{f} 0{b} 00"]
    for a, b, e in permutations(others, 3):
        chosen += [f"0{a} {b}{e} {a}{a}", f"0{a} {b}{e} {b}{b}"]
    one = [(keys_of(d, f"{i}{j}")[0], c) for (i, j), c in product(variables(d), range(d))]
    assert matrix_rank(values_at(table, one, sorted(set(keys_of(d, *chosen))))) == d * D
