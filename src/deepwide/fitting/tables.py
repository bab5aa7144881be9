"""Runs from wherever they are: folders of `sweep` and `train`, data frames, dicts, and anybody's tables by our names
(.csv, .tsv, .json, .jsonl, also .gz, and .parquet).

CSV and JSON are read by the standard library, because spreadsheets write line ends, separators and blanks, and pandas
writes NaN, that Polars refuses; Parquet by Polars.
"""

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.fitting.arguments import check_arguments
from deepwide.fitting.choose import (
    Limit,
    best_settings,
    by_embeddings,
    ended,
    near_values,
    one_count_per_shape,
    one_loss_per_run,
    with_embeddings,
    within_limits,
    without_embeddings,
    without_repeats,
)
from deepwide.fitting.columns import (
    BLANK,
    LIKE_A_LOSS,
    NAMES,
    Guess,
    blocks_named_total,
    embedding_params,
    guess_columns,
    in_units,
    is_list,
    meaning,
    number_of,
    vocabulary,
)
from deepwide.fitting.runs import COLUMNS, Runs
from deepwide.fitting.settings import by_shape, candidates, differing
from deepwide.fitting.words import joined, note

Row = dict[str, Any]
LARGEST_TABLE = 2**28  # bytes, unpacked
DEEPEST = 8  # objects inside objects
_PLAIN = {str, int, float, bool, type(None)}
TEXT = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")


