"""Where workers run: on this machine, on a Ray cluster, under Slurm. All start the same command on run folders."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from deepwide.errors import DeepwideError, did_you_mean

LOG = "worker.log"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Resources:
    """What one worker gets."""

    threads: int = 1
    gpus: float = 0.0
    device: str = "auto"
    lease_seconds: float = 60.0


class Executor(Protocol):
    """Starts workers and says when they have ended. The folders, not the executor, say what became of the runs."""

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
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    return {name: str(resources.threads) for name in THREADS} | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def executor_named(on: str, resources: Resources, processes: int | None, runs: Path) -> Executor:
    """`local`, `ray`, `ray://host:port`, `slurm`, or `slurm:--partition=gpu …`."""
    if on == "local":
        from deepwide.sweeping.executors.local import LocalExecutor

        return LocalExecutor(resources, processes)
    if on.partition(":")[0] == "ray":
        from deepwide.sweeping.executors.ray import RayExecutor

        address = on if on.startswith("ray://") else on.partition(":")[2]
        return RayExecutor(resources, processes, address or None)
    if on.partition(":")[0] == "slurm":
        from deepwide.sweeping.executors.slurm import SlurmExecutor

        return SlurmExecutor(resources, processes, on.partition(":")[2].split(), runs)
    raise DeepwideError(f"cannot run on '{on[:40]}': {did_you_mean(on, ('local', 'ray', 'slurm'))}")
