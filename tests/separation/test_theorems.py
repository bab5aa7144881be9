"""The published bounds: each formula again in plain floating point, the trap, the boundary."""

from math import comb, e, log, sqrt

import pytest
from flint import arb, ctx

import deepwide
from deepwide.errors import DeepwideError
from deepwide.separation.curves import bounds_curves
from deepwide.separation.dimensions import dimension_count, one_head_total
from deepwide.separation.theorems import (
    bounds,
    corollary_1,
    corollary_2,
    first_crossing,
    log3,
    log3_dimension_count,
    log3_multiset,
    published,
    regime,
    show_log3,
    structured_bound,
    theorem_1,
    theorem_2,
    theorem_for,
    why,
)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 16])
def test_the_logarithm_is_that_of_the_exact_total(depth: int, width: int) -> None:
    assert log3_dimension_count(depth, width).overlaps(log3(one_head_total(depth, width)))
    assert float(log3_dimension_count(depth, width).rad()) < 1e-12


def test_depth_50_and_width_12288_in_under_a_second() -> None:
    import time

    started = time.perf_counter()
    answer = log3_dimension_count(50, 12288)
    assert time.perf_counter() - started < 1
    # log_3 multiset(D + 1, C/2) by Stirling, D = 75 503 616: a check of size from the other side.
    assert 2.50e9 < float(answer) < 2.51e9
    assert float(answer.rad()) < 1e-6


def test_the_count_never_passes_the_upper_bound_of_theorem_1() -> None:
    for depth in range(1, 5):
        for width in (3**depth + 1, 3**depth + 5, 2 * 3**depth, 500):
            if width > 3**depth:
                for heads in (1, width):
                    upper = theorem_1(depth, width, heads).upper
                    assert upper is not None
                    assert not log3_dimension_count(depth, width) > upper  # equal at depth 1 with one head


def test_log3_multiset_keeps_its_digits() -> None:
    for n, k in ((6, 2), (500, 81), (3, 10**6)):
        assert log3_multiset(n, k).overlaps(log3(comb(n + k - 1, k)))


def test_numbers_are_shown_with_right_leading_digits() -> None:
    assert show_log3(log3(10**40)) == "1.00e40"
    assert show_log3(log3(123456 * 10**50)) == "1.23e55"
    assert show_log3(log3(4538)) == "4538"
    assert show_log3(log3(7)) == "7"
    assert show_log3(arb(3) ** 50).startswith("10^3.425e23")


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("depth", [52, 60, 100])
def test_the_error_of_stopping_the_bisection_early_is_in_the_ball(depth: int, width: int) -> None:
    """From depth 52 on the crossing is not found exactly; with few variables the exact sum can still be computed."""
    ball = log3_dimension_count(depth, width)
    with ctx.workprec(1000):
        assert ball.contains(log3(one_head_total(depth, width)).mid())
    assert float(ball.rad()) < 1e-20


def l3(x: float) -> float:
    return log(x) / log(3)


@pytest.mark.parametrize(("depth", "width", "heads"), [(6, 1000, 16), (2, 10, 1), (3, 64, 8), (4, 5000, 2)])
def test_theorem_1(depth: int, width: int, heads: int) -> None:
    b = theorem_1(depth, width, heads)
    assert regime(depth, width) == "below"
    assert b.lower is not None
    assert b.upper is not None
    assert float(b.lower) == pytest.approx(3 ** (depth - 2) * (l3(width - heads) - depth + 2 - l3(2)))
    assert float(b.upper) == pytest.approx((3**depth - 1) / 2 * l3(width + heads))
    assert b.lower < b.upper


@pytest.mark.parametrize(("depth", "width", "heads"), [(12, 768, 12), (48, 12288, 96), (3, 4, 2)])
def test_theorem_2(depth: int, width: int, heads: int) -> None:
    b = theorem_2(depth, width, heads)
    L, d, H = depth, width, heads
    assert regime(depth, width) == "above"
    assert b.lower is not None
    assert b.upper is not None
    assert float(b.lower) == pytest.approx(d * L / 2 - L * (H / 2 + 1) - d * (1 + l3((d - H) / 2) / 2))
    assert float(b.upper) == pytest.approx(2 * d * L + L - 2 * d * l3(d / (2 * sqrt(2 * e))) + l3(d))


def test_the_boundary_belongs_to_neither_theorem() -> None:
    for depth in (1, 2, 5, 20):
        assert published(depth, 3**depth).upper is None
        assert "neither" in why(depth, 3**depth)
        assert regime(depth, 3**depth + 1) == "below"
        assert regime(depth, 3**depth - 1) == "above"


def test_as_many_heads_as_width_have_no_lower_bound() -> None:
    assert theorem_1(2, 100, 100).lower is None
    assert theorem_2(9, 100, 100).lower is None


