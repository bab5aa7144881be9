"""Results as one table, read with Polars over the run folders. The folders are the truth; this is a view of them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwide.errors import DeepwideError
from deepwide.files import write_bytes
from deepwide.run import RunFolder
from deepwide.run.layout import METRICS
from deepwide.sweeping.grid import Cell

if TYPE_CHECKING:
    import polars

FORMATS = (".csv", ".parquet", ".json")
# What may differ between two runs of the same numbers: left out of the table unless asked for.
TIMINGS = ("seconds", "tokens_per_second", "micro_batch")


def table(cells: Sequence[Cell], runs: Path, *, timings: bool = False) -> "polars.DataFrame":
    """One row a cell that is over, in the order of the spec: what was varied and its seed, what it cost, how it ended.

    The same sweep gives the same bytes however often it was interrupted, because nothing in the table depends on the
    machine or the clock; `timings` adds what does.
    """
    import polars

    rows = []
    for cell in cells:
        path = runs / cell.id
        folder = RunFolder.open(path) if path.exists() else None
        ended = folder.result() if folder else None
        if folder is None or ended is None:
            continue
        counted = {name: getattr(cell.cost, name) for name in cell.cost._fields}
        fields = {
            key: value for key, value in sorted(_flat(ended).items()) if timings or key.split(".")[0] not in TIMINGS
        }
        if timings:
            held = folder.lease_record() or {}
            fields |= {"seconds": held.get("worked"), "owner": held.get("owner"), "leases": held.get("number")}
        varied = {key: _scalar(value) for key, value in cell.varied.items()} | {"seed": cell.seed}
        rows.append({"id": cell.id, **varied, **counted, **fields})
    return polars.DataFrame(_filled(rows), infer_schema_length=None, strict=False)


def metrics(cells: Sequence[Cell], runs: Path) -> "polars.DataFrame":
    """Every record of every run, with the run's id: the learning curves."""
    import polars

    rows = []
    for cell in cells:
        if (runs / cell.id / METRICS).exists():
            rows += [{"id": cell.id} | record for record in RunFolder.open(runs / cell.id).metrics()]
    return polars.DataFrame(_filled(rows), infer_schema_length=None, strict=False)


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


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: _scalar(value)}
    return flat


def _scalar(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _filled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every row with every column, in the order of first appearance."""
    columns = dict.fromkeys(key for row in rows for key in row)
    return [{column: row.get(column) for column in columns} for row in rows]
