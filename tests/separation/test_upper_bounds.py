"""Upper bounds of cases: each by its own formula, and never below what is measured."""

import time
from math import exp

import numpy as np
import pytest

from deepwide.separation.dimensions import degree, dimension_count, multiset, relations
from deepwide.separation.field import PRIME
from deepwide.separation.measurement import measure
from deepwide.separation.network import Case
from deepwide.separation.upper_bounds import (
    TooLargeError,
    affordable,
    factors,
    gap_level,
    ideal_bound,
    ideal_bounds,
    lacking,
    rows_at_least,
    side_dimensions,
    upper_bounds,
)


def test_relations_lower_the_count_from_depth_3_and_width_4_on() -> None:
    for depth, width in ((2, 16), (3, 3), (4, 3), (5, 2), (5, 3), (4, 4)):
        assert upper_bounds(Case(depth, width)).total == dimension_count(depth, width).total
    assert {(L, d): upper_bounds(Case(L, d)).relations for L, d in ((3, 4), (3, 5), (4, 5), (5, 4))} == {
        (3, 4): 4, (3, 5): 56, (4, 5): 16, (5, 4): 16,
    }  # fmt: skip
    assert upper_bounds(Case(3, 4)).total == 31456
    assert all(  # depth 6 has more rows than can be measured, but its blocks can be counted
        most <= multiset(6, k) - relations(6, 3, k) for k, most in enumerate(dimension_count(6, 3).blocks)
    )
    for case in (Case(3, 4, 2), Case(3, 4, causal=True), Case(3, 4, residual=True)):
        assert upper_bounds(case).relations == 0


def test_with_a_residual_connection_the_relations_count_too() -> None:
    assert upper_bounds(Case(3, 4, residual=True)).total == upper_bounds(Case(3, 4)).total == 31456
    few = upper_bounds(Case(3, 4, sides="BAA", residual=True)).total
    assert few < sum(upper_bounds(Case(3, 4, sides="BAA")).dimensions)


def test_heads_and_few_positions_together_prove_what_is_measured() -> None:
    """L = 2, d = 3, H = 3 with (2, 2) positions: 43 is reached, where positions alone would allow 49."""
    case = Case(2, 3, 3, sides="BBAA")
    assert measure(case).rank == upper_bounds(case).total == 43


def test_a_network_without_a_side_b_has_rank_one() -> None:
    assert upper_bounds(Case(2, 2, sides="AAA")).total == measure(Case(2, 2, sides="AAA")).rank == 1


def test_sides_of_a_causal_network_count_what_signs_allow() -> None:
    """Even in each position, odd in the output's; positions after it are not seen."""
    by_a, by_b = side_dimensions(Case(1, 2, sides="ABA", at=1, causal=True))
    assert (by_a, by_b) == ((2, 4), (1, 3))  # the output is on side A after relabelling: BAB, read at 1


CASES = [
    Case(1, 5), Case(2, 3), Case(2, 6), Case(3, 2), Case(3, 3), Case(3, 4), Case(4, 2), Case(2, 4, 2), Case(2, 4, 4),
    Case(3, 3, 3), Case(2, 5, sides="AB"), Case(3, 4, sides="AABB"), Case(2, 4, 4, sides="AAB"),
    Case(3, 4, sides="BAAAA"),
    Case(2, 3, causal=True), Case(2, 2, sides="ABBA", causal=True), Case(3, 2, sides="BBBBAA", causal=True), Case(4, 4),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=Case.name)
def test_the_quick_lower_bound_is_one(case: Case) -> None:
    assert exp(rows_at_least(case)) <= max(upper_bounds(case).blocks)


@pytest.mark.parametrize(
    ("depth", "width", "options"),
    [
        (8, 4000, {"sides": "AAAAABBBBB"}),
        (8, 12288, {}),
        (8, 3, {"sides": "AABB"}),
        (2, 16384, {"sides": "AB"}),
        (6, 64, {"heads": 8}),
        (3, 200, {"causal": True}),
        (3, 1, {"sides": "AB" * 8000, "causal": True}),
    ],
)
def test_vast_cases_are_refused_before_their_bounds_are_counted(
    depth: int, width: int, options: dict[str, object]
) -> None:
    started = time.perf_counter()
    with pytest.raises(TooLargeError, match=r"at least 10\^\d+ rows"):
        upper_bounds(Case(depth, width, **options))  # type: ignore[arg-type]
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize(("depth", "width"), [(1, 2), (1, 3), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3)])
def test_with_enough_positions_it_is_the_count(depth: int, width: int) -> None:
    case = Case(depth, width)
    assert ideal_bounds(case) == upper_bounds(case).blocks