def test_the_papers_example_and_the_form_it_comes_from() -> None:
    """d = 1000, H = 16, L = 6: the paper says 2·10^17 at depth 2 and 2·10^5 at depth 3."""
    by_form = {shallow: {m.form: float(m.width or 0) for m in corollary_1(6, 1000, 16, shallow)} for shallow in (2, 3)}
    assert by_form[2] == pytest.approx({"simplified": 7.34e15, "power": 1.55e17, "multiset": 1.0e25}, rel=5e-3)
    assert by_form[3] == pytest.approx({"simplified": 7.61e4, "power": 1.95e5, "multiset": 4.925e7}, rel=5e-3)
    assert f"{by_form[2]['power']:.0e}" == "2e+17"
    assert f"{by_form[3]['power']:.0e}" == "2e+05"


def test_the_three_lower_bounds_are_in_order() -> None:
    for depth, width, heads in ((2, 11, 1), (3, 64, 8), (5, 999, 2), (6, 1000, 16)):
        simplified, power, multiset = (m.lower for m in corollary_1(depth, width, heads, 1))
        assert not simplified > power  # equal at depth 2, where k = 1
        assert not power > multiset


def test_corollary_2_gives_a_network_whose_bound_is_larger() -> None:
    for depth, width, heads in ((48, 12288, 96), (12, 768, 12), (100, 64, 4)):
        wide = corollary_2(depth, width, heads)
        assert wide.lower > wide.upper_of_given
        assert regime(wide.depth, wide.width) == "below"
        assert wide.width % heads == 0
        smaller = (3 ** (wide.depth - 1) // heads + 1) * heads
        again = theorem_1(wide.depth - 1, smaller, heads).lower
        assert smaller < width or again is None or again <= wide.upper_of_given


def test_the_structured_bound_is_above_theorem_1_and_below_the_count() -> None:
    for depth, width in ((2, 12), (3, 64), (4, 100), (6, 1000)):
        lower = theorem_1(depth, width).lower
        assert lower is not None
        assert lower < log3(structured_bound(depth, width)) < log3_dimension_count(depth, width)


def test_where_the_count_passes_theorem_2() -> None:
    """The open question: never for d = 2 and 3, first at these depths for wider networks."""
    table = {4: 28, 5: 11, 6: 9, 7: 8, 8: 7, 9: 7, 10: 6, 11: 6, 12: 6}
    assert {width: first_crossing(width) for width in table} == table
    assert first_crossing(2) is first_crossing(3) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((12, 768, 12, 6), "Corollary 1 is about"),
        ((6, 1000, 16, 6), "between 1 and 5"),
        ((6, 1000, 16, 0), "between"),
    ],
)
def test_corollary_1_where_it_does_not_apply(arguments: tuple[int, int, int, int], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        corollary_1(*arguments)


@pytest.mark.parametrize(
    ("depth", "width", "heads", "words"),
    [
        (0, 4, 1, "depth"),
        (4, 0, 1, "width"),
        (4, 4, 5, "heads"),
        (10**9, 4, 1, "at most"),
        (2, 10**30, 1, "at most"),
    ],
)
def test_shapes_that_are_none_get_a_sentence(depth: int, width: int, heads: int, words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        published(depth, width, heads)


def test_corollary_2_below_the_threshold_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="above the threshold"):
        corollary_2(2, 100, 1)


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


def test_on_the_boundary_only_our_own_bounds_speak() -> None:
    answer = bounds(2, 9)
    assert (answer.theorem, answer.lower, answer.upper) == (None, None, None)
    assert codes(answer) == {"on-the-threshold"}
    assert [name for name, _ in answer.sides] == ["structured weights, at least", "dimension count, at most"]


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


@pytest.mark.parametrize(("depth", "width", "heads"), [(6, 1000, 8), (2, 9, 1), (12, 768, 12), (2, 3, 3)])
def test_the_theorem_alone_is_what_the_bounds_say_of_it(depth: int, width: int, heads: int) -> None:
    alone, all_bounds = theorem_for(depth, width, heads), bounds(depth, width, heads)
    assert (alone.number, alone.regime, alone.why) == (all_bounds.theorem, all_bounds.regime, all_bounds.why)
    assert (alone.lower, alone.upper) == (all_bounds.lower, all_bounds.upper)


def test_it_is_frozen_and_gives_a_table() -> None:
    answer = bounds(6, 1000)
    with pytest.raises(ValueError, match="frozen"):
        answer.depth = 7  # type: ignore[misc]
    assert [row["bound"] for row in answer.rows()] == [
        "Theorem 1, at least", "Theorem 1, at most", "structured weights, at least", "dimension count, at most",
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
def test_bounds_of_shapes_that_are_none_get_a_sentence(depth: int, width: int, heads: int) -> None:
    for ask in (bounds, bounds_curves):
        with pytest.raises(DeepwideError):
            ask(depth, width, heads)
