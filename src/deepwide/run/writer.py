"""What the owner of a run writes: metrics, checkpoints, the result. Each write is refused once the lease is lost."""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from deepwide import faults, files
from deepwide.run import checkpoint, metrics
from deepwide.run.lease import Lease, finished, is_disk_full
from deepwide.run.records import CHECKPOINTS, FINISHED, METRICS, RESULT, UnreadableRun, has_result
from deepwide.run.seals import Chain, seal

KEEP = 2  # checkpoints: the newest, and the one before in case it turns out damaged


class RunWriter:
    """The right to write to one run folder, for a `with` block, which takes the lease and gives it back."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.path, self.run = lease.path, lease.path.name
        self._verified_steps: set[int] = set()
        self._ending, self._note = "interrupted", ""
        self._chain = Chain()  # of the metrics as this writer left them
        self._entries_synced = False  # of the folder: metrics.jsonl and checkpoints/ outlive a power cut

    def __enter__(self) -> Self:
        try:
            self._take()
        except (OSError, MemoryError) as error:
            # A lease that was written must not look held until it expires: nobody works on the run.
            self.lease.give_back("disk_full" if is_disk_full(error) else "interrupted", _note(error))
            raise
        self.lease.start_heartbeat()
        return self

    def _take(self) -> None:
        with self.lease.take():
            try:
                chain = metrics.whole(self.path)
                saved = checkpoint.steps(self.path / CHECKPOINTS)
                if chain.records and self.lease.saved and not saved:
                    why = "it is gone or empty, and the run has saved checkpoints there"
                    remedy = f"put it back (is its disk mounted?), or {metrics.START_OVER}"
                    raise UnreadableRun(self.path / CHECKPOINTS, why, remedy)
            except UnreadableRun as error:  # stops here; the lease says why, for whoever looks
                self.lease.write("unreadable", str(error))
                raise
            if self.lease.saved != bool(saved):
                self.lease.saved = bool(saved)
                self.lease.write("")
            files.clear_temporaries(self.path)
            files.clear_temporaries(self.path / CHECKPOINTS)
            # A sync that failed once may succeed the next time without having written what it could not write.
            self._cut(chain, anew=self.lease.after_error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if is_disk_full(error):
            self._ending = "disk_full"
        elif error is not None and not self._note:
            self._note = _note(error)
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
        line = seal(record, self.run, self._chain.check) + b"\n"
        with self._writing(), self._open_metrics() as file:
            if file.tell() != self._chain.size:
                why = f"it has {file.tell()} bytes where its writer left {self._chain.size}: somebody changed it"
                raise UnreadableRun(self.path / METRICS, why, metrics.METRICS_REMEDY)
            try:
                faults.write(file, line, "append of metrics")
            except BaseException:
                # A full disk may have taken half the line, and the next append must not continue it.
                os.truncate(self.path / METRICS, self._chain.size)
                raise
            self._chain = self._chain.after(self.run, line[:-1])

    def _open_metrics(self) -> BinaryIO:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            return open(os.open(self.path / METRICS, flags, 0o644), "ab")
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise UnreadableRun(self.path / METRICS, "it is a link", metrics.METRICS_REMEDY) from None

    def cut_metrics(self, after_step: int) -> None:
        """Forget records past a step: a resumed run writes them again."""
        with self._writing():
            self._cut(metrics.whole(self.path, until_step=after_step))

    def checkpoint(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], keep: int = KEEP) -> None:
        """Save a checkpoint; the metrics up to it become durable first, older checkpoints go last."""
        home = self.path / CHECKPOINTS
        target, temporary = home / str(step), files.temporary_beside(home / str(step))
        try:
            with self._writing():
                home.mkdir(exist_ok=True)
                self._sync_metrics()
                chain = self._chain
                if self._is_saved(target):  # replacing it would leave an instant without either
                    return
            checkpoint.write(temporary, self.run, step, tensors, state, chain)
            with self._writing():
                if target.exists():  # a damaged one, past the one that this run was resumed from
                    files.remove_folder(target)
                files.move(temporary, target)
                self._verified_steps.add(step)
                if not self.lease.saved:  # from here on, a folder without checkpoints has lost them
                    self.lease.saved = True
                    self.lease.write("")
                self._prune(home, step, keep)
        except FileNotFoundError:
            self._raise_if_lost()  # the next owner has cleared our temporary folder
            raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def finish(self, status: str, keep: int = KEEP, /, **fields: Any) -> None:
        """End the run: from here on it has a result and nobody may write."""
        assert status in FINISHED, f"a run ends {', '.join(FINISHED)}, not {status}"
        with self._writing():
            self._sync_metrics()
            if saved := checkpoint.steps(self.path / CHECKPOINTS):
                self._prune(self.path / CHECKPOINTS, saved[-1], keep)
            ends_with = {"records": self._chain.records, "records_check": self._chain.check}
            line = seal({"status": status} | fields | ends_with, self.run)
            files.write_file(self.path / RESULT, line + b"\n")
        self._ending, self._note = status, ""

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """The lock, the fence, and a run that has not finished."""
        with self.lease.fenced():
            if has_result(self.path):
                raise finished(self.path)
            yield

    def _raise_if_lost(self) -> None:
        with self._writing():
            pass

    def _cut(self, chain: Chain, *, anew: bool = False) -> None:
        path = self.path / METRICS
        if path.exists() and (anew or path.stat().st_size > chain.size):
            with files.open_regular(path) as file:
                files.write_file(path, file.read(chain.size))
        self._chain = chain

    def _sync_metrics(self) -> None:
        if self._chain.records:
            with open(self.path / METRICS, "rb") as file:
                files.sync(file.fileno(), METRICS)
            faults.point("after fsync of metrics")
        if not self._entries_synced:
            files.sync_folder(self.path)
            self._entries_synced = bool(self._chain.records)

    def _prune(self, home: Path, newest: int, keep: int) -> None:
        """Keep the newest good ones up to `newest`; anything past it was found damaged on resume."""
        good, removed = 1, False
        for step in reversed(checkpoint.steps(home)):
            if step == newest:
                continue
            if step < newest and good < keep and self._is_good(home, step):
                good += 1
            else:
                files.remove_folder(home / str(step))
                removed = True
        if removed:  # or a power cut brings it back, and in a finished run it would stay
            files.sync_folder(home)

    def _is_saved(self, target: Path) -> bool:
        """Whether a whole checkpoint of this moment is there: a worker asked to stop may not have moved on."""
        try:
            before = checkpoint.verify(target, self.run)
        except checkpoint.BadCheckpoint:
            return False
        return before is not None and before[:2] == self._chain[:2]

    def _is_good(self, home: Path, step: int) -> bool:
        if step not in self._verified_steps:
            try:
                checkpoint.verify(home / str(step), self.run)
            except checkpoint.BadCheckpoint:
                return False
            self._verified_steps.add(step)
        return True


def _note(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
