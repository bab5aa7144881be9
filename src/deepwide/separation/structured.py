"""Lower bounds from structured weights: blocks written down from monomials, without sample points, split by signs.

With one head y = wᵀ S N S N ⋯ S N_1 x (docs/theory.md, 4.4). Write F_c for the coefficient of x_c, a form of degree C
in the D = d(d+1)/2 entries of S. By Taylor's formula block k is the matrix

    rows (γ, c), columns β:   δ!·[s^δ] F_c,   δ = β + γ,  |β| = k, |γ| = C − k              (Lemma A)

up to scaling of rows and columns. So all blocks are look-ups in d tables of coefficients.

Here the indices are put into groups, all N_l are zero between different groups, and w = e_0 with 0 in a group of its
own. F_c is then a sum over walks from 0 to c in which a letter s_ij goes anywhere and a gap stays in its group, and
changing signs, S → ΛSΛ with Λ = ±1 on each group, multiplies F_c by a sign: in s^δ every group but those of 0 and c
occurs an even number of times. A block therefore splits by the parity of its β into 2^(g−1) classes at most, g groups.
`diagonal` weights have groups of one index. They are symmetric, and where that costs rank (L = 3, d = 5) `pairs` has
groups {0}, {1, 2}, {3, 4}, …, in which N_l is any matrix.

These are special weights. Rank is lower semicontinuous, so what they reach is a proved lower bound for generic weights
and no more; where it meets the proved upper bound, the generic rank is known.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import factorial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from deepwide.errors import DeepwideError
from deepwide.quantities import Integers, show_bytes
from deepwide.separation.blas import Floats
from deepwide.separation.dimensions import check_shape, degree, multiset
from deepwide.separation.field import LARGEST_SINGLE, PRIME, balanced, check_prime, rank_in_place
from deepwide.separation.network import Case, draw_residues
from deepwide.separation.upper_bounds import TooLargeError, side_dimensions, upper_bounds

Letters = npt.NDArray[np.uint16]
MOST_TERMS = 4e8  # letters in the tables, two bytes each and as much again while they are sorted
MOST_MONOMIALS = 30_000_000  # of one degree, 24 bytes each and as much again while they are sorted
_SPARE = 0.02  # this share more rows than columns (or the other way round) is tried before all of them
_SPARE_AT_LEAST = 64
_WORTH_THINNING = 0.95  # leaving out less than the rest of this share saves too little
LARGEST_ENTRY = 126  # of the weights: below every prime that is used

Kind = Literal["diagonal", "pairs"]


def groups(width: int, kind: Kind) -> tuple[int, ...]:
    """The group of every index.

    >>> groups(5, "diagonal"), groups(5, "pairs"), groups(4, "pairs")
    ((0, 1, 2, 3, 4), (0, 1, 1, 2, 2), (0, 1, 1, 2))
    """
    return tuple(range(width)) if kind == "diagonal" else tuple((i + 1) // 2 for i in range(width))


def gaps(depth: int) -> list[tuple[int, bool]]:
    """What stands behind each letter S of the word: which N_l, and whether it is transposed (docs/theory.md, eq. 9).

    >>> gaps(2)
    [(1, False), (1, True), (2, False), (1, False)]
    """
    inner: list[list[tuple[int, bool]]] = [[]]  # of Ŝ_0, Ŝ_1, …
    for layer in range(1, depth):
        inner.append([*inner[-1], (layer, False), *inner[-1], (layer, True), *inner[-1]])
    return [gap for layer in range(depth, 0, -1) for gap in (*inner[layer - 1], (layer, False))]


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
    kind: Kind
    tables: tuple[tuple[Integers, Floats], ...]

    @property
    def degree(self) -> int:
        return degree(self.depth)


def check_size(depth: int, width: int, prime: int, kind: Kind = "diagonal") -> None:
    """Refuse what is no shape, has too many monomials, or a prime that divides a factorial."""
    check_shape(depth, width)
    if depth > 7 or width > 200:
        raise TooLargeError(f"Depth {depth} and width {width} have too many monomials to be written down.")
    c = degree(depth)
    check_prime(prime, above=max(c, LARGEST_ENTRY))
    # Of all monomials of degree C at most one in 2^(g−1) has the right parity; walks are d^C at most.
    parities = 2 ** max(groups(width, kind))
    terms = min(multiset(width * (width + 1) // 2, c) / parities, float(width) ** (c - 1)) * width
    if terms * c > MOST_TERMS:
        raise TooLargeError(
            f"Depth {depth} and width {width} have about {terms:.2g} monomials of {c} letters, "
            f"{show_bytes(int(4 * terms * c))} to write down; at most {MOST_TERMS:.1g} letters are possible."
        )


def weights(depth: int, width: int, seed: int, kind: Kind = "diagonal") -> list[Integers]:
    """N_1, …, N_L, zero between groups; the other entries of one are different integers from 1 to 126.

    So they are neither zero nor equal modulo any prime that is used, and every prime sees the same network.
    """
    of = np.array(groups(width, kind))
    together = of[:, None] == of[None, :]
    matrices = []
    for layer in range(1, depth + 1):
        order = np.argsort(draw_residues(f"deepwide/structured/{kind}/{layer}/{seed}", (LARGEST_ENTRY,), PRIME))
        matrix = np.zeros((width, width), dtype=np.int64)
        matrix[together] = np.resize(1 + order, together.sum())  # more than 126 entries begin again
        matrices.append(matrix)
    return matrices


def forms(
    depth: int, width: int, prime: int, seed: int = 0, kind: Kind = "diagonal", at: tuple[Integers, ...] = ()
) -> Forms:
    """The forms of the network with such N_l and w = e_0, letter by letter from the left end of the word.

    They are compared with the Gram form at the symmetric matrices `at`, which shares nothing with this but the N_l.

    The matrix before x is left out: it only changes the basis of the x_c. Should it be singular modulo the prime, the
    ranks are still lower bounds for generic weights: those of N_1 + ε are no smaller, and N_1 + ε is regular.

    >>> forms(1, 2, 127).tables[1][1].tolist()   # y = s_00 x_0 + s_01 x_1, but for the last matrix
    [1.0]
    """
    check_size(depth, width, prime, kind)
    c = degree(depth)
    matrices, keys = weights(depth, width, seed, kind), letter_keys(width, c)
    number = {pair: n for n, pair in enumerate(variables(width))}
    ends = {0: (np.zeros((1, 0), dtype=np.uint16), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))}
    for place, (layer, transposed) in enumerate(gaps(depth), start=1):
        step = {}
        for j in range(width):
            parts = []
            for i, (letters, sums, values) in ends.items():
                letter = number[min(i, j), max(i, j)]
                more = np.full((len(letters), 1), letter, dtype=np.uint16)
                parts.append((np.hstack([letters, more]), sums + keys[letter], values))
            step[j] = _collect(parts, prime)
        matrix = matrices[layer - 1].T if transposed else matrices[layer - 1]
        ends = step if place == c else _through(step, matrix, prime)  # the one before x only changes its basis
    for matrix in at:
        values = np.array([_value(ends[j], matrix, prime) for j in range(width)])
        if (values @ matrices[0] % prime != gram_values(matrices, matrix, prime)).any():
            raise DeepwideError(
                f"The coefficients of depth {depth} and width {width} do not add up to the network modulo {prime}: "
                "this is a bug, please report it."
            )
    real: Any = np.float32 if prime <= LARGEST_SINGLE else np.float64
    tables = []
    for j in range(width):
        letters, sums, values = ends[j]
        for letter in range(len(keys)):
            powers = (letters == letter).sum(axis=1)
            values = values * np.array([factorial(n) % prime for n in range(c + 1)])[powers] % prime
        tables.append((sums, balanced(values, prime).astype(real)))
    return Forms(depth, width, prime, seed, kind, tuple(tables))


Words = tuple[Letters, Integers, Integers]


def gram_values(matrices: list[Integers], s: Integers, prime: int) -> Integers:
    """e_0ᵀ M_L ⋯ M_1 modulo a prime, layer by layer: M = S·N_l, S ← M·S·Mᵀ (docs/theory.md, 1.2, with B_l = I)."""
    product: Integers = np.eye(len(s), dtype=np.int64)
    for matrix in matrices:
        m = s @ matrix % prime
        product = m @ product % prime
        s = m @ s % prime @ m.T % prime
    first: Integers = product[0]
    return first


def random_symmetric(width: int, prime: int) -> Integers:
    """A symmetric matrix of residues that nobody could know before."""
    upper = np.array([[secrets.randbelow(prime) for _ in range(width)] for _ in range(width)], dtype=np.int64)
    return np.triu(upper) + np.triu(upper, 1).T


def _value(words: Words, s: Integers, prime: int) -> int:
    """The form that is the sum of these words, at a matrix."""
    letters, _, values = words
    entries = np.array([int(s[pair]) for pair in variables(len(s))], dtype=np.int64)
    products = values % prime
    for place in range(letters.shape[1]):
        products = products * entries[letters[:, place]] % prime
    return int(products.sum() % prime)


def _through(ends: dict[int, Words], matrix: Integers, prime: int) -> dict[int, Words]:
    """All words that end at an index, continued through a gap."""
    after = {}
    for j in range(len(matrix)):
        parts = [
            (letters, sums, values * int(matrix[i, j]) % prime)
            for i, (letters, sums, values) in ends.items()
            if matrix[i, j]
        ]
        if parts:
            after[j] = parts[0] if len(parts) == 1 else _collect(parts, prime)
    return after


def _collect(parts: list[Words], prime: int) -> Words:
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
    parity: int  # bit i: whether group i occurs an odd number of times in β
    columns: Integers
    rows: tuple[Integers, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(map(len, self.rows)), len(self.columns)


def classes(depth: int, width: int, block: int, kind: Kind = "diagonal") -> Iterator[ParityClass]:
    """The classes of a block that have rows and columns, in the order of their parity.

    >>> [parity_class.shape for parity_class in classes(2, 3, 2)]
    [(17, 9), (17, 4), (17, 4), (12, 4)]
    """
    c, n = degree(depth), width * (width + 1) // 2
    if max(multiset(n, block), multiset(n, c - block)) > MOST_MONOMIALS:
        raise TooLargeError(
            f"Block {block} of depth {depth} and width {width} has more than {MOST_MONOMIALS} monomials."
        )
    keys, of = letter_keys(width, c), groups(width, kind)
    columns = _by_parity(of, block, keys)
    others = _by_parity(of, c - block, keys)
    for parity in sorted(columns):
        rows = tuple(others.get(parity ^ 1 ^ 1 << group, np.zeros(0, dtype=np.int64)) for group in of)
        if any(map(len, rows)):
            yield ParityClass(block, parity, columns[parity], rows)


def _by_parity(of: tuple[int, ...], power: int, keys: Integers) -> dict[int, Integers]:
    """The sorted keys of all monomials of a degree, by which groups occur an odd number of times."""
    pairs = variables(len(of))
    flips = np.array([1 << of[i] ^ 1 << of[j] for i, j in pairs], dtype=np.int64)
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


def class_matrix(table: Forms, part: ParityClass) -> Floats:
    """The matrix of a class: rows (γ, c), columns β."""
    matrix = np.zeros(part.shape, dtype=table.tables[0][1].dtype)
    row = 0
    for (keys, values), rows in zip(table.tables, part.rows, strict=True):
        for key in rows:
            wanted = part.columns + key  # sorted, as the columns are, which makes the search quick
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            matrix[row] = values[at] * (keys[at] == wanted)
            row += 1
    return matrix


Elimination = Callable[[Floats, int], int]


def class_bytes(part: ParityClass, size: int = 8) -> int:
    """The matrix that is eliminated; `size` bytes per entry."""
    rows, columns = part.shape
    return size * rows * columns


def thin(part: ParityClass) -> ParityClass:
    """The class with only a few more rows than columns, or the other way round; itself where that saves little.

    Its rank is a lower bound for that of the class, and the same if it is full.
    """
    rows, columns = part.shape
    few = int(min(rows, columns) * (1 + _SPARE)) + _SPARE_AT_LEAST
    return _thin_out(part, few) if few < _WORTH_THINNING * max(rows, columns) else part


def class_rank(table: Forms, part: ParityClass, eliminate: Elimination = rank_in_place) -> int:
    """The rank of a class with all its rows and columns."""
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
