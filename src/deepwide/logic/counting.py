"""Which rank of first-order logic with order, with or without counting, tells two words apart.

Sentences speak of positions with <, = and letters; their rank is the nesting of quantifiers. With counting there are
the quantifiers "for at least n positions x" for every n. The r-type of chosen positions is, by the games of Ehrenfeucht
and Fraïssé and, with counting, of Immerman and Lander and Hella: at rank 0 their letters and order; at rank r the set
of the (r−1)-types that one more position gives, with counting how often each. Two words agree on all sentences of
rank r exactly if their r-types without chosen positions are equal. It is computed as it stands, so words must be short.
"""

from collections import Counter
from functools import cache
from typing import Any, Literal

from deepwide.answers import Answer
from deepwide.errors import DeepwideError, quoted
from deepwide.logic.ltl import LETTERS

Logic = Literal["first-order", "counting"]
MOST_TUPLES = 40_000  # choices of positions, length to the power of the rank: seconds


class RankAnswer(Answer):
    """The least rank whose sentences tell two words apart, in two logics; None: none up to `searched`."""

    one: str
    two: str
    first_order: int | None
    counting: int | None
    searched: int

    def rows(self) -> list[dict[str, Any]]:
        """One row per logic."""
        return [
            {"logic": name, "one": self.one, "two": self.two, "rank": rank, "searched": self.searched}
            for name, rank in (("first-order", self.first_order), ("counting", self.counting))
        ]


def counting_rank(one: str, two: str, *, most: int = 4) -> RankAnswer:
    """The least rank of a sentence that is true of one word and not of the other.

    >>> answer = counting_rank("aab", "aba")
    >>> answer.first_order, answer.counting
    (2, 2)
    """
    for word in (one, two):
        if not word or set(word) - set(LETTERS):
            raise DeepwideError(f"{quoted(word)} is not a word: it must have at least one letter of a to z and 0 to 9.")
    longest = max(len(one), len(two))
    while most > 1 and longest**most > MOST_TUPLES:
        most -= 1
    if longest**most > MOST_TUPLES:
        raise DeepwideError(f"a word of {longest} letters is too long for this: take words of at most {MOST_TUPLES:,}.")
    ranks: dict[Logic, int | None] = {"first-order": None, "counting": None}
    for logic in ranks:
        for rank in range(1, most + 1):
            numbers: dict[Any, int] = {}
            if rank_type(one, rank, logic, numbers) != rank_type(two, rank, logic, numbers):
                ranks[logic] = rank
                break
    return RankAnswer(one=one, two=two, first_order=ranks["first-order"], counting=ranks["counting"], searched=most)


def rank_type(word: str, rank: int, logic: Logic, numbers: dict[Any, int]) -> int:
    """What all sentences of a rank say about a word, as a number; equal numbers of one dictionary are equal types."""

    @cache
    def kind(chosen: tuple[int, ...], left: int) -> int:
        if left == 0:
            order = tuple((x > y) - (x < y) for x in chosen for y in chosen)
            return number(("".join(word[x] for x in chosen), order))
        further = Counter(kind((*chosen, x), left - 1) for x in range(len(word)))
        return number(frozenset(further) if logic == "first-order" else frozenset(further.items()))

    def number(described: Any) -> int:
        return numbers.setdefault(described, len(numbers))

    return kind((), rank)
