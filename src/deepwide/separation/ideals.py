"""A sharper upper bound for one head: what the parts of a word at v vᵀ have in common (docs/theory.md, eq. 11').

At S_B = v vᵀ every term of block k is a multiple of some m_T(v): w·v if the first letter is from side B, and q_l(v) for
every two neighbours that are. So what the block can be on side B restricts into the ideal of these, and what the
ideal lacks of all forms of degree 2k is taken from B_k; likewise on side A at S_A = v vᵀ, x = v.

That is a proof; the ideal's size is *computed*, for random weights modulo a prime, from values at more points than
there are forms. By bad luck it could be too small, so this bound is shown and never enforced.
"""

from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from deepwide.arrays import Integers
from deepwide.separation.case import Case
from deepwide.separation.dimensions import degree, multiset
from deepwide.separation.field import PRIME, matrix_rank
from deepwide.separation.upper_bounds import side_dimensions

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
                    more = _raised(more, _gap(i - 1))
                step.add((used + 1, True, more))
        reached = step
    whole = ((inside, powers) for used, inside, powers in reached if used == letters)
    return {_raised(powers, 1) if last and inside else powers for inside, powers in whole}


def _gap(i: int) -> int:
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
