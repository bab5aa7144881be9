"""How deep a formula must be: Ehrenfeucht–Fraïssé games for since and until on finite words (Etessami & Wilke 2000).

Two positions are k-equivalent if no formula of depth k in letters, !, &, |, S< and U> tells them apart; `past` means
formulas without U>, `both` means all. Spoiler picks a position before his (or after it), Duplicator answers on the same
side of hers; then Spoiler goes on from there, or picks one of the positions strictly between in her word, and she
answers between in his. k rounds of this are depth k.

The game has a simple solution. What f S< g can see from i, with f and g of depth k − 1, is for each (k−1)-class the set
of classes that occur after its last occurrence before i. That is the order in which the classes occur last. So

    class_0(i) = letter,   class_k(i) = (letter, classes_{k−1} before i by last occurrence, those after i by first one)

with the third part only for `both`, and k-equivalence is equality of these. There are finitely many classes for each k,
and the class of a word's last position can be followed letter by letter: a language has a formula of depth k exactly if
no class has a word in the language and one outside. `decide` walks through all classes; where there are too many it
stops, and says that it did. A pair of words of one class, one in the language and one not, is a proof that no formula
of depth k will do, and anybody can check it with `classes`.

Formulas are read at the last position. `future` (U> alone, read at the first position) is `past` of the mirror image.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from deepwide.errors import at_least_one
from deepwide.logic.automata import Automaton, explore
from deepwide.logic.ltl import (
    FUTURE,
    PAST,
    TRUE,
    Formula,
    conjunction,
    disjunction,
    letter,
    negation,
    subformulas,
    temporal,
)

Direction = Literal["past", "future", "both"]
MOST_CLASSES = 100_000
MOST_IN_FORMULA = 300  # classes that are written out as a formula
MIRRORED = dict(zip(PAST + FUTURE, FUTURE + PAST, strict=True))  # the operators are listed in the same order
Order = tuple[int, ...]


class Class(NamedTuple):
    """A class of positions: at depth 0 a letter, above it also what stands before and after, by numbers."""

    depth: int
    letter: str
    before: Order = ()  # by last occurrence
    after: Order | None = None  # by first occurrence, the farthest first; None: formulas cannot see it


class Classes:
    """Numbers for classes, in the order in which they were met."""

    def __init__(self) -> None:
        self._numbers: dict[Class, int] = {}
        self.members: list[Class] = []

    def number(self, member: Class) -> int:
        """The number of a class."""
        if member not in self._numbers:
            self._numbers[member] = len(self.members)
            self.members.append(member)
        return self._numbers[member]

    def formula(self, number: int) -> Formula:
        """The formula that is true exactly at the positions of a class; it is as deep as the class."""
        member = self.members[number]
        if member.depth == 0:
            return letter(member.letter)
        before = self._ordered(member.before, "S<")
        after = TRUE if member.after is None else self._ordered(member.after, "U>")
        return conjunction(letter(member.letter), before, after)

    def _ordered(self, order: Order, op: str) -> Formula:
        """These classes and no others are on one side, in this order; the last one is nearest."""
        parts = [self.formula(number) for number in order]
        only = negation(temporal(op, TRUE, negation(disjunction(*parts))))
        return conjunction(only, *(temporal(op, disjunction(*parts[n + 1 :]), part) for n, part in enumerate(parts)))


def classes(word: str, depth: int, direction: Direction, known: Classes) -> list[int]:
    """The class of every position of a word at some depth; numbers can be compared if they have `known` in common."""
    if direction == "future":
        return classes(word[::-1], depth, "past", known)[::-1]
    here = [known.number(Class(0, name)) for name in word]
    for level in range(1, depth + 1):
        before = _orders(here)
        after = _orders(here[::-1])[::-1] if direction == "both" else [None] * len(word)
        here = [known.number(Class(level, *each)) for each in zip(word, before, after, strict=True)]
    return here


def _orders(here: list[int]) -> list[Order]:
    """For each position the classes before it, by last occurrence."""
    order: dict[int, None] = {}
    result = []
    for each in here:
        result.append(tuple(order))
        order.pop(each, None)
        order[each] = None
    return result


def equivalent(one: str, two: str, depth: int, direction: Direction) -> bool:
    """Whether no formula of this depth tells two words apart, read at their last positions (future: at the first).

    >>> equivalent("abb", "aabb", 1, "past"), equivalent("abb", "aabb", 2, "past")
    (True, False)
    """
    known = Classes()
    place = 0 if direction == "future" else -1
    return classes(one, depth, direction, known)[place] == classes(two, depth, direction, known)[place]


class Pair(NamedTuple):
    """Two words that no formula of some depth tells apart, one in a language and one not."""

    depth: int
    inside: str
    outside: str


@dataclass(frozen=True)
class Decision:
    """Whether a language has a formula of some depth: yes, no with a pair, or unknown after so many classes."""

    depth: int
    direction: Direction
    definable: bool | None
    classes: int
    pair: Pair | None = None
    formula: Formula | None = None


def decide(language: Automaton, depth: int, direction: Direction, *, most: int = MOST_CLASSES) -> Decision:
    """Whether a language has a formula of this depth, by walking through the classes of words, short words first."""
    at_least_one(depth=depth + 1, most=most)
    if direction == "future":
        past = decide(mirror(language), depth, "past", most=most)
        pair = past.pair and Pair(depth, past.pair.inside[::-1], past.pair.outside[::-1])
        formula = past.formula and mirrored(past.formula)
        return Decision(depth, direction, past.definable, past.classes, pair, formula)
    walk: _Past | _Both = _Past(depth) if direction == "past" else _Both(depth)
    answers: dict[int, tuple[bool, str]] = {}
    start = (walk.start, 0)
    seen: dict[tuple[tuple[Order, ...], int], str] = {start: ""}
    todo = [start]
    for here in todo:
        word = seen[here]
        for index, name in enumerate(language.alphabet):
            state = language.moves[here[1]][index]
            inside = state in language.accepting
            summary, last = walk.step(here[0], word, name)
            earlier = answers.setdefault(last, (inside, word + name))
            if earlier[0] != inside:
                pair = Pair(depth, *((word + name, earlier[1]) if inside else (earlier[1], word + name)))
                return Decision(depth, direction, False, len(answers), pair)
            if (summary, state) not in seen:
                if len(seen) >= most:
                    return Decision(depth, direction, None, len(answers))
                seen[summary, state] = word + name
                todo.append((summary, state))
    return Decision(depth, direction, True, len(answers), None, _formula(walk.known, answers))


def _formula(known: Classes, answers: dict[int, tuple[bool, str]]) -> Formula | None:
    """The classes inside the language written out, or those outside if they are fewer."""
    if len(answers) > MOST_IN_FORMULA:
        return None
    members = {side: [number for number, (inside, _) in answers.items() if inside == side] for side in (True, False)}
    if len(members[False]) < len(members[True]):
        return negation(disjunction(*map(known.formula, members[False])))
    return disjunction(*map(known.formula, members[True]))


class _Past:
    """Words by the classes of their positions, for each level below the depth in the order of last occurrence."""

    def __init__(self, depth: int) -> None:
        self.depth, self.known = depth, Classes()
        self.start: tuple[Order, ...] = ((),) * depth

    def step(self, orders: tuple[Order, ...], _word: str, name: str) -> tuple[tuple[Order, ...], int]:
        """The summary after one more letter, and the class of that letter's position."""
        longer, here = [], self.known.number(Class(0, name))
        for level, order in enumerate(orders, 1):
            longer.append((*(each for each in order if each != here), here))
            here = self.known.number(Class(level, name, order))
        return tuple(longer), here


