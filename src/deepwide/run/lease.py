"""Who may write to a run folder, and until when.

A lease is `lease.json`: owner, fencing number, nonce, how long it lasts. It is renewed by a heartbeat that touches the
file, and it has expired when its age exceeds its length. Whoever takes it over gets the next number and draws a nonce,
because a number starts again when the file is deleted. Every write, the heartbeat included, happens under the folder's
`flock` and only while number and nonce on disk are the writer's own, so a worker that was stopped, swapped out or cut
off and comes back finds its write refused (`LeaseLost`), not merged.

What is assumed:
- The file system honours `flock` between the machines that share it (local disks, NFSv4, Lustre mounted with `flock`,
  GPFS, CephFS). Where the call fails, the run stops and says so; it never continues unlocked.
- Clocks: none but the file server's. The lease's age is the difference of two times that the file system itself wrote
  (the modification times of `lease.json` and of the lock, touched just now). A clock that jumps makes a take-over
  come early or late; that can cost work, never a result, because writes are decided by numbers and not by time.
- A process that is frozen while it holds the lock blocks a take-over until it moves or dies: safety before progress.

The process that holds a lease is written so precisely that another one on the same machine can tell whether it lives.
"""

import contextlib
import errno
import fcntl
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deepwide import faults, files
from deepwide.errors import DeepwideError
from deepwide.run import records
from deepwide.run.metrics import read_result
from deepwide.run.records import LEASE, LOCK

LEASE_SECONDS = 60.0
BEATS_PER_LEASE = 3
PATIENCE_SECONDS = 10.0  # for the lock, which is held for moments
RETRY_SECONDS = 0.005
GIVE_BACK_PAUSES = (0.01, 0.2)  # seconds between tries to give a lease back: otherwise it must expire
STARTED_FIELD = 19  # of /proc/PID/stat after the command's name: the start time in clock ticks since boot (proc(5))
LONGEST_LEASE = 7 * 86400.0  # seconds
FUTURE_SECONDS = 2.0  # by which the file system's times may disagree, for rounding
REMEDY = "delete this file and the run resumes from its last checkpoint; a worker that still holds it is refused"

# How the file system writes its time on a file; a simulation puts its own clock here.
stamp: Callable[[Path | int], None] = os.utime


class LeaseHeld(DeepwideError):  # noqa: N818
    """Somebody else works on this run."""


class LeaseLost(DeepwideError):  # noqa: N818
    """This worker's lease was taken over: nothing it still wants to write is written."""


class RunFinished(DeepwideError):  # noqa: N818
    """The run has its result already."""


class Lease:
    """Ownership of one run folder: taken, renewed by a heartbeat, checked before each write, given back."""

    def __init__(
        self, path: Path, owner: str, seconds: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS
    ) -> None:
        if not 0 < seconds <= LONGEST_LEASE:
            raise DeepwideError(
                f"a lease must last longer than 0 and at most {LONGEST_LEASE:g} seconds, not {seconds:g}."
            )
        self.path, self.owner, self.seconds, self.patience = path, owner, seconds, patience
        self.number, self.nonce = 0, ""
        self.saved = False  # whether the run has ever saved a checkpoint
        self.after_error = False  # whether the owner before left with an error
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
        with lock(self.path, self.patience):
            if read_result(self.path) is not None:
                raise finished(self.path)
            held = read_lease(self.path)
            if held is not None and (left := remaining(self.path, held)) > 0:
                raise LeaseHeld(f"{self.path} is held by {held['owner']} for {left:.0f} seconds more.")
            self.number, self.nonce = held["number"] + 1 if held else 1, secrets.token_hex(8)
            self.saved = bool(held and held.get("saved"))
            self.after_error = bool(held and held.get("note"))
            self._worked_before, self._since = float(held.get("worked", 0.0)) if held else 0.0, time.monotonic()
            self.write("")
            yield

    def start_heartbeat(self) -> None:
        """Renew the lease from now on, in a thread, until it is lost or given back."""
        self._heartbeat.start()

    @contextlib.contextmanager
    def fenced(self) -> Iterator[None]:
        """The folder's lock, entered only while the lease on disk is this one."""
        with lock(self.path, self.patience):
            held = read_lease(self.path)
            if held is None or (held["number"], held.get("nonce")) != (self.number, self.nonce):
                self._lost.set()
                cause = "removed" if held is None else f"taken over by {held['owner']}"
                raise LeaseLost(f"the lease of {self.path} was {cause}; this worker's write was refused.")
            yield

    def give_back(self, ending: str, note: str = "") -> None:
        """Stop the heartbeat and free the run for the next owner."""
        self._left.set()
        if self._heartbeat.ident is not None:
            self._heartbeat.join()
        # Best effort: on a full or vanished disk the lease expires by itself, and a damaged one needs a person anyway.
        for pause in (*GIVE_BACK_PAUSES, None):
            try:
                with self.fenced():
                    self.write(ending, note)
                return
            except DeepwideError:
                return
            except (OSError, MemoryError):
                if pause is None or ending == "disk_full":
                    return
                time.sleep(pause)

    def renew(self) -> None:
        """One beat: the file system writes its time on the lease."""
        with self.fenced():
            stamp(self.path / LEASE)

    def write(self, ending: str, note: str = "") -> None:
        """Write lease.json, under the lock: `ending` is empty while the run is being worked on."""
        record: dict[str, Any] = {"owner": self.owner, "number": self.number, "nonce": self.nonce}
        record |= {"seconds": self.seconds, "process": this_process(), "saved": self.saved}
        record["worked"] = round(self._worked_before + time.monotonic() - self._since, 3)  # seconds, of all owners
        record |= {"ended": ending} | ({"note": note} if ending and note else {})
        content = (records.canonical(record) + "\n").encode()
        try:
            files.write_file(self.path / LEASE, content)
            stamp(self.path / LEASE)
        except OSError as error:
            if ending != "disk_full" or not is_disk_full(error):
                raise
            _overwrite_in_place(self.path / LEASE, content)

    def _beat(self) -> None:
        while not self._left.wait(self.seconds / BEATS_PER_LEASE):
            try:
                self.renew()
            except LeaseLost:
                return
            except (OSError, MemoryError, DeepwideError):
                continue  # a file system that is away for a moment: try again, the next write will tell


