"""Where each cell stands, read from its folder and from nothing else."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.run import RunFolder, remaining
from deepwide.run.checkpoint import steps
from deepwide.run.layout import CHECKPOINTS, METRICS
from deepwide.sweeping.grid import Cell

OVER = ("done", "diverged", "oom", "failed")
STATES = {
    "waiting": "nobody has worked on it",
    "running": "a worker holds its lease",
    "interrupted": "its worker stopped in good order; it goes on from its checkpoint",
    "lost": "its worker died or was cut off; whoever comes next takes over",
    "disk_full": "there was no room; it goes on from its checkpoint when there is",
    "unreadable": "its folder needs a person: see the note",
    "done": "finished",
    "diverged": "the loss left the finite numbers or rose far above its start",
    "oom": "it does not fit in memory",
    "failed": "the trainer raised an error: see the note",
}


@dataclass(frozen=True)
class CellStatus:
    """One line of the status table."""

    id: str
    name: str
    state: str
    step: int | None = None
    loss: float | None = None
    checkpoint: int | None = None
    owner: str = ""
    number: int = 0
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """As a plain object."""
        return asdict(self)


def status_of(cell: Cell, runs: Path) -> CellStatus:
    """The state of a cell; an unreadable folder is a state, with its remedy as the note."""
    path = runs / cell.id
    if not path.exists():
        return CellStatus(cell.id, cell.name, "waiting")
    try:
        return _status(RunFolder.open(path), cell)
    except DeepwideError as error:
        return CellStatus(cell.id, cell.name, "unreadable", note=str(error))


def _status(folder: RunFolder, cell: Cell) -> CellStatus:
    held, ended = folder.lease_record(), folder.result()
    last = last_record(folder.path / METRICS)
    saved = steps(folder.path / CHECKPOINTS)
    state, note = "waiting", ""
    if ended is not None:
        state, note = ended["status"], str(ended.get("error") or ended.get("why") or "")
        last = last | ended
    elif held is not None and held["ended"] == "unreadable":
        state, note = "unreadable", str(held.get("note", ""))
    elif held is not None and held["ended"]:
        state = "disk_full" if held["ended"] == "disk_full" else "interrupted"
    elif held is not None:
        # Without touching the file system its clock is not known; ours will do for a table.
        state = "running" if remaining(folder.path, held) > 0 else "lost"
    return CellStatus(
        id=folder.id,
        name=cell.name,
        state=state,
        step=last.get("step"),
        loss=last.get("validation_loss", last.get("loss")),
        checkpoint=saved[-1] if saved else None,
        owner=held["owner"] if held and state == "running" else "",
        number=held["number"] if held else 0,
        note=note,
    )


def last_record(path: Path, most: int = 8192) -> dict[str, Any]:
    """The last whole record of a JSON-lines file, read from its end; empty when there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            tail = file.read()
    except FileNotFoundError:
        return {}
    for line in reversed(tail.split(b"\n")[:-1]):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            return record
    return {}
