"""Where each cell of a sweep stands, read from its folder and from nothing else, and how long the rest will take.

A cell takes its FLOPs over the measured speed of a matrix product of its width, plus overhead.
Training is slower than its matrix products. Until runs of this sweep have finished, half of that speed is assumed and a
fixed overhead per layer; then the median of what those runs really took corrects the estimate.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError
from deepwide.run import FINISHED, UNREADABLE, RunFolder, UnreadableRun, read_lease, reason, remaining
from deepwide.sweeping.grid import Cell
from deepwide.sweeping.trainers import Cost, trainer_of

ROWS = 512
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# In a process of its own: how many threads a library uses for a product is fixed when it is loaded.
MEASURE = f"""
import sys, time
import numpy as np
for width in map(int, sys.argv[1:]):
    a, b = np.ones(({ROWS}, width), np.float32), np.ones((width, 4 * width), np.float32)
    best, began = 1e9, time.perf_counter()
    while best == 1e9 or time.perf_counter() - began < 0.02:
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    print(2.0 * {ROWS} * width * 4 * width / best)
"""
OBSERVED_SHARE, OBSERVED_SECONDS = 0.02, 2.0  # of the work, and of time: less says nothing about the pace


def expected_seconds(cells: Sequence[Cell], runs: Path, threads: int = 1) -> list[float]:
    """Seconds per cell on this machine, with so many threads."""
    if not cells:
        return []
    from deepwide.training import LAYER_SECONDS, SHARE_OF_PEAK, STEP_SECONDS

    speed = _speeds(sorted({_measured_width(cell) for cell in cells}))
    guesses = []
    for cell in cells:
        products = cell.cost.train_flops / (SHARE_OF_PEAK * threads * speed[_measured_width(cell)])
        guesses.append(products + cell.cost.steps * (STEP_SECONDS + LAYER_SECONDS * cell.cost.depth))
    ratios = []
    for cell, seconds in zip(cells, guesses, strict=True):
        with contextlib.suppress(UnreadableRun, OSError):  # the run's own matter; the others can be forecast
            held = read_lease(runs / cell.id)
            if held and held["ended"] == "done" and held["number"] == 1 and held.get("worked"):
                ratios.append(held["worked"] / seconds)
    factor = statistics.median(ratios) if ratios else 1.0
    return [factor * seconds for seconds in guesses]


def cells_per_worker(seconds: Sequence[float], worth_seconds: float = 20.0) -> int:
    """How many cells one worker process takes in turn: small ones share the seconds that starting Python costs.

    >>> cells_per_worker([300.0]), cells_per_worker([5.0, 5.0]), cells_per_worker([0.1])
    (1, 4, 16)
    """
    mean = statistics.fmean(seconds) if seconds else 0.0
    return max(1, min(16, int(worth_seconds / max(mean, 0.1))))


class Pace:
    """The time left of work that several workers share, corrected by how fast it has been done since the first look."""

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.workers, self._clock = workers, clock
        self._first: tuple[float, float] | None = None

    def seconds_left(self, work_left: float) -> float:
        """Seconds until `work_left` expected worker-seconds are done.

        >>> times = iter([0.0, 10.0])
        >>> pace = Pace(workers=2, clock=lambda: next(times))
        >>> pace.seconds_left(100.0), pace.seconds_left(90.0)  # 10 s of work took 10 s: half as fast as assumed
        (50.0, 90.0)
        """
        now = self._clock()
        if self._first is None:
            self._first = work_left, now
        done, elapsed = self._first[0] - work_left, now - self._first[1]
        if elapsed >= OBSERVED_SECONDS and done > OBSERVED_SHARE * self._first[0]:
            return work_left * elapsed / done
        return work_left / self.workers


def _speeds(widths: Sequence[int]) -> dict[int, float]:
    """FLOPs per second of one thread on the products of a block, by width."""
    command = [sys.executable, "-c", MEASURE, *map(str, widths)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True, timeout=120)
    return dict(zip(widths, map(float, done.stdout.split()), strict=True))


def _measured_width(cell: Cell) -> int:
    """Its width, or a neighbour that many cells share: a power of two between 16 and 2048."""
    return int(1 << min(11, max(4, round(cell.cost.width).bit_length() - 1)))


STATES = {
    "waiting": "nobody has worked on it",
    "running": "a worker holds its lease",
    "interrupted": "its worker stopped in good order, or for the reason noted; it resumes from its checkpoint",
    "lost": "its worker died or was cut off; the next worker takes over",
    "disk_full": "there was no room; it resumes from its checkpoint when there is",
    UNREADABLE: "its folder needs a person: see the error",
    "done": "trained to its end",
    "diverged": "the loss left the finite numbers or rose far above its start",
    "oom": "it does not fit in memory",
    "failed": "the trainer raised an error: see the error",
}
SETTLED = (*FINISHED, UNREADABLE)  # no worker will take these up
BAD = ("failed", "oom", UNREADABLE)


class CellState(Answer):
    """One cell: what it is, where it stands, what it counts."""

    id: str
    name: str
    state: str  # one of STATES
    varied: dict[str, Any] = Field(default_factory=dict)
    seed: int = 0
    step: int | None = None
    steps: int = 0
    loss: float | None = None
    checkpoint: int | None = None  # the step of the newest
    seconds: float = 0.0  # worked on it by owners that have left
    owner: str = ""
    number: int = 0  # how often it was leased
    error: str = ""
    depth: int = 0
    width: int = 0
    block_params: int = 0
    total_params: int = 0
    tokens: int = 0
    train_flops: int = 0
    train_bytes: int = 0

    @property
    def share_left(self) -> float:
        """How much of the training is still to be done: 1 before the first step, 0 when it has finished."""
        if self.state in SETTLED:
            return 0.0
        return 1.0 - min(1.0, (self.step or 0) / self.steps) if self.steps else 1.0


class SweepState(Answer):
    """Where a sweep stands."""

    name: str
    runs: str
    cells: tuple[CellState, ...]
    counts: dict[str, int]  # of cells by state
    left: int  # cells that a worker would still take up
    expected_seconds: float | None = None  # time left; None when it was not estimated
    started: int = 0  # workers that this call started
    notes: tuple[Note, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell; what was varied in columns of its own."""
        rows = []
        for cell in self.cells:
            plain = cell.model_dump(mode="json", exclude={"varied"})
            rows.append(plain | {key: value for key, value in cell.varied.items() if key not in plain})
        return rows

    def note(self, code: str) -> Note | None:
        """The note of this code, if there is one."""
        return next((note for note in self.notes if note.code == code), None)

    @property
    def failed(self) -> bool:
        """Whether any cell failed, ran out of memory or is unreadable."""
        return any(self.counts.get(state) for state in BAD)


