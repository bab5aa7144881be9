"""Workers as processes of this machine."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from deepwide.sweeping.executors.protocol import (
    STOP_SECONDS,
    WORKER_LOG,
    Resources,
    worker_command,
    worker_environment,
)


class LocalExecutor:
    """One worker per core with one thread each, unless asked otherwise: small models waste a second thread."""

    name = "local"

    def __init__(self, resources: Resources, processes: int | None = None) -> None:
        self.resources = resources
        self.slots = processes or max(1, cores() // resources.threads)

    def start(self, folders: Sequence[Path], owner: str) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that Ctrl-C reaches the driver only."""
        with open(folders[0] / WORKER_LOG, "ab") as log:
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


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
