"""What every executor offers, the one command that all of them start on run folders, and workers on this machine.

Other executors are ray.py and slurm.py; `executor_named` (running.py) chooses.
"""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from deepwide.run import LEASE_SECONDS, UnreadableRun

WORKER_LOG = "worker.log"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PASSED_ON = ("DEEPWIDE_NETWORK",)  # what a worker on another node must know too
STOP_SECONDS = 15.0  # for a worker to leave; it has 10 to write its checkpoint


@dataclass(frozen=True)
class Resources:
    """What one worker gets."""

    threads: int = 1
    gpus: float = 0.0
    device: str = "auto"
    lease_seconds: float = LEASE_SECONDS


class Executor(Protocol):
    """Starts workers and reports when they have ended. What became of the runs is read from their folders."""

    name: str

    @property
    def slots(self) -> int:
        """How many workers at a time."""
        ...

    def start(self, folders: Sequence[Path], owner: str) -> Any:
        """Start one worker on these folders; returns what `poll` and `stop` take."""
        ...

    def poll(self, job: Any) -> int | None:
        """Its exit code, negative when it was killed or lost; None while it works."""
        ...

    def stop(self, jobs: Sequence[Any]) -> None:
        """Ask workers to checkpoint and leave, and wait until they have."""
        ...


def worker_command(folders: Sequence[Path], owner: str, resources: Resources) -> list[str]:
    """The one command all executors run."""
    options = ["--owner", owner, "--lease", f"{resources.lease_seconds:g}"]
    options += ["--threads", str(resources.threads), "--device", resources.device]
    return [sys.executable, "-m", "deepwide", "worker", *options, *(str(folder) for folder in folders)]


def worker_environment(resources: Resources) -> Mapping[str, str]:
    """What the environment adds for a worker: as many threads as it was given, also in libraries."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    threads = {name: str(resources.threads) for name in THREADS}
    return threads | passed_on | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class LocalExecutor:
    """One worker per core with one thread each, unless asked otherwise: small models waste a second thread."""

    name = "local"

    def __init__(self, resources: Resources, processes: int | None = None) -> None:
        self.resources = resources
        self.slots = processes or max(1, cores() // resources.threads)

    def start(self, folders: Sequence[Path], owner: str) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that Ctrl-C reaches the driver only."""
        with open_log(folders[0]) as log:
            return subprocess.Popen(
                worker_command(folders, owner, self.resources),
                env=dict(os.environ) | dict(worker_environment(self.resources)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def poll(self, job: subprocess.Popen[bytes]) -> int | None:
        """The process's exit code, −9 for SIGKILL."""
        return job.poll()

    def stop(self, jobs: Sequence[subprocess.Popen[bytes]]) -> None:
        """SIGTERM, and SIGKILL for those that have not left after 15 seconds."""
        for job in jobs:
            job.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for job in jobs:
            try:
                job.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()


def open_log(folder: Path) -> BinaryIO:
    """The worker's log in a run folder, to append to; a link or a pipe in its place is not followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return open(os.open(folder / WORKER_LOG, flags, 0o644), "ab")
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        raise UnreadableRun(folder / WORKER_LOG, "it is not a regular file", "delete it") from None


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
