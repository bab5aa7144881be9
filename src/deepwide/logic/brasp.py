"""B-RASP (Yang, Chiang & Angluin 2024): programs of Boolean vectors, one bit per position, built by hard attention.

A program is text, one definition per line; what follows # is a comment. Q_a is the vector of the letter a.

    definition = name ":=" boolean                                                     position by position
               | name ":=" side "[" mask "," boolean "]" boolean ":" boolean           attention
    side       = "leftmost" | "rightmost"
    mask       = "none" | "j<i" | "j<=i" | "j>i" | "j>=i"
    boolean    = conjunction { "|" conjunction },   conjunction = literal { "&" literal }
    literal    = "!" literal | "0" | "1" | name [ "(i)" | "(j)" ] | "(" boolean ")"

P := leftmost[M, S] V : D has at i the value of V at the leftmost j that the mask allows and where S is true, and that
of D where there is no such j. S and V may speak of i and j; a name without either means j in them and i elsewhere. The
last definition is the answer, read at the last position unless a last line says `read at first`.

Depth: letters have 0, a definition by position that of its deepest part, attention one more than its deepest part.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.logic.ltl import DEEPEST, LETTERS, Place
from deepwide.logic.words import Bits, Words

Side = Literal["leftmost", "rightmost"]
Mask = Literal["none", "j<i", "j<=i", "j>i", "j>=i"]
SIDES, MASKS = get_args(Side), get_args(Mask)
TOKEN = re.compile(r"\s*(:=|j\s*(?:<=|>=|<|>)\s*i\b|[A-Za-z_][A-Za-z0-9_]*|[01!&|():,\[\]])")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_ASSIGNMENTS = 10  # names at i in one score and value, beyond which 2^n attentions are too many
T = TypeVar("T")


@dataclass(frozen=True)
class Boolean:
    """A Boolean expression over vectors; a leaf is a name at i or j, or the constant 0 or 1."""

    op: str  # "name", "0", "1", "!", "&", "|"
    args: tuple["Boolean", ...] = ()
    name: str = ""
    var: Literal["i", "j"] = "i"

    def __str__(self) -> str:
        return _show(self, "i")

    def leaves(self) -> Iterator["Boolean"]:
        """The names in it, as often as they occur."""
        if self.op == "name":
            yield self
        for arg in self.args:
            yield from arg.leaves()

    def fold(self, leaf: "Callable[[Boolean], T]", zero: T, one: T, operate: Callable[[str, list[T]], T]) -> T:
        """The expression's value in some algebra."""
        if self.op in ("0", "1"):
            return one if self.op == "1" else zero
        if self.op == "name":
            return leaf(self)
        return operate(self.op, [arg.fold(leaf, zero, one, operate) for arg in self.args])

    def at(self, var: Literal["i", "j"]) -> "Boolean":
        """The same of another position."""
        return self.fold(lambda leaf: named(leaf.name, var), ZERO, ONE, combine)

    def given(self, values: Mapping[str, bool]) -> "Boolean":
        """With what is known at i put in."""
        return self.fold(
            lambda leaf: leaf if leaf.var == "j" else (ONE if values[leaf.name] else ZERO), ZERO, ONE, combine
        )


ZERO, ONE = Boolean("0"), Boolean("1")


def named(name: str, var: Literal["i", "j"] = "i") -> Boolean:
    """A vector by name."""
    return Boolean("name", (), name, var)


def combine(op: str, args: list[Boolean]) -> Boolean:
    """!x, x & y or x | y, simplified where a part is constant."""
    if op == "!":
        [x] = args
        return {ZERO: ONE, ONE: ZERO}.get(x) or (x.args[0] if x.op == "!" else Boolean("!", (x,)))
    neutral, absorbing = (ONE, ZERO) if op == "&" else (ZERO, ONE)
    if absorbing in args:
        return absorbing
    parts = list(dict.fromkeys(arg for arg in args if arg != neutral))
    if not parts:
        return neutral
    whole = parts[0]
    for part in parts[1:]:
        whole = Boolean(op, (whole, part))
    return whole


