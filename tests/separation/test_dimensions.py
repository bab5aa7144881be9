"""The dimension count against listings, against itself computed another way, and against the table of theory.md."""

from itertools import combinations_with_replacement
from math import comb

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.dimensions import (
    dimension_count,
    head_blocks,
    most_letters,
    multiset,
    one_head_total,
    partitions,
    relations,
    schur_dimension,
    side_with_output,
    side_without_output,
)
from separation.builders import TABLE


@pytest.mark.parametrize("depth", TABLE)
def test_the_table_of_the_theory(depth: int) -> None:
    assert {width: one_head_total(depth, width) for width in TABLE[depth]} == TABLE[depth]
    assert {width: dimension_count(depth, width).total for width in TABLE[depth]} == TABLE[depth]


def test_blocks_of_the_worked_examples() -> None:
    assert dimension_count(2, 3).blocks == (1, 6, 21, 18, 3)
    assert dimension_count(2, 3, positions=(1, 1)).blocks == (1, 6, 15, 10, 3)


def test_multiset_counts_multisets() -> None:
    for n in range(1, 6):
        for k in range(6):
            assert multiset(n, k) == len(list(combinations_with_replacement(range(n), k)))


def test_schur_dimensions_are_those_of_known_representations() -> None:
    for d in range(1, 6):
        for k in range(5):
            assert schur_dimension((k,), d) == multiset(d, k)  # symmetric powers
            assert schur_dimension((1,) * k, d) == comb(d, k)  # exterior powers
    assert schur_dimension((2, 1), 3) == 8  # the adjoint representation


