"""How large the rank of a case can be: one function per statement of docs/theory.md, and the least of them.

A_n and B_k are the numbers of functions of degree n on the output's side and of degree k on the other. A block pairs
B_k with A_{C−k}, so its rank is at most the smaller; relations and heads lower that further.

The bound by ideals is sharper, for one head: what the parts of a word at v vᵀ have in common (docs/theory.md, eq. 11').

At S_B = v vᵀ every term of block k is a multiple of some m_T(v): w·v if the first letter is from side B, and q_l(v) for
every two neighbours that are. So what the block can be on side B restricts into the ideal of these, and what the
ideal lacks of all forms of degree 2k is taken from B_k; likewise on side A at S_A = v vᵀ, x = v.

That is a proof; the ideal's size is *computed*, for random weights modulo a prime, from values at more points than
there are forms. By bad luck it could be too small, so this bound is shown and never enforced.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, lgamma, log
from typing import Literal

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.quantities import Integers
from deepwide.separation.dimensions import (
    degree,
    dimension_count,
    head_forms,
    multiset,
    relations,
    side_with_output,
    side_without_output,
)
from deepwide.separation.field import PRIME, matrix_rank
from deepwide.separation.network import Case

_TOO_MANY_ROWS = 1e7  # a matrix of 800 TB: not worth counting exactly where that takes long


class TooLargeError(DeepwideError):
    """A case that does not fit into memory."""


@dataclass(frozen=True)
class UpperBounds:
    """The bound of every block, before and after relations, and that of the whole rank."""

    dimensions: tuple[int, ...]
    blocks: tuple[int, ...]
    total: int

    @property
    def relations(self) -> int:
        """By how much the relations of isotropic vectors lower the count, all blocks together."""
        return sum(self.dimensions) - sum(self.blocks)


@lru_cache(maxsize=256)
def upper_bounds(case: Case) -> UpperBounds:
    """Every bound that is proved for a case; a rank above it is a bug.

    >>> upper_bounds(Case(2, 3)).blocks, upper_bounds(Case(3, 4)).total, upper_bounds(Case(3, 4)).relations
    ((1, 6, 21, 18, 3), 31456, 4)
    """
    _refuse_the_vast(case)
    dimensions = causal_dimensions(case) if case.causal else plain_dimensions(case)
    blocks = less_relations(case, dimensions) if _has_relations(case) else dimensions
    return UpperBounds(dimensions, blocks, sum(blocks) if case.graded else residual_cover(case, dimensions))


def side_dimensions(case: Case) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A_n and B_k for n, k = 0 … C: eqs. 4, 6 and 7, or those of 4.7 for a causal network."""
    c = degree(case.depth)
    if case.causal:
        seen = case.sides[: case.at + 1]
        return (
            _even_in_each(case.width, seen.count("A") - 1, c, odd=True),
            _even_in_each(case.width, seen.count("B"), c, odd=False),
        )
    a, b = case.positions
    without = (side_without_output(case.width, b, k) if b else int(k == 0) for k in range(c + 1))
    return tuple(side_with_output(case.width, a, n) for n in range(c + 1)), tuple(without)


def plain_dimensions(case: Case) -> tuple[int, ...]:
    """Eqs. 4, 6 and 7 by positions and eq. 8 by heads, the smaller of the two in every block."""
    if case.positions[1]:
        return dimension_count(case.depth, case.width, case.heads, case.positions).blocks
    return _smaller_side(case)


def causal_dimensions(case: Case) -> tuple[int, ...]:
    """Section 8: polynomials that are even in every position, odd in the output's."""
    return _smaller_side(case)


