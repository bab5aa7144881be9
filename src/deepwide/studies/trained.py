"""What studies that train have in common: how their networks are trained, and the runs that have to be there."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from deepwide.errors import DeepwideError
from deepwide.run import RunRecord, read_runs


class Training(Protocol):
    """Settings of a study that trains at one rate."""

    @property
    def steps(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def lr(self) -> float: ...


def run_table(settings: Training, task: Mapping[str, Any], *, examples: int, evaluations: int) -> dict[str, Any]:
    """The table of a run in a sweep, without its model: task, steps, rate, and evaluations spread over the training."""
    return {
        "task": dict(task),
        "steps": settings.steps,
        "batch": settings.batch,
        "optimiser": {"lr": settings.lr, "weight_decay": 0.01},
        "evaluation": {"sequences": examples, "every": max(1, settings.steps // evaluations)},
    }


def finished_runs(folders: Iterable[Path], also: tuple[str, ...] = ()) -> list[RunRecord]:
    """Every run of these sweeps, all trained to their end: a study that compares networks needs all of them.

    `also` names other ends that the study counts, such as diverged.
    """
    runs = [run for folder in folders for run in read_runs(folder)]
    failed = [run.id for run in runs if run.status not in ("done", *also)]
    if failed or not runs:
        which = f"these have not finished well: {', '.join(failed)}" if failed else "there are none"
        raise DeepwideError(f"the study needs every run, and {which}.")
    return runs
