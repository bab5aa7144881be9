"""Logarithms as balls: the exact number lies in them, however large it is."""

from math import comb

import pytest
from flint import arb, ctx

from deepwide.separation.dimensions import one_head_total
from deepwide.separation.logs import log3, log3_dimension_count, log3_multiset, show_log3
from deepwide.separation.theorems import theorem_1


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
