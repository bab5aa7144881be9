"""One route per case: which evaluation, how large, how long, and whether sums stay exact."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.evaluate import Points
from deepwide.separation.measurement import measure
from deepwide.separation.route import check_exact, check_size, choose_route
from deepwide.separation.upper_bounds import TooLargeError


@pytest.mark.parametrize(
    ("case", "full_grid", "fastest", "independent", "graded"),
    [
        (Case(2, 3), False, "chain", "gram", True),
        (Case(2, 4, 2), False, "gram", "eq3", True),
        (Case(2, 3, residual=True), False, "gram", "eq3", False),
        (Case(2, 4, 2, residual=True), False, "gram", "eq3", False),
        (Case(2, 3, causal=True), False, "eq3", "eq3", True),
        (Case(2, 3, causal=True, residual=True), False, "eq3", "eq3", False),
        (Case(2, 3), True, "eq3", "gram", False),
        (Case(2, 4, 2), True, "eq3", "gram", False),
    ],
)
def test_the_route_of_every_kind_of_case(
    case: Case, full_grid: bool, fastest: str, independent: str, graded: bool
) -> None:
    first = choose_route(case, full_grid=full_grid)
    second = choose_route(case, full_grid=full_grid, independent=True)
    assert (first.method, second.method) == (fastest, independent)
    assert first.graded is second.graded is graded
    assert first.sizes == second.sizes
    assert len(first.sizes) == (5 if graded else 1)
    assert measure(case, full_grid=full_grid).blocks == measure(case, route=second).blocks


def test_too_large_says_how_large_and_what_would_fit() -> None:
    with pytest.raises(TooLargeError, match=r"2\.691e\+11 rows.*at depth 4 a width of \d or at width 6 a depth of 2"):
        measure(Case(4, 6))
    with pytest.raises(TooLargeError, match="1 MB may be used"):
        measure(Case(3, 3), memory=1_000_000)
    with pytest.raises(TooLargeError, match="what would fit: at depth 8 a width of 1"):
        choose_route(Case(8, 400))


def test_what_would_fit_fits() -> None:
    memory = 50_000_000
    with pytest.raises(TooLargeError, match="at depth 2 a width of 10 or at width 20 a depth of 1"):
        check_size(choose_route(Case(2, 20)), memory)
    assert check_size(choose_route(Case(2, 10)), memory).bytes <= memory < choose_route(Case(2, 11)).estimate().bytes


def test_the_estimate_counts_the_sample_points() -> None:
    route = choose_route(Case(1, 600))
    assert route.estimate().bytes > 8 * 2 * 600 * 600 * 601
    with pytest.raises(TooLargeError, match="sample points"):
        measure(Case(1, 600), memory=10**9)
    independent = choose_route(Case(1, 600), independent=True)
    assert independent.estimate().bytes > route.estimate().bytes + 8 * 600 * 600 * 32 * 512
    with pytest.raises(TooLargeError, match=r"at depth 1 a width of .* with one head"):
        measure(Case(1, 600, 600), memory=10**9)


def test_flint_needs_more_memory_and_time() -> None:
    route = choose_route(Case(2, 12))
    assert route.estimate(flint=True).bytes > route.estimate().bytes
    assert route.estimate(flint=True).seconds > route.estimate().seconds


def test_a_prime_too_small_for_the_degrees_is_refused() -> None:
    with pytest.raises(DeepwideError, match="above 28"):
        measure(Case(3, 2), 23)


@pytest.mark.parametrize(
    ("case", "products"),
    [
        (Case(1, 600), 1200),  # a step of the chain
        (Case(6, 2, sides="AB"), 2 * (364 // 2 + 1)),  # where the two halves meet
        (Case(6, 1, sides="AB"), 364 + 1),  # the interpolation
        (Case(1, 1, sides="A" + "B" * 300), 300),  # a Gram matrix of many positions
    ],
)
def test_every_unreduced_sum_is_exact(case: Case, products: int) -> None:
    """The largest prime allows 255 products: (p//2 + 2)²·256 > 2⁵³."""
    largest = 11_863_279
    assert 255 * (largest // 2 + 2) ** 2 < 2**53 < products * (largest // 2 + 2) ** 2
    with pytest.raises(DeepwideError, match=f"sums of {products} products are not exact"):
        measure(case, largest)
    check_exact(case, 1_048_573)


def test_a_prime_that_just_fits_is_taken() -> None:
    assert measure(Case(1, 60), 11_863_279).rank == 61
    Points.draw(Case(1, 60), 2, 11_863_279)
