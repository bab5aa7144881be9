"""Deterministic automata: minimal form, Boolean combinations, shortest difference, syntactic monoid, star-freeness.

Networks read words of at least one letter, so two automata are equivalent here if they agree on those.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from deepwide.errors import DeepwideError

MOST_STATES = 20_000
MOST_ELEMENTS = 20_000
State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Automaton:
    """States 0 … n − 1, start 0; `moves[state][letter]` is the next state, letters in the order of the alphabet."""

    alphabet: str
    moves: tuple[tuple[int, ...], ...]
    accepting: frozenset[int]

    def __len__(self) -> int:
        return len(self.moves)

    def run(self, word: str, state: int = 0) -> int:
        """The state after a word."""
        for letter in word:
            state = self.moves[state][self.alphabet.index(letter)]
        return state

    def accepts(self, word: str) -> bool:
        """Whether a word is in the language."""
        return self.run(word) in self.accepting

    @property
    def minimal(self) -> "Automaton":
        """The smallest automaton of the same words of one letter or more, numbered as a breadth-first walk meets them.

        The empty word is left out of its language, so that equal languages have equal minimal automata.
        """
        n, start = len(self), len(self)  # a start of its own, to which nothing returns
        moves = np.array([*self.moves, self.moves[0]], dtype=np.int64).reshape(n + 1, len(self.alphabet))
        group = np.zeros(n + 1, dtype=np.int64)
        group[sorted(self.accepting)] = 1
        count = 0
        while True:
            keys = np.column_stack([group, *(group[moves[:, letter]] for letter in range(len(self.alphabet)))])
            _, group = np.unique(keys, axis=0, return_inverse=True)
            group = group.reshape(-1)
            if group.max() == count:
                break
            count = int(group.max())
        representative = {int(number): state for state, number in enumerate(group)}
        accepting = {int(group[state]) for state in self.accepting}
        return explore(
            self.alphabet,
            int(group[start]),
            lambda here, letter: int(group[moves[representative[here], self.alphabet.index(letter)]]),
            lambda here: here in accepting,
        )

    @property
    def complement(self) -> "Automaton":
        """Of the words that it does not accept."""
        return Automaton(self.alphabet, self.moves, frozenset(range(len(self))) - self.accepting)

    def combined(self, other: "Automaton", decide: Callable[[bool, bool], bool]) -> "Automaton":
        """Of the words on which a Boolean function of both answers is true: the product automaton."""
        if self.alphabet != other.alphabet:
            raise DeepwideError(f"automata over '{self.alphabet}' and '{other.alphabet}' cannot be combined.")
        index = {letter: number for number, letter in enumerate(self.alphabet)}
        return explore(
            self.alphabet,
            (0, 0),
            lambda pair, letter: (self.moves[pair[0]][index[letter]], other.moves[pair[1]][index[letter]]),
            lambda pair: decide(pair[0] in self.accepting, pair[1] in other.accepting),
        )

    def shortest(self) -> str | None:
        """A shortest word of one letter or more that it accepts, the first in the order of the alphabet."""
        words, here = {}, {0: ""}
        while here:
            following: dict[int, str] = {}
            for state, word in here.items():
                for letter, after in zip(self.alphabet, self.moves[state], strict=True):
                    if after in self.accepting:
                        return word + letter
                    if after not in words and after not in following:
                        following[after] = word + letter
            words.update(following)
            here = following
        return None

    def difference(self, other: "Automaton") -> str | None:
        """A shortest word that one of them accepts and the other does not; None if they are equivalent."""
        return self.combined(other, lambda x, y: x != y).shortest()

    @property
    def monoid(self) -> "Monoid":
        """The syntactic monoid of its language: what words do to the states of the minimal automaton."""
        return _monoid(self.minimal)


class Monoid(NamedTuple):
    """Transformations of states that words cause, the identity first; `words` has a shortest word of each."""

    automaton: Automaton
    elements: tuple[tuple[int, ...], ...]
    words: tuple[str, ...]

    @property
    def period(self) -> str | None:
        """A shortest word whose powers never settle, such as a for (aa)*; None if the monoid is aperiodic."""
        for element, word in zip(self.elements, self.words, strict=True):
            power, seen = element, set()
            while power not in seen:
                seen.add(power)
                power = after(power, element)
            if after(power, element) != power:
                return word
        return None

    @property
    def aperiodic(self) -> bool:
        """Whether every element x has a power with xⁿ = xⁿ⁺¹: the language is then star-free (Schützenberger 1965)."""
        return self.period is None


def after(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """What a word does that is made of two."""
    return tuple(second[state] for state in first)


def _monoid(automaton: Automaton) -> Monoid:
    letters = [tuple(row[index] for row in automaton.moves) for index in range(len(automaton.alphabet))]
    words = {tuple(range(len(automaton))): ""}
    todo = list(words)
    for element in todo:
        for letter, effect in zip(automaton.alphabet, letters, strict=True):
            product = after(element, effect)
            if product not in words:
                words[product] = words[element] + letter
                todo.append(product)
                if len(words) > MOST_ELEMENTS:
                    raise DeepwideError(
                        f"the syntactic monoid has more than {MOST_ELEMENTS:,} elements: take a smaller language."
                    )
    return Monoid(automaton, tuple(words), tuple(words.values()))


def explore(
    alphabet: str, start: State, step: Callable[[State, str], State], accepting: Callable[[State], bool]
) -> Automaton:
    """The automaton of all states that can be reached, numbered breadth first."""
    numbers, todo, moves = {start: 0}, [start], []
    for state in todo:
        row = []
        for letter in alphabet:
            following = step(state, letter)
            if following not in numbers:
                if len(numbers) >= MOST_STATES:
                    raise DeepwideError(f"the automaton has more than {MOST_STATES:,} states: take a smaller language.")
                numbers[following] = len(numbers)
                todo.append(following)
            row.append(numbers[following])
        moves.append(tuple(row))
    return Automaton(alphabet, tuple(moves), frozenset(numbers[state] for state in todo if accepting(state)))
