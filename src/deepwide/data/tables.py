"""Rows of two texts: pairs to translate, or texts and their labels.

    a .tsv file     columns by number, or by name where the first line holds the names; any other ending is read so too
    a .jsonl file   an object per line, columns by name
    one,two         two text files whose lines correspond, with a comma between their names
    a folder        all .tsv and .jsonl files in it; or, where languages are given as en-de, the files x.en and x.de

Each may be .gz. Rows are read as a stream, in order of the files' names; a line that is too long is refused, as is an
archive that unpacks to more than text can be. A pair of which one side is blank is left out.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from deepwide.data.sources import LONGEST_ROW, limited_lines, visible_files
from deepwide.errors import DeepwideError, quoted
from deepwide.settings import Part

TABLES = (".tsv", ".jsonl", ".ndjson")
MOST_LABELS, LONGEST_LABEL = 10_000, 200
Row = tuple[bytes, ...]


class Table(Part):
    """Where the two texts of a row are."""

    columns: tuple[str, str]  # their names, or their numbers from 1
    usual: tuple[str, str]  # the names that mean columns 1 and 2 of a table without a line of names
    labelled: bool = False  # the second is the label of the first, which is never cut into tokens
    languages: str | None = None  # of the aligned files of a folder, as en-de
    held_out: str | None = None  # another such source, whose rows are the validation set


def table_files(source: str, table: Table) -> list[tuple[Path, ...]]:
    """The files of a source: tables, each by itself, or two whose lines correspond."""
    path = Path(source).expanduser()
    if path.is_file():
        return [(path,)]
    if path.is_dir():
        return _aligned_in(path, table.languages) if table.languages else _tables_in(path)
    parts = [Path(part.strip()).expanduser() for part in source.split(",")]
    if len(parts) == 2 and all(part.is_file() for part in parts):
        if table.labelled:
            raise DeepwideError("texts and labels are in one table, a .tsv or .jsonl file, not in two files.")
        return [tuple(parts)]
    missing = next((part for part in parts if not part.exists()), path)
    wanted = "a .tsv or .jsonl file" + ("" if table.labelled else ", two aligned files as one,two,") + " or a folder"
    raise DeepwideError(f"there is no file {quoted(missing, 200)}: give {wanted} of them.")


def rows(source: str, table: Table) -> Iterator[Row]:
    """Every row of a source whose texts are not blank."""
    for files in table_files(source, table):
        for row in _aligned(*files) if len(files) == 2 else _from_table(files[0], table):
            if all(cell.strip() for cell in row):
                yield (row[0], row[1].strip()) if table.labelled else row


def label_names(source: str, table: Table) -> tuple[str, ...]:
    """The different labels of a source and of what is held out, in the order of the alphabet."""
    names: set[bytes] = set()
    for place in filter(None, (source, table.held_out)):
        for _, label in rows(place, table):
            names.add(label)
            if len(names) > MOST_LABELS or len(label) > LONGEST_LABEL:
                many = f"there are more than {MOST_LABELS:,} different ones"
                what = many if len(names) > MOST_LABELS else f"one has more than {LONGEST_LABEL} letters"
                raise DeepwideError(
                    f"column '{table.columns[1]}' of {quoted(place, 200)} does not hold labels: {what} "
                    "(settings task.text and task.label: columns by name, or by number from 1)."
                )
    if len(names) < 2:
        raise DeepwideError(f"{quoted(source, 200)} has {len(names)} label, and classes are at least two.")
    return tuple(name.decode("utf-8", "replace") for name in sorted(names))


def _tables_in(folder: Path) -> list[tuple[Path, ...]]:
    tables = [path for path in visible_files(folder) if _ending(path) in TABLES]
    if not tables:
        raise DeepwideError(
            f"the folder {folder} holds no .tsv or .jsonl file; for aligned files give their languages, as en-de "
            "(setting task.languages)."
        )
    return [(path,) for path in tables]


def _aligned_in(folder: Path, languages: str) -> list[tuple[Path, ...]]:
    endings = languages.split("-")
    if len(endings) != 2 or not all(endings) or endings[0] == endings[1]:
        raise DeepwideError(f"languages must be two endings of files with a dash between, as en-de, not '{languages}'.")
    sides: list[dict[str, Path]] = [{}, {}]
    for path in visible_files(folder):
        stem = path.name.removesuffix(".gz").rpartition(".")[0]
        for side, ending in zip(sides, endings, strict=True):
            if _ending(path) == f".{ending}":
                side[str(path.parent / stem)] = path
    for here, there in ((0, 1), (1, 0)):
        if alone := sorted(sides[here].keys() - sides[there].keys()):
            raise DeepwideError(f"{sides[here][alone[0]]} has no counterpart that ends in .{endings[there]}.")
    if not sides[0]:
        raise DeepwideError(f"the folder {folder} holds no files that end in .{endings[0]} and .{endings[1]}.")
    return [(path, sides[1][stem]) for stem, path in sorted(sides[0].items())]


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _aligned(one: Path, two: Path) -> Iterator[Row]:
    for number, pair in enumerate(zip_longest(_lines(one), _lines(two)), 1):
        if None in pair:
            shorter, longer = (one, two) if pair[0] is None else (two, one)
            raise DeepwideError(f"{shorter} has {number - 1} lines and {longer} has more: they must correspond.")
        yield pair


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, each of a bounded length, without their ends."""
    for number, line in enumerate(limited_lines(path), 1):
        if len(line) >= LONGEST_ROW and not line.endswith(b"\n"):
            raise DeepwideError(f"line {number} of {path} is longer than {LONGEST_ROW >> 20} MiB.")
        yield line.rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf" if number == 1 else b"")


