"""What lies where in a run folder, and the words for how a run ends. Nobody else spells these names.

<runs>/<id>/config.json      resolved config and the counts of the run, written once
            metrics.jsonl    append-only, one record per line, torn tail cut when a lease is taken
            lease.json       who works on it until when, fencing number
            checkpoints/<step>/{state.json, *.safetensors, manifest.json}
            result.json      exists if and only if the run has finished: done, diverged, oom, failed
"""

from pathlib import Path
from typing import Any

from deepwide.run import records

CONFIG, METRICS, LEASE, RESULT = "config.json", "metrics.jsonl", "lease.json", "result.json"
CHECKPOINTS, LOCK = "checkpoints", ".lock"
FINISHED = ("done", "diverged", "oom", "failed")  # the statuses of a result
RESULT_REMEDY = "put it back from a copy, or delete it and the run resumes from its last checkpoint"


def has_result(folder: Path) -> bool:
    """Whether the run has finished, without reading how."""
    return (folder / RESULT).exists()


def read_result(folder: Path) -> dict[str, Any] | None:
    """How a run ended, None while it has not."""
    result = records.read_record(folder / RESULT, RESULT_REMEDY)
    if result is not None and result.get("status") not in FINISHED:
        raise records.UnreadableRun(folder / RESULT, "it has no status that we know", RESULT_REMEDY)
    return result
