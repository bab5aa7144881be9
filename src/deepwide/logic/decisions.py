"""Boolean functions of a position as decision diagrams: of its letter, and of bits that attention wrote.

A function has one ordered, reduced diagram of bits per letter (Bryant 1986). A diagram is 0, 1, or a triple (bit, if 0,
if 1) whose bits rise from the root; equal diagrams are equal values. A position has one letter, so letters branch once.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Union

Diagram = Union[bool, "Branch"]


class Branch(NamedTuple):
    """One test of a bit."""

    bit: int
    low: Diagram
    high: Diagram


class Term(NamedTuple):
    """A conjunction: the letter is one of these, these bits are 1, those are 0."""

    letters: frozenset[str]
    ones: frozenset[int]
    zeros: frozenset[int]


def _branch(bit: int, low: Diagram, high: Diagram) -> Diagram:
    return low if low == high else Branch(bit, low, high)


@cache
def _both(x: Diagram, y: Diagram) -> Diagram:
    if isinstance(x, bool) or isinstance(y, bool):
        return (y if x else False) if isinstance(x, bool) else (x if y else False)
    bit = min(x.bit, y.bit)
    low, high = (_both(_cut(x, bit, side), _cut(y, bit, side)) for side in (False, True))
    return _branch(bit, low, high)


@cache
def _not(x: Diagram) -> Diagram:
    return (not x) if isinstance(x, bool) else Branch(x.bit, _not(x.low), _not(x.high))


def _cut(x: Diagram, bit: int, side: bool) -> Diagram:
    if isinstance(x, bool) or x.bit != bit:
        return x
    return x.high if side else x.low


@dataclass(frozen=True)
class Decision:
    """A Boolean function of a position: one diagram per letter of the alphabet."""

    by_letter: tuple[tuple[str, Diagram], ...]

    @classmethod
    def constant(cls, alphabet: str, value: bool) -> "Decision":
        """Always so."""
        return cls(tuple((letter, value) for letter in alphabet))

    @classmethod
    def letter(cls, alphabet: str, name: str) -> "Decision":
        """True where this letter stands."""
        return cls(tuple((letter, letter == name) for letter in alphabet))

    @classmethod
    def bit(cls, alphabet: str, bit: int) -> "Decision":
        """True where this bit is 1."""
        return cls(tuple((letter, Branch(bit, False, True)) for letter in alphabet))

    def __and__(self, other: "Decision") -> "Decision":
        pairs = zip(self.by_letter, other.by_letter, strict=True)
        return Decision(tuple((letter, _both(x, y)) for (letter, x), (_, y) in pairs))

    def __or__(self, other: "Decision") -> "Decision":
        return ~(~self & ~other)

    def __invert__(self) -> "Decision":
        return self._mapped(_not)

    def _mapped(self, change: Callable[[Diagram], Diagram]) -> "Decision":
        return Decision(tuple((letter, change(x)) for letter, x in self.by_letter))

    @property
    def bits(self) -> set[int]:
        """The bits it depends on."""
        return {bit for _, x in self.by_letter for bit in _bits(x)}

    def value(self, letter: str, bits: Mapping[int, bool]) -> bool:
        """The function's value."""
        x = dict(self.by_letter)[letter]
        while not isinstance(x, bool):
            x = x.high if bits[x.bit] else x.low
        return x

    @property
    def size(self) -> int:
        """How many terms there are."""
        return sum(_count(x) for x in {x for _, x in self.by_letter})

    def terms(self) -> list[Term]:
        """Conjunctions of which exactly one is true where the function is, and none elsewhere: the paths to 1."""
        groups: dict[Diagram, list[str]] = {}
        for letter, x in self.by_letter:
            groups.setdefault(x, []).append(letter)
        return [
            Term(frozenset(letters), frozenset(ones), frozenset(zeros))
            for x, letters in groups.items()
            for ones, zeros in _paths(x)
        ]


@cache
def _count(x: Diagram) -> int:
    return int(x) if isinstance(x, bool) else _count(x.low) + _count(x.high)


@cache
def _bits(x: Diagram) -> frozenset[int]:
    return frozenset() if isinstance(x, bool) else _bits(x.low) | _bits(x.high) | {x.bit}


def _paths(x: Diagram) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    if isinstance(x, bool):
        if x:
            yield (), ()
        return
    for ones, zeros in _paths(x.low):
        yield ones, (x.bit, *zeros)
    for ones, zeros in _paths(x.high):
        yield (x.bit, *ones), zeros
