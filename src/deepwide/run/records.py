"""JSON that is state: canonical text in, and on the way back either the record or a stop that names the remedy."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError


class UnreadableRun(DeepwideError):  # noqa: N818
    """State that cannot be read: the run stops here and never starts over by itself."""

    def __init__(self, path: Path, why: str, remedy: str) -> None:
        super().__init__(f"{path} is unreadable ({why}), so nothing was changed: {remedy}.")
        self.path = path


def canonical(value: Any) -> str:
    """One line of JSON, the same for equal values: sorted keys, no NaN (it becomes null).

    >>> canonical({"b": 1.0, "a": float("nan")})
    '{"a":null,"b":1.0}'
    """
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    text.encode()  # a lone surrogate must fail here, not half way through a file
    return text


def read_record(path: Path, remedy: str) -> dict[str, Any] | None:
    """The JSON object in a file, None when there is no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return _parse(content, path, remedy)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON-lines file, each with its integer step, without a torn last line."""
    return [record for _, record in _lines(path)]


def read_last(path: Path, most: int = 8192) -> dict[str, Any]:
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
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            return record
    return {}


def whole_bytes(path: Path, *, until_step: int | None = None) -> int:
    """How many bytes of a JSON-lines file are whole records (of steps up to `until_step`)."""
    end = 0
    for stop, record in _lines(path):
        if until_step is not None and record["step"] > until_step:
            break
        end = stop
    return end


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    end = 0
    # What follows the last line break is a record that a crash cut short (or zeros that never became data).
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        end += len(line) + 1
        where = f"line {number}"
        remedy = f"put the file back from a copy, or cut it before line {number} and the run resumes from there"
        record = _parse(line, path, remedy, where)
        if not isinstance(record.get("step"), int):
            raise UnreadableRun(path, f"{where} has no step", remedy)
        yield end, record


def _parse(content: bytes, path: Path, remedy: str, where: str = "") -> dict[str, Any]:
    prefix = f"{where}: " if where else ""
    try:
        record = json.loads(content.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise UnreadableRun(path, f"{prefix}not JSON", remedy) from None
    if not isinstance(record, dict):
        raise UnreadableRun(path, f"{prefix}not an object", remedy)
    return record


def _refuse(name: str) -> None:
    raise ValueError(name)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
