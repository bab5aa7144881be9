"""Records that are checked when they are read: every line of metrics.jsonl, and result.json.

Each carries a seal (seals.py). Those written before there were seals are read as they are, and count as unchecked.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from deepwide import files
from deepwide.run.records import FINISHED, METRICS, RESULT, UnreadableRun, is_finite, parse, parse_line, read_content
from deepwide.run.seals import Chain, split

LONGEST_LINE = 1 << 20  # bytes
SAMPLE_BYTES, PIECES = 4 << 20, 256
START_OVER = f"delete {METRICS} and the folder of checkpoints, and the run starts over"
METRICS_REMEDY = f"put {METRICS} back from a copy, or {START_OVER}"
RESULT_REMEDY = "put it back from a copy, or delete it and the run resumes from its last checkpoint"
AGREE_REMEDY = f"put the one that was changed back from a copy, or delete {RESULT} and the run resumes"


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The records of a run, each with its integer step, without seals and without a torn last line."""
    return [record for _, record in lines(folder)]


def whole(folder: Path, *, until_step: int | None = None) -> Chain:
    """The chain of all whole records (of steps up to `until_step`); its `size` is where they end."""
    chain = Chain()
    for longer, record in lines(folder):
        if until_step is not None and record["step"] > until_step:
            break
        chain = longer
    return chain


def holds(folder: Path, before: Chain) -> bool:
    """Whether the file has these records, and perhaps more after them."""
    if not before.records:
        return True
    return any(chain.check == before.check for chain, _ in lines(folder) if chain.records == before.records)


def lines(folder: Path) -> Iterator[tuple[Chain, dict[str, Any]]]:
    """Each record with the chain up to it, checked, in bounded memory."""
    path = folder / METRICS
    with contextlib.suppress(FileNotFoundError), _open(path) as file:
        yield from _lines(file, path, Chain())


def sample(folder: Path, most: int = SAMPLE_BYTES) -> list[dict[str, Any]]:
    """The records of a run as they are shown: of a file longer than `most` bytes, those of pieces spread evenly.

    The first and the last piece begin and end the file. Within a piece every record but the first is checked against
    the one before it, so that a picture of a very long run takes bounded time and memory.
    """
    path = folder / METRICS
    records: list[dict[str, Any]] = []
    try:
        with _open(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= most:
                return [record for _, record in _lines(file, path, Chain())]
            piece = most // PIECES
            for i in range(PIECES):
                begin = i * (size - piece) // (PIECES - 1)
                file.seek(max(0, begin - 1))
                if begin:
                    file.readline(LONGEST_LINE)  # the rest of a record that begins before the piece
                records += [record for _, record in _lines(file, path, None if begin else Chain(), begin + piece)]
    except FileNotFoundError:
        pass
    return records


def _open(path: Path) -> BinaryIO:
    try:
        return files.open_regular(path)
    except files.NotRegularError as error:
        raise UnreadableRun(path, str(error.strerror), METRICS_REMEDY) from None


def _lines(
    file: BinaryIO, path: Path, chain: Chain | None, until: float = float("inf")
) -> Iterator[tuple[Chain, dict[str, Any]]]:
    """The records from where the file stands to the first that begins at byte `until`.

    Without a chain the first sealed record is taken at its word.
    """
    run, number, at, known = path.parent.name, 0, file.tell(), chain is not None
    chain = chain or Chain()
    while at < until:
        line = file.readline(LONGEST_LINE)
        number, at = number + 1, at + len(line)
        if not line.endswith(b"\n"):
            if len(line) < LONGEST_LINE or not line.strip(b"\0"):
                return  # a record that a crash cut short, or zeros that never became data
            raise _damaged(path, number, known, f"longer than {LONGEST_LINE >> 20} MiB")
        record = parse_line(line)
        if isinstance(record, str):
            raise _damaged(path, number, known, record)
        try:
            trusted = not known and not chain.sealed and split(line[:-1])[2]
            chain = Chain(1, trusted, True, len(line)) if trusted else chain.after(run, line[:-1])
        except ValueError as error:
            raise _damaged(path, number, known, str(error)) from None
        if type(record.get("step")) is not int:
            raise _damaged(path, number, known, "it has no step")
        if not is_finite(record):
            raise _damaged(path, number, known, "it holds a number that is not finite")
        if chain.sealed:
            del record["run"], record["check"]
        yield chain, record


def _damaged(path: Path, number: int, from_the_start: bool, why: str) -> UnreadableRun:
    if not from_the_start:
        return UnreadableRun(path, f"a line in the middle: {why}", METRICS_REMEDY)
    remedy = (
        f"put the file back from a copy, or cut it before line {number} and the run resumes from the newest "
        "checkpoint that is not past it"
    )
    return UnreadableRun(path, f"line {number}: {why}", remedy)


def read_last(folder: Path, most: int = 8192) -> tuple[dict[str, Any], str | None]:
    """The last whole record of metrics and the check it carries, read from the end; not compared with those before."""
    try:
        with files.open_regular(folder / METRICS) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            tail = file.read(most)
    except (FileNotFoundError, files.NotRegularError):
        return {}, None
    for line in reversed(tail.split(b"\n")[:-1]):
        try:
            record = parse(line, folder / METRICS, "")
        except UnreadableRun:
            continue
        check = split(line)[2]
        return (record if check is None else _unsealed(record)), check
    return {}, None


def read_result(folder: Path) -> dict[str, Any] | None:
    """How a run ended, without its seal; None while it has not."""
    return None if (checked := read_checked_result(folder)) is None else checked[0]


def read_checked_result(folder: Path) -> tuple[dict[str, Any], bool] | None:
    """How a run ended, and whether that could be checked: False for one written before there were seals."""
    path = folder / RESULT
    content = read_content(path, RESULT_REMEDY)
    if content is None:
        return None
    result = parse(content, path, RESULT_REMEDY)
    try:
        chain = Chain().after(folder.name, content.rstrip(b"\n"))
    except ValueError as error:
        why = "it is not what was written" if "not what was written" in str(error) else str(error)
        raise UnreadableRun(path, why, RESULT_REMEDY) from None
    if result.get("status") not in FINISHED:
        raise UnreadableRun(path, "it has no status that we know", RESULT_REMEDY)
    if not is_finite(result):
        raise UnreadableRun(path, "it holds a number that is not finite", RESULT_REMEDY)
    _, last = read_last(folder)
    if chain.sealed and (result.get("records_check") or "") != (last or _unsealed_check(folder, result)):
        why = f"{METRICS} beside it does not end with the record that it ends with"
        raise UnreadableRun(path, why, AGREE_REMEDY)
    if last is not None and not chain.sealed:
        raise UnreadableRun(path, "it has lost its checksum", RESULT_REMEDY)
    return (_unsealed(result, "records", "records_check") if chain.sealed else result), chain.sealed


def _unsealed_check(folder: Path, result: dict[str, Any]) -> str:
    """The check that a file comes to whose last record carries none: all of it was written before there were seals."""
    return whole(folder).check if result.get("records") else ""


def _unsealed(record: dict[str, Any], *more: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("run", "check", *more)}
