"""Rank modulo a prime, exactly, at the speed of floating-point matrix products.

Entries are integers held in float64, balanced around zero (|x| ≤ p/2). A product of two of them and
a sum of n such products are exact as long as n·(p/2)² < 2⁵³, in whatever order BLAS adds them up, so
the elimination runs on dgemm and reduces modulo p only when the next update could pass that bound.
Modulo a small prime float32 is exact too, up to 2²⁴: faster on sgemm, in half of the memory.

The matrix is eaten from the top, a panel of rows at a time. A panel is brought to reduced row echelon
form; rows that become zero are dependent and are dropped; one dgemm then clears the panel's pivot
columns from all the rows below, without reducing them. Until the bound is near, an entry is reduced
twice in its life: when its row becomes a panel, and when its column holds a pivot.
"""

import secrets
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from deepwide.errors import DeepwideError
from deepwide.separation.blas import CORES as CORES
from deepwide.separation.blas import Floats, Matrix, add_product, pool

AnyMatrix = TypeVar("AnyMatrix", bound=Floats)
PRIME = 1_048_573
SECOND_PRIME = 1_048_571
# Integers up to here are exact, and so is the nearest multiple of p that `reduce` subtracts: by the bytes of an entry.
EXACT = {8: 2**53 - 2**24, 4: 2**24 - 2**9}
_SMALLEST_DRAWN = 1 << 19
_PANEL = 256
_BASE = 32
# The largest primes for which one panel's product is exact on top of a reduced entry, in float64 and in float32.
LARGEST_PRIME, LARGEST_SINGLE = 11_863_279, 503
_TILE = 1 << 15  # elements reduced at a time: the four passes stay in cache
_SHARED = 1 << 19  # fewer than this are not worth waking another thread for


def check_prime(prime: int, *, above: int = 2) -> None:
    """Refuse a modulus that is not prime, or too small or too large for exact arithmetic here."""
    from flint import fmpz

    if not above < prime <= LARGEST_PRIME:
        raise DeepwideError(
            f"The prime {prime} is out of range: it must be above {above} and at most {LARGEST_PRIME}, "
            f"so that products stay exact; the default is {PRIME}."
        )
    if not fmpz(prime).is_prime():
        near = next(n for n in range(prime - 1, 1, -1) if fmpz(n).is_prime())
        raise DeepwideError(f"{prime} is not prime, and ranks need a field; the next prime below is {near}.")


def another_prime(prime: int) -> int:
    """A large prime to confirm with, never the first one.

    >>> another_prime(PRIME) == SECOND_PRIME, another_prime(SECOND_PRIME) == PRIME
    (True, True)
    """
    return PRIME if prime == SECOND_PRIME else SECOND_PRIME


def single_primes(above: int) -> tuple[int, int]:
    """Two primes for which float32 is exact, the second to confirm with; they must be above a degree.

    >>> single_primes(40), single_primes(364)
    ((127, 131), (367, 373))
    """
    from flint import fmpz

    primes = [p for p in range(max(above + 1, 127), LARGEST_SINGLE + 1) if fmpz(p).is_prime()][:2]
    if len(primes) < 2:
        raise DeepwideError(f"No two primes above {above} are small enough for float32, at most {LARGEST_SINGLE}.")
    return primes[0], primes[1]


def draw_prime(*taken: int) -> int:
    """A prime of 20 bits that nobody could know before, none of those taken.

    For weights that somebody chose: a file can be made special modulo primes that are known, and even modulo primes
    that follow from its own hash, by trying many files; not modulo one that is drawn afterwards.
    """
    from flint import fmpz

    while True:
        candidate = _SMALLEST_DRAWN + secrets.randbelow(_SMALLEST_DRAWN)
        if candidate not in taken and fmpz(candidate).is_prime():
            return candidate


