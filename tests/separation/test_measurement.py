"""Measured ranks: the table of theory.md, every way of evaluating, every kind of network."""

from itertools import combinations

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import measurement
from deepwide.separation.case import Case
from deepwide.separation.evaluate import Points, evaluator
from deepwide.separation.field import PRIME, SECOND_PRIME, flint_rank, rank_in_place, reduce
from deepwide.separation.measurement import AboveTheCountError, confirm, estimate, measure
from deepwide.separation.network import Network, random_network
from deepwide.separation.theorems import structured_bound
from separation.test_counting import TABLE


@pytest.mark.parametrize(
    ("depth", "width"),
    [(depth, width) for depth in TABLE for width in TABLE[depth] if (depth, width) != (2, 8)],
)
def test_one_head_meets_the_count_on_the_table_of_the_theory(depth: int, width: int) -> None:
    measured = measure(Case(depth, width))
    assert measured.rank == TABLE[depth][width]
    assert measured.blocks == measured.bounds


@pytest.mark.parametrize(
    ("depth", "width", "heads", "rank"),
    [(2, 2, 2, 17), (2, 3, 3, 43), (3, 2, 2, 215), (2, 4, 4, 85), (2, 4, 2, 107)],
)
def test_more_heads_measure_lower_meet_their_count_and_are_confirmed(
    depth: int, width: int, heads: int, rank: int
) -> None:
    measured = measure(Case(depth, width, heads))
    assert measured.rank == rank
    assert measured.blocks == measured.bounds
    assert confirm(measured).blocks == measured.blocks


@pytest.mark.parametrize(("depth", "width", "heads"), [(2, 4, 4), (2, 4, 2), (3, 2, 2)])
def test_the_count_for_heads_is_not_just_where_we_looked(depth: int, width: int, heads: int) -> None:
    """Sampled as if one head were possible, the blocks still stop at the count for more heads."""
    case = Case(depth, width, heads)
    expected = case.block_bounds
    roomy = Case(depth, width, heads)
    object.__setattr__(roomy, "block_bounds", Case(depth, width).block_bounds)
    assert measure(roomy).blocks == expected


def test_few_positions_meet_the_smaller_count() -> None:
    assert measure(Case(2, 3, sides="AB", at=0)).blocks == (1, 6, 15, 10, 3)
    for a, b in ((1, 1), (2, 2), (3, 1), (2, 3)):
        for depth, width in ((2, 3), (2, 4)):
            measured = measure(Case(depth, width, sides=Case.with_positions(a, b)))
            assert measured.blocks == measured.bounds, (a, b, depth, width)


def test_one_position_with_the_output_and_more_without_stay_below_the_count() -> None:
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
    first, second = measure(case), measure(case, SECOND_PRIME, flint=True, chain=False)
    assert first.blocks == second.blocks
    assert (first.algorithm, second.algorithm) == ("dgemm", "flint")


def test_proposition_1_by_eq_3_over_every_balanced_partition() -> None:
    for depth, width, heads in ((2, 2, 1), (2, 2, 2), (1, 3, 1)):
        ranks = set()
        for others in combinations(range(1, 4), 1):
            sides = "".join("A" if i in (0, *others) else "B" for i in range(4))
            ranks.add(measure(Case(depth, width, heads, sides=sides, at=0), full_grid=True).rank)
        assert len(ranks) == 1


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


def test_with_a_residual_connection_the_relations_count_too() -> None:
    assert Case(3, 4, residual=True).bound == Case(3, 4).bound == 31456
    assert Case(3, 4, sides="BAA", residual=True).bound < sum(Case(3, 4, sides="BAA").block_dimensions)


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


def test_scaling_the_weights_changes_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    before = measure(Case(2, 3, 3)).blocks

    def scaled(self: Case, prime: int) -> object:
        network = random_network(self.depth, self.width, self.heads, prime, self.seed)
        object.__setattr__(network, "query", reduce(network.query * 5, prime))
        object.__setattr__(network, "output", reduce(network.output * np.float64(11), prime))
        return network

    monkeypatch.setattr(Case, "network", scaled)
    assert measure(Case(2, 3, 3)).blocks == before


def test_other_seeds_and_primes_measure_the_same() -> None:
    for seed in range(3):
        for prime in (65_521, PRIME):
            assert measure(Case(2, 3, 3, seed=seed), prime).rank == 43


def test_a_rank_above_the_count_stops_with_an_error() -> None:
    case = Case(2, 3)
    object.__setattr__(case, "block_bounds", (1, 6, 20, 18, 3))
    with pytest.raises(AboveTheCountError, match=r"Block 2 .* measured 21, above its dimension bound 20"):
        measure(case)


def test_a_confirmation_that_differs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    first = measure(Case(2, 2))
    monkeypatch.setattr(measurement, "flint_rank", lambda *_: 0)
    with pytest.raises(DeepwideError, match="unlucky"):
        confirm(first)


def test_too_large_says_how_large_and_what_would_fit() -> None:
    with pytest.raises(DeepwideError, match=r"2\.691e\+11 rows.*at depth 4 a width of \d or at width 6 a depth of 2"):
        measure(Case(4, 6))
    with pytest.raises(DeepwideError, match="1 MB may be used"):
        measure(Case(3, 3), memory=1_000_000)