@dataclass(frozen=True)
class Attention:
    """One hard attention."""

    side: Side
    mask: Mask
    score: Boolean
    value: Boolean
    default: Boolean = ZERO

    @property
    def simple(self) -> bool:
        """Whether score and value speak of j alone, as heads of a network do."""
        return all(leaf.var == "j" for part in (self.score, self.value) for leaf in part.leaves())


@dataclass(frozen=True)
class Definition:
    """A vector's name and what it is."""

    name: str
    rule: Boolean | Attention

    @property
    def uses(self) -> set[str]:
        """The vectors in it."""
        rule = self.rule
        parts = (rule.score, rule.value, rule.default) if isinstance(rule, Attention) else (rule,)
        return {leaf.name for part in parts for leaf in part.leaves()}

    def __str__(self) -> str:
        rule = self.rule
        if not isinstance(rule, Attention):
            return f"{self.name} := {rule}"
        score, value = _show(rule.score, "j"), _show(rule.value, "j")
        return f"{self.name} := {rule.side}[{rule.mask}, {score}] {value} : {rule.default}"


@dataclass(frozen=True)
class Program:
    """Definitions in order; the last one is the answer."""

    definitions: tuple[Definition, ...]
    at: Place = "last"

    def __str__(self) -> str:
        return "\n".join([str(each) for each in self.definitions] + (["read at first"] if self.at == "first" else []))

    @property
    def depths(self) -> dict[str, int]:
        """The depth of each vector."""
        depths = {f"Q_{letter}": 0 for letter in LETTERS}
        for each in self.definitions:
            deepest = max((depths[name] for name in each.uses), default=0)
            depths[each.name] = deepest + isinstance(each.rule, Attention)
        return depths

    @property
    def depth(self) -> int:
        """The depth of the answer."""
        return self.depths[self.definitions[-1].name]

    @property
    def letters(self) -> str:
        """The letters that occur, in order."""
        return "".join(sorted({name[2:] for each in self.definitions for name in each.uses if is_letter(name)}))

    @property
    def simple(self) -> "Program":
        """An equivalent program of the same depth in which scores and values speak of j alone.

        What S and V say about i is decided first: one attention per assignment of those n vectors, 2ⁿ in all, of which
        the one that is true at i is chosen.
        """
        definitions: list[Definition] = []
        for each in self.definitions:
            rule = each.rule
            if not isinstance(rule, Attention) or rule.simple:
                definitions.append(each)
                continue
            at_i = sorted({leaf.name for part in (rule.score, rule.value) for leaf in part.leaves() if leaf.var == "i"})
            if len(at_i) > MOST_ASSIGNMENTS:
                raise DeepwideError(
                    f"the score and value of {each.name} speak of {len(at_i)} vectors at i: at most {MOST_ASSIGNMENTS} "
                    "can be separated from j, so define some of them together first."
                )
            chosen = []
            for number in range(2 ** len(at_i)):
                values = {name: bool(number >> place & 1) for place, name in enumerate(at_i)}
                part = f"{each.name}_{number}"
                score, value = rule.score.given(values), rule.value.given(values)
                definitions.append(Definition(part, Attention(rule.side, rule.mask, score, value, rule.default)))
                literals = [named(name) if true else combine("!", [named(name)]) for name, true in values.items()]
                chosen.append(combine("&", [*literals, named(part)]))
            definitions.append(Definition(each.name, combine("|", chosen)))
        return Program(tuple(definitions), self.at)


def is_letter(name: str) -> bool:
    """Whether a name is that of a letter's vector."""
    return len(name) == 3 and name.startswith("Q_") and name[2] in LETTERS


