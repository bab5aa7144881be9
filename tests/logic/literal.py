"""Temporal logic and B-RASP read literally, position by position: slow, and written apart from what they test."""

from collections.abc import Callable
from random import Random
from typing import Literal

from hypothesis import strategies as st

from deepwide.logic.brasp import MASKS, ONE, SIDES, ZERO, Attention, Boolean, Definition, Program, combine, named
from deepwide.logic.ltl import (
    BINARY,
    FALSE,
    LETTERS,
    TRUE,
    UNARY,
    Formula,
    conjunction,
    disjunction,
    letter,
    negation,
    temporal,
)


def true_at(f: Formula, word: str, i: int) -> bool:
    """The definition of each operator, word for word."""
    n = len(word)
    if f.op in ("true", "false"):
        return f.op == "true"
    if f.op == "!":
        return not true_at(f.args[0], word, i)
    if f.op == "&":
        return true_at(f.args[0], word, i) and true_at(f.args[1], word, i)
    if f.op == "|":
        return true_at(f.args[0], word, i) or true_at(f.args[1], word, i)
    if not f.args:
        return word[i] == f.op
    before, after = range(i), range(i + 1, n)
    reach = {"P<": before, "H<": before, "P": range(i + 1), "H": range(i + 1), "Y": range(max(i - 1, 0), i)}
    reach |= {"F>": after, "G>": after, "F": range(i, n), "G": range(i, n), "X": range(i + 1, min(i + 2, n))}
    if f.op in reach:
        values = [true_at(f.args[0], word, j) for j in reach[f.op]]
        return all(values) if f.op[0] in "HG" else any(values)
    g, h = f.args
    if f.op == "S<":
        return any(true_at(h, word, j) and all(true_at(g, word, k) for k in range(j + 1, i)) for j in before)
    if f.op == "S":
        return any(true_at(h, word, j) and all(true_at(g, word, k) for k in range(j + 1, i + 1)) for j in range(i + 1))
    if f.op == "U>":
        return any(true_at(h, word, j) and all(true_at(g, word, k) for k in range(i + 1, j)) for j in after)
    assert f.op == "U"
    return any(true_at(h, word, j) and all(true_at(g, word, k) for k in range(i, j)) for j in range(i, n))


def formulas(
    alphabet: str = "ab", ops: tuple[str, ...] = UNARY + BINARY, leaves: int = 6
) -> st.SearchStrategy[Formula]:
    """Random formulas over an alphabet with some of the temporal operators."""
    atoms = st.sampled_from([letter(name) for name in alphabet] + [TRUE, FALSE])

    def larger(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        unary = [st.builds(lambda f, op=op: temporal(op, f), inner) for op in ops if op in UNARY]
        binary = [st.builds(lambda f, g, op=op: temporal(op, f, g), inner, inner) for op in ops if op in BINARY]
        boolean = [
            st.builds(negation, inner),
            st.builds(conjunction, inner, inner),
            st.builds(disjunction, inner, inner),
        ]
        return st.one_of(*unary, *binary, *boolean)

    return st.recursive(atoms, larger, max_leaves=leaves)


def run_literally(program: Program, word: str) -> dict[str, list[bool]]:
    """Every vector of a program on one word, by the definition."""
    n = len(word)
    vectors = {f"Q_{name}": [letter == name for letter in word] for name in LETTERS}

    def value(part: Boolean, i: int, j: int) -> bool:
        match part.op:
            case "0" | "1":
                return part.op == "1"
            case "name":
                return vectors[part.name][i if part.var == "i" else j]
            case "!":
                return not value(part.args[0], i, j)
            case "&":
                return all(value(arg, i, j) for arg in part.args)
        return any(value(arg, i, j) for arg in part.args)

    allowed: dict[str, Callable[[int, int], bool]] = {
        "none": lambda _i, _j: True,
        "j<i": lambda i, j: j < i,
        "j<=i": lambda i, j: j <= i,
        "j>i": lambda i, j: j > i,
        "j>=i": lambda i, j: j >= i,
    }
    for each in program.definitions:
        rule = each.rule
        if not isinstance(rule, Attention):
            vectors[each.name] = [value(rule, i, i) for i in range(n)]
            continue
        vector = []
        for i in range(n):
            candidates = [j for j in range(n) if allowed[rule.mask](i, j) and value(rule.score, i, j)]
            if not candidates:
                vector.append(value(rule.default, i, i))
            else:
                j = min(candidates) if rule.side == "leftmost" else max(candidates)
                vector.append(value(rule.value, i, j))
        vectors[each.name] = vector
    return vectors


def answer(program: Program, word: str) -> bool:
    """A program's answer on one word."""
    return run_literally(program, word)[program.definitions[-1].name][0 if program.at == "first" else -1]


def programs(alphabet: str = "ab", most: int = 4) -> st.SearchStrategy[Program]:
    """Random programs; drawn by number, which is quicker than by parts."""
    return st.integers(0, 2**32).map(lambda seed: random_program(Random(seed), alphabet, most))


def random_program(random: Random, alphabet: str, most: int) -> Program:
    """A program with up to so many definitions."""
    names = [f"Q_{name}" for name in alphabet]
    definitions = []

    def boolean(variables: str, leaves: int = 3) -> Boolean:
        if leaves == 1 or random.random() < 0.3:
            var: Literal["i", "j"] = "i" if random.choice(variables) == "i" else "j"
            return random.choice([named(name, var) for name in names] * 3 + [ZERO, ONE])
        if random.random() < 0.3:
            return combine("!", [boolean(variables, leaves)])
        return combine(random.choice("&|"), [boolean(variables, leaves - 1), boolean(variables, 1)])

    for number in range(random.randint(1, most)):
        rule: Boolean | Attention = boolean("i")
        if random.random() < 0.75:
            side, mask = random.choice(SIDES), random.choice(MASKS)
            rule = Attention(side, mask, boolean("ijj"), boolean("ijj"), boolean("i"))
        definitions.append(Definition(f"R{number}", rule))
        names.append(f"R{number}")
    return Program(tuple(definitions), random.choice(("first", "last")))
