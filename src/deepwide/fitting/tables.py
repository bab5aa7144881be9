"""Anybody's table of runs as rows by our names: .csv, .tsv, .json, .jsonl (also .gz), .parquet, a data frame, dicts.

CSV and JSON are read by the standard library, because spreadsheets write line ends, separators and blanks, and pandas
writes NaN, that Polars refuses; Parquet by Polars.
"""

import csv
import gzip
import io
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deepwide.answers import Note
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.fitting.runs import COLUMNS
from deepwide.fitting.words import note

Row = dict[str, Any]
NAMES = {  # what other people call our columns, ours first
    "depth": ("depth", "n_layer", "n_layers", "num_hidden_layers", "num_layers", "layers"),
    "width": ("width", "d_model", "n_embd", "hidden_size"),
    "block_params": ("block_params", "non_embedding_params", "n_params_no_embed", "params_no_embed"),
    "total_params": ("total_params", "params", "n_params", "num_params", "parameter_count", "N"),
    "tokens": ("tokens", "train_tokens", "num_tokens", "D"),
    "train_flops": ("train_flops", "flops"),
    "loss": ("loss", "validation_loss", "val_loss", "final_loss"),
    "seed": ("seed",),
    "lr": ("lr", "learning_rate"),
    "status": ("status",),
}
assert tuple(NAMES) == COLUMNS
LARGEST_TABLE = 2**28  # bytes, unpacked
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
        lines = [text] if kind[0] == ".json" else [line for line in text.split("\n") if line.strip()]
        values = [json.loads(line) for line in lines]
    except DeepwideError:
        raise
    except (ValueError, csv.Error, RecursionError) as error:  # ValueError: not UTF-8, not JSON, or an endless number
        reason = " ".join(str(error).split())[:120]
        raise DeepwideError(f"{path} cannot be read as a table: {reason}.") from None
    rows = values[0] if kind[0] == ".json" else values
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DeepwideError(f"{path} must have one object per run: a list of them in .json, one per line in .jsonl.")
    return rows


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


def map_columns(rows: list[Row], columns: Mapping[str, str], source: str) -> tuple[list[Row], list[Note]]:
    """The rows by our names, as numbers: `columns` maps ours to theirs, usual names are recognised (and noted)."""
    if not rows:
        raise DeepwideError(f"{source} has no rows.")
    theirs = list(dict.fromkeys(name for row in rows for name in row))
    for ours, name in columns.items():
        if ours not in NAMES:
            raise DeepwideError(f"there is no column '{ours[:60]}' to map to: {did_you_mean(ours, NAMES)}")
        if name not in theirs:
            raise DeepwideError(f"{source} has no column '{name[:60]}': {did_you_mean(name, _short(theirs))}")
    chosen = dict(columns)
    notes = []
    for ours, guesses in NAMES.items():
        guess = next((name for name in guesses if name in theirs), None)
        if ours in chosen or guess is None:
            continue
        chosen[ours] = guess
        if guess != ours:
            notes.append(note("column-guessed", column=ours, name=guess, table=Path(source).name))
    if "loss" not in chosen:
        raise DeepwideError(
            f"{source} has no column that is called a loss ({', '.join(NAMES['loss'])}); its columns are "
            f"{', '.join(_short(theirs)[:12])}: map one of them to loss.",
            remedies=("loss_column",),
        )
    return [_mapped(row, chosen, f"{source}, row {number}") for number, row in enumerate(rows, 1)], notes


def _mapped(row: Row, chosen: Mapping[str, str], where: str) -> Row:
    mapped: Row = {}
    for ours, name in chosen.items():
        value = row.get(name)
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "" or (ours != "loss" and value != value):  # NaN: how pandas writes a blank
            continue
        if ours == "status":
            mapped[ours] = str(value).lower()
            continue
        number = _number(value, f"{where}, column '{name[:60]}'")
        if ours == "loss" or not math.isnan(number):
            mapped[ours] = number
    return mapped


def _number(value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DeepwideError(
            f"{where}: {quoted(value)} is not a number: write 12345.6, without separators or units."
        ) from None


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
    except polars.exceptions.PolarsError as error:
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