def vectors(program: Program, words: Words) -> dict[str, Bits]:
    """Every vector of a program on many words at once, T N bits each."""
    bits: dict[str, Bits] = {f"Q_{letter}": words.letter(letter) for letter in program.letters}
    zero = np.zeros_like(words.valid_TN)

    def operate(op: str, args: list[Bits]) -> Bits:
        return words.valid_TN & ~args[0] if op == "!" else args[0] & args[1] if op == "&" else args[0] | args[1]

    def value(part: Boolean) -> Bits:
        return part.fold(lambda leaf: bits[leaf.name], zero, words.valid_TN, operate)

    for each in program.simple.definitions:
        rule = each.rule
        if not isinstance(rule, Attention):
            bits[each.name] = value(rule)
            continue
        score_TN = value(rule.score)
        seen_TN, found_TN = _attend(rule.side, rule.mask, score_TN, score_TN & value(rule.value))
        bits[each.name] = (found_TN | (value(rule.default) & ~seen_TN)) & words.valid_TN
    return bits


def accepts(program: Program, words: Words) -> NDArray[np.bool_]:
    """For each word the program's answer."""
    return words.at(vectors(program, words)[program.definitions[-1].name], program.at)


def _attend(side: str, mask: str, score_TN: Bits, both_TN: Bits) -> tuple[Bits, Bits]:
    """Whether some allowed position has the score, and whether the chosen one has the value too."""
    order = range(len(score_TN))
    if mask == "none":
        seen_N, found_N = _choose(score_TN, both_TN, order if side == "rightmost" else reversed(order))
        shape = score_TN.shape
        return np.broadcast_to(seen_N, shape), np.broadcast_to(found_N, shape)
    past, itself = mask.startswith("j<"), mask.endswith("=i")
    newest_wins = (side == "rightmost") == past  # whether the position nearest to i is chosen
    seen_TN, found_TN = np.zeros_like(score_TN), np.zeros_like(score_TN)
    seen_N, found_N = np.zeros_like(score_TN[0]), np.zeros_like(score_TN[0])
    for i in order if past else reversed(order):
        if not itself:
            seen_TN[i], found_TN[i] = seen_N, found_N
        keep_N = ~score_TN[i] if newest_wins else ~np.uint64(0)
        new_N = both_TN[i] if newest_wins else both_TN[i] & ~seen_N
        found_N, seen_N = (found_N & keep_N) | new_N, seen_N | score_TN[i]
        if itself:
            seen_TN[i], found_TN[i] = seen_N, found_N
    return seen_TN, found_TN


def _choose(score_TN: Bits, both_TN: Bits, order: Any) -> tuple[Bits, Bits]:
    seen_N, found_N = np.zeros_like(score_TN[0]), np.zeros_like(score_TN[0])
    for j in order:
        found_N, seen_N = (found_N & ~score_TN[j]) | both_TN[j], seen_N | score_TN[j]
    return seen_N, found_N


def _show(part: Boolean, usual: str, strength: int = 0) -> str:
    if part.op in ("0", "1"):
        return part.op
    if part.op == "name":
        return part.name if part.var == usual else f"{part.name}({part.var})"
    if part.op == "!":
        return "!" + _show(part.args[0], usual, 3)
    own = 2 if part.op == "&" else 1
    text = f"{_show(part.args[0], usual, own)} {part.op} {_show(part.args[1], usual, own + 1)}"
    return f"({text})" if own < strength else text


def parse_program(text: str) -> Program:
    """The program that a text in the grammar above writes.

    >>> parse_program("P := rightmost[j<i, 1] Q_a : 0").depth
    1
    """
    definitions: list[Definition] = []
    at: Place = "last"
    known: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line in ("read at first", "read at last"):
            at = "first" if line.endswith("first") else "last"
        elif line:
            each = _Line(line, number).definition()
            if each.name in known or is_letter(each.name):
                raise DeepwideError(f"line {number} of the program defines {each.name} again: choose another name.")
            for name in sorted(each.uses):
                if name not in known and not is_letter(name):
                    hint = did_you_mean(
                        name[:80], known | {"Q_a"}, otherwise="define it above, or write Q_a for a letter a."
                    )
                    raise DeepwideError(
                        f"line {number} of the program uses {quoted(name)}, which is not defined: {hint}"
                    )
            known.add(each.name)
            definitions.append(each)
    if not definitions:
        raise DeepwideError("the program has no definition: write lines such as P := rightmost[j<i, Q_a] 1 : 0.")
    return Program(tuple(definitions), at)


