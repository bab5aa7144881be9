"""Where workers run: on this machine, on a Ray cluster, under Slurm. All start the same command on run folders."""

from pathlib import Path

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.sweeping.executors.protocol import Executor, Resources

__all__ = ["Executor", "Resources", "executor_named"]


def executor_named(on: str, resources: Resources, processes: int | None, runs: Path) -> Executor:
    """`local`, `ray`, `ray://host:port`, `slurm`, or `slurm:` followed by options of sbatch."""
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
