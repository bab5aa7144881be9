"""The published bounds: each formula again in plain floating point, the trap, the boundary."""

from math import e, log, sqrt

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.logs import log3, log3_dimension_count
from deepwide.separation.theorems import (
    corollary_1,
    corollary_2,
    first_crossing,
    published,
    regime,
    structured_bound,
    theorem_1,
    theorem_2,
    why,
)


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
