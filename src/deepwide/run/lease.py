"""Who may write to a run folder, and until when.

A lease is `lease.json`: owner, fencing number, how long it lasts. It is renewed by a heartbeat that touches the file,
and it has expired when its age exceeds its length. Whoever takes it over gets the next number. Every write, the
heartbeat included, happens under the folder's `flock` and only while the number on disk is still the writer's own, so
a worker that was stopped, swapped out or cut off and comes back finds its write refused (`LeaseLost`), not merged.

What is assumed:
- The file system honours `flock` between the machines that share it (local disks, NFSv4, Lustre mounted with `flock`,
  GPFS, CephFS). Where the call fails, the run stops and says so; it never goes on unlocked.
- Clocks: none but the file server's. The lease's age is the difference of two times that the file system itself wrote
  (the modification times of `lease.json` and of the lock, touched just now). A clock that jumps makes a take-over
  come early or late; that can cost work, never a result, because writes are decided by numbers and not by time.
- A process that is frozen while it holds the lock blocks a take-over until it moves or dies: safety before progress.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deepwide import faults, files
from deepwide.errors import DeepwideError
from deepwide.run import checkpoint, records

SECONDS = 60.0
KEPT = 2  # checkpoints: the newest, and the one before in case it turns out damaged
FULL = (errno.ENOSPC, errno.EDQUOT)
STATUSES = ("done", "diverged", "oom", "failed")
LEASE, LOCK, METRICS, RESULT, CHECKPOINTS = "lease.json", ".lock", "metrics.jsonl", "result.json", "checkpoints"
REMEDY = "if no worker runs any more, delete this file"
RESULT_REMEDY = "put it back from a copy, or delete it and the run goes on from its last checkpoint"


class LeaseHeld(DeepwideError):  # noqa: N818
    """Somebody else works on this run."""


class LeaseLost(DeepwideError):  # noqa: N818
    """This worker's lease was taken over: nothing it still has to say is written."""


class RunOver(DeepwideError):  # noqa: N818
    """The run has its result already."""


class Lease:
    """The right to write to one run folder; use it in a `with` block. All writing goes through it."""

    def __init__(self, path: Path, run: str, owner: str, seconds: float = SECONDS, patience: float = 10.0) -> None:
        if not seconds > 0:
            raise DeepwideError(f"a lease must last longer than {seconds:g} seconds.")
        self.path, self.run, self.owner, self.seconds, self.patience = path, run, owner, seconds, patience
        self.number = 0
        self._good_steps: set[int] = set()
        self._lost = threading.Event()
        self._left = threading.Event()
        self._ending, self._note = "interrupted", ""
        self._over = False
        self._worked, self._since = 0.0, time.monotonic()
        self._heartbeat = threading.Thread(target=self._beat, name=f"lease of {run}", daemon=True)

    # Taking and leaving

    def __enter__(self) -> Self:
        with lock(self.path, self.patience) as now:
            if read_result(self.path) is not None:
                raise RunOver(f"{self.path} is over already: its result.json is there.")
            held = read_lease(self.path)
            if held is not None and (left := seconds_left(self.path, held, now)) > 0:
                raise LeaseHeld(f"{self.path} is held by {held['owner']} for {left:.0f} seconds more.")
            self.number = held["number"] + 1 if held else 1
            self._worked, self._since = float(held.get("worked", 0.0)) if held else 0.0, time.monotonic()
            try:
                whole = records.whole_bytes(self.path / METRICS)
            except records.UnreadableRun as error:  # stops here; only the lease says why, for whoever looks
                self.leave("unreadable", str(error))
                self._write_lease("unreadable")
                raise
            self._write_lease("")
            files.clear_temporaries(self.path)
            files.clear_temporaries(self.path / CHECKPOINTS)
            self._cut(whole)
        self._heartbeat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._heartbeat.join()
        if kind is not None and isinstance(error, OSError) and error.errno in FULL:
            self._ending = "disk_full"
        # Best effort: on a full or vanished disk the lease runs out by itself.
        with contextlib.suppress(LeaseLost, LeaseHeld, OSError), self._fenced():
            self._write_lease(self._ending)

    def leave(self, ending: str, note: str = "") -> None:
        """What lease.json will say when the `with` block ends without a result: why the run stopped."""
        self._ending, self._note = ending, note

    @property
    def lost(self) -> bool:
        """Whether the heartbeat has found the lease taken over."""
        return self._lost.is_set()

    # Writing

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

    def checkpoint(self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], keep: int = KEPT) -> None:
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
                self._good_steps.add(step)
                self._prune(home, step, keep)
        except BaseException as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if isinstance(error, FileNotFoundError):  # the next owner has cleared our temporary folder
                with self._writing():
                    pass
            raise

    def finish(self, status: str, **fields: Any) -> None:
        """End the run: from here on it has a result and nobody may write."""
        assert status in STATUSES, f"a run ends {', '.join(STATUSES)}, not {status}"
        with self._writing():
            self._sync_metrics()
            if saved := checkpoint.steps(self.path / CHECKPOINTS):
                self._prune(self.path / CHECKPOINTS, saved[-1], KEPT)
            files.write_file(self.path / RESULT, (records.canonical({"status": status} | fields) + "\n").encode())
            self._over = True
        self._ending = status

    # Inside

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """`_fenced`, for a run that is not over."""
        with self._fenced():
            if self._over:
                raise RunOver(f"{self.path} is over already: its result.json is there.")
            yield

    @contextlib.contextmanager
    def _fenced(self) -> Iterator[None]:
        """The folder's lock, entered only while this lease's number is the one on disk."""
        with lock(self.path, self.patience):
            held = read_lease(self.path)
            if held is None or held["number"] != self.number:
                self._lost.set()
                by = "removed" if held is None else f"taken over by {held['owner']}"
                raise LeaseLost(f"the lease of {self.path} was {by}; this worker's write was refused.")
            yield

    def _beat(self) -> None:
        while not self._left.wait(self.seconds / 3):
            try:
                with self._fenced():
                    os.utime(self.path / LEASE)
            except LeaseLost:
                return
            except (OSError, DeepwideError):
                continue  # a file system that is away for a moment: try again, the writes will tell

    def _write_lease(self, ended: str) -> None:
        record = {"owner": self.owner, "number": self.number, "seconds": self.seconds, "process": _me()}
        record["worked"] = round(self._worked + time.monotonic() - self._since, 3)  # seconds, over all owners
        record |= {"ended": ended} | ({"note": self._note} if ended and self._note else {})
        content = (records.canonical(record) + "\n").encode()
        try:
            files.write_file(self.path / LEASE, content)
        except OSError as error:
            if ended != "disk_full" or error.errno not in FULL:
                raise
            # Not a byte is left for a second file. These few fit into the block that the first one has.
            with open(self.path / LEASE, "r+b", buffering=0) as file:
                file.write(content.rstrip().ljust(os.fstat(file.fileno()).st_size - 1) + b"\n")

    def _cut(self, size: int) -> None:
        path = self.path / METRICS
        if path.exists() and path.stat().st_size > size:
            files.write_file(path, path.read_bytes()[:size])

    def _sync_metrics(self) -> None:
        if (self.path / METRICS).exists():
            with open(self.path / METRICS, "rb") as file:
                os.fsync(file.fileno())
            faults.point("after fsync of metrics")

    def _prune(self, home: Path, step: int, keep: int) -> None:
        """Keep the newest good ones up to `step`; anything past it was found damaged on resume."""
        kept = 1
        for old in reversed(checkpoint.steps(home)):
            if old == step:
                continue
            if (
                old < step
                and kept < keep
                and (old in self._good_steps or checkpoint.verifies(home / str(old), self.run))
            ):
                self._good_steps.add(old)
                kept += 1
                continue
            files.remove_folder(home / str(old))


