"""How large the rank of a case can be: one function per statement of docs/theory.md, and the least of them.

A_n and B_k are the numbers of functions of degree n on the output's side and of degree k on the other. A block pairs
B_k with A_{C−k}, so its rank is at most the smaller; relations and heads lower that further.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb, lgamma, log

from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.dimensions import (
    degree,
    dimension_count,
    head_forms,
    relations,
    side_with_output,
    side_without_output,
)

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
    """A_n and B_k for n, k = 0 … C: eqs. 4, 6 and 7, or those of section 8 for a causal network."""
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
