"""What every executor offers, and the one command that all of them start on run folders."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from deepwide.run import LEASE_SECONDS

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
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    threads = {name: str(resources.threads) for name in THREADS}
    return threads | passed_on | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
