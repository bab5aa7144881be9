"""The learning curve of a run, in bounded time and memory however long its metrics are.

Of very long metrics only pieces are read, at places that are equally far apart, and the curve says so.
"""

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes
from deepwide.run import SAMPLE_BYTES, RunFolder

METRICS = "metrics.jsonl"
MOST_POINTS = 400  # of one curve
Points = list[tuple[int, float]]


class Curve(Answer):
    """The learning curve of one run, thinned out where it is long."""

    id: str
    points: tuple[tuple[int, float], ...]  # step, training loss
    validation: tuple[tuple[int, float], ...] = ()
    note: str = ""  # where not every record was read
    error: str = ""


def read_curve(runs: Path, name: str) -> Curve:
    """The curve of a run of the folder; what cannot be read is its error."""
    path = runs / name / METRICS
    try:
        run = RunFolder.open(runs / name)
        size = os.lstat(path).st_size if os.path.lexists(path) else 0
        if path.is_symlink():
            raise DeepwideError(f"{METRICS} is a link, and links are not followed here.")
        records = run.sample()
    except (DeepwideError, OSError) as error:
        return Curve(id=name, points=(), error=str(error))
    words = f"{show_bytes(SAMPLE_BYTES)} of {show_bytes(size)} of records, spread evenly" if size > SAMPLE_BYTES else ""
    losses, validation = (thinned(_points(records, key)) for key in ("loss", "validation_loss"))
    return Curve(id=name, points=tuple(losses), validation=tuple(validation), note=words)


def _points(records: Iterable[dict[str, Any]], key: str) -> Points:
    return [
        (record["step"], float(value))
        for record in records
        if isinstance(value := record.get(key), int | float) and math.isfinite(value)
    ]


def thinned(points: Points) -> Points:
    """At most so many of them, the last one included."""
    if len(points) <= MOST_POINTS:
        return points
    stride = -(-len(points) // (MOST_POINTS - 1))
    return [*points[::stride], points[-1]]