class _Both:
    """Words by the classes of their positions one level below the depth, by last occurrence.

    What a position's class becomes when letters are added at the end depends on its class here and on those letters,
    and so does the order of last occurrences. So a shortest word stands for all that look like it.
    """

    def __init__(self, depth: int) -> None:
        self.depth, self.known = depth, Classes()
        self.start: tuple[Order, ...] = ()

    def step(self, _summary: tuple[Order, ...], word: str, name: str) -> tuple[tuple[Order, ...], int]:
        """The summary after one more letter, and the class of that letter's position."""
        longer = word + name
        last = classes(longer, self.depth, "both", self.known)[-1]
        if self.depth == 0:
            return (), last
        here = classes(longer, self.depth - 1, "both", self.known)
        return (tuple(dict.fromkeys(reversed(here)))[::-1],), last


def mirror(language: Automaton) -> Automaton:
    """The automaton of the words read backwards."""
    before: dict[tuple[int, str], set[int]] = {}
    for state, row in enumerate(language.moves):
        for name, following in zip(language.alphabet, row, strict=True):
            before.setdefault((following, name), set()).add(state)

    def step(states: frozenset[int], name: str) -> frozenset[int]:
        return frozenset().union(*(before.get((state, name), set()) for state in states))

    return explore(language.alphabet, language.accepting, step, lambda states: 0 in states).minimal


def mirrored(f: Formula) -> Formula:
    """Future for past and past for future."""
    swapped: dict[Formula, Formula] = {}
    for part in subformulas(f):
        op = MIRRORED.get(part.op, part.op)
        swapped[part] = Formula.of(op, *(swapped[arg] for arg in part.args))
    return swapped[f]


@dataclass(frozen=True)
class LeastDepth:
    """The least depth of a language's formulas lies from `low` to `high`; with `high` None no formula is known.

    `decisions` are the proofs: each depth below `low` has a pair of words.
    """

    direction: Direction
    low: int
    high: int | None
    decisions: tuple[Decision, ...]

    @property
    def exact(self) -> bool:
        """Whether the least depth is known."""
        return self.low == self.high


def least_depth(
    language: Automaton, direction: Direction, *, known: int | None = None, most: int = MOST_CLASSES, deepest: int = 8
) -> LeastDepth:
    """The least depth of a formula for a star-free language; `known` is the depth of one that somebody has.

    Every depth from 0 on is decided until one has a formula or has too many classes to decide.
    """
    decisions: list[Decision] = []
    for depth in range(deepest + 1):
        if depth == known:
            break
        decisions.append(decide(language, depth, direction, most=most))
        if decisions[-1].definable is not False:
            break
    refuted = sum(each.definable is False for each in decisions)
    definable = [each.depth for each in decisions if each.definable]
    return LeastDepth(direction, refuted, definable[0] if definable else known, tuple(decisions))
