"""From a star-free language to a formula: local divisors of its syntactic monoid (Diekert & Gastin 2008).

Let h map words to an aperiodic monoid M, and let c be a letter with h(c) ≠ 1; letters of the same image are treated as
one. A word is v0 c v1 c … c vk with blocks v without c. Its value is p·q·r with p = h(v0), r = h(vk) and q the value of
the middle part c v1 c … c, which lies in cM ∩ Mc. Blocks are words over a smaller alphabet. The middle part is a word
over the values of blocks, multiplied in the local divisor: cM ∩ Mc with xc ∘ cy = xcy, which has c as its 1 and fewer
elements than M. So both are solved by induction, and the formulas are put together with until: those of blocks look no
further than the next c, those of the middle part look at the letters c alone.

The result has only U> and is read at the first position. With m elements in M its depth is at most D(m) = (m − 1) ·
(D(m − 1) + 3), D(1) = 0, which `depth_bound` computes; real depths are far smaller. Monoids and formulas
beyond MOST_ELEMENTS and MOST_PARTS are refused.
"""

from dataclasses import dataclass, field

from deepwide.errors import DeepwideError
from deepwide.logic.automata import Monoid, after
from deepwide.logic.ltl import (
    FALSE,
    TRUE,
    Formula,
    conjunction,
    disjunction,
    negation,
    operate,
    subformulas,
    temporal,
)

MOST_ELEMENTS = 60
MOST_PARTS = 20_000


def depth_bound(elements: int) -> int:
    """How deep `to_formula` may become for a monoid of so many elements."""
    bound = 0
    for size in range(2, elements + 1):
        bound = (size - 1) * (bound + 3)
    return bound


def starfree_formula(monoid: Monoid) -> Formula:
    """A formula in U> for the language of an aperiodic monoid, read at the first position."""
    if monoid.period is not None:
        raise DeepwideError(
            f"the language is not star-free, so it has no formula: the powers of {monoid.period!r} never settle."
        )
    if len(monoid.elements) > MOST_ELEMENTS:
        raise DeepwideError(
            f"the syntactic monoid has {len(monoid.elements)} elements: a formula is built for at most {MOST_ELEMENTS}."
        )
    numbers = {element: number for number, element in enumerate(monoid.elements)}
    table = [[numbers[after(x, y)] for y in monoid.elements] for x in monoid.elements]
    automaton = monoid.automaton
    images = {
        name: numbers[tuple(row[index] for row in automaton.moves)] for index, name in enumerate(automaton.alphabet)
    }
    wanted = [number for element, number in numbers.items() if element[0] in automaton.accepting]
    solver = _Solver(table, numbers[tuple(range(len(automaton)))])
    f = disjunction(*(solver.solve(tuple(sorted(images.items())), target) for target in wanted))
    if len(subformulas(f)) > MOST_PARTS:
        raise DeepwideError(f"the formula has more than {MOST_PARTS:,} parts: take a smaller language.")
    return f


