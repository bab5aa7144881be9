"""Workers as Ray Core tasks: each task runs the worker command on the node that Ray chose.

The run folders must be on a file system that every node mounts at the same path. Ray moves only the command there and
the exit code back; retries are ours, because only the run folder knows where a run stands.
"""

import contextlib
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError, install
from deepwide.sweeping.executors import (
    STOP_SECONDS,
    WORKER_LOG,
    Resources,
    open_log,
    worker_command,
    worker_environment,
)

LOST = -1


class RayExecutor:
    """As many workers as the cluster has cores (or GPU shares) for."""

    name = "ray"

    def __init__(self, resources: Resources, processes: int | None = None, address: str | None = None) -> None:
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise DeepwideError(f"running on ray needs Ray: {install('ray')}.") from None
        self.resources, self.ray, self._processes = resources, ray, processes
        try:
            if not ray.is_initialized():
                ray.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DeepwideError(f"there is no Ray cluster at {address or 'this machine'}: {error}.") from None
        options = {"num_cpus": resources.threads, "num_gpus": resources.gpus, "max_retries": 0}
        self._task = ray.remote(**options)(run_command)

    @property
    def slots(self) -> int:
        """What the cluster has room for now: it may grow and shrink."""
        if self._processes:
            return self._processes
        cluster = self.ray.cluster_resources()
        room = int(cluster.get("CPU", 1)) // self.resources.threads
        if self.resources.gpus:
            room = min(room, int(cluster.get("GPU", 0) / self.resources.gpus))
        return max(1, room)

    def start(self, folders: Sequence[Path], owner: str) -> Any:
        """A task; Ray decides when and where."""
        command = [*worker_command(folders, owner, self.resources), "--with-parent"]
        return self._task.remote(command, dict(worker_environment(self.resources)), str(folders[0] / WORKER_LOG))

    def poll(self, job: Any) -> int | None:
        """The worker's exit code; −1 when its node or its Ray worker is gone."""
        ready, _ = self.ray.wait([job], timeout=0)
        if not ready:
            return None
        try:
            return int(self.ray.get(job))
        except self.ray.exceptions.RayError:
            return LOST

    def stop(self, jobs: Sequence[Any]) -> None:
        """Cancel the tasks; each worker sees its parent leave, writes its checkpoint and leaves."""
        for job in jobs:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(job)
        deadline = time.monotonic() + STOP_SECONDS
        while jobs and time.monotonic() < deadline and any(self.poll(job) is None for job in jobs):
            time.sleep(0.1)


def run_command(command: list[str], environment: dict[str, str], log: str) -> int:
    """On the node: the worker as a child process, stopped in good order when the task is cancelled."""
    import os
    import subprocess

    with open_log(Path(log).parent) as file:
        child = subprocess.Popen(
            command, env=dict(os.environ) | environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
