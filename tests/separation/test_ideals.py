"""The bound by ideals: never above the count, met where the count is not."""

import pytest

from deepwide.separation.case import Case
from deepwide.separation.ideals import affordable, factors, ideal_bound, ideal_bounds, lacking
from deepwide.separation.measurement import measure
from deepwide.separation.upper_bounds import upper_bounds


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
