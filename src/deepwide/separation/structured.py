"""Lower bounds from diagonal weights: blocks written down from monomials, without sample points, split by signs.

With one head y = wᵀ S N S N ⋯ S N_1 x (docs/theory.md, 5.4). Write F_c for the coefficient of x_c, a form of degree C
in the D = d(d+1)/2 entries of S. By Taylor's formula block k is the matrix

    rows (γ, c), columns β:   δ!·[s^δ] F_c,   δ = β + γ,  |β| = k, |γ| = C − k              (Lemma A)

up to scaling of rows and columns. So all blocks are look-ups in d tables of coefficients.

Here all N_l are diagonal and w = e_0. F_c is then a sum over walks of C steps from 0 to c in the graph with an edge
s_ij for every i ≤ j, and changing signs, S → ΛSΛ with Λ = diag(±1), multiplies F_c by a sign: in s^δ every index but 0
and c occurs an even number of times. A block therefore splits by the parity of its β into 2^(d−1) classes at most.

These are special weights. Rank is lower semicontinuous, so what they reach is a proved lower bound for generic weights
and no more; where it meets the proved upper bound, the generic rank is known.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial

import numpy as np
import numpy.typing as npt

from deepwide.quantities import Integers, show_bytes
from deepwide.separation.blas import Matrix
from deepwide.separation.dimensions import check_shape, degree, multiset
from deepwide.separation.field import balanced, check_prime, rank_in_place
from deepwide.separation.network import Case, draw_residues
from deepwide.separation.upper_bounds import TooLargeError, gap_level, side_dimensions, upper_bounds

Letters = npt.NDArray[np.uint16]
MOST_TERMS = 4e8  # letters in the tables, two bytes each and as much again while they are sorted
MOST_MONOMIALS = 30_000_000  # of one degree, 24 bytes each and as much again while they are sorted
_SPARE = 0.02  # this share more rows than columns (or the other way round) is tried before all of them
_SPARE_AT_LEAST = 64


def variables(width: int) -> list[tuple[int, int]]:
    """The entries of a symmetric matrix, s_ij with i ≤ j, in the order that letters number them."""
    return list(combinations_with_replacement(range(width), 2))


def letter_keys(width: int, power: int) -> Integers:
    """A number for each entry s_ij such that the sum over a monomial of degree `power` identifies the monomial.

    Either the exponents are the digits of the key (the last one follows from the degree), or the first `power` power
    sums Σ i^j of the letters' numbers modulo a prime q > power are: by Newton's identities they determine the monomial.
    No digit overflows, so keys add up where monomials are multiplied.

    >>> letter_keys(2, 4).tolist()
    [5, 1, 0]
    """
    from flint import fmpz

    n = width * (width + 1) // 2
    by_exponents = [(power + 1) ** i for i in reversed(range(n - 1))] + [0]
    q = next(q for q in range(max(n, power + 1), 2 * max(n, power + 1) + 2) if fmpz(q).is_prime())
    base = power * (q - 1) + 1
    by_sums = [sum(pow(i, j, q) * base ** (j - 1) for j in range(1, power + 1)) for i in range(n)]
    keys = min(by_exponents, by_sums, key=max)
    if power * max(keys) >= 2**63:
        raise TooLargeError(
            f"Monomials of degree {power} in {n} variables have no key of 63 bits; take a smaller case."
        )
    return np.array(keys, dtype=np.int64)


@dataclass(frozen=True)
class Forms:
    """F_0, …, F_{d−1} of one network modulo a prime: sorted keys of monomials, and δ! times their coefficients."""

    depth: int
    width: int
    prime: int
    seed: int
    tables: tuple[tuple[Integers, Matrix], ...]

    @property
    def degree(self) -> int:
        return degree(self.depth)


def check_size(depth: int, width: int, prime: int) -> None:
    """Refuse what is no shape, has too many monomials, or a prime that divides a factorial."""
    check_shape(depth, width)
    if depth > 7 or width > 200:
        raise TooLargeError(f"Depth {depth} and width {width} have too many monomials to be written down.")
    c = degree(depth)
    check_prime(prime, above=c)
    # Of all monomials of degree C at most one in 2^(d−1) has the right parity; walks are d^C at most.
    terms = min(multiset(width * (width + 1) // 2, c) / 2 ** (width - 1), float(width) ** (c - 1)) * width
    if terms * c > MOST_TERMS:
        raise TooLargeError(
            f"Depth {depth} and width {width} have about {terms:.2g} monomials of {c} letters, "
            f"{show_bytes(int(4 * terms * c))} to write down; at most {MOST_TERMS:.1g} letters are possible."
        )


def diagonal(depth: int, width: int, prime: int, seed: int) -> list[Integers]:
    """The diagonals of N_1, …, N_L, drawn as 64-bit integers, so that every prime sees the same network."""
    names = (f"deepwide/structured/{layer}/{seed}" for layer in range(1, depth + 1))
    return [draw_residues(name, (width,), prime).astype(np.int64) % prime for name in names]


def forms(depth: int, width: int, prime: int, seed: int = 0) -> Forms:
    """The forms of the network with diagonal N_l and w = e_0, letter by letter from the left end of the word.

    >>> forms(1, 2, 101).tables[1][1].tolist()   # y = s_00 x_0 + s_01 x_1, but for the last matrix
    [1.0]
    """
    check_size(depth, width, prime)
    c = degree(depth)
    weights, keys = diagonal(depth, width, prime, seed), letter_keys(width, c)
    number = {pair: n for n, pair in enumerate(variables(width))}
    ends = {0: (np.zeros((1, 0), dtype=np.uint16), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))}
    for place in range(1, c + 1):
        step = {}
        for j in range(width):
            parts = []
            for i, (letters, sums, values) in ends.items():
                letter = number[min(i, j), max(i, j)]
                more = np.full((len(letters), 1), letter, dtype=np.uint16)
                parts.append((np.hstack([letters, more]), sums + keys[letter], values))
            letters, sums, values = _collect(parts, prime)
            if place < c:  # the matrix before x only scales F_c
                values = values * weights[gap_level(place) - 1][j] % prime
            step[j] = letters, sums, values
        ends = step
    tables = []
    for j in range(width):
        letters, sums, values = ends[j]
        for letter in range(len(keys)):
            powers = (letters == letter).sum(axis=1)
            values = values * np.array([factorial(n) % prime for n in range(c + 1)])[powers] % prime
        tables.append((sums, balanced(values, prime)))
    return Forms(depth, width, prime, seed, tuple(tables))


def _collect(parts: list[tuple[Letters, Integers, Integers]], prime: int) -> tuple[Letters, Integers, Integers]:
    """Like terms added up, sorted by key."""
    letters, sums, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(sums, kind="stable")
    sums = sums[order]
    first = np.flatnonzero(np.r_[True, sums[1:] != sums[:-1]])
    return letters[order[first]], sums[first], np.add.reduceat(values[order], first) % prime


@dataclass(frozen=True)
class ParityClass:
    """One class of a block: the keys of its columns β, and of its rows (γ, c) for each c."""

    block: int
    parity: int  # bit i: whether index i occurs an odd number of times in β
    columns: Integers
    rows: tuple[Integers, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(map(len, self.rows)), len(self.columns)


def classes(depth: int, width: int, block: int) -> Iterator[ParityClass]:
    """The classes of a block that have rows and columns, in the order of their parity.

    >>> [parity_class.shape for parity_class in classes(2, 3, 2)]
    [(17, 9), (17, 4), (17, 4), (12, 4)]
    """
    c, n = degree(depth), width * (width + 1) // 2
    if max(multiset(n, block), multiset(n, c - block)) > MOST_MONOMIALS:
        raise TooLargeError(
            f"Block {block} of depth {depth} and width {width} has more than {MOST_MONOMIALS} monomials."
        )
    keys = letter_keys(width, c)
    columns = _by_parity(width, block, keys)
    others = _by_parity(width, c - block, keys)
    for parity in sorted(columns):
        rows = tuple(others.get(parity ^ 1 ^ 1 << end, np.zeros(0, dtype=np.int64)) for end in range(width))
        if any(map(len, rows)):
            yield ParityClass(block, parity, columns[parity], rows)


def _by_parity(width: int, power: int, keys: Integers) -> dict[int, Integers]:
    """The sorted keys of all monomials of a degree, by which indices occur an odd number of times."""
    pairs = variables(width)
    flips = np.array([1 << i ^ 1 << j for i, j in pairs], dtype=np.int64)
    sums, parity = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    last = np.zeros(1, dtype=np.int64)  # the largest letter so far: letters are appended in order
    for _ in range(power):
        sums, parity, last = (
            np.concatenate(column)
            for column in zip(
                *(
                    (sums[last <= n] + keys[n], parity[last <= n] ^ flips[n], np.full((last <= n).sum(), n))
                    for n in range(len(pairs))
                ),
                strict=True,
            )
        )
    order = np.lexsort((sums, parity))
    sums, parity = sums[order], parity[order]
    starts = np.flatnonzero(np.r_[True, parity[1:] != parity[:-1]])
    return {int(parity[s]): part for s, part in zip(starts, np.split(sums, starts[1:]), strict=True)}


def class_matrix(table: Forms, part: ParityClass) -> Matrix:
    """The matrix of a class: rows (γ, c), columns β."""
    matrix = np.zeros(part.shape)
    row = 0
    for (keys, values), rows in zip(table.tables, part.rows, strict=True):
        for key in rows:
            wanted = part.columns + key  # sorted, as the columns are, which makes the search quick
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            matrix[row] = np.where(keys[at] == wanted, values[at], 0.0)
            row += 1
    return matrix


Elimination = Callable[[Matrix, int], int]


def class_bytes(part: ParityClass) -> int:
    """The matrix that is eliminated if the class is full, the usual case, and the rows that are being looked up."""
    return int(8 * min(part.shape) * min(max(part.shape), min(part.shape) * (1 + _SPARE) + _SPARE_AT_LEAST))


def class_rank(table: Forms, part: ParityClass, eliminate: Elimination = rank_in_place) -> int:
    """The rank of a class. A few more rows than columns, or the other way round, are tried first: most are full."""
    rows, columns = part.shape
    few = int(min(rows, columns) * (1 + _SPARE)) + _SPARE_AT_LEAST
    if few < 0.8 * max(rows, columns):
        rank = eliminate(class_matrix(table, _thin_out(part, few)), table.prime)
        if rank == min(rows, columns):
            return rank
    return eliminate(class_matrix(table, part), table.prime)


def _thin_out(part: ParityClass, few: int) -> ParityClass:
    """So many columns, or rows, of the longer side, drawn at random but always the same."""
    draw = np.random.default_rng(part.parity)
    rows, columns = part.shape
    if columns > rows:
        chosen = np.sort(draw.choice(columns, few, replace=False))
        return ParityClass(part.block, part.parity, part.columns[chosen], part.rows)
    chosen = np.sort(draw.choice(rows, few, replace=False))
    ends = np.cumsum([0, *map(len, part.rows)])
    spread = tuple(
        keys[chosen[(chosen >= a) & (chosen < b)] - a]
        for keys, a, b in zip(part.rows, ends[:-1], ends[1:], strict=True)
    )
    return ParityClass(part.block, part.parity, part.columns, spread)


def blocks_to_measure(depth: int, width: int) -> range:
    """The blocks from which Lemma A settles all others, if they reach their upper bounds.

    A block k that has rank B_k makes every smaller one as large as B allows, one with rank A_{C−k} every larger one as
    large as A allows: the last of the former, the first of the latter and what lies between.

    >>> blocks_to_measure(2, 3), blocks_to_measure(3, 4), blocks_to_measure(6, 2)
    (range(2, 4), range(6, 9), range(213, 215))
    """
    case = Case(depth, width)
    by_a, by_b = side_dimensions(case)
    most = upper_bounds(case).blocks
    c = degree(depth)
    first = next(k for k in range(c + 1) if k == c or most[k + 1] < by_b[k + 1])
    last = next(k for k in range(c, -1, -1) if k == 0 or most[k - 1] < by_a[c - k + 1])
    return range(min(first, last), max(first, last) + 1)


def settled(depth: int, width: int, ranks: dict[int, int]) -> tuple[int, ...]:
    """A proved lower bound for every block from the ranks of some, by Lemma A.

    One operator that annihilates block j gives multiset(D, k − j) independent ones for block k > j, so a block that
    lacks fewer than that makes block j full; on side A likewise for larger blocks.

    >>> settled(2, 3, {2: 21, 3: 18}), settled(2, 3, {2: 20, 3: 18}), settled(2, 3, {2: 15, 3: 17})
    ((1, 6, 21, 18, 3), (1, 6, 20, 18, 3), (1, 0, 15, 17, 3))
    """
    by_a, by_b = side_dimensions(Case(depth, width))
    c, n = degree(depth), width * (width + 1) // 2
    least = []
    for k in range(c + 1):
        bounds = [ranks.get(k, 0)]
        bounds += [by_b[k] for j, rank in ranks.items() if j >= k and by_b[j] - rank < multiset(n, j - k)]
        bounds += [by_a[c - k] for j, rank in ranks.items() if j <= k and by_a[c - j] - rank < multiset(n, k - j)]
        least.append(max(bounds))
    return tuple(least)