def less_relations(case: Case, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """Eq. 11: of one head's functions on side B no more than the relations of isotropic vectors leave."""
    by_b = side_dimensions(case)[1]
    left = (n - relations(case.depth, case.width, k) for k, n in enumerate(by_b))
    return tuple(map(min, dimensions, left))


def residual_cover(case: Case, dimensions: tuple[int, ...]) -> int:
    """Section 7: without grading, the parts of degree (n, k) with n + k ≤ C fill a staircase.

    A matrix that is zero outside it has rank at most that of any cover by columns k < t and the rows n ≤ C − t they
    leave over; with one head the last column's functions number less by the relations of its block. With heads and
    enough positions the covers of all blocks together are one of the staircase.
    """
    a, b = side_dimensions(case)
    c = degree(case.depth)
    if not case.causal and case.heads > 1 and min(case.positions) >= case.width:
        return sum(dimensions)
    one_head = case.heads == 1 and not case.causal
    spared = [0, *(relations(case.depth, case.width, k) if one_head else 0 for k in range(c + 1))]
    return min(sum(b[:t]) - spared[t] + sum(a[: c + 1 - t]) for t in range(c + 2))


def _has_relations(case: Case) -> bool:
    return case.heads == 1 and not (case.causal or case.residual) and "B" in case.sides


def _smaller_side(case: Case) -> tuple[int, ...]:
    by_a, by_b = side_dimensions(case)
    return tuple(map(min, by_b, reversed(by_a)))


def _even_in_each(width: int, others: int, c: int, odd: bool) -> tuple[int, ...]:
    """The polynomials of total degree 2n (2n + 1 if odd), even in each position, odd in the output's.

    A causal network is no function of one Gram matrix, but changing the sign of a position still
    changes nothing, or only the sign of the output; this counts what that leaves.
    """
    series = [comb(2 * n + width, width - 1) if odd else int(n == 0) for n in range(c + 1)]
    one = [comb(2 * n + width - 1, width - 1) for n in range(c + 1)]
    for _ in range(others):
        series = [sum(series[i] * one[n - i] for i in range(n + 1)) for n in range(c + 1)]
    return tuple(series)


def _refuse_the_vast(case: Case) -> None:
    """Stop before exact integers that would take minutes to count, for a matrix that nobody could hold."""
    enough = min(case.positions) >= case.width
    quick = (case.depth <= 5 and case.width <= 1000) if enough else (case.depth <= 3 and case.width <= 64)
    if quick and not case.causal:
        return
    rows = rows_at_least(case)
    if rows > log(_TOO_MANY_ROWS):
        raise TooLargeError(
            f"Depth {case.depth} and width {case.width} need a matrix of at least 10^{rows / log(10):.0f} rows."
        )


def rows_at_least(case: Case) -> float:
    """The natural logarithm of a lower bound on the largest block's bound, quickly computed.

    >>> from math import log
    >>> rows_at_least(Case(3, 4)) <= log(11440), rows_at_least(Case(8, 4000)) > 1000
    (True, True)
    """
    k = degree(case.depth) // 2
    d = case.width
    if case.causal:
        seen = case.sides[: case.at + 1]
        sides = [max(_log_multiset(d, 2 * k), _log_multiset(m, k)) for m in (seen.count("A"), seen.count("B")) if m]
        return min(sides) if len(sides) == 2 else 0.0
    if not case.positions[1]:
        return 0.0
    by_positions = (_log_side(d, m, k) for m in case.positions)
    # With heads a block holds at least the monomials in the forms that the first layer sees. Relations take nothing
    # from block ⌊C/2⌋: so many letters always fit.
    by_heads = _log_multiset(head_forms(d, case.heads), k) if case.heads > 1 else float("inf")
    return max(0.0, min(*by_positions, by_heads) - 1e-6)


def _log_side(width: int, positions: int, k: int) -> float:
    """Degree k in the Gram matrix of so many positions: one representation, of a staircase λ, by Weyl's formula."""
    if positions >= width:
        return _log_multiset(width * (width + 1) // 2, k)
    m = min(positions, 6)  # fewer positions never have more functions
    steps = m * (m + 1) // 2
    weight = [2 * (k * (m - i) // steps) for i in range(m)]  # its size is at most 2k, and larger ones have more
    rows = [*weight, 0]
    total = 0.0
    for i in range(m):
        for j in range(i + 1, width):
            gap = rows[min(j, m)]
            total += log((rows[i] - gap + j - i) / (j - i))
    return total


def _log_multiset(n: int, k: int) -> float:
    return lgamma(n + k) - lgamma(n) - lgamma(k + 1) if n else 0.0


MOST_FORMS, DEEPEST = 1000, 3  # beyond, computing the ideal takes longer than it is worth


def affordable(case: Case) -> bool:
    """Whether the ideals of all blocks are computed in about a second."""
    return case.depth <= DEEPEST and multiset(case.width, 2 * degree(case.depth) + 1) <= MOST_FORMS


def factors(depth: int, letters: int, last: bool) -> set[tuple[int, ...]]:
    """The powers of w·v, q_1(v), …, q_L(v) in the m_T with so many letters T; `last` counts the gap before x as well.

    >>> sorted(factors(2, 2, last=False))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0)]
    """
    C = degree(depth)
    start: tuple[int, ...] = (0,) * (depth + 1)
    reached = {(0, False, start)}  # how many letters are in T, whether the one just read is, the powers
    for i in range(1, C + 1):
        step = set()
        for used, inside, powers in reached:
            step.add((used, False, powers))
            if used < letters:
                more = powers
                if i == 1:
                    more = _raised(more, 0)
                elif inside:
                    more = _raised(more, gap_level(i - 1))
                step.add((used + 1, True, more))
        reached = step
    whole = ((inside, powers) for used, inside, powers in reached if used == letters)
    return {_raised(powers, 1) if last and inside else powers for inside, powers in whole}


def gap_level(i: int) -> int:
    """l of eq. 9: one more than how often 3 divides i."""
    power = 1
    while i % 3 == 0:
        i, power = i // 3, power + 1
    return power


def _raised(powers: tuple[int, ...], which: int) -> tuple[int, ...]:
    return tuple(p + (place == which) for place, p in enumerate(powers))


def lacking(depth: int, width: int, letters: int, side: Literal["A", "B"], prime: int = PRIME) -> int:
    """How many forms of degree 2k (side B) or 2n + 1 (side A) are not in the ideal of the m_T."""
    power = 2 * letters + (side == "A")
    generators = _least(factors(depth, letters, last=side == "A"))
    if (0,) * (depth + 1) in generators:
        return 0
    forms = multiset(width, power)
    random = np.random.default_rng(0)
    v = random.integers(0, prime, (width, forms + 5))
    values = [random.integers(0, prime, width) @ v % prime]
    for _ in range(depth):
        N = random.integers(0, prime, (width, width))
        values.append((v * (N @ v % prime)).sum(axis=0) % prime)
    rows = []
    for powers in generators:
        g = np.ones(v.shape[1], dtype=np.int64)
        for value, times in zip(values, powers, strict=True):
            for _ in range(times):
                g = g * value % prime
        rest = power - powers[0] - 2 * sum(powers[1:])
        rows += [g * monomial % prime for monomial in _monomials(v, rest, prime)]
    return forms - matrix_rank(np.array(rows), prime)


def _least(all_powers: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those that no other divides."""
    return [p for p in all_powers if not any(q != p and all(map(int.__le__, q, p)) for q in all_powers)]


def _monomials(v: Integers, power: int, prime: int) -> list[Integers]:
    monomials = []
    for which in combinations_with_replacement(range(len(v)), power):
        value = np.ones(v.shape[1], dtype=np.int64)
        for index in which:
            value = value * v[index] % prime
        monomials.append(value)
    return monomials


def ideal_bounds(case: Case, prime: int = PRIME) -> tuple[int, ...]:
    """Eq. 11' for every block of a one-head network without mask and residual connection.

    >>> ideal_bounds(Case(2, 3, sides="BBA"))
    (1, 6, 19, 10, 3)
    """
    assert case.heads == 1
    assert not case.causal
    assert not case.residual
    by_a, by_b = side_dimensions(case)
    C = degree(case.depth)
    return tuple(
        min(
            by_b[k] - lacking(case.depth, case.width, k, "B", prime),
            by_a[C - k] - lacking(case.depth, case.width, C - k, "A", prime),
        )
        for k in range(C + 1)
    )


def ideal_bound(case: Case) -> int | None:
    """Eq. 11' for the whole rank, where it is about the network and quickly computed."""
    plain = case.heads == 1 and case.weights == "random" and not (case.causal or case.residual)
    return sum(ideal_bounds(case)) if plain and "B" in case.sides and affordable(case) else None
