"""A small formula of a language, found by trying formulas by their size.

Formulas of past operators are compared on all positions of all short words: those that agree there are one, of which
the first is kept. What has the language's values at the last positions is then compared with the automaton exactly, so
that an answer is never wrong; it may only be missing, or larger than need be.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from deepwide.logic.automata import Automaton
from deepwide.logic.ltl import TRUE, Formula, conjunction, letter, negation, written_size
from deepwide.logic.tableau import of_formula
from deepwide.logic.words import all_words

TRIALS = 150_000  # formulas that are tried: about a second
SAMPLE = 300  # words that formulas are compared on
MOST_PARTS = 6  # of a conjunction
UNARY, COMMUTATIVE, ORDERED = ("!", "Y", "P<", "H<", "P", "H"), ("&", "|"), ("S<", "S")


@dataclass(frozen=True)
class _Positions:
    """All positions of the words, one bit each, the words one after another."""

    words: tuple[str, ...]
    longest: int
    all: int
    later: int  # those that have a position before them
    ends: int

    @classmethod
    def of(cls, alphabet: str) -> "_Positions":
        longest = next(n for n in itertools.count(1) if sum(len(alphabet) ** i for i in range(1, n + 2)) > SAMPLE)
        longest = min(longest, 12)  # of one letter there are few words
        words = tuple(all_words(alphabet, longest))
        later = ends = place = 0
        for word in words:
            later |= ((1 << len(word)) - 2) << place
            place += len(word)
            ends |= 1 << (place - 1)
        return cls(words, longest, (1 << place) - 1, later, ends)

    def where(self, name: str) -> int:
        text = "".join(self.words)
        return int("".join("1" if each == name else "0" for each in reversed(text)), 2)

    def value(self, op: str, f: int, g: int = 0) -> int:
        """The positions where an operator's formula is true, given those where its arguments are."""
        match op:
            case "!":
                return self.all & ~f
            case "&":
                return f & g
            case "|":
                return f | g
            case "Y":
                return self._before(f)
            case "P<":
                return self._since(self.all, f)
            case "P":
                return f | self._since(self.all, f)
            case "H<":
                return self.all & ~self._since(self.all, self.all & ~f)
            case "H":
                return f & ~self._since(self.all, self.all & ~f)
            case "S<":
                return self._since(f, g)
        return g | (f & self._since(f, g))

    def _before(self, f: int) -> int:
        return (f << 1) & self.later

    def _since(self, f: int, g: int) -> int:
        value = self._before(g)
        for _ in range(self.longest - 2):
            value = self._before(g | (f & value))
        return value


def small_formula(language: Automaton, *, most: int = TRIALS) -> Formula | None:
    """A small formula of past operators that is true at the last position of exactly the language's words.

    The first among `most` formulas by size, or else a conjunction of some of them or the negation of one, as shallow
    as can be; None if that fails too.

    >>> from deepwide.logic.expressions import of_expression
    >>> print(small_formula(of_expression("a*b*", "ab")))
    b S H< a
    """
    positions = _Positions.of(language.alphabet)
    wanted, place = 0, 0
    for word in positions.words:
        place += len(word)
        wanted |= language.accepts(word) << (place - 1)

    def is_it(formula: Formula) -> bool:
        return of_formula(formula, language.alphabet, "last").difference(language) is None

    by_ends: dict[int, Formula] = {}  # the smallest formula of every value at the last positions
    for formula, value in itertools.islice(_by_size(positions, language.alphabet), most):
        if formula is None:
            continue
        ends = value & positions.ends
        if ends == wanted and is_it(formula):
            return formula
        by_ends.setdefault(ends, formula)
    for depth in sorted({formula.depth for formula in by_ends.values()}):
        shallow = {ends: formula for ends, formula in by_ends.items() if formula.depth <= depth}
        inside = _conjunction(wanted, positions.ends, shallow)
        outside = _conjunction(positions.ends & ~wanted, positions.ends, shallow)
        options = [each for each in (inside, outside and negation(outside)) if each is not None and is_it(each)]
        if options:
            return min(options, key=written_size)
    return None


def _conjunction(wanted: int, everywhere: int, by_ends: dict[int, Formula]) -> Formula | None:
    """Formulas that are true wherever it is wanted, taken greedily until together they are true nowhere else."""
    true_there = [(ends, formula) for ends, formula in by_ends.items() if ends & wanted == wanted]
    left = everywhere & ~wanted
    parts: list[Formula] = []
    while left:
        excluded = [(left & ~ends).bit_count() for ends, _ in true_there]
        best = max(range(len(true_there)), key=excluded.__getitem__, default=None)  # of equals the smallest
        if best is None or not excluded[best] or len(parts) == MOST_PARTS:
            return None
        parts.append(true_there[best][1])
        left &= true_there[best][0]
    return conjunction(*parts)


def _by_size(positions: _Positions, alphabet: str) -> Iterator[tuple[Formula | None, int]]:
    """Every formula tried, with its value; None in place of a formula whose values another had before."""
    atoms = [(TRUE, positions.all), *((letter(name), positions.where(name)) for name in alphabet)]
    seen: set[int] = set()
    sizes: list[list[tuple[Formula, int]]] = [[]]

    def tried(op: str, *args: tuple[Formula, int]) -> tuple[Formula | None, int]:
        value = positions.value(op, *(arg[1] for arg in args))
        if value in seen:
            return None, value
        seen.add(value)
        formula = Formula.of(op, *(arg[0] for arg in args))
        sizes[-1].append((formula, value))
        return formula, value

    sizes.append([])
    for formula, value in atoms:
        if value not in seen:
            seen.add(value)
            sizes[-1].append((formula, value))
        yield formula, value
    while any(sizes):
        size = len(sizes)
        sizes.append([])
        for op, arg in itertools.product(UNARY, sizes[size - 1]):
            yield tried(op, arg)
        for left in range(1, size - 1):
            right = size - 1 - left
            for one, two in itertools.product(sizes[left], sizes[right]):
                if left <= right:
                    for op in COMMUTATIVE:
                        yield tried(op, one, two)
                for op in ORDERED:
                    yield tried(op, one, two)
