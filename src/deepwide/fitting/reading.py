"""Runs from wherever they are: folders of `sweep` and `train`, tables of anybody's, data frames, dicts."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.fitting.choose import (
    Limit,
    best_rates,
    count_repeats,
    ended,
    near_values,
    within_limits,
    without_embeddings,
)
from deepwide.fitting.runs import COLUMNS, Runs
from deepwide.fitting.tables import Row, map_columns, read_table, rows_of
from deepwide.fitting.words import note

Source = Any  # a path, several, a data frame of Polars or pandas, a list of dicts
UNUSED = ("unfinished", "unreadable")  # what a folder says of a run that has no result


def read_runs(
    source: Source,
    columns: Mapping[str, str] | None = None,
    *,
    where: Mapping[str, float] | None = None,
    limits: Iterable[Limit] = (),
    embedding_rows: float | None = None,
) -> Runs:
    """The runs in folders, tables (.csv, .tsv, .json, .jsonl, .parquet), a data frame or a list of dicts.

    `columns` maps our names to theirs ({"loss": "val_loss"}). `where` keeps the rows within 1% of a value; for what
    grows along a run, of each shape the nearest of them alone (tokens=1e11: learning curves cut at one length).
    `limits` keeps the rows that obey each of ("depth", "<=", 8). `embedding_rows` gives block parameters to a table of
    totals: rows·width less. Where a shape was trained at several learning rates, its best one is kept, by the mean over
    its seeds.

    >>> read_runs([{"n_layer": 2, "width": 64, "loss": 1.5}, {"n_layer": 4, "width": 64, "loss": 1.4}]).depth.tolist()
    [2.0, 4.0]
    """
    rows, notes, name = _rows(source, columns or {})
    rows, more = within_limits(rows, limits)
    notes += more
    rows = near_values(rows, where or {})
    if embedding_rows is not None:
        rows = without_embeddings(rows, embedding_rows)
        notes.append(note("embeddings-removed", rows=embedding_rows))
    notes += count_repeats(rows)
    rows, more = ended(rows, name)
    notes += more
    rows, more = best_rates(rows)
    notes += more
    diverged = [row["diverged"] for row in rows]
    if any(diverged):
        notes.append(note("runs-diverged", count=sum(diverged)))
    known = [name for name in COLUMNS if name not in ("lr", "status", "loss") and any(name in row for row in rows)]
    table = {name: [row.get(name, math.nan) for row in rows] for name in known}
    loss = [row.get("loss", math.nan) for row in rows]
    return Runs.of(**table, loss=loss, diverged=diverged, source=name, notes=notes)


def _rows(source: Source, columns: Mapping[str, str]) -> tuple[list[Row], list[Note], str]:
    paths = _paths(source)
    if paths is None:
        rows, notes = map_columns(rows_of(source), columns, "the table")
        return rows, notes, "the table"
    if not paths:
        raise DeepwideError("give at least one folder of runs or table.")
    rows, notes = [], []
    for path in paths:
        if path.is_dir():
            part, more = _from_folder(path)
        elif path.is_file():
            part, more = map_columns(read_table(path), columns, str(path))
        else:
            raise DeepwideError(f"there is no folder or table {path}.")
        rows += part
        notes += more
    return rows, notes, ", ".join(str(path) for path in paths)


def _paths(source: Source) -> list[Path] | None:
    """The paths that were given; None for a table in memory."""
    if isinstance(source, str | Path):
        return [Path(source)]
    if isinstance(source, list | tuple) and all(isinstance(part, str | Path) for part in source):
        return [Path(part) for part in source]
    return None


def _from_folder(folder: Path) -> tuple[list[Row], list[Note]]:
    """The finished runs in a folder of runs; one that cannot be read is a note, not the end."""
    from deepwide.sweeping import run_rows

    records = run_rows(folder)
    if not records:
        raise DeepwideError(f"{folder} has no run folders: give the folder of a sweep's runs, or of one run.")
    notes = [
        note("run-unreadable", folder=str(row["id"]), error=" ".join(str(row["error"]).split())[:200].rstrip("."))
        for row in records
        if row["status"] == "unreadable"
    ]
    if unfinished := sum(row["status"] == "unfinished" for row in records):
        notes.append(note("runs-unfinished", count=unfinished, folder=str(folder)))
    finished = [row for row in records if row["status"] not in UNUSED]
    first_on = {row["data"]: row["id"] for row in reversed(finished)}
    if len(first_on) > 1:
        first, second = sorted(first_on.values())[:2]
        raise DeepwideError(
            f"{folder} has runs on different data ({first} and {second}), whose losses cannot be compared: fit each "
            "sweep by itself."
        )
    if not finished:
        raise DeepwideError(f"{folder} has no finished run" + "".join(f": {n}" for n in notes[:1]) + ".")
    return [{name: row[name] for name in COLUMNS if row.get(name) is not None} for row in finished], notes
