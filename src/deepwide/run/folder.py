"""A run folder: the whole truth about one run. What lies where in it is in records.py.

`read_runs` gives every run in a folder as records, finished or not: what it was, what it counts and how it ended.
"""

import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from deepwide import faults, files
from deepwide.errors import DeepwideError
from deepwide.run import checkpoint, metrics, records
from deepwide.run.lease import LEASE_SECONDS, PATIENCE_SECONDS, Lease, lock, read_lease
from deepwide.run.metrics import read_checked_result, read_result
from deepwide.run.records import CHECKPOINTS, CONFIG, LEASE, METRICS, RESULT
from deepwide.run.seals import Chain, seal
from deepwide.run.writer import RunWriter

CONFIG_REMEDY = "put it back from a copy, or move the folder away and the run starts anew"
ABANDONED_SECONDS = 600  # after which a half-made folder is nobody's
log = logging.getLogger("deepwide.run")


class NotARun(records.UnreadableRun):
    """A folder without a config: not a run, or one that lost it."""

    def __init__(self, path: Path, remedy: str) -> None:
        DeepwideError.__init__(self, f"{path} is not a run folder: it has no {CONFIG}. If it was one, {remedy}.")
        self.path, self.why, self.remedy = path / CONFIG, f"the folder has no {CONFIG}", remedy


def local_path(path: Path | str, name: str) -> Path:
    """Refuse an address: a run lives on a file system with locks, and 's3:' must not become a folder's name.

    >>> local_path("s3://bucket/runs", "runs")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    deepwide.errors.DeepwideError: runs s3:… is an address: run folders need a file system with locks ...
    """
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/", str(path))  # pathlib turns two slashes into one
    if scheme:
        raise DeepwideError(
            f"{name} {scheme[1]}:… is an address: run folders need a file system with locks (a local disk, NFSv4, "
            "Lustre with flock, GPFS, CephFS): keep them on one, and copy finished runs to the store."
        )
    return Path(path)


def run_id(config: Mapping[str, Any], *, data_fingerprint: str, numerics: str) -> str:
    """The name of a run: a hash of everything that determines its numbers.

    >>> run_id({"lr": 0.1, "depth": 2}, data_fingerprint="d", numerics="1")
    'f55db4cb5fba6ce5'
    """
    determining = {"config": dict(config), "data": data_fingerprint, "numerics": numerics}
    return hashlib.sha256(records.canonical(determining).encode()).hexdigest()[:16]