@contextlib.contextmanager
def lock(folder: Path, patience: float = 10.0) -> Iterator[float]:
    """The folder's exclusive lock; yields the file system's time. Held for moments, never while computing."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LeaseHeld(f"{folder} is being written to by a process that does not move on.") from None
                time.sleep(0.005)
            except OSError as error:
                raise DeepwideError(
                    f"the file system of {folder} has no locks ({error.strerror}): keep runs on one that has, "
                    "such as a local disk, NFSv4, or Lustre mounted with flock."
                ) from None
        os.utime(handle)
        yield os.fstat(handle).st_mtime
    finally:
        os.close(handle)


def read_result(folder: Path) -> dict[str, Any] | None:
    """How a run ended, None while it has not."""
    found = records.read_record(folder / RESULT, RESULT_REMEDY)
    if found is not None and found.get("status") not in STATUSES:
        raise records.UnreadableRun(folder / RESULT, "it has no status that we know", RESULT_REMEDY)
    return found


def read_lease(folder: Path) -> dict[str, Any] | None:
    """What lease.json says, None when nobody has worked on the run."""
    held = records.read_record(folder / LEASE, REMEDY)
    if held is None:
        return None
    fields = {"owner": str, "number": int, "seconds": int | float, "ended": str}
    if not all(isinstance(held.get(name), kind) for name, kind in fields.items()):
        raise records.UnreadableRun(folder / LEASE, "its fields are not those of a lease", REMEDY)
    return held


def seconds_left(folder: Path, held: Mapping[str, Any], now: float) -> float:
    """How long a lease lasts; 0 when it was given back, has expired, or its process is known to be dead."""
    if held["ended"] or _is_dead(held.get("process")):
        return 0.0
    return max(0.0, float(held["seconds"]) - (now - (folder / LEASE).stat().st_mtime))


def me() -> str:
    """An owner's name that says where to look: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _me() -> dict[str, Any]:
    """This process, so precisely that another one on this machine can tell whether it still lives."""
    pid = os.getpid()
    return {"machine": _machine(), "pid": pid, "started": _started(pid)}


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _is_dead(process: Any) -> bool:
    """Whether a process of this machine is gone; False when that cannot be known from here."""
    if not isinstance(process, dict) or not process.get("machine") or process["machine"] != _machine():
        return False
    pid, started = process.get("pid"), process.get("started")
    return isinstance(pid, int) and bool(started) and _started(pid) != started
