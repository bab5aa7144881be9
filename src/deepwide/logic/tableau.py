"""The automaton of a formula with past and future operators.

In strict operators, let the formula have m sinces and n untils. Reading from the left, the value of a since at the next
position follows from values at this one. The value of an until here is guessed, and verified one letter later:
(f U> g)(i) = g(i+1) | f(i+1) & (f U> g)(i+1); at the last position all are false. So there is an unambiguous automaton
with at most 2^(m+n+1) states, and the subset construction makes it deterministic: at most 2^m states without untils, at
most 2^(2^(m+n+1)) with them. For future formulas it is deterministic from the right, and the subsets of its useful
states are the minimal automaton (Brzozowski 1962).
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepwide.errors import DeepwideError
from deepwide.logic.automata import Automaton, explore
from deepwide.logic.ltl import Formula, Place, in_strict_operators, subformulas
from deepwide.logic.words import check_alphabet

MOST_OPERATORS = 16  # different sinces and untils; 2^16 combinations of their values are tabulated per letter
Flags = NDArray[np.bool_]


def of_formula(f: Formula, alphabet: str, at: Place | None = None) -> Automaton:
    """The minimal automaton of the words of which a formula is true.

    >>> from deepwide.logic.ltl import parse
    >>> len(of_formula(parse("P(a & Y b)"), "ab"))
    3
    """
    alphabet, place = check_alphabet(alphabet, f.letters), at or f.reads_at
    strict = in_strict_operators(f)
    sinces, untils = ([part for part in subformulas(strict) if part.op == op] for op in ("S<", "U>"))
    if len(sinces) + len(untils) > MOST_OPERATORS:
        raise DeepwideError(
            f"the formula has {len(sinces) + len(untils)} different temporal operators: its automaton is built for at "
            f"most {MOST_OPERATORS}."
        )
    m, n = len(sinces), len(untils)
    tables = {letter: _table(strict, sinces, untils, letter) for letter in alphabet}
    past = 2**m - 1  # the bits of the sinces' values at the next position; then the untils' values here, then the root
    begun = -1

    @cache
    def successors(state: int, letter: str) -> frozenset[int]:
        """Reading a letter from one state of the unambiguous automaton."""
        needed, later, root = tables[letter]
        values = 0 if state == begun else state & past
        guesses = np.arange(2**n) << m | values
        if state == begun:
            if place == "first":
                guesses = guesses[root[guesses]]
        else:
            guesses = guesses[needed[guesses] == (state >> m) & (2**n - 1)]
        flag = root[guesses].astype(np.int64) if place == "last" else 1
        return frozenset((later[guesses] | guesses >> m << m | flag << (m + n)).tolist())

    def step(states: frozenset[int], letter: str) -> frozenset[int]:
        return frozenset().union(*(successors(state, letter) for state in states))

    def accepting(states: frozenset[int]) -> bool:
        return any(state != begun and state >> m == 1 << n for state in states)

    return explore(alphabet, frozenset({begun}), step, accepting).minimal


def _table(root: Formula, sinces: list[Formula], untils: list[Formula], letter: str) -> tuple[Any, Any, Flags]:
    """For all values of sinces and untils at a position with this letter.

    What the untils of the position before must be, what the sinces of the next position are, and the formula's value.
    """
    every = np.arange(2 ** (len(sinces) + len(untils)))
    values: dict[Formula, Flags] = {}
    for place, part in enumerate([*sinces, *untils]):
        values[part] = (every >> place & 1).astype(bool)
    for part in subformulas(root):
        args = [values[arg] for arg in part.args]
        match part.op:
            case "S<" | "U>":
                continue
            case "true" | "false":
                values[part] = np.full(len(every), part.op == "true")
            case "!":
                values[part] = ~args[0]
            case "&":
                values[part] = args[0] & args[1]
            case "|":
                values[part] = args[0] | args[1]
            case _:
                values[part] = np.full(len(every), part.op == letter)

    def neighbour(parts: list[Formula]) -> Any:
        total = np.zeros(len(every), dtype=np.int64)
        for place, part in enumerate(parts):
            f, g = part.args
            total |= (values[g] | (values[f] & values[part])).astype(np.int64) << place
        return total

    return neighbour(untils), neighbour(sinces), values[root]
