"""Where each cell of a sweep stands, read from its folder and from nothing else."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError
from deepwide.run import FINISHED, UNREADABLE, RunFolder, has_result, reason, remaining
from deepwide.sweeping.forecast import Pace
from deepwide.sweeping.grid import Cell

STATES = {
    "waiting": "nobody has worked on it",
    "running": "a worker holds its lease",
    "interrupted": "its worker stopped in good order; it resumes from its checkpoint",
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


class StateReader:
    """Reads a sweep's state again and again: a cell that has finished is not read twice."""

    def __init__(self, name: str, cells: Sequence[Cell], runs: Path, seconds: Sequence[float] = (), workers: int = 1):
        self.name, self.cells, self.runs = name, cells, runs
        self._seconds = dict(zip((cell.id for cell in cells), seconds, strict=False))
        self._pace = Pace(workers)
        self._finished: dict[str, CellState] = {}

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
        known = self._finished.get(cell.id)
        if known is not None and has_result(self.runs / cell.id):
            return known
        state = cell_state(cell, self.runs)
        if state.state in FINISHED:
            self._finished[cell.id] = state
        return state


def cell_state(cell: Cell, runs: Path) -> CellState:
    """The state of a cell; an unreadable folder is a state, with its remedy as the error."""
    path = runs / cell.id
    if not path.exists():
        return _cell_state(cell, state="waiting")
    try:
        return _from_folder(RunFolder.open(path), cell)
    except (DeepwideError, OSError) as error:
        return _cell_state(cell, state=UNREADABLE, error=str(error))


def _from_folder(folder: RunFolder, cell: Cell) -> CellState:
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
    elif held is not None:
        state = "running" if _is_held(folder.path, held) else "lost"
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


def _is_held(folder: Path, held: Mapping[str, Any]) -> bool:
    try:
        return remaining(folder, held) > 0
    except OSError:  # a folder that we may only read: this machine's clock must do
        return remaining(folder, held, time.time()) > 0


def _counted(states: Sequence[CellState]) -> dict[str, int]:
    counts = Counter(state.state for state in states)
    return {state: counts[state] for state in STATES}
