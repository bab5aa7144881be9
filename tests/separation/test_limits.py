"""`bounds` as an answer: the theorem, the dimension count, notes with codes."""

from math import log

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.curves import bounds_curves
from deepwide.separation.dimensions import dimension_count
from deepwide.separation.limits import bounds, bounds_of


def codes(answer: deepwide.Bounds) -> set[str]:
    return {note.code for note in answer.notes}


def test_the_papers_example() -> None:
    answer = deepwide.bounds(6, 1000, 16, match=2)
    assert isinstance(answer, deepwide.Bounds)
    assert (answer.regime, answer.theorem) == ("below", 1)
    assert answer.lower is not None
    assert answer.upper is not None
    assert (answer.lower.about, answer.upper.about, answer.dimension_count.about) == (
        "2.90e63",
        "3.23e1094",
        "4.17e703",
    )
    assert [f"{match.width:.3g}" for match in answer.match] == ["7.34e+15", "1.55e+17", "1e+25"]
    assert codes(answer) == {"heads-do-not-divide"}


def test_far_above_the_threshold() -> None:
    answer = bounds(50, 12288, 96)
    assert answer.theorem == 2
    assert answer.dimension_count.log3 == pytest.approx(2501957378.2064, abs=1e-3)
    assert answer.wider is not None
    assert (answer.wider.depth, answer.wider.shallower) == (15, True)
    assert {"open-question", "c2-as-read", "heads-not-counted"} <= codes(answer)


def test_on_the_boundary_only_the_dimension_count_speaks() -> None:
    answer = bounds(2, 9)
    assert (answer.theorem, answer.lower, answer.upper) == (None, None, None)
    assert codes(answer) == {"on-the-threshold"}
    assert [name for name, _ in answer.sides] == ["dimension count, at most"]


def test_the_count_with_heads_is_listed_or_its_absence_explained() -> None:
    deep = bounds(6, 16, 2)
    assert deep.with_heads is None
    assert "heads-not-counted" in codes(deep)
    (question,) = (note for note in deep.notes if note.code == "open-question")
    assert question.data["known"] is False
    listed = bounds(5, 16, 16)
    assert listed.with_heads is not None
    assert listed.with_heads.log3 == pytest.approx(log(dimension_count(5, 16, 16).total, 3))
    assert listed.with_heads.log3 < listed.dimension_count.log3
    assert "heads-not-counted" not in codes(listed)


def test_relations_are_listed_where_they_lower_the_count() -> None:
    lowered = bounds(3, 4).less_relations
    assert lowered is not None
    assert lowered.log3 == pytest.approx(log(31456, 3))
    assert bounds(3, 3).less_relations is None


def test_a_match_asks_for_a_width_or_for_nothing() -> None:
    assert [match.width for match in bounds(2, 12, 11, match=1).match] == [None] * 3
    huge = bounds(7, 10**18, match=1).match
    assert all(isinstance(match.width, str) for match in huge if match.lower_log3 > 700)


def test_the_bounds_of_a_case_exist_where_the_theorems_are_about_it() -> None:
    assert bounds_of(Case(2, 3)) == bounds(2, 3)
    assert bounds_of(Case(2, 3, causal=True)) is None


def test_it_is_frozen_and_gives_a_table() -> None:
    answer = bounds(6, 1000)
    with pytest.raises(ValueError, match="frozen"):
        answer.depth = 7  # type: ignore[misc]
    assert [row["bound"] for row in answer.rows()] == [
        "Theorem 1, at least", "Theorem 1, at most", "dimension count, at most",
    ]  # fmt: skip


def test_notes_name_no_option() -> None:
    for depth, width, heads in ((6, 1000, 16), (2, 9, 1), (50, 12288, 96), (3, 4, 4), (7, 10, 1)):
        assert not any("--" in note.text for note in bounds(depth, width, heads).notes)


def test_what_is_no_number_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match=r"^The depth must be a whole number, not 'a'\.$"):
        bounds("a", 10, 1)  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match=r"^The match must be a whole number, not 'two'\.$"):
        bounds(6, 1000, 8, match="two")  # type: ignore[arg-type]


@pytest.mark.parametrize(("depth", "width", "heads"), [(0, 3, 1), (2, 3, 4), (10**9, 3, 1)])
def test_shapes_that_are_none_get_a_sentence(depth: int, width: int, heads: int) -> None:
    for ask in (bounds, bounds_curves):
        with pytest.raises(DeepwideError):
            ask(depth, width, heads)