@dataclass
class _Solver:
    """Formulas for the words over some letters whose value in one monoid is a given element."""

    table: list[list[int]]
    one: int
    solved: dict[tuple[tuple[tuple[str, int], ...], int], Formula] = field(default_factory=dict)

    def solve(self, letters: tuple[tuple[str, int], ...], target: int) -> Formula:
        """Words of one letter or more over these letters (name, image) whose value is the target."""
        key = (letters, target)
        if key not in self.solved:
            self.solved[key] = self._solve(letters, target)
        return self.solved[key]

    def _solve(self, letters: tuple[tuple[str, int], ...], target: int) -> Formula:
        images = sorted({image for _, image in letters} - {self.one})
        if not images:
            return TRUE if letters and target == self.one else FALSE
        c = images[0]
        others = tuple(letter for letter in letters if letter[1] != c)
        is_c = disjunction(*(Formula.of(name) for name, image in letters if image == c))
        values = self._generated({image for _, image in others})
        without = conjunction(_everywhere(negation(is_c)), self.solve(others, target)) if others else FALSE
        divisor = self._divisor(c)
        blocks = {value: self._block(others, value, is_c) for value in values}
        parts = [without]
        for p in values:
            for q in divisor.elements:
                last = [r for r in values if self.table[self.table[p][q]][r] == target]
                if last:
                    suffix = disjunction(*(self._suffix(others, r, is_c) for r in last))
                    middle = self._middle(divisor, q, blocks, is_c, c)
                    parts.append(conjunction(self._prefix(others, p, is_c), middle, suffix))
        return disjunction(*parts)

    def _generated(self, images: set[int]) -> list[int]:
        """All products of these elements, the empty one included."""
        values, todo = {self.one}, [self.one]
        for value in todo:
            for image in images:
                product = self.table[value][image]
                if product not in values:
                    values.add(product)
                    todo.append(product)
        return sorted(values)

    def _divisor(self, c: int) -> "_Divisor":
        size = range(len(self.table))
        right = {self.table[x][c]: x for x in size}  # x·c back to one such x
        elements = sorted(set(right) & {self.table[c][y] for y in size})
        place = {element: number for number, element in enumerate(elements)}
        table = [[place[self.table[right[x]][y]] for y in elements] for x in elements]
        return _Divisor(elements, place, _Solver(table, place[c]))

    def _prefix(self, others: tuple[tuple[str, int], ...], p: int, is_c: Formula) -> Formula:
        """The block before the first c has this value."""
        here = conjunction(negation(is_c), _until_next(self.solve(others, p), is_c)) if others else FALSE
        return disjunction(is_c, here) if p == self.one else here

    def _block(self, others: tuple[tuple[str, int], ...], value: int, is_c: Formula) -> Formula:
        """At a c with another c after it: the block between them has this value."""
        inner = conjunction(negation(is_c), _until_next(self.solve(others, value), is_c)) if others else FALSE
        return temporal("U>", FALSE, disjunction(is_c, inner) if value == self.one else inner)

    def _suffix(self, others: tuple[tuple[str, int], ...], r: int, is_c: Formula) -> Formula:
        """The block after the last c has this value."""
        following = temporal("U>", FALSE, self.solve(others, r)) if others else FALSE
        if r == self.one:
            following = disjunction(following, negation(temporal("U>", TRUE, TRUE)))
        last = conjunction(is_c, negation(temporal("U>", TRUE, is_c)), following)
        return disjunction(last, temporal("U>", TRUE, last))

    def _middle(self, divisor: "_Divisor", q: int, blocks: dict[int, Formula], is_c: Formula, c: int) -> Formula:
        """From the first c to the last one the value is q."""
        more = temporal("U>", TRUE, is_c)
        letters = tuple((f"#{value}", divisor.place[self.table[self.table[c][value]][c]]) for value in blocks)
        inner = divisor.solver.solve(letters, divisor.place[q])
        lifted = _lifted(inner, {f"#{value}": block for value, block in blocks.items()}, conjunction(is_c, more))
        here = conjunction(more, lifted)
        if q == c:
            here = disjunction(here, negation(more))
        first = conjunction(is_c, here)
        return disjunction(first, conjunction(negation(is_c), temporal("U>", negation(is_c), first)))


@dataclass
class _Divisor:
    """The local divisor at some c: its elements as elements of the larger monoid, their places, and its own solver."""

    elements: list[int]
    place: dict[int, int]
    solver: _Solver


def _everywhere(f: Formula) -> Formula:
    return conjunction(f, negation(temporal("U>", TRUE, negation(f))))


def _until_next(f: Formula, is_c: Formula) -> Formula:
    """The formula about the part of the word before the next c."""
    return _lifted(f, {}, negation(is_c), stop=is_c)


def _lifted(f: Formula, letters: dict[str, Formula], seen: Formula, stop: Formula | None = None) -> Formula:
    """A formula about the positions where `seen` is true, up to `stop` if there is one, said of the whole word."""
    result: dict[Formula, Formula] = {}
    for part in subformulas(f):
        args = [result[arg] for arg in part.args]
        if part.op == "U>":
            between = conjunction(negation(stop), args[0]) if stop else disjunction(negation(seen), args[0])
            result[part] = temporal("U>", between, conjunction(seen, args[1]))
        elif args:
            result[part] = operate(part.op, args)
        else:
            result[part] = letters.get(part.op, part)
    return result[f]
