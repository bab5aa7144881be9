"""What the owner of a run writes: metrics, checkpoints, the result. Each write is refused once the lease is lost."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deepwide import faults, files
from deepwide.run import checkpoint, records
from deepwide.run.layout import CHECKPOINTS, FINISHED, METRICS, RESULT
from deepwide.run.lease import Lease, finished, is_disk_full

KEEP = 2  # checkpoints: the newest, and the one before in case it turns out damaged


class RunWriter:
    """The right to write to one run folder, for a `with` block, which takes the lease and gives it back."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.path, self.run = lease.path, lease.path.name
        self._verified_steps: set[int] = set()
        self._ending, self._note = "interrupted", ""
        self._finished = False

    def __enter__(self) -> Self:
        with self.lease.take():
            try:
                whole = records.whole_bytes(self.path / METRICS)
            except records.UnreadableRun as error:  # stops here; the lease says why, for whoever looks
                self.lease.write("unreadable", str(error))
                raise
            files.clear_temporaries(self.path)
            files.clear_temporaries(self.path / CHECKPOINTS)
            self._cut(whole)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if is_disk_full(error):
            self._ending = "disk_full"
        elif error is not None and not self._note:
            self._note = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        self.lease.give_back(self._ending, self._note)

    @property
    def number(self) -> int:
        """The fencing number: one more than the owner before had."""
        return self.lease.number

    @property
    def lost(self) -> bool:
        """Whether another worker has taken the run over: time to stop."""
        return self.lease.lost

    def leave(self, ending: str, note: str = "") -> None:
        """What lease.json will say when the `with` block ends without a result: why the run stopped."""
        self._ending, self._note = ending, note

    def append(self, record: Mapping[str, Any]) -> None:
        """One line of metrics; it must carry an integer step."""
        assert isinstance(record.get("step"), int), "a record of metrics has an integer step"
        line = (records.canonical(dict(record)) + "\n").encode()
        with self._writing(), open(self.path / METRICS, "ab") as file:
            before = file.tell()
            try:
                faults.write(file, line, "append of metrics")
            except OSError:
                # A full disk may have taken half the line, and the next append must not continue it.
                os.truncate(self.path / METRICS, before)
                raise

    def cut_metrics(self, after_step: int) -> None:
        """Forget records past a step: a resumed run writes them again."""
        with self._writing():
            self._cut(records.whole_bytes(self.path / METRICS, until_step=after_step))

    def checkpoint(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], keep: int = KEEP) -> None:
        """Save a checkpoint; the metrics up to it become durable first, older checkpoints go last."""
        home = self.path / CHECKPOINTS
        target, temporary = home / str(step), files.temporary_beside(home / str(step))
        try:
            with self._writing():
                home.mkdir(exist_ok=True)
                self._sync_metrics()
            checkpoint.write(temporary, self.run, step, tensors, state)
            with self._writing():
                if target.exists():  # a damaged one that this run was resumed from before
                    files.remove_folder(target)
                files.move(temporary, target)
                self._verified_steps.add(step)
                self._prune(home, step, keep)
        except FileNotFoundError:
            self._raise_if_lost()  # the next owner has cleared our temporary folder
            raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def finish(self, status: str, **fields: Any) -> None:
        """End the run: from here on it has a result and nobody may write."""
        assert status in FINISHED, f"a run ends {', '.join(FINISHED)}, not {status}"
        with self._writing():
            self._sync_metrics()
            if saved := checkpoint.steps(self.path / CHECKPOINTS):
                self._prune(self.path / CHECKPOINTS, saved[-1], KEEP)
            files.write_file(self.path / RESULT, (records.canonical({"status": status} | fields) + "\n").encode())
            self._finished = True
        self._ending = status

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """The lock, the fence, and a run that has not finished."""
        with self.lease.fenced():
            if self._finished:
                raise finished(self.path)
            yield

    def _raise_if_lost(self) -> None:
        with self._writing():
            pass

    def _cut(self, size: int) -> None:
        path = self.path / METRICS
        if path.exists() and path.stat().st_size > size:
            files.write_file(path, path.read_bytes()[:size])

    def _sync_metrics(self) -> None:
        if (self.path / METRICS).exists():
            with open(self.path / METRICS, "rb") as file:
                os.fsync(file.fileno())
            faults.point("after fsync of metrics")

    def _prune(self, home: Path, newest: int, keep: int) -> None:
        """Keep the newest good ones up to `newest`; anything past it was found damaged on resume."""
        good = 1
        for step in reversed(checkpoint.steps(home)):
            if step == newest:
                continue
            if step < newest and good < keep and self._is_good(home, step):
                good += 1
            else:
                files.remove_folder(home / str(step))

    def _is_good(self, home: Path, step: int) -> bool:
        if step not in self._verified_steps and checkpoint.verifies(home / str(step), self.run):
            self._verified_steps.add(step)
        return step in self._verified_steps
