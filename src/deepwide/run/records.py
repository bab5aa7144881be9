"""What lies where in a run folder, and JSON that is state: read back, it is the record or a stop that names the remedy.

<runs>/<id>/config.json      resolved config and the counts of the run, written once
            metrics.jsonl    append-only, one record per line, torn tail cut when a lease is taken
            lease.json       who works on it until when, fencing number
            checkpoints/<step>/{state.json, *.safetensors, manifest.json}
            result.json      exists if and only if the run has finished: done, diverged, oom, failed
"""

import json
import math
import os
from pathlib import Path
from typing import Any

from deepwide import files
from deepwide.errors import DeepwideError


class UnreadableRun(DeepwideError):  # noqa: N818
    """State that cannot be read: the run stops here and never starts over by itself."""

    def __init__(self, path: Path, why: str, remedy: str) -> None:
        super().__init__(f"{path} is unreadable ({why}), so nothing was changed: {remedy}.")
        self.path, self.why, self.remedy = path, why, remedy


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
    content = read_content(path, remedy)
    return None if content is None else parse(content, path, remedy)


def read_content(path: Path, remedy: str) -> bytes | None:
    """The bytes of a small regular file, None when there is no file."""
    try:
        with files.open_regular(path) as file:
            too_large = os.fstat(file.fileno()).st_size > files.LARGEST_JSON
            content = b"" if too_large else file.read()
    except FileNotFoundError:
        return None
    except files.NotRegularError as error:
        raise UnreadableRun(path, str(error.strerror), remedy) from None
    if too_large:
        raise UnreadableRun(path, f"it is larger than {files.LARGEST_JSON >> 20} MiB", remedy)
    return content


def parse(content: bytes, path: Path, remedy: str) -> dict[str, Any]:
    """The JSON object in the content of a file."""
    record = parse_line(content)
    if isinstance(record, str):
        raise UnreadableRun(path, record, remedy)
    return record


def parse_line(content: bytes) -> dict[str, Any] | str:
    """A JSON object, or what is wrong with it."""
    try:
        record = _DECODER.decode(content.decode())
    except (ValueError, RecursionError):
        return "not JSON"
    return record if isinstance(record, dict) else "not an object"


def is_finite(value: Any) -> bool:
    """Whether every number in a record is one: `1e999` is read as infinity.

    >>> is_finite({"loss": 1.5, "more": [1, None]}), is_finite({"loss": [float("inf")]})
    (True, False)
    """
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict | list):
        return all(
            type(each) in AS_IT_IS or is_finite(each) for each in (value.values() if isinstance(value, dict) else value)
        )
    return True


AS_IT_IS = (str, int, bool, type(None))


def _refuse(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # made once: metrics have millions of lines


def _plain(value: Any) -> Any:
    if type(value) in AS_IT_IS:  # most values; a sweep of very many cells names each by all of its settings
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


CONFIG, METRICS, LEASE, RESULT = "config.json", "metrics.jsonl", "lease.json", "result.json"
CHECKPOINTS, LOCK = "checkpoints", ".lock"
FINISHED = ("done", "diverged", "oom", "failed")  # the statuses of a result


def has_result(folder: Path) -> bool:
    """Whether the run has finished, without reading how."""
    return (folder / RESULT).exists()