class RunFolder:
    """One run on disk. Reading needs nothing; writing needs a lease."""

    def __init__(self, path: Path, record: Mapping[str, Any], *, checked: bool = True) -> None:
        self.path, self.checked = path, checked
        self.id = path.name
        self.config: dict[str, Any] = dict(record["config"])
        self.data_fingerprint = str(record["data"])
        self.numerics = str(record["numerics"])
        # Depth, width, parameters, FLOPs …: empty in folders made before they were written.
        self.counts: dict[str, int | float] = dict(record.get("counts", {}))

    @classmethod
    def create(
        cls,
        runs: Path,
        config: Mapping[str, Any],
        *,
        data_fingerprint: str,
        numerics: str,
        counts: Mapping[str, int | float] | None = None,
    ) -> Self:
        """The folder of a run, made if need be; the same inputs always give the same one.

        `counts` (depth, width, block_params, total_params, steps, tokens, train_flops, …) follow from the config, so
        they are written beside it for whoever reads the run and are no part of its id.
        """
        name = run_id(config, data_fingerprint=data_fingerprint, numerics=numerics)
        path = local_path(runs, "the folder of runs") / name
        if not path.exists():
            record = {"config": dict(config), "data": data_fingerprint, "numerics": numerics}
            record |= {"counts": dict(counts)} if counts else {}
            files.make_folder(path.parent)
            temporary = files.temporary_beside(path)
            temporary.mkdir()
            try:
                _clear_abandoned(path, now=temporary.stat().st_mtime)
                files.write_new(temporary / CONFIG, seal(record, name) + b"\n")
                files.sync_folder(temporary)
                files.move(temporary, path)
            except OSError:
                if not path.exists():  # else another process was quicker, with the same content
                    raise
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """A run that exists; stops when its config is unreadable or is not the one it was named for."""
        path = Path(os.path.abspath(path))
        content = records.read_content(path / CONFIG, CONFIG_REMEDY)
        if content is None:
            raise NotARun(path, CONFIG_REMEDY)
        record = records.parse(content, path / CONFIG, CONFIG_REMEDY)
        if not {"config", "data", "numerics"} <= record.keys() or not isinstance(record["config"], dict):
            raise records.UnreadableRun(path / CONFIG, "its fields are not those of a run", CONFIG_REMEDY)
        if not _are_counts(record.get("counts", {})):
            raise records.UnreadableRun(path / CONFIG, "its counts are not numbers by name", CONFIG_REMEDY)
        try:
            named = run_id(record["config"], data_fingerprint=record["data"], numerics=record["numerics"])
        except RecursionError:
            raise records.UnreadableRun(path / CONFIG, "nested too deep", CONFIG_REMEDY) from None
        if named != path.name:
            why = f"its content belongs to run {named}: the folder was renamed or the file changed"
            raise records.UnreadableRun(path / CONFIG, why, CONFIG_REMEDY)
        try:
            chain = Chain().after(path.name, content.rstrip(b"\n"))
        except ValueError as error:
            raise records.UnreadableRun(path / CONFIG, str(error).partition(",")[0], CONFIG_REMEDY) from None
        if not chain.sealed and not record.keys() <= {"config", "data", "numerics", "counts"}:
            raise records.UnreadableRun(path / CONFIG, "its checksum is damaged", CONFIG_REMEDY)
        return cls(path, record, checked=chain.sealed)

    def metrics(self) -> list[dict[str, Any]]:
        """Every whole record so far; a torn last line is not one."""
        return metrics.read_metrics(self.path)

    def records(self) -> Iterator[dict[str, Any]]:
        """The same, one after the other."""
        return (record for _, record in metrics.lines(self.path))

    def sample(self) -> list[dict[str, Any]]:
        """The records for a picture: of a very long file those of evenly spread pieces, in bounded time and memory."""
        return metrics.sample(self.path)

    def last_record(self) -> dict[str, Any]:
        """The last whole record of metrics, found without reading the others; empty when there is none."""
        return metrics.read_last(self.path)[0]

    def checkpoint_steps(self) -> list[int]:
        """The steps there are checkpoints of, good or bad, rising."""
        return checkpoint.steps(self.path / CHECKPOINTS)

    def result(self) -> dict[str, Any] | None:
        """How the run ended, None while it has not."""
        return read_result(self.path)

    def lease_record(self) -> dict[str, Any] | None:
        """What lease.json says, None when nobody has worked on the run."""
        return read_lease(self.path)

    def latest_checkpoint(self, framework: checkpoint.Framework = "torch") -> checkpoint.Checkpoint | None:
        """The newest checkpoint whose every byte verifies and whose metrics are there; warns about each it skips."""
        home = self.path / CHECKPOINTS
        steps = checkpoint.steps(home)
        unreached: OSError | None = None
        ahead = 0
        for step in reversed(steps):
            try:
                newest = checkpoint.read(home / str(step), self.id, framework)
            except checkpoint.BadCheckpoint as error:
                log.warning("checkpoint %d is damaged and was skipped: %s.", step, error)
                continue
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                log.warning("checkpoint %d cannot be read and was skipped: %s.", step, error)
                unreached = error
                continue
            before = newest.metrics
            if before is not None and not metrics.holds(self.path, before):
                log.warning("checkpoint %d was skipped: %s lacks records before it.", step, METRICS)
                ahead += 1
                continue
            if step != steps[-1]:
                log.warning("run %s resumes from the checkpoint before, step %d.", self.id, step)
            return newest
        if unreached is not None:
            raise unreached
        if ahead:
            why = f"it does not hold the records before any of its {len(steps)} checkpoints"
            raise records.UnreadableRun(self.path / METRICS, why, metrics.METRICS_REMEDY)
        if steps:
            remedy = f"put them back from a copy, or {metrics.START_OVER}"
            raise records.UnreadableRun(home, f"none of its {len(steps)} checkpoints is whole", remedy)
        return None

    def checkpoint_at(self, step: int, framework: checkpoint.Framework = "torch") -> checkpoint.Checkpoint:
        """The checkpoint of one step, verified."""
        steps = self.checkpoint_steps()
        if step not in steps:
            held = ", ".join(map(str, steps)) or "none"
            raise DeepwideError(f"run {self.id} has no checkpoint of step {step}: it has {held}.")
        try:
            return checkpoint.read(self.path / CHECKPOINTS / str(step), self.id, framework)
        except checkpoint.BadCheckpoint as error:
            raise DeepwideError(f"checkpoint {step} is damaged: {error}: take another step.") from None

    def lease(self, owner: str, seconds: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS) -> RunWriter:
        """The right to write, for a `with` block; raises `LeaseHeld` or `RunFinished` on entry."""
        return RunWriter(Lease(self.path, owner, seconds, patience))

    def reopen(self) -> str | None:
        """Take a result back, so that the run can resume from its last checkpoint; returns the status it had."""
        with lock(self.path):
            result = self.result()
            if result is None:
                return None
            taken_back = [path.name.split(".")[1] for path in self.path.glob("result.*.json")]
            number = max((int(name) for name in taken_back if name.isdecimal()), default=0) + 1
            os.rename(self.path / RESULT, self.path / f"result.{number}.json")
            files.sync_folder(self.path)
            faults.point("after reopening")
            return str(result["status"])


