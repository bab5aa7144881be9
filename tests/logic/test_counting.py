"""Ranks against the games played literally: choices of Spoiler and answers of Duplicator, bijections with counting."""

import itertools
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.logic.counting import Logic, counting_rank, rank_type
from deepwide.logic.words import all_words

WORDS = st.text("ab", min_size=1, max_size=4)


def alike(u: str, chosen: tuple[int, ...], v: str, answered: tuple[int, ...]) -> bool:
    """The chosen positions have the same letters and stand in the same order."""
    pairs = list(zip(chosen, answered, strict=True))
    same = all((x < z) == (y < t) and (x == z) == (y == t) for (x, y), (z, t) in itertools.product(pairs, repeat=2))
    return same and all(u[x] == v[y] for x, y in pairs)


@cache
def duplicator_wins(
    u: str, chosen: tuple[int, ...], v: str, answered: tuple[int, ...], rounds: int, logic: Logic
) -> bool:
    if not alike(u, chosen, v, answered):
        return False
    if rounds == 0:
        return True

    def after(x: int, y: int) -> bool:
        return duplicator_wins(u, (*chosen, x), v, (*answered, y), rounds - 1, logic)

    here, there = range(len(u)), range(len(v))
    if logic == "counting":  # Duplicator gives a bijection, Spoiler picks a pair of it
        return len(u) == len(v) and any(all(map(after, here, order)) for order in itertools.permutations(there))
    return all(any(after(x, y) for y in there) for x in here) and all(any(after(x, y) for x in here) for y in there)


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS, st.integers(0, 3), st.sampled_from(("first-order", "counting")))
def test_types_are_what_the_game_decides(u: str, v: str, rank: int, logic: Logic) -> None:
    numbers: dict[object, int] = {}
    same = rank_type(u, rank, logic, numbers) == rank_type(v, rank, logic, numbers)
    assert same == duplicator_wins(u, (), v, (), rank, logic)


@pytest.mark.parametrize(("short", "long", "rank"), [(1, 2, 2), (2, 3, 2), (3, 4, 3), (6, 7, 3), (7, 8, 4)])
def test_first_order_logic_measures_lengths_by_halving(short: int, long: int, rank: int) -> None:
    """Orders of n and m elements agree up to rank r exactly if n = m or both have at least 2^r − 1."""
    assert counting_rank("a" * short, "a" * long).first_order == rank


def test_with_counting_and_order_rank_two_tells_any_two_words_apart() -> None:
    """And rank 1 counts letters: why pairs of words say nothing about a hierarchy of ranks."""
    for one, two in itertools.combinations(all_words("ab", 4), 2):
        rank = counting_rank(one, two).counting
        assert rank == (1 if sorted(one) != sorted(two) else 2)


def test_equal_words_are_told_apart_by_nothing() -> None:
    answer = counting_rank("abba", "abba")
    assert (answer.first_order, answer.counting) == (None, None)
    assert [row["rank"] for row in answer.rows()] == [None, None]


@pytest.mark.parametrize(("one", "two", "sentence"), [("", "a", "is not a word"), ("a", "A", "is not a word")])
def test_what_is_no_word_costs_a_sentence(one: str, two: str, sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        counting_rank(one, two)
