"""Every byte of a run folder read and compared with what was written: what is damaged, and what to do about it.

`unchecked` are files from before records carried checksums, `leftover` is what a killed worker left and the next one
removes; neither is damage.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deepwide import files
from deepwide.errors import DeepwideError
from deepwide.run import checkpoint, metrics
from deepwide.run.folder import RunFolder
from deepwide.run.lease import read_lease
from deepwide.run.records import CHECKPOINTS, CONFIG, METRICS, RESULT, UnreadableRun, read_content
from deepwide.run.seals import Chain

Kind = Literal["damaged", "unchecked", "leftover"]
OLD = "it was written before records carried checksums"


@dataclass(frozen=True)
class Finding:
    """One file that is not known to be as it was written."""

    run: str
    file: str  # relative to the run's folder
    kind: Kind
    what: str
    remedy: str = ""


def scrub(path: Path) -> list[Finding]:
    """What is wrong with one run folder; empty when every byte is as it was written. Reads all, writes nothing."""
    return list(_scrub(path))


def _scrub(path: Path) -> Iterator[Finding]:
    try:
        if not RunFolder.open(path).checked:
            yield Finding(path.name, CONFIG, "unchecked", OLD)
    except (DeepwideError, OSError) as error:
        yield _damaged(path, error, path)
    try:
        read_lease(path)
    except (DeepwideError, OSError) as error:
        yield _damaged(path, error, path)
    saved: dict[int, Chain | str | None] = {}
    try:
        saved = _read_checkpoints(path)  # before the metrics, which a worker may be adding to
    except (DeepwideError, OSError) as error:
        yield _damaged(path, error, path / CHECKPOINTS)
    asked_for = {before.records for before in saved.values() if isinstance(before, Chain)}
    checks = {0: ""}
    chain = Chain()
    try:
        for chain, _ in metrics.lines(path):
            if chain.records in asked_for:
                checks[chain.records] = chain.check
    except (DeepwideError, OSError) as error:
        yield _damaged(path, error, path / METRICS)
    else:
        if chain.records and not chain.sealed:  # a sealed last record checks those before it too
            yield Finding(path.name, METRICS, "unchecked", OLD)
    yield from _scrub_results(path)
    yield from _scrub_checkpoints(path, saved, checks)
    for folder in (path, path / CHECKPOINTS):
        if folder.is_dir():
            for left in sorted(folder.iterdir()):
                if files.is_temporary(left):
                    why = "a worker that was killed left it; the next one removes it"
                    yield Finding(path.name, _inside(path, left), "leftover", why)


def _scrub_results(path: Path) -> Iterator[Finding]:
    try:
        checked = metrics.read_checked_result(path)
        if checked is not None and not checked[1]:
            yield Finding(path.name, RESULT, "unchecked", OLD)
    except (DeepwideError, OSError) as error:
        yield _damaged(path, error, path / RESULT)
    for earlier in sorted(path.glob("result.*.json")):  # taken back when the run was retried
        if not re.fullmatch(r"result\.\d+\.json", earlier.name):
            continue
        try:
            content = read_content(earlier, "delete it")
            Chain().after(path.name, (content or b"").rstrip(b"\n"))
        except (ValueError, OSError) as error:
            yield Finding(path.name, earlier.name, "damaged", str(error), "delete it: nothing reads it")


def _read_checkpoints(path: Path) -> dict[int, Chain | str | None]:
    """What each checkpoint says about the records before it; a text for one that does not verify."""
    home, saved = path / CHECKPOINTS, dict[int, Chain | str | None]()
    for step in checkpoint.steps(home):
        try:
            saved[step] = checkpoint.verify(home / str(step), path.name)
        except (checkpoint.BadCheckpoint, OSError) as error:
            if (home / str(step)).exists():  # else a worker has removed it meanwhile, for a newer one
                saved[step] = " ".join(str(error).split())
    return saved


def _scrub_checkpoints(path: Path, saved: dict[int, Chain | str | None], checks: dict[int, str]) -> Iterator[Finding]:
    good = [step for step, before in saved.items() if not isinstance(before, str)]
    for step, before in saved.items():
        file = f"{CHECKPOINTS}/{step}"
        if before is None:
            yield Finding(path.name, file, "unchecked", "it does not say which metrics belong to it")
        elif isinstance(before, str):
            remedy = "put it back from a copy, or delete it"
            remedy += f": the run has step {good[-1]} too" if good else f"; to train again, {metrics.START_OVER}"
            yield Finding(path.name, file, "damaged", before, remedy)
        elif checks.get(before.records) != before.check:
            what = f"{METRICS} does not hold the {before.records} records before it"
            yield Finding(path.name, file, "damaged", what, metrics.METRICS_REMEDY)


def _damaged(path: Path, error: Exception, file: Path) -> Finding:
    if isinstance(error, UnreadableRun):
        return Finding(path.name, _inside(path, error.path), "damaged", error.why, error.remedy)
    return Finding(path.name, _inside(path, file), "damaged", " ".join(str(error).split()), "check the disk")


def _inside(path: Path, file: Path) -> str:
    return str(file.relative_to(path)) if file.is_relative_to(path) and file != path else file.name
