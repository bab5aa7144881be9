"""Measured ranks: the table of theory.md, every way of evaluating, every kind of network."""

from dataclasses import replace

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import evaluate, measurement
from deepwide.separation.evaluate import Points
from deepwide.separation.field import PRIME, SECOND_PRIME, reduce
from deepwide.separation.measurement import (
    AboveTheBoundError,
    check_exact,
    check_size,
    choose_route,
    confirm,
    measure,
    measure_block,
)
from deepwide.separation.network import Case, random_network
from deepwide.separation.theorems import structured_bound
from deepwide.separation.upper_bounds import TooLargeError, upper_bounds
from separation.builders import TABLE


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


@pytest.mark.parametrize(
    ("depth", "width"),
    [(depth, width) for depth in TABLE for width in TABLE[depth] if (depth, width) != (2, 8)],
)
def test_one_head_reaches_the_bound_on_the_table_of_the_theory(depth: int, width: int) -> None:
    measured = measure(Case(depth, width))
    assert measured.rank == TABLE[depth][width]
    assert measured.blocks == measured.bounds


@pytest.mark.parametrize(
    ("depth", "width", "heads", "rank"),
    [(2, 2, 2, 17), (2, 3, 3, 43), (3, 2, 2, 215), (2, 4, 4, 85), (2, 4, 2, 107)],
)
def test_more_heads_measure_lower_reach_their_bound_and_are_confirmed(
    depth: int, width: int, heads: int, rank: int
) -> None:
    measured = measure(Case(depth, width, heads))
    assert measured.rank == rank
    assert measured.blocks == measured.bounds
    assert confirm(measured).blocks == measured.blocks


def test_few_positions_reach_the_smaller_bound() -> None:
    assert measure(Case(2, 3, sides="AB", at=0)).blocks == (1, 6, 15, 10, 3)
    for a, b in ((1, 1), (2, 2), (3, 1), (2, 3)):
        for depth, width in ((2, 3), (2, 4)):
            measured = measure(Case(depth, width, sides=Case.with_positions(a, b)))
            assert measured.blocks == measured.bounds, (a, b, depth, width)


def test_one_position_with_the_output_and_more_without_stay_below_the_bound() -> None:
    """Measured, not explained by a dimension: S_A of rank one falls apart into factors."""
    measured = measure(Case(2, 3, sides="BBA"))
    assert measured.blocks == (1, 6, 19, 10, 3)
    assert measured.bounds == (1, 6, 21, 10, 3)
    assert confirm(measured).blocks == measured.blocks


@pytest.mark.parametrize("case", [Case(2, 2), Case(2, 3), Case(2, 2, 2), Case(2, 3, 3), Case(2, 3, sides="AB")])
def test_blocks_sum_to_the_full_grid_by_eq_3(case: Case) -> None:
    assert measure(case, full_grid=True).rank == sum(measure(case).blocks)


@pytest.mark.parametrize("case", [Case(3, 2), Case(2, 4), Case(3, 2, causal=True), Case(2, 2, 2, residual=True)])
def test_the_independent_way_agrees(case: Case) -> None:
    first, second = measure(case), measure(case, SECOND_PRIME, flint=True, route=choose_route(case, independent=True))
    assert first.blocks == second.blocks
    assert (first.algorithm, second.algorithm) == ("dgemm", "flint")


def test_which_position_the_output_is_read_at_changes_nothing_unless_causal() -> None:
    assert {measure(Case(2, 2, sides="ABBA", at=at), full_grid=True).rank for at in range(4)} == {18}
    causal = [measure(Case(2, 2, sides="ABBA", at=at, causal=True)).rank for at in range(4)]
    assert causal[0] == 1
    assert causal[3] > causal[1]


def test_a_causal_network_graded_is_what_the_full_grid_says() -> None:
    for case in (Case(2, 2, causal=True), Case(2, 2, 2, sides="ABAB", causal=True)):
        assert measure(case).rank == measure(case, full_grid=True).rank


def test_a_residual_connection_changes_neither_the_rank_nor_the_bound() -> None:
    for depth, width, heads in ((1, 2, 1), (2, 2, 1), (2, 3, 1), (2, 2, 2), (2, 3, 3), (2, 4, 2), (3, 2, 1)):
        plain = measure(Case(depth, width, heads))
        residual = measure(Case(depth, width, heads, residual=True))
        assert residual.bound == plain.bound == plain.rank == residual.rank


