"""The exact count: how large the separation rank can be by dimension alone, for one head.

Write y for the output at a position of side A, S_A and S_B for the Gram matrices of the two sides,
C = (3^L − 1)/2. The part of y of degree k in S_B lies in (functions of side A) ⊗ (functions of side B),
so its rank is at most the smaller of the two dimensions:

    block k ≤ min( B_k, A_{C−k} )

    B_k = dim{polynomials of degree k in S_B}                = multiset(D, k),      D = d(d+1)/2
    A_n = dim{polynomials of degree n in S_A, linear in x^i} = d · multiset(D, n)

With m < d positions on a side S has rank ≤ m and fewer polynomials differ on it: by the (GL_d, O_m)
duality they are the sum over partitions λ of k with at most m parts of the GL_d representations with
highest weight 2λ, and on side A those with exactly one odd part (docs/theory.md has the proof). That
the bound is met is measured, not proved.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import comb, prod

from deepwide.errors import DeepwideError

_MOST_DIGITS = 100_000  # exact integers longer than this are answered by their logarithm
_MOST_PARTITIONS = 2_000_000


def degree(depth: int) -> int:
    """C = (3^L − 1)/2, the degree of the network in the Gram matrix.

    >>> [degree(depth) for depth in (1, 2, 3, 4)]
    [1, 4, 13, 40]
    """
    return int((3**depth - 1) // 2)


def multiset(n: int, k: int) -> int:
    """How many multisets of size k there are over n kinds: binom(n + k − 1, k).

    >>> multiset(6, 2), multiset(3, 0)
    (21, 1)
    """
    return comb(n + k - 1, k)


def schur_dimension(weight: tuple[int, ...], width: int) -> int:
    """The dimension of the GL_d representation with this highest weight, by Weyl's formula.

    >>> schur_dimension((4,), 3), schur_dimension((2, 2), 3), schur_dimension((1, 1, 1), 3)
    (15, 6, 1)
    """
    if len(weight) > width:
        return 0
    w = [*weight, *[0] * (width - len(weight))]
    top = prod(w[i] - w[j] + j - i for i in range(len(weight)) for j in range(i + 1, width))
    bottom = prod(j - i for i in range(len(weight)) for j in range(i + 1, width))
    return top // bottom


def partitions(total: int, parts: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """The partitions of a number into at most so many parts, largest part first.

    >>> list(partitions(4, 2))
    [(4,), (3, 1), (2, 2)]
    """
    if total == 0:
        yield ()
        return
    if parts == 0:
        return
    high = total if largest is None else min(total, largest)
    for first in range(high, -(-total // parts) - 1, -1):
        for rest in partitions(total - first, parts - 1, first):
            yield (first, *rest)


@cache
def side_without_output(width: int, positions: int, k: int) -> int:
    """B_k: the polynomials of degree k in a Gram matrix of so many positions.

    >>> [side_without_output(3, 3, k) for k in range(3)], [side_without_output(3, 1, k) for k in range(3)]
    ([1, 6, 21], [1, 6, 15])
    """
    if positions >= width:
        return multiset(width * (width + 1) // 2, k)
    _affordable(k, positions)
    return sum(schur_dimension(tuple(2 * part for part in shape), width) for shape in partitions(k, positions))


@cache
def side_with_output(width: int, positions: int, n: int) -> int:
    """A_n: the polynomials of degree n in the Gram matrix, linear in the position the output is read at.

    >>> [side_with_output(3, 3, n) for n in range(3)], [side_with_output(3, 1, n) for n in range(3)]
    ([3, 18, 63], [3, 10, 21])
    """
    if positions >= width:
        return width * multiset(width * (width + 1) // 2, n)
    _affordable(n, positions)
    total = 0
    for shape in partitions(n, positions):
        doubled = [2 * part for part in shape] + [0] * (positions - len(shape))
        for row in range(positions):
            # Adding a box to row `row` leaves a partition exactly when the row above is longer.
            if row == 0 or doubled[row - 1] > doubled[row]:
                grown = [*doubled[:row], doubled[row] + 1, *doubled[row + 1 :]]
                total += schur_dimension(tuple(part for part in grown if part), width)
    return total


def _affordable(k: int, positions: int) -> None:
    estimate = 1.0
    for part in range(1, positions):
        estimate *= (k + part * (part + 1) / 2) / (part * (part + 1))
    if estimate > _MOST_PARTITIONS:
        raise DeepwideError(
            f"Counting with {positions} positions on a side needs about {estimate:.1g} partitions of {k} for one "
            "block, too many to list; with at least as many positions as the width there is a closed form, "
            "and so there is with one position."
            if positions > 1
            else f"Degree {k} is too large."
        )


@dataclass(frozen=True)
class Count:
    """Blocks of the dimension bound and their sum, the largest separation rank one head can have."""

    depth: int
    width: int
    positions: tuple[int, int]
    blocks: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.blocks)


def check_shape(depth: int, width: int, heads: int = 1) -> None:
    """Refuse what is not the shape of a network, in one sentence."""
    for name, value in (("depth", depth), ("width", width), ("heads", heads)):
        if value < 1:
            raise DeepwideError(f"The {name} must be at least 1; it was {value}.")
    if width % heads:
        near = [h for h in range(1, width + 1) if width % h == 0]
        raise DeepwideError(
            f"A width of {width} cannot be split evenly over {heads} heads; "
            f"it can over {', '.join(map(str, near[:8]))}{' and more' if len(near) > 8 else ''}."
        )


def count(depth: int, width: int, positions: tuple[int, int] | None = None) -> Count:
    """The dimension bound block by block, as exact integers of any size.

    `positions` are those on the output's side and on the other; enough of both when left out.

    >>> count(2, 3).blocks, count(2, 3).total, count(4, 2).total
    ((1, 6, 21, 18, 3), 49, 4538)
    >>> count(2, 3, (1, 1)).blocks
    (1, 6, 15, 10, 3)
    """
    check_shape(depth, width)
    a, b = positions or (width, width)
    if a < 1 or b < 0:
        raise DeepwideError(f"Positions {a},{b}: the output's side needs at least one position, the other none.")
    if depth > 12 and b:
        raise DeepwideError(
            f"Depth {depth} has {degree(depth):.3g} blocks, too many to list; the total has a closed form: "
            f"deepwide bounds --depth {depth} --width {width}."
        )
    c = degree(depth)
    if b == 0:  # everything is on one side: no separation at all
        return Count(depth, width, (a, 0), (1,) + (0,) * c)
    blocks = (min(side_without_output(width, b, k), side_with_output(width, a, c - k)) for k in range(c + 1))
    return Count(depth, width, (a, b), tuple(blocks))


def total(depth: int, width: int) -> int:
    """The sum of all blocks with enough positions, without listing them.

    B_k grows with k and A_{C−k} falls, so they cross once, after some k*. Each half is then a sum of
    multiset coefficients, which is one: Σ_{k≤K} multiset(D, k) = multiset(D + 1, K).

    >>> total(4, 2), total(2, 8), total(1, 5)
    (4538, 999, 6)
    """
    check_shape(depth, width)
    D, c = width * (width + 1) // 2, degree(depth)
    low, high = 0, c  # B_low ≤ A_{C−low} always holds: 1 ≤ d·multiset(D, C)
    while low < high:
        middle = (low + high + 1) // 2
        if multiset(D, middle) <= width * multiset(D, c - middle):
            low = middle
        else:
            high = middle - 1
    return multiset(D + 1, low) + (width * multiset(D + 1, c - low - 1) if low < c else 0)