FILES = ("config.json", "metrics.jsonl", "lease.json", "result.json")
Signature = tuple[tuple[int, int] | None, ...]
ABSENT: Signature = (None,) * len(FILES)


def signature(folder: Path | str) -> Signature:
    """Times and sizes of a run's files: while they are the same, there is nothing new in it."""
    return tuple(_stamp(f"{folder}/{file}") for file in FILES)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


class StateReader:
    """Reads a sweep's state again and again: a cell is read when its files have changed, or while it is running.

    (A lease expires without a write.) Fifty thousand cells that rest cost four calls of `stat` each.
    """

    def __init__(self, name: str, cells: Sequence[Cell], runs: Path, seconds: Sequence[float] = (), workers: int = 1):
        self.name, self.cells, self.runs = name, cells, runs
        self._known: dict[str, tuple[Signature, CellState]] = {}
        self.forecast(seconds, workers)

    def forecast(self, seconds: Sequence[float], workers: int) -> None:
        """From now on, say how long the rest takes so many workers: `seconds` are those of each cell."""
        self._seconds = dict(zip((cell.id for cell in self.cells), seconds, strict=False))
        self._pace = Pace(workers)

    def read(self, *, started: int = 0, notes: Sequence[Note] = ()) -> SweepState:
        """The state now."""
        states = tuple(map(self._read, self.cells))
        left = sum(state.state not in SETTLED for state in states)
        expected = None if left else 0.0
        if left and self._seconds:
            work = sum(self._seconds[state.id] * state.share_left for state in states)
            expected = self._pace.seconds_left(work)
        return SweepState(
            name=self.name,
            runs=str(self.runs),
            cells=states,
            counts={state: count for state, count in _counted(states).items() if count},
            left=left,
            expected_seconds=expected,
            started=started,
            notes=tuple(notes),
        )

    def _read(self, cell: Cell) -> CellState:
        # Before the files are read: a change meanwhile is seen by the next look.
        now = signature(f"{self.runs}/{cell.id}")
        before = self._known.get(cell.id)
        if before is not None and before[0] == now and before[1].state not in ("running", UNREADABLE):
            return before[1]
        state = cell_state(cell, self.runs)
        self._known[cell.id] = now, state
        return state