def _are_counts(counts: Any) -> bool:
    return isinstance(counts, dict) and all(
        isinstance(count, int | float) and not isinstance(count, bool) for count in counts.values()
    )


def _clear_abandoned(path: Path, now: float) -> None:
    """Remove half-made folders of this run that a crash left; one that is young may be being made right now."""
    for half in path.parent.glob(f".{path.name}.*{files.TEMPORARY}"):
        with contextlib.suppress(OSError):
            if now - half.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(half, ignore_errors=True)


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
    checked: bool = True  # False for a result that was written before results carried a checksum


def read_runs(folder: Path | str) -> list[RunRecord]:
    """Every run in a folder of runs (or the one run that it is), by id. One damaged run does not hide the others."""
    return [read_run(path) for path in run_folders(folder)]


def run_folders(folder: Path | str) -> list[Path]:
    """Every run folder in a folder of runs (or the one that it is), by name, damaged ones too."""
    folder = Path(folder)
    if (folder / CONFIG).exists():
        return [folder]
    return [path for path in sorted(folder.iterdir()) if _looks_like_a_run(path)] if folder.is_dir() else []


def read_run(path: Path) -> RunRecord:
    """One run; what is wrong with its folder becomes its status and error."""
    try:
        run = RunFolder.open(path)
        ended = read_checked_result(path)
    except (DeepwideError, OSError) as error:
        return RunRecord(path, path.name, {}, {}, UNREADABLE, error=str(error))
    if ended is None:
        return RunRecord(path, run.id, run.config, run.counts, UNFINISHED, data_fingerprint=run.data_fingerprint)
    result, checked = ended
    return RunRecord(
        path, run.id, run.config, run.counts, result["status"], result, reason(result), run.data_fingerprint, checked
    )


def _looks_like_a_run(path: Path) -> bool:
    """Also one that lost its config; not a folder in the making."""
    return not path.name.startswith(".") and any((path / name).exists() for name in (CONFIG, METRICS, LEASE, RESULT))


def reason(result: Mapping[str, Any]) -> str:
    """Why a run ended otherwise than done, as its result says it."""
    return str(result.get("error") or result.get("why") or "")
