"""Ranks of matrices whose rank is known, and of matrices that two other programs rank too."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.separation import field
from deepwide.separation.blas import add_product
from deepwide.separation.field import (
    LARGEST_PRIME,
    LARGEST_SINGLE,
    PRIME,
    SECOND_PRIME,
    balanced,
    flint_rank,
    matrix_rank,
    rank_in_place,
)

PRIMES = (3, 7, 101, 65_521, PRIME, LARGEST_PRIME)


def invertible(n: int, prime: int, draw: np.random.Generator) -> np.ndarray:
    """A product of unit triangular matrices and a permutation: never singular, over any field."""
    lower = np.tril(draw.integers(0, prime, (n, n)), -1).astype(object) + np.eye(n, dtype=int)
    upper = np.triu(draw.integers(0, prime, (n, n)), 1).astype(object) + np.eye(n, dtype=int)
    return (lower.dot(upper) % prime)[draw.permutation(n)]


def scrambled(rows: int, columns: int, r: int, prime: int, draw: np.random.Generator) -> np.ndarray:
    middle = np.zeros((rows, columns), dtype=object)
    middle[range(r), range(r)] = draw.integers(1, prime, r)
    return invertible(rows, prime, draw).dot(middle).dot(invertible(columns, prime, draw)) % prime


def by_fractions(matrix: np.ndarray, prime: int) -> int:
    """Textbook elimination in Python integers: nothing shared with the package."""
    rows = [[int(value) % prime for value in row] for row in matrix]
    rank = 0
    for column in range(matrix.shape[1]):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, prime)
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] * inverse % prime
            rows[i] = [(a - factor * b) % prime for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def random_operations(matrix: np.ndarray, prime: int, draw: np.random.Generator, times: int) -> np.ndarray:
    """Random multiples of rows added to rows and of columns to columns: no rank changes (FLINT's randops)."""
    matrix = matrix.astype(object)
    for _ in range(times):
        for axis in (matrix, matrix.T):  # a transposed view: columns
            if len(axis) > 1:
                i, j = draw.choice(len(axis), 2, replace=False)
                axis[i] = (axis[i] + int(draw.integers(1, prime)) * axis[j]) % prime
    return matrix


def random_prime(draw: np.random.Generator) -> int:
    """A prime of a random number of bits, from 3 to the largest that is allowed."""
    from flint import fmpz

    limit = min(LARGEST_PRIME, 2 ** int(draw.integers(2, 25)))
    start = int(draw.integers(3, limit + 1))
    return next(n for n in range(start, 2, -1) if fmpz(n).is_prime())


@pytest.mark.parametrize("round_", range(40))
def test_every_rank_of_random_shapes_after_random_operations_modulo_random_primes(round_: int) -> None:
    """As FLINT tests its own (nmod_mat/test/t-rank.c): a matrix of each rank, sparse, then dense, then sparse again."""
    draw = np.random.default_rng(round_)
    prime = random_prime(draw)
    rows, columns = draw.integers(0, 16, 2)
    for r in range(min(rows, columns) + 1):
        matrix = np.zeros((rows, columns), dtype=object)
        places = draw.permutation(rows)[:r], draw.permutation(columns)[:r]
        matrix[places] = draw.integers(1, prime, r)
        assert matrix_rank(matrix, prime) == r
        matrix = random_operations(matrix, prime, draw, int(draw.integers(0, 2 * rows * columns + 1)))
        assert matrix_rank(matrix, prime) == r
        assert flint_rank(balanced(matrix, prime), prime) == r
        assert by_fractions(matrix, prime) == r


@pytest.mark.parametrize("prime", PRIMES)
def test_every_rank_and_size_up_to_20(prime: int) -> None:
    draw = np.random.default_rng(prime)
    for n in range(21):
        for r in range(n + 1):
            assert matrix_rank(scrambled(n, n, r, prime, draw), prime) == r, (n, r)


@pytest.mark.parametrize("round_", range(6))
def test_random_matrices_of_several_panels_of_every_kind_of_rank(round_: int) -> None:
    draw = np.random.default_rng([7, round_])
    prime = random_prime(draw)
    rows, columns = draw.integers(250, 600, 2)
    r = int(draw.integers(0, min(rows, columns) + 1))
    matrix = np.zeros((rows, columns))
    matrix[draw.permutation(rows)[:r], draw.permutation(columns)[:r]] = draw.integers(1, prime, r)
    for _ in range(3 * (rows + columns)):
        for axis in (matrix, matrix.T):
            i, j = draw.choice(len(axis), 2, replace=False)
            axis[i] = (axis[i] + int(draw.integers(1, min(prime, 1000))) * axis[j]) % prime
    assert matrix_rank(matrix, prime) == flint_rank(matrix, prime) == r


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 9), (9, 0), (1, 300), (300, 1), (40, 270), (270, 40)])
def test_matrices_that_are_not_square(rows: int, columns: int) -> None:
    draw = np.random.default_rng(1)
    for r in {0, min(rows, columns) // 2, min(rows, columns)}:
        left, right = (balanced(draw.integers(0, PRIME, shape), PRIME) for shape in ((rows, r), (r, columns)))
        assert matrix_rank(left @ right) == r


@pytest.mark.parametrize(("n", "r"), [(300, 299), (513, 257), (600, 600), (700, 31), (1100, 900)])
def test_sizes_that_take_several_panels(n: int, r: int) -> None:
    draw = np.random.default_rng(n)
    left, right = (balanced(draw.integers(0, PRIME, shape), PRIME) for shape in ((n, r), (r, n)))
    assert matrix_rank(left @ right) == r  # exact: r·(p/2)² < 2⁵³


@given(st.integers(0, 2**32), st.sampled_from(PRIMES), st.integers(1, 90), st.integers(1, 90))
@settings(max_examples=60, deadline=None)
def test_flint_agrees_on_sparse_and_repeated_rows(seed: int, prime: int, rows: int, columns: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = draw.integers(0, prime, (rows, columns)) * (draw.random((rows, columns)) < draw.random())
    matrix[draw.integers(0, rows, rows // 3)] = matrix[draw.integers(0, rows, rows // 3)]
    matrix[:, draw.random(columns) < 0.2] = 0
    matrix[draw.random(rows) < 0.2] = 0
    assert matrix_rank(matrix, prime) == flint_rank(balanced(matrix, prime), prime)


def test_galois_agrees() -> None:
    galois = pytest.importorskip("galois")
    gf = galois.GF(101)
    draw = np.random.default_rng(5)
    for r in (0, 7, 40, 64):
        matrix = scrambled(64, 64, r, 101, draw).astype(int)
        assert matrix_rank(matrix, 101) == np.linalg.matrix_rank(gf(matrix)) == r


def test_triangular_and_zero_matrices() -> None:
    draw = np.random.default_rng(2)
    full = draw.integers(1, PRIME, (300, 300))
    assert matrix_rank(np.triu(full)) == matrix_rank(np.tril(full)) == 300
    assert matrix_rank(np.triu(full, 1)) == matrix_rank(np.tril(full, -1)) == 299
    assert matrix_rank(np.zeros((300, 400))) == 0
    assert matrix_rank(np.triu(full, 100)) == 200
    assert matrix_rank(np.fliplr(np.triu(full, 100))) == 200


def test_pivots_far_to_the_right_are_found() -> None:
    matrix = np.zeros((400, 900))
    matrix[:, 500:] = np.random.default_rng(3).integers(0, PRIME, (400, 400))
    assert matrix_rank(matrix) == 400
    matrix[:, 100] = 1
    assert matrix_rank(matrix) == 400


def test_columns_that_early_rows_skip_are_kept_for_later_ones() -> None:
    draw = np.random.default_rng(9)
    matrix = np.zeros((700, 900))
    matrix[:600, 100:] = draw.integers(0, PRIME, (600, 800))
    matrix[600:, :100] = np.eye(100)
    assert matrix_rank(matrix) == 700


def test_a_multiple_of_the_prime_is_zero() -> None:
    assert matrix_rank([[PRIME, 2 * PRIME], [-PRIME, 0]]) == 0
    assert matrix_rank([[1, 2], [3, 6 + PRIME]]) == 1


def test_no_product_can_pass_the_exact_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every product is checked by its largest entries; delaying one reduction more would be caught."""
    honest, worst = add_product, []

    def watched(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        if c.size and a.size:
            worst.append(abs(c).max() + a.shape[1] * abs(a).max() * abs(b).max())
        honest(c, a, b)

    monkeypatch.setattr(field, "add_product", watched)
    matrix = np.random.default_rng(4).integers(0, LARGEST_PRIME, (800, 800))
    assert matrix_rank(matrix, LARGEST_PRIME) == 800
    assert max(worst) < 2**53
    worst.clear()
    monkeypatch.setattr(field, "EXACT", {8: 2**60})
    matrix_rank(matrix, LARGEST_PRIME)
    assert max(worst) > 2**53


@pytest.mark.parametrize("prime", [3, 127, 367, LARGEST_SINGLE])
@pytest.mark.parametrize(("rows", "columns", "rank"), [(700, 700, 700), (900, 600, 333), (300, 1200, 300), (5, 5, 0)])
def test_float32_finds_the_rank_modulo_a_small_prime(prime: int, rows: int, columns: int, rank: int) -> None:
    draw = np.random.default_rng(rows + prime)
    left, right = draw.integers(0, prime, (rows, rank)), draw.integers(0, prime, (rank, columns))
    matrix = balanced(left @ right, prime)
    assert rank_in_place(matrix.astype(np.float32), prime) == flint_rank(matrix, prime)


def test_no_product_in_float32_can_pass_the_exact_range(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, worst = add_product, []

    def watched(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
        if c.size and a.size:
            worst.append(float(abs(c).max()) + a.shape[1] * float(abs(a).max()) * float(abs(b).max()))
        honest(c, a, b)

    monkeypatch.setattr(field, "add_product", watched)
    for prime in (127, LARGEST_SINGLE):
        matrix = balanced(np.random.default_rng(4).integers(0, prime, (2000, 900)), prime).astype(np.float32)
        assert rank_in_place(matrix, prime) == 900
    assert max(worst) <= 2**24 - 2**9


def test_a_prime_that_float32_cannot_hold_is_refused() -> None:
    with pytest.raises(AssertionError, match="too large"):
        rank_in_place(np.eye(3, dtype=np.float32), 509)


@pytest.mark.parametrize("size", [4, 8])
def test_the_largest_exact_integers_are_reduced_rightly(size: int) -> None:
    """The multiple of p that is subtracted must be exact too, not only the number."""
    real: Any = np.float64 if size == 8 else np.float32
    prime = LARGEST_PRIME if size == 8 else LARGEST_SINGLE
    numbers = [sign * (field.EXACT[size] - k) for k in range(2000) for sign in (1, -1)]
    reduced = field.reduce(np.array(numbers, dtype=real)[None, :], prime)[0]
    assert [int(x) % prime for x in reduced] == [n % prime for n in numbers]
    assert abs(reduced).max() <= prime / 2 + 2


@pytest.mark.parametrize("panel", [1, 8, 33, 256, 1000])
def test_the_panel_width_changes_nothing(panel: int) -> None:
    draw = np.random.default_rng(6)
    matrix = balanced(scrambled(90, 110, 55, PRIME, draw), PRIME)
    assert rank_in_place(matrix, PRIME, panel=panel) == 55


def test_progress_ends_at_one() -> None:
    shares: list[float] = []
    rank_in_place(balanced(np.random.default_rng(7).integers(0, 99, (600, 600)), PRIME), PRIME, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("modulus", [91, 1_048_575, 4])
def test_a_composite_modulus_is_refused_with_the_nearest_prime(modulus: int) -> None:
    with pytest.raises(DeepwideError, match=r"not prime.*next prime below is"):
        matrix_rank([[1]], modulus)


@pytest.mark.parametrize("modulus", [2, 1, 0, -7, 2**31 - 1])
def test_a_modulus_out_of_range_is_refused(modulus: int) -> None:
    with pytest.raises(DeepwideError, match="out of range"):
        matrix_rank([[1]], modulus)


def test_the_two_default_primes_are_prime_and_different() -> None:
    for prime in (PRIME, SECOND_PRIME):
        assert all(prime % n for n in range(2, int(prime**0.5) + 1))
    assert PRIME != SECOND_PRIME


def test_something_that_is_no_matrix_is_refused() -> None:
    with pytest.raises(DeepwideError, match="3 dimensions"):
        matrix_rank(np.zeros((2, 2, 2)))


@pytest.mark.slow
def test_a_large_matrix_of_known_rank() -> None:
    draw = np.random.default_rng(8)
    n, r = 3000, 2345
    left, right = (balanced(draw.integers(0, PRIME, shape), PRIME) for shape in ((n, r), (r, n)))
    assert matrix_rank(left @ right) == r
