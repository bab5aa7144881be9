"""The exclusive lock of a run folder, and the file system's own clock.

The file system must honour `flock` between the machines that share it (local disks, NFSv4, Lustre mounted with `flock`,
GPFS, CephFS). Where the call fails, the run stops and says so; it never continues unlocked.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.run.layout import LOCK

PATIENCE_SECONDS = 10.0
RETRY_SECONDS = 0.005


class LeaseHeld(DeepwideError):  # noqa: N818
    """Somebody else works on this run."""


@contextlib.contextmanager
def lock(folder: Path, patience: float = PATIENCE_SECONDS) -> Iterator[float]:
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
                    raise LeaseHeld(f"{folder} is locked by a process that does not move on.") from None
                time.sleep(RETRY_SECONDS)
            except OSError as error:
                raise DeepwideError(
                    f"the file system of {folder} has no locks ({error.strerror}): keep runs on one that has, "
                    "such as a local disk, NFSv4, or Lustre mounted with flock."
                ) from None
        yield _touch(handle)
    finally:
        os.close(handle)


def file_system_time(folder: Path) -> float:
    """What the clock of the folder's file system says now, whatever this machine's clock says. Takes no lock."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        return _touch(handle)
    finally:
        os.close(handle)


def _touch(handle: int) -> float:
    """Let the file system write its time and read it back: on NFS this is the server's clock."""
    os.utime(handle)
    return os.fstat(handle).st_mtime