class LeaseWatch:
    """Judges leases by whether they are renewed between two looks, by one monotonic clock of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._renewals: dict[Path, tuple[tuple[str, int], float]] = {}  # (lease, mtime) and when it was first seen

    def is_silent(self, folder: Path, held: Mapping[str, Any]) -> bool:
        """Whether the lease was not renewed for its whole length, or its process is known to be dead."""
        if is_dead(held.get("process")):
            return True
        try:
            renewal = (f"{held['number']} {held.get('nonce')}", (folder / LEASE).stat().st_mtime_ns)
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
    if not 0 < held["seconds"] <= LONGEST_LEASE or not math.isfinite(held.get("worked", 0.0)):
        raise records.UnreadableRun(folder / LEASE, "its seconds are not those of a lease", REMEDY)
    return held


def remaining(folder: Path, held: Mapping[str, Any], now: float | None = None) -> float:
    """Seconds a lease still lasts, by the file system's clock; 0 when it was given back, expired, or its process died.

    `now` is the time where the caller has just read it. A lease that was renewed tomorrow (the clock was set back, or
    somebody touched the file) counts as renewed now, and is marked so if it was this function that asked the file
    system: otherwise everybody would wait for that day. By another clock nothing is marked, for that may be wrong.
    """
    if held["ended"] or is_dead(held.get("process")):
        return 0.0
    asked = now is None
    now = file_system_time(folder) if now is None else now
    try:
        renewed = (folder / LEASE).stat().st_mtime
    except FileNotFoundError:  # removed since it was read
        return 0.0
    if renewed > now + FUTURE_SECONDS:
        if asked:
            with contextlib.suppress(OSError):
                stamp(folder / LEASE)
        renewed = now
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


@contextlib.contextmanager
def lock(folder: Path, patience: float = PATIENCE_SECONDS) -> Iterator[float]:
    """The folder's exclusive lock; yields the file system's time. Held for moments, never while computing."""
    deadline = time.monotonic() + patience
    while True:
        handle = _open_lock(folder)
        try:
            _acquire(handle, folder, deadline)
            if not _is_at(handle, folder / LOCK):  # the folder or the file was moved away meanwhile: a lock of nothing
                if time.monotonic() > deadline:
                    raise LeaseHeld(f"{folder / LOCK} is another file each time it is opened: is the folder moving?")
                time.sleep(RETRY_SECONDS)
                continue
            yield _touch(handle)
            return
        finally:
            os.close(handle)


def _acquire(handle: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LeaseHeld(f"{folder} is locked by a process that does not move on.") from None
            time.sleep(RETRY_SECONDS)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                raise
            raise DeepwideError(
                f"the file system of {folder} has no locks ({error.strerror}): keep runs on one that has, "
                "such as a local disk, NFSv4, or Lustre mounted with flock."
            ) from None


def _open_lock(folder: Path) -> int:
    faults.point(f"before opening of {LOCK}")
    try:
        return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        raise records.UnreadableRun(folder / LOCK, "it is not a regular file", "delete it") from None


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def file_system_time(folder: Path) -> float:
    """What the clock of the folder's file system says now, whatever this machine's clock says. Takes no lock."""
    handle = _open_lock(folder)
    try:
        return _touch(handle)
    finally:
        os.close(handle)


def _touch(handle: int) -> float:
    """Let the file system write its time and read it back: on NFS this is the server's clock."""
    stamp(handle)
    return os.fstat(handle).st_mtime


def owner_name() -> str:
    """A lease owner's name that says where to look: host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def this_process() -> dict[str, Any]:
    """Machine, process id and start time; a process id alone is used again."""
    pid = os.getpid()
    return {"machine": _machine(), "pid": pid, "started": _started(pid)}


def is_dead(process: Any) -> bool:
    """Whether a process of this machine is gone; False when that cannot be known from here."""
    if not isinstance(process, dict) or not process.get("machine") or process["machine"] != _machine():
        return False
    pid, started = process.get("pid"), process.get("started")
    return isinstance(pid, int) and bool(started) and _started(pid) != started


def _machine() -> str:
    """This boot of this machine and its namespace of process ids; empty where there is no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a living process was started; empty for one that is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[STARTED_FIELD]