def test_blocks_are_streamed_when_memory_is_short() -> None:
    case = Case(3, 2)
    need = estimate(case)
    assert need.bytes < need.all_bytes
    assert measure(case, memory=need.bytes).blocks == measure(case).blocks


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": 0, "width": 2}, "depth must be at least 1"),
        ({"depth": 2, "width": 3, "heads": 2}, "cannot be split evenly over 2 heads; it can over 1, 3"),
        ({"depth": 2, "width": 2, "sides": "AXB"}, "must name a side"),
        ({"depth": 2, "width": 2, "sides": "AB", "at": 2}, "positions are 0 to 1"),
        ({"depth": 30, "width": 2}, "cannot be measured"),
    ],
)
def test_cases_that_are_none_get_a_sentence(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        Case(**arguments)  # type: ignore[arg-type]


def test_a_prime_too_small_for_the_degrees_is_refused() -> None:
    with pytest.raises(DeepwideError, match="above 28"):
        measure(Case(3, 2), 23)


def test_a_prime_too_large_for_the_width_is_refused() -> None:
    with pytest.raises(DeepwideError, match="sums of 1200 products are not exact"):
        measure(Case(1, 600), 11_863_279)
    assert measure(Case(1, 60), 11_863_279).rank == 61


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (1, 16), (2, 1), (2, 9), (3, 3), (3, 6), (4, 2)])
def test_the_chain_is_the_gram_form_value_by_value(depth: int, width: int) -> None:
    case = Case(depth, width)
    points = Points.draw(case, 7, PRIME)
    wanted = list(range(len(case.block_bounds)))
    for tile in ((slice(0, 3), slice(0, 7)), (slice(0, 1), slice(2, 7)), (slice(0, 7), slice(6, 7))):
        fast, slow = (evaluator(case, points, PRIME, full_grid=False, chain=chain) for chain in (True, False))
        for k, (one, other) in enumerate(zip(fast(*tile, wanted), slow(*tile, wanted), strict=True)):
            assert (np.mod(one - other, PRIME) == 0).all(), k


@pytest.mark.slow
def test_larger_cases_meet_the_count() -> None:
    assert measure(Case(2, 8)).rank == 999
    assert measure(Case(3, 3)).rank == 3102


def test_proposition_1_fails_for_causal_networks() -> None:
    ranks = {sides: measure(Case(2, 2, sides=sides, causal=True)).rank for sides in ("BBAA", "ABBA", "BABA")}
    assert ranks == {"BBAA": 18, "ABBA": 26, "BABA": 37}


def test_the_estimate_counts_the_sample_points() -> None:
    case = Case(1, 600)
    assert estimate(case).bytes > 8 * 2 * 600 * 600 * 601
    with pytest.raises(DeepwideError, match="sample points"):
        measure(case, memory=10**9)
    assert estimate(case, chain=False).bytes > estimate(case).bytes + 8 * 600 * 600 * 32 * 512
    with pytest.raises(DeepwideError, match=r"at depth 1 a width of .* with one head"):
        measure(Case(1, 600, 600), memory=10**9)


def _isotropic(case: Case, v: np.ndarray, prime: int) -> Network:
    """Random weights changed so that v is isotropic for N_1 and N_2 and orthogonal to the readout's vector."""
    network = random_network(case.depth, case.width, 1, prime, case.seed)

    def times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return reduce(matrix @ vector, prime)

    def dot(a: np.ndarray, b: np.ndarray) -> int:
        return int(a @ b) % prime

    below = v  # B_{l−1} … B_1 v
    for layer in range(2):
        key, query = times(network.key[layer, 0], below), network.query[layer, 0]
        factor = dot(key, times(query, below)) * pow(dot(key, key) * dot(below, below), -1, prime) % prime
        query -= np.outer(key, reduce(below * factor, prime))
        reduce(query, prime)
        below = times(network.mix(layer)[0], below)
    below = times(network.mix(2)[0], below)
    factor = dot(network.readout, below) * pow(dot(below, below), -1, prime) % prime
    network.readout[:] = reduce(network.readout - reduce(below * factor, prime), prime)
    return network


def test_the_block_vanishes_at_an_isotropic_vector_and_the_one_before_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relation behind the four that L = 3, d = 4 lacks, by the Gram form: no word, no chain."""
    case = Case(3, 4, sides="BAAAA")
    points = Points.draw(case, 5, PRIME)
    network = _isotropic(case, points.b[0, :, 0], PRIME)
    monkeypatch.setattr(Case, "network", lambda *_: network)
    evaluate = evaluator(case, points, PRIME, full_grid=False, chain=False)
    blocks = evaluate(slice(None), slice(None), list(range(14)))
    for k, block in enumerate(blocks):
        assert (block[:, 0] == 0).all() == (k >= 7), k
        assert (block[:, 1] != 0).all(), k


def test_relations_are_met_exactly_where_side_b_has_one_position() -> None:
    """Predicted by `relations` before it was measured: 4 of 153, and the plain dimension is sampled."""
    case = Case(3, 3, sides="BAAA")
    dimension = case.block_dimensions[8]
    evaluate = evaluator(case, Points.draw(case, dimension + 1, PRIME), PRIME, full_grid=False, chain=True)
    assert rank_in_place(evaluate(slice(None), slice(None), [8])[0], PRIME) == 149 == dimension - 4
    assert case.block_bounds[8] == 149


@pytest.mark.slow
def test_the_four_of_depth_3_and_width_4_lie_in_one_position_of_side_b() -> None:
    case = Case(3, 4, sides="BAAAA")
    dimension = case.block_dimensions[7]
    assert (dimension, case.block_bounds[7]) == (680, 676)
    evaluate = evaluator(case, Points.draw(case, dimension + 1, PRIME), PRIME, full_grid=False, chain=True)
    assert flint_rank(evaluate(slice(None), slice(None), [7])[0], PRIME) == 676