def read_table(path: Path) -> list[Row]:
    """The rows of a file, each by the file's own column names."""
    if path.stat().st_size > LARGEST_TABLE:
        raise _too_large(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if kind == [".parquet"] and not packed:
        return _from_parquet(path)
    if not kind or kind[0] not in TEXT:
        raise DeepwideError(f"{path} must end in .csv, .tsv, .jsonl, .json or .parquet, or be a folder of runs.")
    content = _unpacked(path) if packed else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
        if kind[0] in (".csv", ".tsv"):
            return _from_csv(path, text)
        if not text.strip():
            raise DeepwideError(f"{path} has no rows.")
        values = [json.loads(text)] if kind[0] == ".json" else _lines(text)
    except DeepwideError:
        raise
    except UnicodeDecodeError:
        raise DeepwideError(f"{path} is no text in UTF-8: save it in that encoding, or as .parquet.") from None
    except (ValueError, csv.Error, RecursionError) as error:  # ValueError: not UTF-8, not JSON, or an endless number
        reason = " ".join(str(error).split())[:120]
        raise DeepwideError(f"{path} cannot be read as a table: {reason}.") from None
    rows = values[0] if kind[0] == ".json" else values
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DeepwideError(f"{path} must have one object per run: a list of them in .json, one per line in .jsonl.")
    return rows


def _lines(text: str) -> list[Any]:
    """One value per line of .jsonl; an error names the line."""
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            values += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: {error.msg} at column {error.colno}") from None
    return values


def rows_of(table: Any) -> list[Row]:
    """The rows of a Polars or pandas data frame, or of a list of dicts."""
    if hasattr(table, "to_dicts"):
        records = table.to_dicts()
    elif hasattr(table, "to_dict") and hasattr(table, "columns"):
        records = table.to_dict("records")
    elif isinstance(table, Iterable) and not isinstance(table, str | bytes | Mapping):
        records = list(table)
    else:
        records = [None]
    if not all(isinstance(row, Mapping) for row in records):
        raise DeepwideError(
            "runs must be a folder, a table (a file, a Polars or pandas data frame, a list of dicts), or several paths."
        )
    return [
        {str(name): None if type(value).__name__ == "NAType" else value for name, value in row.items()}
        for row in records
    ]


def map_columns(
    rows: list[Row], columns: Mapping[str, str | None], source: str, more: Iterable[str] = ()
) -> tuple[list[Row], list[Note]]:
    """The rows by our names, as numbers: `columns` maps ours to theirs, usual names are recognised (and noted).

    A column that is mapped to None is not read; tokens may be mapped to their number, such as 20B. `more` are columns
    of the table that are carried along as they are, numbers or text.
    """
    if not rows:
        raise DeepwideError(f"{source} has no rows.")
    rows = [_flat(row) for row in rows]
    theirs = list(dict.fromkeys(chain.from_iterable(rows)))
    length = columns.get("tokens")
    if length is not None and length not in theirs and re.match(r"\d", length):  # 20B: all runs had as many
        rows, theirs = [row | {length: length} for row in rows], [*theirs, length]
    for ours, name in columns.items():
        if ours not in NAMES:
            raise DeepwideError(f"there is no column '{ours[:60]}' to map to: {did_you_mean(ours, NAMES)}")
        if name is not None and name not in theirs:
            raise DeepwideError(f"{source} has no column '{name[:60]}': {did_you_mean(name, _short(theirs))}")
    more = list(more)
    for name in more:
        if name not in theirs:
            raise DeepwideError(
                f"{source} has no column '{name[:60]}': {did_you_mean(name, {*NAMES, *_short(theirs)})}"
            )
    ignored = _ignored(columns)
    chosen = {ours: name for ours, name in columns.items() if name is not None}
    notes = [note("column-ignored", column=ours) for ours, name in columns.items() if name is None]
    chosen, more_notes = guess_columns(theirs, chosen, ignored, Path(source).name)
    notes += more_notes
    if "loss" not in chosen:
        likely = [name for name in _short(theirs) if LIKE_A_LOSS.search(name)]
        shown, what = (likely, "columns like it are") if likely else (_short(theirs), "its columns are")
        raise DeepwideError(
            f"{source} has no column that is called a loss ({', '.join(NAMES['loss'])}); {what} "
            f"{', '.join(shown[:12])}: map one of them to loss.",
            remedies=("loss_column",),
        )
    meant = {ours: guess for ours, name in chosen.items() if (guess := meaning(name)) and guess.column == ours}
    mapped = [_mapped(row, chosen, meant, f"{source}, row {number}") for number, row in enumerate(rows, 1)]
    mapped, more_notes = in_units(mapped)
    notes += more_notes
    if "total_params" not in columns and "block_params" not in chosen.keys() | ignored:
        mapped, notes, chosen = blocks_named_total(mapped, notes, chosen)
    counted = {"block_params", "total_params"}
    if not counted <= chosen.keys() and not counted & ignored and (embeddings := embedding_params(theirs)):
        name, scale = embeddings
        counts = [count and count * scale for count in (_count(row.get(name)) for row in rows)]
        mapped = by_embeddings(mapped, counts)
        notes.append(note("embeddings-read", name=name[:60], total="total_params" in chosen))
    elif not {"total_params"} & (chosen.keys() | ignored) and (name := vocabulary(theirs)) and "width" in chosen:
        mapped = with_embeddings(mapped, [_count(row.get(name)) for row in rows])
        notes.append(note("embeddings-added", rows=f"'{name[:60]}'"))
    unread = {name for name in theirs if (guess := meaning(name)) and guess.column in ignored}
    settings = candidates(rows, mapped, {*chosen.values(), *more, *unread, *NAMES})
    carried = [*more, *settings]
    if not carried:
        return mapped, notes
    return [own | {n: _plain(row.get(n)) for n in carried} for own, row in zip(mapped, rows, strict=True)], notes


def _flat(row: Row) -> Row:
    """A row whose objects are columns of their own: {"config": {"depth": 3}} has config.depth."""
    if _PLAIN.issuperset(map(type, row.values())):
        return row
    for _ in range(DEEPEST):
        if not any(isinstance(value, Mapping) for value in row.values()):
            break
        inner = {
            f"{name}.{key}": cell
            for name, value in row.items()
            if isinstance(value, Mapping)
            for key, cell in value.items()
        }
        row = inner | {name: value for name, value in row.items() if not isinstance(value, Mapping)}
    return row


def _ignored(columns: Mapping[str, str | None]) -> set[str]:
    """Columns that were mapped to nothing; FLOPs only give tokens, so without tokens there are none."""
    ignored = {ours for ours, name in columns.items() if name is None}
    return ignored | ({"train_flops"} - columns.keys() if "tokens" in ignored else set())


def _count(value: Any) -> float | None:
    """A count above 0, or None."""
    number = _plain(value)
    return number if isinstance(number, float) and 0 < number < math.inf else None


def _plain(value: Any) -> float | str:
    """A cell of somebody's column: a number where it is one, else its text."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return " ".join(str("" if value is None else value).split())[:200]


def _mapped(row: Row, chosen: Mapping[str, str], meant: Mapping[str, Guess], where: str) -> Row:
    mapped: Row = {}
    for ours, name in chosen.items():
        value = row.get(name)
        if isinstance(value, str):
            value = value.strip()
        if value is None or (isinstance(value, str) and value.lower() in BLANK):
            continue
        if ours != "loss" and value != value:  # NaN: how pandas writes a blank
            continue
        if ours == "status":
            mapped[ours] = str(value).lower()
            continue
        try:
            number = number_of(value, ours, meant.get(ours), f"{where}, column '{name[:60]}'")
        except DeepwideError as error:
            lists = [other for other in chosen.values() if other != name and is_list(row.get(other))]
            if not lists or not is_list(value):
                raise
            also = joined([quoted(other) for other in lists])
            more = "is a list too" if len(lists) == 1 else "are lists too"
            raise DeepwideError(f"{str(error).rstrip('.')}; {also} {more}.") from None
        if ours == "loss" or not math.isnan(number):
            mapped[ours] = number
    return mapped


def _short(names: list[str]) -> list[str]:
    return [" ".join(name.split())[:60] for name in names]


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            content = file.read(LARGEST_TABLE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DeepwideError(f"{path} is not gzip: {' '.join(str(error).split())[:120]}.") from None
    if len(content) > LARGEST_TABLE:
        raise _too_large(path)
    return content


def _too_large(path: Path) -> DeepwideError:
    return DeepwideError(f"{path} is larger than {LARGEST_TABLE // 2**20} MiB: that is no table of runs.")


def _from_parquet(path: Path) -> list[Row]:
    try:
        import polars
    except ModuleNotFoundError:
        raise DeepwideError("Parquet needs polars: pip install polars.") from None
    try:
        return polars.read_parquet(path).to_dicts()
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:  # a panic is no Exception
        raise DeepwideError(f"{path} is not Parquet: {' '.join(str(error).split())[:120]}.") from None


def _from_csv(path: Path, text: str) -> list[Row]:
    """Separated by what the header has most of; a row longer than the header has slipped, so nothing in it is sure."""
    text = text.lstrip("\r\n")
    separator = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    lines = ([value.strip() for value in line] for line in reader)
    header = next(lines, [])
    if twice := [name for name, times in Counter(header).items() if name and times > 1]:
        raise DeepwideError(f"{path} has {header.count(twice[0])} columns called {quoted(twice[0])}: rename them.")
    rows: list[Row] = []
    for line in filter(any, lines):
        if any(line[len(header) :]):
            raise DeepwideError(
                f"{path}, row {len(rows) + 1} has {len(line)} values for {len(header)} columns: is there a separator "
                "inside a number?"
            )
        rows.append(dict(zip(header, line, strict=False)))
    return rows


Source = Any  # a path, several, a data frame of Polars or pandas, a list of dicts
UNUSED = ("unfinished", "unreadable")  # what a folder says of a run that has no result


def read_runs(
    source: Source,
    columns: Mapping[str, str | None] | None = None,
    *,
    where: Mapping[str, float | str] | None = None,
    limits: Iterable[Limit] = (),
    embedding_rows: float | None = None,
    best_of: Iterable[str] = (),
) -> Runs:
    """The runs in folders, tables (.csv, .tsv, .json, .jsonl, .parquet), a data frame or a list of dicts.

    `columns` maps our names to theirs ({"loss": "val_loss"}), or to None so that a column is not read. `where` keeps
    the rows within 1% of a value; for what grows along a run, of each shape the nearest of them alone (tokens=1e11:
    learning curves cut at one length). `limits` keeps the rows that obey each of ("depth", "<=", 8). Both also take a
    column of the table that is none of ours (optimizer="adam"). `embedding_rows` gives block parameters to a table of
    totals (rows·width less), and totals to a table that has none. Where a shape was trained at several learning rates,
    its best one is kept, by the mean over its seeds; `best_of` names further columns to choose among ("batch").

    >>> read_runs([{"n_layer": 2, "width": 64, "loss": 1.5}, {"n_layer": 4, "width": 64, "loss": 1.4}]).depth.tolist()
    [2.0, 4.0]
    """
    check_arguments(columns=columns, where=where, limits=limits, embedding_rows=embedding_rows, best_of=best_of)
    limits, best_of = tuple(limits or ()), tuple(best_of or ())
    asked = [*(where or {}), *(limit[0] for limit in limits), *best_of]
    rows, notes, name = _rows(source, columns or {}, [name for name in dict.fromkeys(asked) if name not in COLUMNS])
    rows, more = within_limits(rows, limits)
    notes += more
    rows, more = near_values(rows, where or {})
    notes += more
    rows, more = one_count_per_shape(rows)
    notes += more
    assumed = [each for each in notes if each.code in ("embeddings-added", "embeddings-read")]
    given = any("total_params" in row for row in rows) and all(each.data.get("total") for each in assumed)
    if embedding_rows is not None:
        notes = [each for each in notes if each not in assumed]
    if embedding_rows is not None and not given:
        rows = with_embeddings(rows, [embedding_rows] * len(rows))
        notes.append(note("embeddings-added", rows=f"{embedding_rows:g}"))
    elif embedding_rows is not None:
        rows = without_embeddings(rows, embedding_rows)
        notes.append(note("embeddings-removed", rows=embedding_rows))
    rows, more = without_repeats(rows)
    notes += more
    rows, more = ended(rows, name)
    notes += more
    one_loss_per_run(rows, best_of)
    rows, more = best_settings(rows, tuple(dict.fromkeys(("lr", *best_of))))
    notes += more
    notes += differing(rows, asked, lengths_ignored="tokens" in _ignored(columns or {}))
    notes += by_shape(rows, best_of)
    diverged = [row["diverged"] for row in rows]
    if any(diverged):
        notes.append(note("runs-diverged", count=sum(diverged)))
    known = [name for name in COLUMNS if name not in ("lr", "status", "loss") and any(name in row for row in rows)]
    table = {name: [row.get(name, math.nan) for row in rows] for name in known}
    loss = [row.get("loss", math.nan) for row in rows]
    return Runs.of(**table, loss=loss, diverged=diverged, source=name, notes=notes)


def _rows(source: Source, columns: Mapping[str, str | None], extra: list[str]) -> tuple[list[Row], list[Note], str]:
    paths = _paths(source)
    if paths is None:
        rows, notes = map_columns(rows_of(source), columns, "the table", extra)
        return rows, notes, "the table"
    if not paths:
        raise DeepwideError("give at least one folder of runs or table.")
    rows, notes = [], []
    for path in paths:
        if path.is_dir():
            part, more = _from_folder(path, extra)
            part = [{name: value for name, value in row.items() if name not in _ignored(columns)} for row in part]
        elif path.is_file():
            part, more = map_columns(read_table(path), columns, str(path), extra)
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


def _from_folder(folder: Path, extra: list[str]) -> tuple[list[Row], list[Note]]:
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
    for name in extra:
        if not any(name in row for row in finished):
            known = dict.fromkeys(name for row in finished for name in row)
            raise DeepwideError(f"the runs in {folder} have no column '{name[:60]}': {did_you_mean(name, known)}")
    own = [{name: row[name] for name in COLUMNS if row.get(name) is not None} for row in finished]
    return [
        one | {name: _plain(row.get(name)) for name in extra} for one, row in zip(own, finished, strict=True)
    ], notes
