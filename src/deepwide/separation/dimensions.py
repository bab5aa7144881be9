"""The dimension count: how large the separation rank can be by counting dimensions alone, as exact integers.

Write y for the output at a position of side A, S_A and S_B for the Gram matrices of the two sides,
C = (3^L − 1)/2. The part of y of degree k in S_B lies in (functions of side A) ⊗ (functions of side B),
so its rank is at most the smaller of the two dimensions:

    block k ≤ min( B_k, A_{C−k} )

    B_k = dim{polynomials of degree k in S_B}                = multiset(D, k),      D = d(d+1)/2
    A_n = dim{polynomials of degree n in S_A, linear in x^i} = d · multiset(D, n)

With m < d positions on a side S has rank ≤ m and fewer polynomials differ on it: by the (GL_d, O_m)
duality they are the sum over partitions λ of k with at most m parts of the GL_d representations with
highest weight 2λ, and on side A those with exactly one odd part.

With H heads the first layer sees S only through the H matrices V_h S K_hᵀ, r = min(D, d²/H) linear
forms, and every monomial of y has at most C' = (3^(L−1) − 1)/2 factors that are not among them. That
limits how many such factors the functions can hold, and `head_blocks` counts what is left.

With one head some vectors v make the block vanish at S_B = v vᵀ, whatever side A is, and as many as
are independent are taken from B_k: `relations` counts them. With as many positions per side as the width
they matter from depth 3 and width 4 on.

docs/theory.md has the proofs. Where the bounds are reached is measured, not proved.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import comb, prod
from numbers import Integral

from deepwide.errors import DeepwideError, quoted

DEEPEST_LISTED = 8
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
    shapes = partitions(k, positions)
    return sum(schur_dimension(tuple(2 * part for part in shape), width) for shape in shapes)


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
            f"Counting with {positions} positions on a side needs about {estimate:.1g} partitions of {k}, "
            "too many to list; with at least as many positions as the width there is a closed form."
        )


def head_forms(width: int, heads: int) -> int:
    """r: how many linear forms of S the attention scores of one layer can hold.

    >>> head_forms(4, 1), head_forms(4, 2), head_forms(4, 4)
    (10, 8, 4)
    """
    return min(width * (width + 1) // 2, width * width // heads)


def head_blocks(depth: int, width: int, heads: int) -> tuple[int, ...]:
    """The blocks with enough positions and any number of heads.

    Split the D coordinates of S into r seen by the first layer's heads and u = D − r others. A term has
    i of the others on side B and j on side A, i + j ≤ C'. Covering that staircase by the columns i < t
    and the rows j ≤ C' − t bounds the rank, for every t.

    >>> head_blocks(2, 3, 1), head_blocks(2, 3, 3), sum(head_blocks(3, 2, 2))
    ((1, 6, 21, 18, 3), (1, 6, 15, 18, 3), 215)
    """
    c, most = degree(depth), degree(depth - 1)
    r = head_forms(width, heads)
    others = width * (width + 1) // 2 - r
    seen = [multiset(r, k) for k in range(c + 1)]
    unseen = [multiset(others, i) if others else int(i == 0) for i in range(most + 1)]

    def by_unseen(n: int) -> list[int]:  # how many monomials of degree n hold fewer than 0, 1, … others
        held = [unseen[i] * seen[n - i] if i <= n else 0 for i in range(most + 1)]
        return list(accumulate(held, initial=0))

    sums = [by_unseen(n) for n in range(c + 1)]
    return tuple(min(b + width * a for b, a in zip(sums[k], reversed(sums[c - k]), strict=True)) for k in range(c + 1))


@cache
def most_letters(depth: int, quadrics: int, hyperplane: bool) -> int:
    """How many letters S of the one-head word can be v vᵀ without the word being zero.

    Gap i between two letters of the word holds the matrix N_l, l = 1 + (how often 3 divides i). If v is
    isotropic for N_1 … N_q, letters v vᵀ on both sides of such a gap give the factor vᵀ N_l v = 0; the
    gaps left cut the word into pieces of 3^q letters and a last one of (3^q − 1)/2. If v is orthogonal to
    the readout's vector too, the first letter cannot be v vᵀ.

    >>> most_letters(3, 0, False), most_letters(3, 2, False), most_letters(3, 2, True)
    (13, 7, 6)
    """
    assert 0 <= quadrics <= depth
    pieces = [3**quadrics] * degree(depth - quadrics) + [degree(quadrics)]
    pieces[0] -= hyperplane
    return sum((letters + 1) // 2 for letters in pieces)


def relations(depth: int, width: int, k: int) -> int:
    """δ_k: at least so many independent functionals of S_B vanish on block k of a one-head network.

    Evaluations at S_B = v vᵀ, for v on q quadrics and perhaps a hyperplane on which no more than k − 1
    letters can be v vᵀ. Independent ones are as many as forms of degree 2k on that complete intersection.

    >>> relations(3, 3, 7), relations(3, 4, 7), relations(3, 5, 7), relations(2, 9, 2)
    (0, 4, 56, 0)
    """
    most = 0
    for hyperplane in (False, True):
        variables = width - hyperplane
        for quadrics in range(min(depth, variables - 1) + 1):
            if most_letters(depth, quadrics, hyperplane) < k:
                most = max(most, _forms_on_quadrics(variables, quadrics, 2 * k))
                break  # more quadrics hold fewer forms
    return most


def _forms_on_quadrics(variables: int, quadrics: int, power: int) -> int:
    """The coefficient of t^power in (1 − t²)^quadrics / (1 − t)^variables."""
    terms = range(min(quadrics, power // 2) + 1)
    return sum((-1) ** j * comb(quadrics, j) * multiset(variables, power - 2 * j) for j in terms)


@dataclass(frozen=True)
class DimensionCount:
    """The dimension bound of every block; their sum is the largest separation rank the network can have."""

    depth: int
    width: int
    heads: int
    positions: tuple[int, int]
    blocks: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.blocks)


def check_whole(**numbers: object) -> None:
    """Refuse what is no integer: arguments come from Python, where nothing has read them yet."""
    for name, value in numbers.items():
        if not isinstance(value, Integral):
            raise DeepwideError(f"The {name} must be a whole number, not {quoted(value)}.")


def check_shape(depth: int, width: int, heads: int = 1) -> None:
    """Refuse what is not the shape of a network, in one sentence."""
    check_whole(depth=depth, width=width, heads=heads)
    for name, value in (("depth", depth), ("width", width), ("heads", heads)):
        if value < 1:
            raise DeepwideError(f"The {name} must be at least 1, not {quoted(value)}.")
    if width % heads:
        near = [h for h in range(1, min(width, 1000) + 1) if width % h == 0]
        raise DeepwideError(
            f"A width of {quoted(width)} cannot be split evenly over {quoted(heads)} heads; "
            f"it can over {', '.join(map(str, near[:8]))}{' and more' if len(near) > 8 else ''}."
        )


def dimension_count(depth: int, width: int, heads: int = 1, positions: tuple[int, int] | None = None) -> DimensionCount:
    """The dimension bound block by block, as exact integers of any size.

    `positions` are those on the output's side and on the other; enough of both when left out. With fewer than the
    width on a side each block is at most what the positions allow and at most what the heads allow.

    >>> dimension_count(2, 3).blocks, dimension_count(4, 2).total, dimension_count(2, 3, 3).total
    ((1, 6, 21, 18, 3), 4538, 43)
    >>> dimension_count(2, 3, positions=(1, 1)).blocks, dimension_count(2, 3, 3, positions=(2, 2)).total
    ((1, 6, 15, 10, 3), 43)
    """
    check_shape(depth, width, heads)
    a, b = positions or (width, width)
    if a < 1 or b < 1:
        raise DeepwideError(f"Each side needs at least one position, not {quoted(a)} and {quoted(b)}.")
    if depth > DEEPEST_LISTED:
        raise DeepwideError(
            f"Depth {depth} has {degree(depth):.3g} blocks, too many to list; `bounds` has a closed form for their sum "
            "with one head."
        )
    c = degree(depth)
    by_positions = [min(side_without_output(width, b, k), side_with_output(width, a, c - k)) for k in range(c + 1)]
    if heads > 1:  # with missing positions set to 0 the bound for enough of them holds as well
        by_positions = list(map(min, by_positions, head_blocks(depth, width, heads)))
    return DimensionCount(depth, width, heads, (a, b), tuple(by_positions))


def one_head_total(depth: int, width: int) -> int:
    """The sum of all blocks with one head and enough positions, without listing them.

    B_k grows with k and A_{C−k} falls, so they cross once, after some k*. Each half is then a sum of
    multiset coefficients, which is one: Σ_{k≤K} multiset(D, k) = multiset(D + 1, K).

    >>> one_head_total(4, 2), one_head_total(2, 8), one_head_total(1, 5)
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
