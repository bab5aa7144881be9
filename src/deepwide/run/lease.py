"""Who may write to a run folder, and until when.

A lease is `lease.json`: owner, fencing number, how long it lasts. It is renewed by a heartbeat that touches the file,
and it has expired when its age exceeds its length. Whoever takes it over gets the next number. Every write, the
heartbeat included, happens under the folder's `flock` and only while the number on disk is still the writer's own, so
a worker that was stopped, swapped out or cut off and comes back finds its write refused (`LeaseLost`), not merged.

What is assumed:
- Locks work between the machines that share the file system (see lock.py).
- Clocks: none but the file server's. The lease's age is the difference of two times that the file system itself wrote
  (the modification times of `lease.json` and of the lock, touched just now). A clock that jumps makes a take-over
  come early or late; that can cost work, never a result, because writes are decided by numbers and not by time.
- A process that is frozen while it holds the lock blocks a take-over until it moves or dies: safety before progress.
"""

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deepwide import files
from deepwide.errors import DeepwideError
from deepwide.run import records
from deepwide.run.layout import LEASE, read_result
from deepwide.run.lock import PATIENCE_SECONDS, LeaseHeld, file_system_time, lock
from deepwide.run.process import is_dead, this_process

LEASE_SECONDS = 60.0
BEATS_PER_LEASE = 3
REMEDY = "if no worker runs any more, delete this file"


class LeaseLost(DeepwideError):  # noqa: N818
    """This worker's lease was taken over: nothing it still wants to write is written."""


class RunFinished(DeepwideError):  # noqa: N818
    """The run has its result already."""


class Lease:
    """Ownership of one run folder: taken, renewed by a heartbeat, checked before each write, given back."""

    def __init__(
        self, path: Path, owner: str, seconds: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS
    ) -> None:
        if not seconds > 0:
            raise DeepwideError(f"a lease must last longer than {seconds:g} seconds.")
        self.path, self.owner, self.seconds, self.patience = path, owner, seconds, patience
        self.number = 0
        self._lost, self._left = threading.Event(), threading.Event()
        self._worked_before, self._since = 0.0, time.monotonic()
        self._heartbeat = threading.Thread(target=self._beat, name=f"lease of {path.name}", daemon=True)

    @property
    def lost(self) -> bool:
        """Whether the heartbeat or a write has found the lease taken over."""
        return self._lost.is_set()

    @contextlib.contextmanager
    def take(self) -> Iterator[None]:
        """Become the owner; the block runs under the folder's lock. Raises `LeaseHeld` or `RunFinished`."""
        with lock(self.path, self.patience) as now:
            if read_result(self.path) is not None:
                raise finished(self.path)
            held = read_lease(self.path)
            if held is not None and (left := remaining(self.path, held, now)) > 0:
                raise LeaseHeld(f"{self.path} is held by {held['owner']} for {left:.0f} seconds more.")
            self.number = held["number"] + 1 if held else 1
            self._worked_before, self._since = float(held.get("worked", 0.0)) if held else 0.0, time.monotonic()
            self.write("")
            yield
        self._heartbeat.start()

    @contextlib.contextmanager
    def fenced(self) -> Iterator[None]:
        """The folder's lock, entered only while this lease's number is the one on disk."""
        with lock(self.path, self.patience):
            held = read_lease(self.path)
            if held is None or held["number"] != self.number:
                self._lost.set()
                cause = "removed" if held is None else f"taken over by {held['owner']}"
                raise LeaseLost(f"the lease of {self.path} was {cause}; this worker's write was refused.")
            yield

    def give_back(self, ending: str, note: str = "") -> None:
        """Stop the heartbeat and free the run for the next owner."""
        self._left.set()
        self._heartbeat.join()
        # Best effort: on a full or vanished disk the lease expires by itself.
        with contextlib.suppress(LeaseLost, LeaseHeld, OSError), self.fenced():
            self.write(ending, note)

    def write(self, ending: str, note: str = "") -> None:
        """Write lease.json, under the lock: `ending` is empty while the run is being worked on."""
        record = {"owner": self.owner, "number": self.number, "seconds": self.seconds, "process": this_process()}
        record["worked"] = round(self._worked_before + time.monotonic() - self._since, 3)  # seconds, of all owners
        record |= {"ended": ending} | ({"note": note} if ending and note else {})
        content = (records.canonical(record) + "\n").encode()
        try:
            files.write_file(self.path / LEASE, content)
        except OSError as error:
            if ending != "disk_full" or not is_disk_full(error):
                raise
            _overwrite_in_place(self.path / LEASE, content)

    def _beat(self) -> None:
        while not self._left.wait(self.seconds / BEATS_PER_LEASE):
            try:
                with self.fenced():
                    os.utime(self.path / LEASE)
            except LeaseLost:
                return
            except (OSError, DeepwideError):
                continue  # a file system that is away for a moment: try again, the next write will tell


class LeaseWatch:
    """Judges leases by whether they are renewed between two looks, by one monotonic clock of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._renewals: dict[Path, tuple[tuple[int, int], float]] = {}  # (number, mtime) and when it was first seen

    def is_silent(self, folder: Path, held: Mapping[str, Any]) -> bool:
        """Whether the lease was not renewed for its whole length, or its process is known to be dead."""
        if is_dead(held.get("process")):
            return True
        try:
            renewal = (int(held["number"]), (folder / LEASE).stat().st_mtime_ns)
        except FileNotFoundError:
            return False  # removed since it was read: the next look sees that
        last_renewal, since = self._renewals.get(folder, (None, 0.0))
        if renewal != last_renewal:
            self._renewals[folder] = renewal, self._clock()
            return False
        return self._clock() - since > float(held["seconds"])


def read_lease(folder: Path) -> dict[str, Any] | None:
    """What lease.json says, None when nobody has worked on the run."""
    held = records.read_record(folder / LEASE, REMEDY)
    if held is None:
        return None
    fields = {"owner": str, "number": int, "seconds": int | float, "ended": str, "worked": int | float}
    if not all(isinstance({"worked": 0.0, **held}.get(name), kind) for name, kind in fields.items()):
        raise records.UnreadableRun(folder / LEASE, "its fields are not those of a lease", REMEDY)
    return held


def remaining(folder: Path, held: Mapping[str, Any], now: float | None = None) -> float:
    """Seconds a lease still lasts, by the file system's clock; 0 when it was given back, expired, or its process died.

    `now` is the file system's time where the caller has just read it (`lock` yields it).
    """
    if held["ended"] or is_dead(held.get("process")):
        return 0.0
    now = file_system_time(folder) if now is None else now
    try:
        renewed = (folder / LEASE).stat().st_mtime
    except FileNotFoundError:  # removed since it was read
        return 0.0
    return max(0.0, float(held["seconds"]) - (now - renewed))


def finished(folder: Path) -> RunFinished:
    """The refusal to work on a run that has its result."""
    return RunFinished(f"{folder} has finished already: its result.json is there.")


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error says that there is no room, or no more room for this user."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _overwrite_in_place(path: Path, content: bytes) -> None:
    """Write a few bytes where no room is left for a second file: they fit into the block that the file has."""
    with open(path, "r+b", buffering=0) as file:
        file.write(content.rstrip().ljust(os.fstat(file.fileno()).st_size - 1) + b"\n")
