"""A case is a description: normalised, limited, and with a name of its own."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from separation.builders import is_one_sentence


def test_the_output_is_always_on_side_a() -> None:
    assert Case(2, 2, sides="AABB", at=3).sides == "BBAA"
    assert Case(2, 2, sides="aabb", at=0).sides == "AABB"
    assert Case(2, 3).positions == (3, 3)
    assert Case(2, 3, sides=Case.with_positions(2, 1)).positions == (2, 1)


def test_equal_cases_are_equal_however_they_are_written() -> None:
    assert Case(2, 2) == Case(2, 2, sides="AABB", at=-1) == Case(2, 2, 1, "BBAA", 3)


def test_names_tell_cases_apart() -> None:
    cases = [
        Case(2, 2), Case(2, 2, 2), Case(2, 2, seed=1), Case(2, 2, sides="ABAB"), Case(2, 2, sides="ABAB", at=1),
        Case(2, 2, residual=True), Case(2, 2, causal=True), Case(2, 2, weights="identity"),
        Case(2, 2, weights="x/w.npz"),
    ]  # fmt: skip
    assert len({case.name() for case in cases}) == len(cases)
    assert Case(2, 3).name() == "L2-d3-H1-seed0"


def test_the_theorems_are_about_standard_cases_only() -> None:
    assert Case(2, 3).standard
    assert Case(2, 3, sides="BBBBAAAA").standard
    for other in ({"residual": True}, {"causal": True}, {"weights": "identity"}, {"sides": "AB"}, {"sides": "BBBAAAA"}):
        assert not Case(2, 3, **other).standard


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": 0, "width": 2}, "depth must be at least 1"),
        ({"depth": 2, "width": 3, "heads": 2}, "cannot be split evenly over '2' heads; it can over 1, 3"),
        ({"depth": 2, "width": 2, "sides": "AXB"}, "must name a side"),
        ({"depth": 2, "width": 2, "sides": "AB", "at": 2}, "positions are 0 to 1"),
        ({"depth": 30, "width": 2}, "cannot be measured"),
        ({"depth": 10**400, "width": 2}, "cannot be measured"),
        ({"depth": 2, "width": 3 * 10**7}, "at most 16384"),
        ({"depth": 2, "width": 10**400}, "at most 16384"),
        ({"depth": 2, "width": 3, "heads": 10**400}, "cannot be split"),
        ({"depth": 2, "width": 3, "heads": -(10**400)}, "at least 1"),
        ({"depth": 1, "width": 1, "sides": "AB" * 10**6}, "positions"),
        ({"depth": 1, "width": 1, "weights": "a\0b"}, "path of a file"),
        ({"depth": 1, "width": 1, "weights": ""}, "path of a file"),
        ({"depth": 1, "width": 1, "seed": 10**400}, "seed"),
    ],
)
def test_cases_that_are_none_get_a_sentence(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(DeepwideError, match=words) as stopped:
        Case(**arguments)  # type: ignore[arg-type]
    assert is_one_sentence(str(stopped.value))


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0), (10**9, 1)])
def test_sides_that_are_none_get_a_sentence(a: int, b: int) -> None:
    with pytest.raises(DeepwideError, match="position"):
        Case.with_positions(a, b)