@pytest.mark.parametrize(
    ("depth", "width", "sides", "count"),
    [(2, 3, "BBA", 41), (2, 3, "BBBA", 41), (2, 4, "BBA", 90), (3, 2, "BAA", 140), (3, 3, "BAA", 946)],
)
def test_with_few_positions_it_is_met_where_the_count_is_not(depth: int, width: int, sides: str, count: int) -> None:
    case = Case(depth, width, sides=sides)
    bounds = ideal_bounds(case)
    assert measure(case).blocks == bounds
    assert sum(bounds) < count == sum(upper_bounds(case).dimensions)


def test_relations_are_among_what_the_ideals_lack() -> None:
    assert lacking(3, 4, 7, "B") == 4
    assert lacking(3, 3, 8, "B") == 4
    assert lacking(3, 3, 9, "B") == 190 - 160


def test_the_letters_of_a_word_share_the_factors_of_their_gaps() -> None:
    """Depth 2 has the word w S N_1 S N_1 S N_2 S z: four letters, the third gap another matrix."""
    assert factors(2, 4, last=False) == {(1, 2, 1)}
    assert factors(2, 4, last=True) == {(1, 3, 1)}
    assert factors(2, 1, last=False) == {(0, 0, 0), (1, 0, 0)}
    assert factors(2, 1, last=True) == {(0, 0, 0), (1, 0, 0), (0, 1, 0)}


@pytest.mark.parametrize(
    ("depth", "width", "soon"), [(2, 4, True), (3, 3, True), (3, 4, False), (4, 2, False), (5, 2, False), (2, 8, False)]
)
def test_only_ideals_that_take_a_moment_are_shown(depth: int, width: int, soon: bool) -> None:
    assert affordable(Case(depth, width, sides="BBA")) is soon


def test_the_bound_of_the_whole_rank_is_given_where_it_applies() -> None:
    assert ideal_bound(Case(2, 3, sides="BBA")) == 39
    for other in (
        Case(2, 2, 2),
        Case(2, 2, causal=True),
        Case(2, 2, weights="identity"),
        Case(3, 4),
        Case(2, 2, sides="AA"),
    ):
        assert ideal_bound(other) is None


@pytest.mark.parametrize("width", [1, 2, 3])
def test_relations_lower_nothing_up_to_width_3(width: int) -> None:
    """docs/theory.md, 4.4, proves it for all depths; here the inequality itself, block by block."""
    D = width * (width + 1) // 2
    for depth in range(1, 7):
        c = degree(depth)
        for k in range(c + 1):
            left, other = multiset(D, k) - relations(depth, width, k), width * multiset(D, c - k)
            assert min(left, other) == min(multiset(D, k), other)


def test_block_7_vanishes_on_isotropic_planes() -> None:
    """Proposition D: w and the bilinear forms N_1, N_2 vanish on the plane of the first two coordinates."""
    d, prime = 7, PRIME
    draw = np.random.default_rng(3)
    N = [draw.integers(0, prime, (d, d)) for _ in range(3)]
    w = draw.integers(0, prime, d)
    for form in N[:2]:
        form[:2, :2] = 0
    w[:2] = 0
    half = draw.integers(0, prime, (d, d))
    s_a, s_b, x = np.triu(half) + np.triu(half, 1).T, np.zeros((d, d), dtype=np.int64), draw.integers(0, prime, d)
    s_b[:2, :2] = [[3, 5], [5, 11]]  # of rank two
    levels = [gap_level(i) for i in range(1, 13)]
    transposed = {2, 5, 6, 8}  # which of the gaps hold N_lᵀ does not matter here; mix both
    row = [w.copy()]  # polynomials in τ, the lowest degree first
    for place in range(1, 14):
        grown = [np.zeros(d, dtype=np.int64) for _ in range(len(row) + 1)]
        for power, vector in enumerate(row):
            grown[power] = (grown[power] + vector @ s_a) % prime
            grown[power + 1] = (grown[power + 1] + vector @ s_b) % prime
        if place < 13:
            form = N[levels[place - 1] - 1]
            grown = [vector @ (form.T if place in transposed else form) % prime for vector in grown]
        row = grown
    values = [int(vector @ x % prime) for vector in row]
    assert values[6] != 0
    assert values[7:] == [0] * 7
