"""Upper bounds of cases: each by its own formula, and never below what is measured."""

import time
from math import exp

import pytest

from deepwide.separation.case import Case
from deepwide.separation.dimensions import dimension_count, multiset, relations
from deepwide.separation.measurement import measure
from deepwide.separation.upper_bounds import TooLargeError, rows_at_least, side_dimensions, upper_bounds


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
