"""Losses that the other runs do not expect are left out: runs that did not train, typing errors, other settings.

Noise is normal to the model, so that one loss a tenth too high in a corner of the table would bend the whole bowl: the
best depth came out narrow and wrong in four of ten such tables.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.fitting.runs import Counting, Runs
from deepwide.fitting.words import note
from deepwide.quantities import Floats, Integers, Numbers

if TYPE_CHECKING:
    from deepwide.fitting.joint_answer import JointFit

FAILED = 0.4  # ln of a loss above what others expect, from which a run has not trained
FAILED_ERRORS = 10.0  # and this many of their standard deviations
MOST_FAILED = 0.2  # of the runs: if there are more, the others are not what is usual
REWEIGHTED = 30  # times, towards least absolute deviations
SUSPECT = 3.5  # times the usual residual, from which a run is left out to see
SUSPECTS = 3
STANDS_OUT = 6.0  # standard deviations of what the other runs expect
MOST_STANDING_OUT = 3
LEAST_LEFT = 0.02  # of a run's own noise that a fit leaves in its residual
MANY_RUNS = 5000  # among which one loss hardly matters
DRAWS = 200  # of a fit without a suspect

Again = Callable[[Runs, int], "JointFit"]  # the same fit to other runs, with so many draws


class Suspect(NamedTuple):
    """A run whose loss is not what a fit of the others expects."""

    row: int
    depth: float
    size: float
    loss: float
    expected: float
    errors: float  # standard deviations off


def trained(runs: Runs, counting: Counting) -> tuple[Integers, list[Note]]:
    """The rows of runs that trained, and a note that names the worst of the others."""
    size = runs.size(counting)
    failed = _failed(runs, size)
    rows = np.flatnonzero(~failed)
    if not failed.any():
        return rows, []
    worst = int(np.argmax(np.where(failed, runs.loss, 0.0)))
    where = {"depth": float(runs.depth[worst]), "size": float(size[worst]), "loss": float(runs.loss[worst])}
    return rows, [note("failed-by-loss", count=int(failed.sum()), **where)]


def _failed(runs: Runs, size: Floats) -> Numbers:
    """Runs that finished with a loss so far above what the others expect that they did not train.

    The others' line in ln size, ln depth and ln tokens is by least absolute deviations, which such runs do not move.
    """
    free = ~runs.diverged
    log = np.log(np.where(free, runs.loss, 1.0))
    X = _columns(runs, size, curved=False)
    weights = free.astype(float)
    for _ in range(REWEIGHTED):
        off = log - X @ np.linalg.lstsq(X * np.sqrt(weights)[:, None], log * np.sqrt(weights), rcond=1e-9)[0]
        weights = free / np.maximum(np.abs(off), 1e-6)
    spread = 1.4826 * float(np.median(np.abs(off[free]))) if free.any() else 0.0
    failed = free & (off > max(FAILED, FAILED_ERRORS * spread))
    return failed if failed.sum() <= MOST_FAILED * len(runs) else np.zeros_like(failed)


def standing_out(fit: "JointFit", runs: Runs, again: Again) -> list[Suspect]:
    """Runs whose loss is not what a fit of the others expects (externally studentised residuals).

    A fit bends towards such a loss, and two of them hide each other: suspects are left out one after the other, and
    all that were are judged by the last fit; if they do not stand out together, by the fit before.
    """
    if len(runs) > MANY_RUNS:
        return []
    left, last = np.arange(len(runs)), fit
    rows: list[int] = []
    fits: list[JointFit] = []
    while len(rows) < MOST_STANDING_OUT and (without := _without_a_suspect(last, runs, left, again)) is not None:
        row, last = without
        left = left[left != row]
        rows, fits = [*rows, row], [*fits, last]
    while rows:
        suspects = [_judged(fits[-1], runs, row) for row in rows]
        if min(suspect.errors for suspect in suspects) > STANDS_OUT:
            return suspects
        rows, fits = rows[:-1], fits[:-1]
    return []


def about_standing_out(fit: "JointFit", suspects: list[Suspect], at: float) -> list[Note]:
    """What was left out, and what `fit`, which had it, says at the others' largest size."""
    best = None if fit.declined else fit.best_depth(at)[0]
    stated = (best.value, best.low, best.high) if best else (None, None, None)
    return [
        note("stands-out", depth=each.depth, size=each.size, loss=each.loss, expected=each.expected,
             errors=each.errors, at=at, best=stated[0], low=stated[1], high=stated[2])
        for each in suspects
    ]  # fmt: skip


def _judged(fit: "JointFit", runs: Runs, row: int) -> Suspect:
    run = runs.select([row])
    depth, size, loss = (float(column[0]) for column in (run.depth, run.size(fit.counting), run.loss))
    expected = fit.expected(run)
    return Suspect(row, depth, size, loss, expected, abs(math.log(loss / expected)) / fit.error(run))


def _without_a_suspect(fit: "JointFit", runs: Runs, left: Integers, again: Again) -> tuple[int, "JointFit"] | None:
    """Of the runs that are farthest off, the one without which the noise is least, and the fit without it."""
    suspects = list(dict.fromkeys([*_by_the_fit(fit, runs, left), *_by_a_parabola(runs.select(left), fit.counting)]))
    without = []
    for row in left[suspects].tolist():
        try:
            without.append((row, again(runs.select(left[left != row]), DRAWS)))
        except DeepwideError:
            return None
    return min(without, key=lambda pair: pair[1].run_spread, default=None)


def _by_the_fit(fit: "JointFit", runs: Runs, left: Integers) -> list[int]:
    """By what the others expect: a fit goes through a corner that is far off, and leaves it no residual."""
    finished = ~runs.diverged[left]
    off = finished * [
        abs(run.residual) / max(1 - run.leverage, LEAST_LEFT) / fit.falling(run.tokens) for run in fit.residuals
    ]
    usual = 1.4826 * np.median(off[finished])  # from the median to the standard deviation of a normal value
    return np.argsort(-off)[:SUSPECTS].tolist() if off.max() > SUSPECT * usual else []


def _by_a_parabola(runs: Runs, counting: Counting) -> list[int]:
    """By the least squares of a parabola in ln size and ln depth, which does not bend as far as the model does."""
    X = _columns(runs, runs.size(counting), curved=True)
    free = ~runs.diverged
    Q, R = np.linalg.qr(X[free])
    if free.sum() < X.shape[1] + 3 or np.abs(np.diag(R)).min() < 1e-6:
        return []
    y = np.log(runs.loss[free])
    off, share = y - Q @ (Q.T @ y), np.maximum(1 - (Q**2).sum(axis=1), LEAST_LEFT)
    others = np.maximum((off @ off - off**2 / share) / (len(y) - X.shape[1] - 1), 1e-12)
    errors = np.zeros(len(free))
    errors[free] = np.abs(off) / np.sqrt(others * share)
    return np.argsort(-errors)[:SUSPECTS].tolist() if errors.max() > SUSPECT else []


def _columns(runs: Runs, size: Floats, *, curved: bool) -> Floats:
    """ln size, ln depth and ln tokens, standardised, with squares and, where curved, a bowl."""
    s, x = np.log(size), np.log(runs.depth)
    columns = [s, x]
    if runs.several_lengths and not np.isnan(runs.tokens).any():
        columns.append(np.log(runs.tokens))
    columns = [(column - column.mean()) / max(float(column.std()), 1e-9) for column in columns]
    s, x = columns[:2]
    more = [s**2, *(t**2 for t in columns[2:]), *([x**2, s * x] if curved else [])]
    return np.column_stack([np.ones_like(s), *columns, *more])
