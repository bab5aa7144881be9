"""A folder of runs read again and again, for people who watch: only what has changed, and nothing is written.

A run is read again when one of its files has another time or size than at the last look, and while it is running,
because a lease expires without a write. Ten thousand runs that rest cost four calls of `stat` each.
"""

import os
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from deepwide.answers import Answer
from deepwide.run import UNREADABLE
from deepwide.sweeping.grid import Cell
from deepwide.sweeping.state import (
    ABSENT,
    SETTLED,
    STATES,
    CellState,
    Signature,
    SweepState,
    cell_state,
    run_state,
    signature,
)


class SweepChange(Answer):
    """What is new about a sweep since the last look, and where it stands."""

    name: str
    total: int  # cells that are known so far
    unread: int  # folders that this look has not come to
    counts: dict[str, int]  # of cells by state
    left: int  # cells that a worker would still take up
    expected_seconds: float | None  # time left at the pace of the finished runs; None where that says nothing
    cells: tuple[CellState, ...]  # those that are new or different
    gone: tuple[str, ...] = ()  # ids of cells whose folders were removed


class _Known(NamedTuple):
    signature: Signature
    state: CellState


class RunsReader:
    """Where each run in a folder stands; with the cells of a spec, also those that nobody has begun."""

    def __init__(
        self, runs: Path, cells: Sequence[Cell] = (), *, name: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self.runs, self.name = runs, name or runs.name
        self._cells = {cell.id: cell for cell in cells}
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._counts: Counter[str] = Counter()
        self._pending: deque[str] = deque()
        self._folders: set[str] = set()
        self._gone: list[str] = []

    def look(self, seconds: float | None = None) -> SweepChange:
        """What has changed; after so many seconds it stops, and the next look continues there."""
        deadline = None if seconds is None else time.monotonic() + seconds
        if not self._pending:
            self._list()
        changed = []
        while self._pending:
            state = self._read(self._pending.popleft())
            if state is not None:
                changed.append(state)
            if deadline is not None and time.monotonic() > deadline:
                break
        gone, self._gone = tuple(self._gone), []
        left = sum(count for state, count in self._counts.items() if state not in SETTLED)
        return SweepChange(
            name=self.name,
            total=len(self._known),
            unread=len(self._pending),
            counts={state: self._counts[state] for state in STATES if self._counts[state]},
            left=left,
            expected_seconds=self._expected_seconds() if left else 0.0,
            cells=tuple(changed),
            gone=gone,
        )

    def state(self) -> SweepState:
        """Everything that is known, as one answer; the cells of the spec first, in its order, then the others by id."""
        last = self.look()
        order = [*self._cells, *sorted(self._known.keys() - self._cells.keys())]
        return SweepState(
            name=self.name,
            runs=str(self.runs),
            cells=tuple(self._known[name].state for name in order if name in self._known),
            counts=last.counts,
            left=last.left,
            expected_seconds=last.expected_seconds,
        )

    def _list(self) -> None:
        """Begin a look: every folder and every cell is to be read."""
        try:
            with os.scandir(self.runs) as entries:
                self._folders = {e.name for e in entries if not e.name.startswith(".") and e.is_dir()}
        except OSError:
            self._folders = set()
        names = [*self._cells, *sorted(self._folders - self._cells.keys())]
        for name in self._known.keys() - set(names):
            self._forget(name)
        self._pending.extend(names)

    def _forget(self, name: str) -> None:
        self._counts[self._known.pop(name).state.state] -= 1
        self._gone.append(name)

    def _read(self, name: str) -> CellState | None:
        """The state of one run if it is new or different."""
        # Before the files are read: a change meanwhile is seen by the next look.
        stamps = signature(f"{self.runs}/{name}") if name in self._folders else ABSENT
        cell, known = self._cells.get(name), self._known.get(name)
        if cell is None and stamps == ABSENT:  # a folder that is no run
            if known is not None:
                self._forget(name)
            return None
        if known is not None and known.signature == stamps and known.state.state != "running":
            return None
        path, now = self.runs / name, self._clock()
        state = run_state(path, now) if cell is None else cell_state(cell, self.runs, now)
        self._known[name] = _Known(stamps, state)
        if known is not None:
            if state == known.state:
                return None
            self._counts[known.state.state] -= 1
        self._counts[state.state] += 1
        return state

    def _expected_seconds(self) -> float | None:
        """By the median time per FLOP of the runs that finished, for as many workers as run now."""
        states = [known.state for known in self._known.values()]
        rates = [
            state.seconds / state.train_flops
            for state in states
            if state.state == "done" and state.number == 1 and state.seconds and state.train_flops
        ]
        running = self._counts["running"]
        if not rates or not running:
            return None
        work = sum(state.train_flops * state.share_left for state in states if state.state != UNREADABLE)
        return statistics.median(rates) * work / running
