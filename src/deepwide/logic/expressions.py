"""Regular expressions with complement and intersection, by derivatives (Brzozowski 1964).

    expression = both { "|" both }         both = sequence { "&" sequence }         sequence = repeated { repeated }
    repeated   = "~" repeated | unit { "*" | "+" | "?" }                            ~ is the complement
    unit       = letter | "." | "()" | "(" expression ")"                           . is any letter, () the empty word

An expression without * and + is star-free, and so is `.*`, which is ~ of nothing.
"""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from deepwide.errors import DeepwideError, quoted
from deepwide.logic.automata import Automaton, explore
from deepwide.logic.ltl import DEEPEST, LETTERS
from deepwide.logic.words import check_alphabet


@dataclass(frozen=True, eq=False)
class Expression:
    """A letter, "nothing", "empty", or one of | & ~ * . with its parts; equal expressions are the same object."""

    op: str
    parts: tuple["Expression", ...]
    number: int  # in the order in which they were first made

    _known: ClassVar[dict[tuple[str, tuple["Expression", ...]], "Expression"]] = {}

    @classmethod
    def of(cls, op: str, *parts: "Expression") -> "Expression":
        """The expression with this operator and these parts; those of | and & are a set."""
        if op in "|&":
            parts = tuple(sorted(set(parts), key=lambda part: part.number))
        return cls._known.setdefault((op, parts), cls(op, parts, len(cls._known)))


NOTHING, EMPTY = Expression.of("nothing"), Expression.of("empty")
ALL = Expression.of("~", NOTHING)


def of_expression(text: str, alphabet: str) -> Automaton:
    """The minimal automaton of a regular expression's words of one letter or more.

    >>> len(of_expression("(ab)*", "ab"))
    4
    """
    alphabet = check_alphabet(alphabet, letters_of(text))
    return explore(alphabet, _Reader(text, alphabet).whole(), _derivative, _has_empty).minimal


def letters_of(text: str) -> str:
    """The letters that an expression writes."""
    return "".join(sorted(set(text) & set(LETTERS)))


def _joined(op: str, parts: list[Expression], neutral: Expression, absorbing: Expression) -> Expression:
    flat = {each for part in parts for each in (part.parts if part.op == op else (part,))} - {neutral}
    if absorbing in flat:
        return absorbing
    return neutral if not flat else next(iter(flat)) if len(flat) == 1 else Expression.of(op, *flat)


def _either(*parts: Expression) -> Expression:
    return _joined("|", list(parts), NOTHING, ALL)


def _both(*parts: Expression) -> Expression:
    return _joined("&", list(parts), ALL, NOTHING)


def _not(part: Expression) -> Expression:
    return part.parts[0] if part.op == "~" else Expression.of("~", part)


def _then(first: Expression, second: Expression) -> Expression:
    if NOTHING in (first, second):
        return NOTHING
    if EMPTY in (first, second):
        return second if first is EMPTY else first
    if first.op == ".":  # to the right, so that equal sequences look equal
        return Expression.of(".", first.parts[0], _then(first.parts[1], second))
    return Expression.of(".", first, second)


def _repeated(part: Expression) -> Expression:
    if part in (NOTHING, EMPTY):
        return EMPTY
    return part if part.op == "*" else Expression.of("*", part)


@cache
def _has_empty(part: Expression) -> bool:
    match part.op:
        case "|":
            return any(map(_has_empty, part.parts))
        case "&" | ".":
            return all(map(_has_empty, part.parts))
        case "~":
            return not _has_empty(part.parts[0])
    return part.op in ("*", "empty")


@cache
def _derivative(part: Expression, letter: str) -> Expression:
    """What may follow a letter in the words of an expression."""
    match part.op:
        case "|":
            return _either(*(_derivative(each, letter) for each in part.parts))
        case "&":
            return _both(*(_derivative(each, letter) for each in part.parts))
        case "~":
            return _not(_derivative(part.parts[0], letter))
        case "*":
            return _then(_derivative(part.parts[0], letter), part)
        case ".":
            first, second = part.parts
            begun = _then(_derivative(first, letter), second)
            return _either(begun, _derivative(second, letter)) if _has_empty(first) else begun
    return EMPTY if part.op == letter else NOTHING


class _Reader:
    """Recursive descent over characters."""

    def __init__(self, text: str, alphabet: str) -> None:
        self.text, self.alphabet, self.at, self.nested = text, alphabet, 0, 0

    def whole(self) -> Expression:
        expression = self._expression()
        if self._next():
            raise self._error("an operator or the end")
        return expression

    def _next(self) -> str:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _error(self, wanted: str) -> DeepwideError:
        rest = self.text[self.at :]
        here = f"at {quoted(rest, 10)} (character {self.at + 1})" if rest else "at the end"
        return DeepwideError(f"the expression {quoted(self.text)} cannot be read {here}: {wanted} is expected there.")

    def _expression(self) -> Expression:
        self.nested += 1
        if self.nested > DEEPEST:
            raise DeepwideError(f"the expression {quoted(self.text)} is nested more than {DEEPEST} levels deep.")
        parts = [self._intersection()]
        while self._next() == "|":
            self.at += 1
            parts.append(self._intersection())
        self.nested -= 1
        return _either(*parts)

    def _intersection(self) -> Expression:
        parts = [self._sequence()]
        while self._next() == "&":
            self.at += 1
            parts.append(self._sequence())
        return _both(*parts)

    def _sequence(self) -> Expression:
        parts = [self._unit()]
        while self._next() and self._next() not in "|&)":
            parts.append(self._unit())
        whole = parts.pop()
        while parts:
            whole = _then(parts.pop(), whole)
        return whole

    def _unit(self) -> Expression:
        negations = 0
        while self._next() == "~":
            self.at += 1
            negations += 1
        character = self._next()
        if character == "(":
            self.at += 1
            unit = EMPTY if self._next() == ")" else self._expression()
            if self._next() != ")":
                raise self._error("an operator or )")
        elif character == ".":
            unit = _either(*map(Expression.of, self.alphabet))
        elif character and character in LETTERS:
            unit = Expression.of(character)
        else:
            raise self._error("a letter, . , ~ or (")
        self.at += 1
        while (sign := self._next()) and sign in "*+?":
            self.at += 1
            unit = (
                _repeated(unit)
                if sign == "*"
                else _then(unit, _repeated(unit))
                if sign == "+"
                else _either(unit, EMPTY)
            )
        return _not(unit) if negations % 2 else unit
