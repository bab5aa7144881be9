"""Results as one table, read with Polars over the run folders. The folders are the truth; this is a view of them."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwide.errors import DeepwideError
from deepwide.files import write_bytes
from deepwide.run import FINISHED, UNREADABLE, RunFolder, has_result, read_lease, read_run
from deepwide.sweeping.grid import Cell, cells_of
from deepwide.sweeping.running import SpecLike, runs_folder
from deepwide.sweeping.spec import Spec, as_spec

if TYPE_CHECKING:
    import polars

FORMATS = (".csv", ".parquet", ".json")
# What may differ between two runs of the same numbers: left out of the table unless asked for.
TIMINGS = ("seconds", "tokens_per_second", "micro_batch")
ROWS_AT_ONCE = 100_000


def table(
    sweep: SpecLike | Sequence[Cell], runs: Path | str | None = None, *, timings: bool = False
) -> "polars.DataFrame":
    """One row per finished cell, in the order of the spec: what was varied and its seed, its counts, how it ended.

    The same sweep gives the same bytes however often it was interrupted, because nothing in the table depends on the
    machine or the clock; `timings` adds what does. A cell that cannot be read stops it: a table must not lack a row
    in silence.
    """
    cells, home = locate(sweep, runs)
    rows, unreadable = [], []
    for cell in cells:
        path = home / cell.id
        if not path.exists():
            continue
        record = read_run(path)
        if record.status == UNREADABLE:
            unreadable.append(record.error)
        if record.status not in FINISHED:
            continue
        flat = sorted(_flat(dict(record.result)).items())
        fields = {key: value for key, value in flat if timings or key.split(".")[0] not in TIMINGS}
        if timings:
            held = read_lease(path) or {}
            fields |= {"seconds": held.get("worked"), "owner": held.get("owner"), "leases": held.get("number")}
        varied = {key: _scalar(value) for key, value in cell.varied.items()} | {"seed": cell.seed}
        rows.append({"id": cell.id, **varied, **cell.cost._asdict(), **fields})
    _refuse(unreadable)
    return _frame(rows)


def curves(sweep: SpecLike | Sequence[Cell], runs: Path | str | None = None) -> "polars.DataFrame":
    """Every record of every run, with the run's id: the learning curves. A damaged run stops it, as in `table`."""
    import polars

    cells, home = locate(sweep, runs)
    frames: list[polars.DataFrame] = []
    rows, unreadable = list[dict[str, Any]](), []
    for cell in cells:
        if not (home / cell.id).exists():
            continue
        try:
            folder = RunFolder.open(home / cell.id)
            folder.result()  # which says where the metrics of a finished run end
            for record in folder.records():
                rows.append({"id": cell.id} | _flat(record))
                if len(rows) == ROWS_AT_ONCE:  # as columns they take a tenth of the memory
                    frames.append(_frame(rows))
                    rows = []
        except (DeepwideError, OSError) as error:
            unreadable.append(str(error))
    _refuse(unreadable)
    return polars.concat([*frames, _frame(rows)], how="diagonal_relaxed") if frames else _frame(rows)


def unchecked(cells: Sequence[Cell], runs: Path) -> int:
    """How many cells have a result from before results carried a checksum: nobody can tell whether it was changed."""
    return sum(not read_run(runs / cell.id).checked for cell in cells if has_result(runs / cell.id))


def export(frame: "polars.DataFrame", path: Path) -> None:
    """Write a table as its name asks: .csv, .parquet or .json, all at once or not at all."""
    content = io.BytesIO()
    if path.suffix == ".csv":
        frame.write_csv(content)
    elif path.suffix == ".parquet":
        frame.write_parquet(content)
    else:
        check_format(path)
        frame.write_json(content)
    write_bytes(path, content.getvalue())


def check_format(path: Path) -> None:
    """Refuse a name whose format we do not write, before any work."""
    if path.suffix not in FORMATS:
        raise DeepwideError(f"{path.name} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")


def locate(sweep: SpecLike | Sequence[Cell], runs: Path | str | None) -> tuple[Sequence[Cell], Path]:
    """The cells of a sweep, and where their folders are."""
    if isinstance(sweep, Spec | Mapping | str | Path):
        spec = as_spec(sweep)
        return cells_of(spec), runs_folder(spec, runs)
    assert runs is not None, "cells do not say where their runs are"
    return sweep, Path(runs)


def unfinished(cells: Sequence[Cell], runs: Path) -> int:
    """How many cells have no result yet: a table of the others is not complete."""
    return sum(not has_result(runs / cell.id) for cell in cells)


def _refuse(unreadable: Sequence[str]) -> None:
    if unreadable:
        more = f" ({len(unreadable) - 1} more like it)" if len(unreadable) > 1 else ""
        raise DeepwideError(unreadable[0] + more)


def _frame(rows: list[dict[str, Any]]) -> "polars.DataFrame":
    """Every row with every column, in the order of first appearance."""
    import polars

    columns = dict.fromkeys(key for row in rows for key in row)
    filled = [{column: row.get(column) for column in columns} for row in rows]
    return polars.DataFrame(filled, infer_schema_length=None, strict=False)


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: _scalar(value)}
    return flat


def _scalar(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
