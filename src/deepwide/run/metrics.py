"""Records that are checked when they are read: every line of metrics.jsonl, and result.json.

Each carries a seal (seals.py). Those written before there were seals are read as they are, and count as unchecked.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepwide import files
from deepwide.run.records import FINISHED, METRICS, RESULT, UnreadableRun, is_finite, parse, read_content
from deepwide.run.seals import Chain, split

LONGEST_LINE = 1 << 20  # bytes
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


def lines(folder: Path) -> Iterator[tuple[Chain, dict[str, Any]]]:
    """Each record with the chain up to it, checked, in bounded memory."""
    path, chain = folder / METRICS, Chain()
    try:
        file = files.open_regular(path)
    except FileNotFoundError:
        return
    except files.NotRegularError as error:
        raise UnreadableRun(path, str(error.strerror), METRICS_REMEDY) from None
    with file:
        while True:
            line = file.readline(LONGEST_LINE)
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                return  # a record that a crash cut short, or zeros that never became data
            where = f"line {chain.records + 1}"
            remedy = (
                f"put the file back from a copy, or cut it before {where} and the run resumes from the newest "
                "checkpoint that is not past it"
            )
            if not line.endswith(b"\n"):
                if not line.strip(b"\0"):
                    return
                raise UnreadableRun(path, f"{where}: longer than {LONGEST_LINE >> 20} MiB", remedy)
            record = parse(line, path, remedy, where)
            try:
                chain = chain.after(folder.name, line[:-1])
            except ValueError as error:
                raise UnreadableRun(path, f"{where}: {error}", remedy) from None
            if isinstance(record.get("step"), bool) or not isinstance(record.get("step"), int):
                raise UnreadableRun(path, f"{where} has no step", remedy)
            if not is_finite(record):
                raise UnreadableRun(path, f"{where} holds a number that is not finite", remedy)
            yield chain, _unsealed(record) if chain.sealed else record


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
