"""A run folder: the whole truth about one run. What lies where in it is in layout.py."""

import contextlib
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from deepwide import faults, files
from deepwide.errors import DeepwideError
from deepwide.run import checkpoint, records
from deepwide.run.layout import CHECKPOINTS, CONFIG, METRICS, RESULT, read_result
from deepwide.run.lease import LEASE_SECONDS, Lease, read_lease
from deepwide.run.lock import PATIENCE_SECONDS, lock
from deepwide.run.writer import RunWriter

CONFIG_REMEDY = "put it back from a copy, or move the folder away and the run starts anew"
ABANDONED_SECONDS = 600  # after which a half-made folder is nobody's
log = logging.getLogger("deepwide.run")


class NotARun(records.UnreadableRun):
    """A folder without a config: not a run, or one that lost it."""

    def __init__(self, path: Path, remedy: str) -> None:
        DeepwideError.__init__(self, f"{path} is not a run folder: it has no {CONFIG}. If it was one, {remedy}.")
        self.path = path / CONFIG


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

    def __init__(self, path: Path, record: Mapping[str, Any]) -> None:
        self.path = path
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
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = files.temporary_beside(path)
            temporary.mkdir()
            try:
                _clear_abandoned(path, now=temporary.stat().st_mtime)
                files.write_new(temporary / CONFIG, (records.canonical(record) + "\n").encode())
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
        record = records.read_record(path / CONFIG, CONFIG_REMEDY)
        if record is None:
            raise NotARun(path, CONFIG_REMEDY)
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
        return cls(path, record)

    def metrics(self) -> list[dict[str, Any]]:
        """Every whole record so far; a torn last line is not one."""
        return records.read_lines(self.path / METRICS)

    def last_record(self) -> dict[str, Any]:
        """The last whole record of metrics, found without reading the others; empty when there is none."""
        return records.read_last(self.path / METRICS)

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
        """The newest checkpoint whose every byte verifies; warns about each one it had to skip."""
        home = self.path / CHECKPOINTS
        steps = checkpoint.steps(home)
        for step in reversed(steps):
            try:
                newest = checkpoint.read(home / str(step), self.id, framework)
            except checkpoint.BadCheckpoint as error:
                log.warning("checkpoint %d is damaged and was skipped: %s.", step, error)
                continue
            if step != steps[-1]:
                log.warning("run %s resumes from the checkpoint before, step %d.", self.id, step)
            return newest
        if steps:
            remedy = "put them back from a copy, or delete this folder to train from the beginning"
            raise records.UnreadableRun(home, f"none of its {len(steps)} checkpoints is whole", remedy)
        return None

    def lease(self, owner: str, seconds: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS) -> RunWriter:
        """The right to write, for a `with` block; raises `LeaseHeld` or `RunFinished` on entry."""
        return RunWriter(Lease(self.path, owner, seconds, patience))

    def reopen(self) -> str | None:
        """Take a result back, so that the run can resume from its last checkpoint; returns the status it had."""
        with lock(self.path):
            result = self.result()
            if result is None:
                return None
            number = sum(1 for _ in self.path.glob("result.*.json")) + 1
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