def _from_table(path: Path, table: Table) -> Iterator[Row]:
    named = _ending(path) in (".jsonl", ".ndjson")
    places: Sequence[int] | None = None
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        if named:
            yield _from_object(line, table.columns, f"line {number} of {path}")
            continue
        cells = line.split(b"\t")
        if places is None:
            places, is_header = _places(cells, table, path)
            if is_header:
                continue
        if len(cells) <= max(places):
            raise DeepwideError(
                f"line {number} of {path} has {len(cells)} column{'s' * (len(cells) > 1)} and needs "
                f"{max(places) + 1}: columns are separated by tabs."
            )
        yield tuple(cells[place] for place in places)


def _places(first: Sequence[bytes], table: Table, path: Path) -> tuple[Sequence[int], bool]:
    """Which columns are meant, and whether the first line holds names instead of texts."""
    names = [cell.decode("utf-8", "replace").strip() for cell in first]
    if all(column in names for column in table.columns):
        return [names.index(column) for column in table.columns], True
    if table.columns == table.usual:
        return (0, 1), False
    if all(column.isdecimal() and 0 < int(column) <= 10_000 for column in table.columns):
        return [int(column) - 1 for column in table.columns], False
    wanted = " and ".join(f"'{column}'" for column in table.columns)
    raise DeepwideError(
        f"the first line of {path} does not name the columns {wanted}; it has {quoted(', '.join(names), 100)}. "
        "Columns may also be given by number, from 1."
    )


def _from_object(line: bytes, columns: Sequence[str], where: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise DeepwideError(f"{where} is not JSON.") from None
    if not isinstance(row, dict):
        raise DeepwideError(f"{where} is not an object with named columns.")
    cells = []
    for column in columns:
        value = row.get(column)
        if isinstance(value, bool) or not isinstance(value, str | int):  # labels are often numbers
            has = ", ".join(sorted(str(name)[:40] for name in row)[:8]) or "none"
            raise DeepwideError(f"{where} has no text in column '{column}'; its columns are {has}.")
        cells.append(str(value).encode("utf-8", "replace"))
    return tuple(cells)
