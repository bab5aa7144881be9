"""What a careful reader of a fitted surface must be told: terms the runs do not show, runs that decide alone."""

from collections.abc import Sequence

import numpy as np

from deepwide.arrays import Floats, Integers
from deepwide.fitting.robust import EXPONENTS, Problem, minimise

SAME = 0.02  # sizes closer than 2% count as one
FEW = 5
SEEN = 1e-3  # a term that never makes this share of the loss is not seen
EXAMINED = 12  # the units of most leverage are left out one by one


def distinct(logs: Floats) -> int:
    """How many different sizes, given their logarithms.

    >>> distinct(np.log([100, 101, 200]))
    2
    """
    ordered = np.sort(logs)
    found, last = 0, -np.inf
    for value in ordered:
        if value - last > SAME:
            found, last = found + 1, value
    return found


def unseen(problem: Problem, theta: Floats, share: Floats, names: Sequence[str]) -> list[str]:
    """Terms whose coefficient went to zero or whose exponent went to a limit."""
    terms = len(problem.x)
    low, high = problem.bounds
    gone = [
        f"{names[i]} went to zero: these runs do not show its term" + (", and its exponent says nothing" if i else "")
        for i in range(terms + 1)
        if share[i].max() < SEEN
    ]
    stopped = [
        f"{names[i]} stopped at {theta[i]:g}, the end of the range {EXPONENTS[0]:g} to {EXPONENTS[1]:g}: "
        "these runs do not determine it"
        for i in range(terms + 1, 2 * terms + 1)
        if theta[i] <= low[i] or theta[i] >= high[i]
    ]
    return gone + stopped


def alike(x: Floats, columns: Sequence[str]) -> list[str]:
    """Sizes with few different values, and pairs that go together in every run."""
    counts = [(name, distinct(column)) for name, column in zip(columns, x, strict=True)]
    said = [f"only {n} different {name}: their exponent hangs on single values" for name, n in counts if n < FEW]
    together = np.atleast_2d(np.corrcoef(x))
    for i, j in zip(*np.triu_indices(len(x), 1), strict=True):
        if abs(together[i, j]) > 0.99:
            said.append(
                f"{columns[int(i)]} and {columns[int(j)]} go together in all runs: their terms cannot be told apart"
            )
    return said


def influence(
    problem: Problem, theta: Floats, units: Integers, leverage: Floats, errors: Floats, names: Sequence[str]
) -> list[str]:
    """Units (runs of one cell or shape) without which an exponent moves by more than its standard error.

    Leverage only picks whom to leave out; each of those is left out and the fit repeated.
    """
    total = np.bincount(units, weights=leverage)
    examined = np.argsort(-total)[:EXAMINED]
    weights = (units[None] != examined[:, None]).astype(float)
    terms = len(problem.x)
    without = minimise(problem, np.tile(theta, (len(examined), 1)), weights).theta
    moved = np.abs(without - theta)[:, terms + 1 :] / np.maximum(errors[terms + 1 :], 1e-6)
    one, exponent = np.unravel_index(int(moved.argmax()), moved.shape)
    if moved[one, exponent] <= 1:
        return []
    members = np.flatnonzero(units == examined[one])
    rows = f"row {members[0] + 1}" + (f" and its {len(members) - 1} fellows" if len(members) > 1 else "")
    others = int((moved.max(axis=1) > 1).sum()) - 1
    return [
        f"without {rows}, {names[terms + 1 + int(exponent)]} moves by {moved[one, exponent]:.1f} of its standard errors"
        + (f", and {others} others move one by more than 1" if others else "")
        + ": the fit hangs on single runs"
    ]