def cell_state(cell: Cell, runs: Path, now: float | None = None) -> CellState:
    """The state of a cell; an unreadable folder is a state, with its remedy as the error.

    Whether a lease has expired is asked of the file system's clock, which touches the folder's lock; a reader that must
    not write gives the time itself, as `now`.
    """
    path = runs / cell.id
    try:
        if not path.exists():
            return _cell_state(cell, state="waiting")
        return _from_folder(RunFolder.open(path), cell, now)
    except (DeepwideError, OSError) as error:
        return _cell_state(cell, state=UNREADABLE, error=str(error))


def run_state(path: Path, now: float | None = None) -> CellState:
    """The state of a run by its folder alone, where no spec says what it is; it is named by its sizes."""
    try:
        folder = RunFolder.open(path)
        cost = (
            Cost(**cast(Mapping[str, int], folder.counts))
            if folder.counts
            else trainer_of(folder.config).cost(folder.config)
        )
        rate = folder.config.get("lr", (folder.config.get("optimiser") or {}).get("lr"))
        varied = {"depth": cost.depth, "width": cost.width} | ({} if rate is None else {"lr": rate})
        seed = folder.config.get("seed", 0)
        cell = Cell(folder.id, varied | {"seed": seed}, seed, folder.config, {}, cost)
        return _from_folder(folder, cell, now)
    except (ValueError, OSError, TypeError, AttributeError) as error:  # whatever a stranger's config holds
        return CellState(id=path.name, name=path.name, state=UNREADABLE, error=str(error))


def _from_folder(folder: RunFolder, cell: Cell, now: float | None) -> CellState:
    held, result = folder.lease_record(), folder.result()
    last = folder.last_record()
    saved = folder.checkpoint_steps()
    state, error = "waiting", ""
    if result is not None:
        state, error = result["status"], reason(result)
        last = last | result
    elif held is not None and held["ended"] == UNREADABLE:
        state, error = UNREADABLE, str(held.get("note", ""))
    elif held is not None and held["ended"]:
        state = "disk_full" if held["ended"] == "disk_full" else "interrupted"
        error = str(held.get("note", ""))
    elif held is not None:
        state = "running" if _is_held(folder.path, held, now) else "lost"
    step, loss = last.get("step"), last.get("validation_loss", last.get("loss"))
    return _cell_state(
        cell,
        state=state,
        step=step if isinstance(step, int) else None,
        loss=loss if isinstance(loss, int | float) else None,
        checkpoint=saved[-1] if saved else None,
        seconds=held.get("worked", 0.0) if held else 0.0,
        owner=held["owner"] if held and state == "running" else "",
        number=held["number"] if held else 0,
        error=error,
    )


def _cell_state(cell: Cell, **fields: Any) -> CellState:
    varied = {key: value for key, value in cell.varied.items() if key != "seed"}
    return CellState(id=cell.id, name=cell.name, varied=varied, seed=cell.seed, **cell.cost._asdict(), **fields)


def _is_held(folder: Path, held: Mapping[str, Any], now: float | None) -> bool:
    try:
        return remaining(folder, held, now) > 0
    except OSError:  # a folder that we may only read: this machine's clock must do
        return remaining(folder, held, time.time()) > 0


def _counted(states: Sequence[CellState]) -> dict[str, int]:
    counts = Counter(state.state for state in states)
    return {state: counts[state] for state in STATES}
