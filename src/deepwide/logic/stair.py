"""STAIR_k: the words over a, b, c that contain k letters a in a row once all c are deleted (Etessami & Wilke 2000)."""

from deepwide.errors import at_least_one
from deepwide.logic.games import Direction
from deepwide.logic.ltl import TRUE, Formula, conjunction, letter, temporal


def stair_expression(k: int) -> str:
    """The language as a regular expression: Σ*(a c*)^(k−1) a Σ*."""
    at_least_one(k=k)
    return f".*{'ac*' * (k - 1)}a.*"


def stair_formula(k: int, direction: Direction) -> Formula:
    """A formula for STAIR_k: of depth k in one direction, ⌊k/2⌋ + 1 in both, where the middle a looks both ways.

    >>> str(stair_formula(2, "past")), str(stair_formula(3, "both"))
    ('P (a & c S< a)', 'P (a & c S< a & c U> a)')
    """
    at_least_one(k=k)
    before = {"past": k - 1, "future": 0, "both": (k - 1) // 2}[direction]
    middle = conjunction(letter("a"), _steps(before, "S<"), _steps(k - 1 - before, "U>"))
    return temporal("F" if direction == "future" else "P", middle)


def _steps(count: int, op: str) -> Formula:
    """So many letters a on one side, with only c between them."""
    f = TRUE
    for _ in range(count):
        f = temporal(op, letter("c"), conjunction(letter("a"), f))
    return f