def test_a_residual_network_by_eq_3() -> None:
    for heads in (1, 2):
        case = Case(2, 2, heads, residual=True)
        assert measure(case, full_grid=True).rank == measure(case).rank


def test_identity_weights_reach_what_the_proof_says() -> None:
    """Isotropic inputs of the identity network give (a·b)^C: as many as harmonic polynomials of degree C."""
    for depth, width in ((1, 2), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3)):
        two = measure(Case(depth, width, sides="BA", weights="identity"))
        more = measure(Case(depth, width, weights="identity"))
        assert structured_bound(depth, width) <= two.rank <= more.rank <= more.bound


def test_other_seeds_and_primes_measure_the_same() -> None:
    for seed in range(3):
        for prime in (65_521, PRIME):
            assert measure(Case(2, 3, 3, seed=seed), prime).rank == 43


def test_a_confirmation_that_differs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    first = measure(Case(2, 2))
    monkeypatch.setattr(measurement, "flint_rank", lambda *_: 0)
    with pytest.raises(DeepwideError, match="unlucky"):
        confirm(first)


def test_blocks_are_streamed_when_memory_is_short() -> None:
    case = Case(3, 2)
    need = choose_route(case).estimate()
    assert need.bytes < need.all_bytes
    assert measure(case, memory=need.bytes).blocks == measure(case).blocks


@pytest.mark.slow
def test_larger_cases_reach_the_bound() -> None:
    assert measure(Case(2, 8)).rank == 999
    assert measure(Case(3, 3)).rank == 3102


def test_proposition_1_fails_for_causal_networks() -> None:
    ranks = {sides: measure(Case(2, 2, sides=sides, causal=True)).rank for sides in ("BBAA", "ABBA", "BABA")}
    assert ranks == {"BBAA": 18, "ABBA": 26, "BABA": 37}


@pytest.mark.parametrize(("depth", "width", "heads"), [(2, 4, 4), (2, 4, 2), (3, 2, 2)])
def test_the_bound_for_heads_is_not_just_where_we_looked(depth: int, width: int, heads: int) -> None:
    """Sampled as if one head were possible, the blocks still stop at the bound for more heads."""
    case = Case(depth, width, heads)
    roomy = replace(choose_route(case), bounds=upper_bounds(Case(depth, width)).blocks)
    assert measure(case, route=roomy).blocks == upper_bounds(case).blocks


def test_a_rank_above_the_bound_stops_with_an_error() -> None:
    case = Case(2, 3)
    wrong = replace(choose_route(case), bounds=(1, 6, 20, 18, 3))
    with pytest.raises(AboveTheBoundError, match=r"Block 2 .* measured 21, above its upper bound 20"):
        measure(case, route=wrong)


def test_scaling_the_weights_changes_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    before = measure(Case(2, 3, 3)).blocks

    def scaled(case: Case, prime: int) -> object:
        network = random_network(case.depth, case.width, case.heads, prime, case.seed)
        return replace(
            network, query=reduce(network.query * 5, prime), output=reduce(network.output * np.float64(11), prime)
        )

    monkeypatch.setattr(evaluate, "case_network", scaled)
    assert measure(Case(2, 3, 3)).blocks == before


def test_more_heads_can_reach_more_with_few_positions() -> None:
    """The relations are those of one head: L = 3, d = 2 with (2, 1) positions has 137 with one head, 140 with two."""
    few = {heads: measure(Case(3, 2, heads, sides="BAA")) for heads in (1, 2)}
    assert {heads: found.rank for heads, found in few.items()} == {1: 137, 2: 140}
    assert {heads: found.blocks[10] for heads, found in few.items()} == {1: 17, 2: 20}


def test_relations_are_reached_exactly_where_side_b_has_one_position() -> None:
    """Predicted by `relations` before it was measured: 4 of 153, and the plain dimension is sampled."""
    case = Case(3, 3, sides="BAAA")
    dimension = upper_bounds(case).dimensions[8]
    assert measure_block(case, 8, dimension + 1)[0] == 149 == dimension - 4
    assert upper_bounds(case).blocks[8] == 149


@pytest.mark.slow
def test_the_four_of_depth_3_and_width_4_lie_in_one_position_of_side_b() -> None:
    case = Case(3, 4, sides="BAAAA")
    bounds = upper_bounds(case)
    assert (bounds.dimensions[7], bounds.blocks[7]) == (680, 676)
    assert measure_block(case, 7, 681, flint=True)[0] == 676