def balanced(values: npt.ArrayLike, prime: int) -> Matrix:
    """A new float64 array of the residues of integers, each in [−(p−1)/2, (p−1)/2].

    >>> balanced([0, 1, 6, -8, 10**30], 7)
    array([ 0.,  1., -1., -1.,  1.])
    """
    residues = np.asarray(np.mod(values, prime), dtype=np.int64)
    return np.where(residues > prime // 2, residues - prime, residues).astype(np.float64)


def reduce(x: AnyMatrix, prime: int, scratch: Floats | None = None) -> AnyMatrix:
    """Bring integers of at most EXACT in size back to balanced residues, in place.

    The rounded quotient is off by at most 2⁻⁵²·|x|/p ≤ 2/p (in float32 by 2⁻²³·|x|/p, the same). A multiple of p
    therefore becomes exactly zero, and an x within 2 of a half-way point may land on its far side: |x| ≤ p/2 + 2 is
    what the bounds below count on.
    """
    q = np.empty_like(x) if scratch is None else scratch
    np.multiply(x, x.dtype.type(1.0 / prime), out=q)
    np.rint(q, out=q)
    np.multiply(q, x.dtype.type(prime), out=q)
    np.subtract(x, q, out=x)
    return x


def _reduce_rows(x: Floats, prime: int) -> None:
    """`reduce` for a large matrix: tiles that fit the cache, on all cores."""
    if not x.size:
        return
    step = max(1, _TILE // x.shape[1])
    width = min(x.shape[1], _TILE)

    def work(first: int, last: int) -> None:
        scratch = np.empty((step, width), dtype=x.dtype)
        for top in range(first, last, step):
            for left in range(0, x.shape[1], width):
                tile = x[top : min(top + step, last), left : left + width]
                reduce(tile, prime, scratch[: tile.shape[0], : tile.shape[1]])

    if x.size < _SHARED:
        work(0, x.shape[0])
        return
    share = -(-x.shape[0] // CORES)
    starts = range(0, x.shape[0], share)
    list(pool().map(lambda s: work(s, min(s + share, x.shape[0])), starts))


def matrix_rank(matrix: npt.ArrayLike, prime: int = PRIME) -> int:
    """The rank of an integer matrix modulo a prime.

    >>> matrix_rank([[1, 2], [2, 4]], 7), matrix_rank([[1, 2], [2, 5]], 7), matrix_rank(np.zeros((0, 5)))
    (1, 2, 0)
    """
    check_prime(prime)
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise DeepwideError(f"A rank needs a matrix; this array has {array.ndim} dimensions.")
    return rank_in_place(balanced(array, prime), prime)


def rank_in_place(
    matrix: Floats, prime: int, progress: Callable[[float], None] | None = None, panel: int = _PANEL
) -> int:
    """The rank of a balanced matrix (see `balanced`) in float64, or in float32 if the prime is small: destroyed.

    Invariant before each panel: the rows above `top` are finished; every entry of the rows from `top` on, right of the
    first `found_rank` columns, is an exact integer of size at most `largest` ≤ EXACT, and the rank of that remainder
    plus `found_rank` is the rank of the matrix. `progress` gets the finished share of the work after each panel.
    """
    half, exact = prime // 2 + 2, EXACT[matrix.dtype.itemsize]
    assert half + panel * half * half <= exact, "the prime is too large for these entries"
    rows, columns = matrix.shape
    largest = half  # no entry below the panel is larger than this
    found_rank = 0
    top = 0
    while top < rows and found_rank < columns:
        panel_rows = matrix[top : top + panel, found_rank:]
        rest = matrix[top + panel :, found_rank:]
        _reduce_rows(panel_rows, prime)
        pivots = _row_echelon(panel_rows, prime)
        q = len(pivots)
        if q and len(rest):
            factors = -np.ascontiguousarray(rest[:, pivots])
            _reduce_rows(factors, prime)
            _close_ranks(panel_rows, pivots)
            _close_ranks(rest, pivots)
            if largest + q * half * half > exact:
                _reduce_rows(rest, prime)
                largest = half
            add_product(rest[:, q:], factors, panel_rows[:q, q:])
            largest += q * half * half
        found_rank += q
        top += panel
        if progress:
            left = (1 - min(1, top / rows)) * (1 - found_rank / columns) if columns else 0.0
            progress(1 - left**1.5)
    return found_rank


def _close_ranks(block: Floats, pivots: list[int]) -> None:
    """Move the columns that hold no pivot behind the first len(pivots): pivot columns are done with."""
    taken = set(pivots)
    front = [c for c in range(len(pivots)) if c not in taken]
    if front:
        block[:, [c for c in pivots if c >= len(pivots)]] = block[:, front]


def _row_echelon(rows: Floats, prime: int) -> list[int]:
    """Bring reduced rows to reduced row echelon form in place; row i gets a one in column pivots[i].

    Rows beyond len(pivots) were dependent and hold nothing of use.
    """
    if len(rows) <= _BASE:
        return _row_echelon_base(rows, prime)
    half = len(rows) // 2
    upper, lower = rows[:half], rows[half:]
    first = _row_echelon(upper, prime)
    upper = upper[: len(first)]
    if first:
        add_product(lower, -lower[:, first], upper)
        _reduce_rows(lower, prime)
    second = _row_echelon(lower, prime)
    lower = lower[: len(second)]
    if first and second:
        add_product(upper, -upper[:, second], lower)
        _reduce_rows(upper, prime)
    if len(first) < half:
        rows[len(first) : len(first) + len(second)] = lower.copy()
    return first + second


def _row_echelon_base(rows: Floats, prime: int) -> list[int]:
    pivots: list[int] = []
    start = 0
    while len(pivots) < len(rows):
        done = len(pivots)
        live = rows[done:]
        alive = live[:, start:].any(axis=0)
        if not alive.any():
            break
        start += int(alive.argmax())
        # A square corner settles a generic matrix; the few columns more settle most of the rest.
        chunk = live[:, start : start + len(live) + 8]
        transform, columns = _gauss_jordan(chunk, prime)
        product = np.zeros_like(live)
        add_product(product, transform, live)
        live[:] = product
        _reduce_rows(live, prime)
        fresh = [start + c for c in columns]
        if done:
            add_product(rows[:done], -rows[:done, fresh], live[: len(fresh)])
            _reduce_rows(rows[:done], prime)
        pivots += fresh
        start += chunk.shape[1]
    return pivots


def _gauss_jordan(chunk: Floats, prime: int) -> tuple[Floats, list[int]]:
    """The invertible T that brings a small matrix to reduced row echelon form, and the pivot columns."""
    height, width = chunk.shape
    work = np.hstack([chunk, np.eye(height, dtype=chunk.dtype)])
    scratch = np.empty_like(work)
    columns: list[int] = []
    for column in range(width):
        done = len(columns)
        if done == height:
            break
        nonzero = np.flatnonzero(work[done:, column])
        if not len(nonzero):
            continue
        pivot = done + int(nonzero[0])
        if pivot != done:
            work[[done, pivot]] = work[[pivot, done]]
        inverse = pow(int(work[done, column]), -1, prime)
        work[done] = reduce(work[done] * (inverse if inverse <= prime // 2 else inverse - prime), prime)
        factors = work[:, column].copy()
        factors[done] = 0
        work -= np.multiply(factors[:, None], work[done], out=scratch)
        reduce(work, prime, scratch)
        columns.append(column)
    return work[:, width:], columns


def flint_rank(matrix: Floats, prime: int) -> int:
    """The same rank by FLINT (python-flint): another algorithm, in integers, by other people."""
    from flint import nmod_mat

    rows, columns = matrix.shape
    if not matrix.size:
        return 0
    # It takes a list of Python integers. One object for each residue, not for each entry, makes that a
    # list of pointers and nothing else: 1 GB instead of 5 GB for 11,000 rows.
    residues = np.arange(prime).astype(object) if matrix.size > prime else None
    entries = np.mod(matrix, prime).astype(np.int64).ravel()
    values = entries.tolist() if residues is None else residues[entries].tolist()
    return int(nmod_mat(rows, columns, values, prime).rank())
