"""Run folders as records: every run in a folder, finished or not, with what it was, what it counts and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.run.folder import RunFolder
from deepwide.run.layout import CONFIG, LEASE, METRICS, RESULT

UNREADABLE, UNFINISHED = "unreadable", "unfinished"


@dataclass(frozen=True)
class RunRecord:
    """One run as its folder states it.

    `status` is `done`, `diverged`, `oom` or `failed` for a run that has finished, `unfinished` for one that has not,
    and `unreadable` where the folder is damaged; `error` says why a run failed or cannot be read. `counts` is empty in
    folders made before runs stated their counts.
    """

    path: Path
    id: str
    config: Mapping[str, Any]
    counts: Mapping[str, int | float]
    status: str
    result: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    data_fingerprint: str = ""


def read_runs(folder: Path | str) -> list[RunRecord]:
    """Every run in a folder of runs (or the one run that it is), by id. One damaged run does not hide the others."""
    folder = Path(folder)
    if (folder / CONFIG).exists():
        return [read_run(folder)]
    return [read_run(path) for path in sorted(folder.iterdir()) if _looks_like_a_run(path)] if folder.is_dir() else []


def read_run(path: Path) -> RunRecord:
    """One run; what is wrong with its folder becomes its status and error."""
    try:
        run = RunFolder.open(path)
        result = run.result()
    except (DeepwideError, OSError) as error:
        return RunRecord(path, path.name, {}, {}, UNREADABLE, error=str(error))
    if result is None:
        return RunRecord(path, run.id, run.config, run.counts, UNFINISHED, data_fingerprint=run.data_fingerprint)
    return RunRecord(
        path, run.id, run.config, run.counts, result["status"], result, reason(result), run.data_fingerprint
    )


def _looks_like_a_run(path: Path) -> bool:
    """Also one that lost its config; not a folder in the making."""
    return not path.name.startswith(".") and any((path / name).exists() for name in (CONFIG, METRICS, LEASE, RESULT))


def reason(result: Mapping[str, Any]) -> str:
    """Why a run ended otherwise than done, as its result says it."""
    return str(result.get("error") or result.get("why") or "")