class _Line:
    """Recursive descent over one line."""

    def __init__(self, line: str, number: int) -> None:
        self.line, self.number, self.nested = line, number, 0
        self.tokens: list[tuple[str, int]] = []
        place = 0
        while line[place:].strip():
            match = TOKEN.match(line, place)
            if match is None:
                start = len(line) - len(line[place:].lstrip())
                raise self._error(start, "a name, 0, 1, ! & | ( ) : , [ ] or a mask")
            self.tokens.append((re.sub(r"\s", "", match[1]), match.start(1)))
            place = match.end()
        self.tokens.append(("", len(line)))
        self.at = 0

    def definition(self) -> Definition:
        name = self._take(lambda token: NAME.fullmatch(token) is not None, "a name")
        self._take(lambda token: token == ":=", ":=")
        if self.tokens[self.at][0] not in SIDES:
            rule: Boolean | Attention = self._boolean("i")
        else:
            side = self._take(lambda token: token in SIDES, "leftmost or rightmost")
            self._take(lambda token: token == "[", "[")
            mask = self._take(lambda token: token in MASKS, "a mask (none, j<i, j<=i, j>i or j>=i)")
            self._take(lambda token: token == ",", ",")
            score = self._boolean("j")
            self._take(lambda token: token == "]", "]")
            value = self._boolean("j")
            self._take(lambda token: token == ":", ":")
            rule = Attention(side, mask, score, value, self._boolean("i", only=True))  # type: ignore[arg-type]
        self._take(lambda token: not token, "the end of the line")
        return Definition(name, rule)

    def _take(self, fits: Callable[[str], bool], wanted: str) -> str:
        token, place = self.tokens[self.at]
        if not fits(token):
            raise self._error(place, wanted)
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def _error(self, place: int, wanted: str) -> DeepwideError:
        here = (
            f"at {quoted(self.line[place:], 12)} (character {place + 1})" if self.line[place:].strip() else "at its end"
        )
        return DeepwideError(f"line {self.number} of the program cannot be read {here}: {wanted} is expected there.")

    def _boolean(self, usual: Literal["i", "j"], only: bool = False) -> Boolean:
        only = only or usual == "i"
        whole = self._conjunction(usual, only)
        while self.tokens[self.at][0] == "|":
            self.at += 1
            whole = combine("|", [whole, self._conjunction(usual, only)])
        return whole

    def _conjunction(self, usual: Literal["i", "j"], only: bool) -> Boolean:
        whole = self._literal(usual, only)
        while self.tokens[self.at][0] == "&":
            self.at += 1
            whole = combine("&", [whole, self._literal(usual, only)])
        return whole

    def _literal(self, usual: Literal["i", "j"], only: bool) -> Boolean:
        token, place = self.tokens[self.at]
        self.nested += 1
        if self.nested > DEEPEST:
            raise DeepwideError(f"line {self.number} of the program is nested more than {DEEPEST} levels deep.")
        self._take(bool, "a name, 0, 1, ! or (")
        if token == "!":
            result = combine("!", [self._literal(usual, only)])
        elif token == "(":
            result = self._boolean(usual, only)
            self._take(lambda token: token == ")", "an operator or )")
        elif token in ("0", "1"):
            result = ONE if token == "1" else ZERO
        elif NAME.fullmatch(token):
            var = self._variable()
            if var == "j" and only:
                raise self._error(place, "a vector at i, as there is no j in this part,")
            result = named(token, var or usual)
        else:
            raise self._error(place, "a name, 0, 1, ! or (")
        self.nested -= 1
        return result

    def _variable(self) -> Literal["i", "j"] | None:
        following = [token for token, _ in self.tokens[self.at : self.at + 3]]
        if len(following) == 3 and following[0] == "(" and following[1] in ("i", "j") and following[2] == ")":
            self.at += 3
            return "i" if following[1] == "i" else "j"
        return None