def test_representations_add_up_to_the_closed_form_when_positions_suffice() -> None:
    """Sym^k(Sym² V) = ⊕ over partitions λ of k of the representation 2λ: two independent formulas."""
    for d in range(1, 5):
        for k in range(7):
            listed = sum(schur_dimension(tuple(2 * part for part in shape), d) for shape in partitions(k, d))
            assert listed == multiset(d * (d + 1) // 2, k)


def test_fewer_positions_give_fewer_functions_and_enough_give_all() -> None:
    for d in range(2, 5):
        for k in range(5):
            by_positions = [side_without_output(d, m, k) for m in range(1, d + 2)]
            assert by_positions == sorted(by_positions)
            assert by_positions[-1] == by_positions[-2]
            with_output = [side_with_output(d, m, k) for m in range(1, d + 2)]
            assert with_output == sorted(with_output)
            assert with_output[-1] == with_output[-2] == d * multiset(d * (d + 1) // 2, k)


def test_one_position_a_side_counts_forms_of_even_and_odd_degree() -> None:
    for d in range(2, 6):
        for k in range(6):
            assert side_without_output(d, 1, k) == multiset(d, 2 * k)
            assert side_with_output(d, 1, k) == multiset(d, 2 * k + 1)


def test_the_total_is_the_least_cover_of_the_staircase() -> None:
    for depth, width in ((2, 3), (3, 2), (3, 3), (4, 2)):
        c, D = (3**depth - 1) // 2, width * (width + 1) // 2
        covers = [
            sum(multiset(D, i) for i in range(k)) + width * sum(multiset(D, i) for i in range(c + 1 - k))
            for k in range(c + 2)
        ]
        assert one_head_total(depth, width) == min(covers)


def test_heads_never_add_and_one_head_is_the_plain_count() -> None:
    for depth in (1, 2, 3):
        for width in (2, 4, 6):
            totals = [dimension_count(depth, width, heads).total for heads in range(1, width + 1) if width % heads == 0]
            assert totals == sorted(totals, reverse=True)
            assert totals[0] == one_head_total(depth, width)


def test_heads_of_width_one_at_depth_two_in_closed_form() -> None:
    """d(d² + 1)/2 in the middle, and min(binom(d+2, 3), d(D − d)) + d² next to it."""
    for d in range(2, 12):
        D = d * (d + 1) // 2
        beside = min(comb(d + 2, 3), d * (D - d)) + d * d
        assert dimension_count(2, d, d).blocks == (1, D, d * (d * d + 1) // 2, beside, d)


def test_exact_integers_have_no_largest_size() -> None:
    assert len(str(one_head_total(8, 20))) == 284


@pytest.mark.parametrize(
    ("depth", "width", "positions", "words"),
    [
        (0, 3, None, "depth must be at least 1"),
        (2, 0, None, "width must be at least 1"),
        (2, 3, (0, 1), "at least one position"),
        (40, 3, None, "closed form"),
        (8, 12, (9, 9), "too many to list"),
    ],
)
def test_what_cannot_be_counted_gets_a_sentence(
    depth: int, width: int, positions: tuple[int, int] | None, words: str
) -> None:
    with pytest.raises(DeepwideError, match=words):
        dimension_count(depth, width, 1, positions)


def _most_letters_by_listing(depth: int, quadrics: int, hyperplane: bool) -> int:
    """The largest set of letters without two neighbours across a closed gap, letter by letter."""
    letters = (3**depth - 1) // 2
    taken, free = (-1, 0) if hyperplane else (1, 0)  # best with the last letter taken, and with it free
    for gap in range(1, letters):
        times_three = next(n for n in range(depth + 1) if gap % 3 ** (n + 1))
        closed = times_three < quadrics
        taken, free = 1 + (free if closed else max(taken, free)), max(taken, free)
    return max(taken, free)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
def test_most_letters_against_the_word_gap_by_gap(depth: int) -> None:
    for quadrics in range(depth + 1):
        for hyperplane in (False, True):
            listed = _most_letters_by_listing(depth, quadrics, hyperplane)
            assert most_letters(depth, quadrics, hyperplane) == listed, (quadrics, hyperplane)


def test_relations_are_points_curves_and_surfaces_of_quadrics() -> None:
    assert relations(3, 4, 7) == 2 * 2  # two conics in a plane meet in four points
    assert relations(3, 5, 7) == 4 * 14  # forms of degree 14 on an elliptic curve of degree 4
    assert relations(4, 5, 21) == 2**4  # four quadrics in P^4
    assert [relations(3, d, 7) for d in (1, 2, 3)] == [0, 0, 0]
    assert all(relations(3, d, k) == 0 for d in range(1, 9) for k in range(7))


def test_few_positions_and_heads_give_the_smaller_of_both_bounds() -> None:
    """L = 2, d = 3, H = 3 with (2, 2) positions: positions alone allow 49, heads alone 43."""
    by_positions = dimension_count(2, 3, 1, (2, 2)).blocks
    by_heads = head_blocks(2, 3, 3)
    assert dimension_count(2, 3, 3, (2, 2)).blocks == tuple(map(min, by_positions, by_heads))
    assert (sum(by_positions), dimension_count(2, 3, 3, (2, 2)).total) == (49, 43)


def lowered(depth: int, width: int) -> int:
    """By how much relations lower the dimension count with enough positions."""
    D = width * (width + 1) // 2
    blocks = dimension_count(depth, width).blocks
    return sum(max(0, most - multiset(D, k) + relations(depth, width, k)) for k, most in enumerate(blocks))


def test_where_relations_lower_the_count() -> None:
    """The list of docs/theory.md, 6.2."""
    assert not any(lowered(depth, width) for depth in (1, 2) for width in range(1, 41))
    assert not any(lowered(depth, width) for depth in range(1, 8) for width in (1, 2, 3))
    assert [lowered(3, width) for width in range(4, 8)] == [4, 56, 421, 2255]
    assert [width for width in range(4, 16) if lowered(3, width)] == list(range(4, 13))
    assert [width for width in range(4, 15) if lowered(4, width)] == [5, 6, 7, 8]
    assert all(lowered(5, width) for width in range(4, 17))
    assert all(lowered(6, width) for width in range(4, 10))
