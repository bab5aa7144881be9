"""The report of a sweep: from its spec and runs, or from a folder of runs whatever made them."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deepwide import figures
from deepwide.errors import DeepwideError
from deepwide.quantities import plural, show_count, show_seconds
from deepwide.report.document import (
    MOST_DRAWN,
    MOST_ROWS,
    Attachment,
    Block,
    Facts,
    Notes,
    Report,
    Section,
    Table,
    draw,
)
from deepwide.run import FINISHED, UNFINISHED, UNREADABLE
from deepwide.sweeping import SweepState

BAD = (UNREADABLE, "failed", "oom", "diverged", "lost", "disk_full")  # what a person should look at, worst first
COLUMNS = {
    "id": "run", "name": "cell", "status": "state", "depth": "depth", "width": "width",
    "block_params": "block parameters", "tokens": "tokens", "lr": "learning rate", "seed": "seed", "step": "step",
    "loss": "loss", "error": "error",
}  # fmt: skip
Row = Mapping[str, Any]


def runs_report(folder: Path, rows: Sequence[Row], kind: str) -> Report:
    """Every run in a folder, as `run_rows` gives them, and the law that they follow."""
    finished = sum(row["status"] in FINISHED for row in rows)
    unfinished = sum(row["status"] == UNFINISHED for row in rows)
    document = Attachment("runs.json", _json(rows), "application/json")
    facts = [("runs", str(folder))]
    return _report(folder.resolve().name, rows, finished, unfinished, facts, folder, kind, document)


def sweep_report(state: SweepState, kind: str = "joint") -> Report:
    """Where each cell of a sweep stands, and the law that the finished ones give."""
    rows = [{"status" if key == "state" else key: value for key, value in row.items()} for row in state.rows()]
    finished = sum(row["status"] in FINISHED for row in rows)
    facts = [("runs", state.runs)]
    if state.left and state.expected_seconds is not None:
        facts.append(("time left", f"about {show_seconds(state.expected_seconds)} on this machine"))
    usable = [row for row in rows if row["status"] in ("done", "diverged")]
    document = Attachment("sweep.json", state.model_dump_json(indent=1).encode(), "application/json")
    notes = [str(note) for note in state.notes]
    return _report(state.name, rows, finished, state.left, facts, usable, kind, document, notes)


def _report(
    name: str,
    rows: Sequence[Row],
    finished: int,
    left: int,
    facts: Sequence[tuple[str, str]],
    usable: Any,
    kind: str,
    document: Attachment,
    notes: Sequence[str] = (),
) -> Report:
    counts = Counter(row["status"] for row in rows)
    states = ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "none"
    alarms = []
    if not Path(facts[0][1]).is_dir():
        alarms.append(f"there is no folder {facts[0][1]} here: no run has begun in it")
    if left:
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        alarms.append(f"{plural(left, 'run')} had not finished on {when}: this report is not the last one")
    if counts[UNREADABLE]:
        alarms.append(f"{plural(counts[UNREADABLE], 'run')} could not be read: the table says why")
    best = min((row for row in rows if _has_loss(row)), key=lambda row: row["loss"], default=None)
    lines = [("runs", states), *facts[1:], ("folder", facts[0][1])]
    if best is not None:
        shape = f"{plural(best['depth'], 'layer')} × {best['width']:,}, {show_count(best['block_params'])} in blocks"
        lines.insert(1, ("least loss", f"{best['loss']:.4f}: {best['id']}, {shape}"))
    stand: tuple[Block, ...] = (
        *([Notes(tuple(alarms), warning=True)] if alarms else []),
        Facts(tuple(lines)),
        *([Notes(tuple(notes))] if notes else []),
    )
    table = Table.of("runs", _ordered(rows), "One row per run.", COLUMNS)
    sections = [Section("Where it stands", stand), *_law(usable, kind, rows), Section("Runs", (table, document))]
    lead = f"{finished:,} of {plural(len(rows), 'run')} finished."
    return Report("sweep", f"Sweep {name}", lead, tuple(sections))


def _json(rows: Sequence[Row]) -> bytes:
    """Rows as JSON, which has no infinity."""
    plain = [
        {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in row.items()} for row in rows
    ]
    return json.dumps(plain, indent=1).encode()


def _has_loss(row: Row) -> bool:
    """Whether a run was trained to its end and can be the best."""
    loss = row.get("loss")
    return row["status"] == "done" and isinstance(loss, int | float) and math.isfinite(loss) and "depth" in row


def _ordered(rows: Sequence[Row]) -> Sequence[Row]:
    """As they are; where not all can be shown, those first that need a person, then the lowest losses."""
    if len(rows) <= MOST_ROWS:
        return rows

    def place(row: Row) -> tuple[int, float]:
        status = row["status"]
        return (BAD.index(status) if status in BAD else len(BAD), row["loss"] if _has_loss(row) else float("inf"))

    return sorted(rows, key=place)


def _law(usable: Any, kind: str, rows: Sequence[Row]) -> tuple[Section, ...]:
    """The fit to these runs, or why there is none and what the runs look like."""
    try:
        if not usable:
            raise DeepwideError("no run has finished.")
        from deepwide.fitting import fit
        from deepwide.report.fits import fit_sections

        return fit_sections(fit(usable, kind))  # type: ignore[arg-type]
    except DeepwideError as error:
        drawn = [row for row in rows if _has_loss(row)][:MOST_DRAWN]
        words = "Loss against size, every finished run"
        picture = (draw("runs", lambda: figures.run_chart(drawn), words),) if drawn else ()
        return (Section("What the fit says", (Notes((f"No law was fitted: {error}",)), *picture)),)
