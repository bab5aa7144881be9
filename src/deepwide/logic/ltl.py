"""Linear temporal logic over finite words: formulas as frozen values, their grammar, printer and depth.

A formula is true or false at each position of a word. Strict operators look at other positions only:

    f S< g   since: g at some j < i, and f at every k with j < k < i          (mirror: f U> g, until)
    P< g     once, true S< g        H< g   always before, !P< !g              (mirrors: F> g, G> g)
    Y g      at the position before, false S< g                               (mirror: X g, next)

`S U P H F G` are the usual ones, in which the present position counts: f S g is g | f & (f S< g). So the strict
operators express the others at the same depth. Depth is the nesting of operators of both tables.

Grammar; `&` binds closer than `|`, both closer than `->`, and until and since closer than all three:

    formula   = implied [ "<->" formula ]            atom   = letter | "true" | "false" | "(" formula ")"
    implied   = either [ "->" implied ]              letter = one of a … z, 0 … 9
    either    = both { "|" both }                    unary  = ( "!" | "X" | "Y" | "F" | "G" | "P" | "H"
    both      = binary { "&" binary }                             | "F>" | "G>" | "P<" | "H<" ) unary | atom
    binary    = unary [ ( "U" | "S" | "U>" | "S<" ) binary ]

A formula says something about a word by its value at the last position, or at the first if it only has future operators
(`reads_at`). Words have at least one letter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from deepwide.errors import DeepwideError, quoted

Place = Literal["first", "last"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PAST_UNARY, FUTURE_UNARY = ("Y", "P", "H", "P<", "H<"), ("X", "F", "G", "F>", "G>")
PAST_BINARY, FUTURE_BINARY = ("S", "S<"), ("U", "U>")
UNARY, BINARY = PAST_UNARY + FUTURE_UNARY, PAST_BINARY + FUTURE_BINARY
PAST, FUTURE = PAST_UNARY + PAST_BINARY, FUTURE_UNARY + FUTURE_BINARY
TEMPORAL = UNARY + BINARY
TOKEN = re.compile(r"\s*(?:(true|false)\b|(<->|->|[UFG]>|[SPH]<|[!&|()UXFGSYPH])|([a-z0-9]))")
DEEPEST = 100  # nested parentheses, and operators in a row, in what a person writes


@dataclass(frozen=True, eq=False)
class Formula:
    """An operator and its arguments; a letter or a constant has none.

    Equal formulas are the same object, so that they are compared and hashed by identity and shared parts are computed
    once. Make them with the functions of this module.
    """

    op: str  # a letter, "true", "false", "!", "&", "|" or an operator of TEMPORAL
    args: tuple["Formula", ...] = ()
    depth: int = 0  # nesting of temporal operators
    has_past: bool = False
    has_future: bool = False

    _known: ClassVar[dict[tuple[str, tuple["Formula", ...]], "Formula"]] = {}

    @classmethod
    def of(cls, op: str, *args: "Formula") -> "Formula":
        """The formula with this operator and these arguments."""
        known = cls._known.get((op, args))
        if known is None:
            depth = max((arg.depth for arg in args), default=0) + (op in TEMPORAL)
            past = op in PAST or any(arg.has_past for arg in args)
            future = op in FUTURE or any(arg.has_future for arg in args)
            known = cls._known.setdefault((op, args), cls(op, args, depth, past, future))
        return known

    def __str__(self) -> str:
        return show(self)

    def __repr__(self) -> str:
        return f"parse({show(self)!r})"

    @property
    def letters(self) -> str:
        """The letters that occur, in order."""
        return "".join(sorted({part.op for part in subformulas(self) if part.op in LETTERS}))

    @property
    def reads_at(self) -> Place:
        """Where a word is judged: the first position for future-only formulas, otherwise the last."""
        return "first" if self.has_future and not self.has_past else "last"


TRUE, FALSE = Formula.of("true"), Formula.of("false")


def letter(name: str) -> Formula:
    """True where this letter stands."""
    if len(name) != 1 or name not in LETTERS:
        raise DeepwideError(f"a letter is one of a to z and 0 to 9, not {quoted(name)}.")
    return Formula.of(name)


def negation(f: Formula) -> Formula:
    """!f, without double negations."""
    if f in (TRUE, FALSE):
        return FALSE if f is TRUE else TRUE
    return f.args[0] if f.op == "!" else Formula.of("!", f)


def conjunction(*parts: Formula) -> Formula:
    """All of them; constants and repetitions are dropped."""
    return _joined("&", parts, neutral=TRUE, absorbing=FALSE)


def disjunction(*parts: Formula) -> Formula:
    """At least one of them; constants and repetitions are dropped."""
    return _joined("|", parts, neutral=FALSE, absorbing=TRUE)


def operate(op: str, args: list[Formula]) -> Formula:
    """!, & or | of formulas."""
    return negation(args[0]) if op == "!" else conjunction(*args) if op == "&" else disjunction(*args)


def temporal(op: str, *args: Formula) -> Formula:
    """A formula with one of the operators of TEMPORAL in front."""
    assert (op in UNARY and len(args) == 1) or (op in BINARY and len(args) == 2), (op, len(args))
    return Formula.of(op, *args)


def _joined(op: str, parts: tuple[Formula, ...], neutral: Formula, absorbing: Formula) -> Formula:
    parts = tuple(dict.fromkeys(part for part in parts if part is not neutral))
    if absorbing in parts:
        return absorbing
    if not parts:
        return neutral
    whole = parts[0]
    for part in parts[1:]:
        whole = Formula.of(op, whole, part)
    return whole


def subformulas(f: Formula) -> list[Formula]:
    """Every different subformula, arguments before what uses them, f last."""
    order: dict[Formula, None] = {}
    todo = [(f, False)]
    while todo:
        part, ready = todo.pop()
        if ready:
            order[part] = None
        elif part not in order:
            todo.append((part, True))
            todo.extend((arg, False) for arg in part.args if arg not in order)
    return list(order)


def written_size(f: Formula) -> int:
    """How many letters, constants and operators the formula has when it is written out."""
    sizes: dict[Formula, int] = {}
    for part in subformulas(f):
        sizes[part] = 1 + sum(sizes[arg] for arg in part.args)
    return sizes[f]


def in_strict_operators(f: Formula) -> Formula:
    """The same formula in letters, !, &, |, S< and U> alone, of the same depth."""
    strict: dict[Formula, Formula] = {}
    for part in subformulas(f):
        args = [strict[arg] for arg in part.args]
        strict[part] = _strict(part.op, args) if part.op in TEMPORAL else _rebuilt(part.op, args)
    return strict[f]


def _rebuilt(op: str, args: list[Formula]) -> Formula:
    return operate(op, args) if args else Formula.of(op)


def _strict(op: str, args: list[Formula]) -> Formula:
    strict = "S<" if op in PAST else "U>"
    match op[0]:
        case "Y" | "X":
            return temporal(strict, FALSE, *args)
        case "P" | "F":
            before = temporal(strict, TRUE, *args)
            return before if op[1:] else disjunction(args[0], before)
        case "H" | "G":
            return negation(_strict({"H": "P", "G": "F"}[op[0]] + op[1:], [negation(args[0])]))
    f, g = args
    return temporal(strict, f, g) if op[1:] else disjunction(g, conjunction(f, temporal(strict, f, g)))


def parse(text: str) -> Formula:
    """The formula that a text in the grammar above writes.

    >>> parse("P(a & (c S< a))").depth
    2
    """
    return _Parser(text).formula()


class _Parser:
    """Recursive descent over tokens with their places."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at, self.nested = text, list(_tokens(text)), 0, 0

    def formula(self) -> Formula:
        result = self._equivalent()
        token, place = self._next()
        if token:
            raise self._error(place, "an operator or the end")
        return result

    def _next(self) -> tuple[str, int]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", len(self.text))

    def _takes(self, *wanted: str) -> str:
        token = self._next()[0]
        if token not in wanted:
            return ""
        self.at += 1
        return token

    def _error(self, place: int, wanted: str) -> DeepwideError:
        here = (
            f"at {quoted(self.text[place:], 10)} (character {place + 1})" if self.text[place:].strip() else "at the end"
        )
        return DeepwideError(f"the formula {quoted(self.text)} cannot be read {here}: {wanted} is expected there.")

    def _equivalent(self) -> Formula:
        self.nested += 1
        if self.nested > DEEPEST:
            raise DeepwideError(f"the formula {quoted(self.text)} is nested more than {DEEPEST} levels deep.")
        left = self._implied()
        if self._takes("<->"):
            right = self._equivalent()
            left = disjunction(conjunction(left, right), conjunction(negation(left), negation(right)))
        self.nested -= 1
        return left

    def _implied(self) -> Formula:
        parts = [self._either()]
        while self._takes("->"):
            parts.append(self._either())
        whole = parts.pop()
        while parts:
            whole = disjunction(negation(parts.pop()), whole)
        return whole

    def _either(self) -> Formula:
        whole = self._both()
        while self._takes("|"):
            whole = disjunction(whole, self._both())
        return whole

    def _both(self) -> Formula:
        whole = self._binary()
        while self._takes("&"):
            whole = conjunction(whole, self._binary())
        return whole

    def _binary(self) -> Formula:
        parts, ops = [self._unary()], []
        while op := self._takes(*BINARY):
            ops.append(op)
            parts.append(self._unary())
        whole = parts.pop()
        while parts:
            whole = temporal(ops.pop(), parts.pop(), whole)
        return whole

    def _unary(self) -> Formula:
        ops = []
        while op := self._takes("!", *UNARY):
            ops.append(op)
        whole = self._atom()
        for op in reversed(ops):
            whole = negation(whole) if op == "!" else temporal(op, whole)
        return whole

    def _atom(self) -> Formula:
        token, place = self._next()
        self.at += 1
        if token == "(":
            inner = self._equivalent()
            if not self._takes(")"):
                raise self._error(self._next()[1], "an operator or )")
            return inner
        if token in ("true", "false") or (token and token in LETTERS):
            return Formula.of(token)
        raise self._error(place, "a letter, true, false, a unary operator or (")


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    place = 0
    while text[place:].strip():
        match = TOKEN.match(text, place)
        if match is None:
            start = place + len(text[place:]) - len(text[place:].lstrip())
            raise DeepwideError(
                f"the formula {quoted(text)} cannot be read at {quoted(text[start:], 10)} (character {start + 1}): "
                "letters are a to z and 0 to 9, operators are ! & | -> <-> and X Y F G P H U S with their strict forms."
            )
        token = match[1] or match[2] or match[3]
        yield token, match.end() - len(token)
        place = match.end()


_STRENGTH = {"|": 1, "&": 2, **dict.fromkeys(BINARY, 3)}


def show(f: Formula) -> str:
    """A text that `parse` reads as the same formula, with few parentheses."""
    texts: dict[Formula, str] = {}

    def inside(part: Formula, least: int) -> str:
        return f"({texts[part]})" if _STRENGTH.get(part.op, 9) < least else texts[part]

    for part in subformulas(f):
        if not part.args:
            texts[part] = part.op
        elif len(part.args) == 1:
            space = "" if part.op == "!" else " "
            texts[part] = f"{part.op}{space}{inside(part.args[0], 9)}"
        else:
            strength = _STRENGTH[part.op]
            left, right = (strength, strength + 1) if strength < 3 else (strength + 1, strength)
            texts[part] = f"{inside(part.args[0], left)} {part.op} {inside(part.args[1], right)}"
    return texts[f]
