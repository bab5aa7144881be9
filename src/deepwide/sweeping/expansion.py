"""A sweep before it runs: every cell, what it counts and how long it will take here."""

from pathlib import Path
from typing import Any

from deepwide.answers import Answer
from deepwide.run import has_result
from deepwide.sweeping.executors import Resources, executor_named
from deepwide.sweeping.forecast import expected_seconds
from deepwide.sweeping.grid import cells_of
from deepwide.sweeping.running import SpecLike, runs_folder
from deepwide.sweeping.spec import as_spec


class ExpandedCell(Answer):
    """One cell of a sweep before it runs."""

    id: str
    name: str
    varied: dict[str, Any]
    seed: int
    depth: int
    width: int
    block_params: int
    total_params: int
    steps: int
    tokens: int
    train_flops: int
    train_bytes: int
    finished: bool
    expected_seconds: float  # for the whole cell, on one worker of this machine
    config: dict[str, Any]


class Expansion(Answer):
    """Every cell of a sweep, and the time that those without a result will take."""

    name: str
    runs: str
    workers: int
    cells: tuple[ExpandedCell, ...]
    finished: int
    train_flops: int  # of all cells
    expected_seconds: float  # for what is left, with so many workers

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell, without its config."""
        return [cell.model_dump(mode="json", exclude={"config", "varied"}) for cell in self.cells]


def expand(
    spec: SpecLike, *, runs: Path | str | None = None, processes: int | None = None, threads: int = 1
) -> Expansion:
    """Every cell with its parameters, FLOPs, memory and expected time; runs nothing and writes nothing."""
    spec = as_spec(spec)
    home, cells = runs_folder(spec, runs), cells_of(spec)
    workers = executor_named("local", Resources(threads=threads), processes, home).slots
    expanded = tuple(
        ExpandedCell(
            id=cell.id,
            name=cell.name,
            varied=dict(cell.varied),
            seed=cell.seed,
            **cell.cost._asdict(),
            finished=has_result(home / cell.id),
            expected_seconds=seconds,
            config=dict(cell.config),
        )
        for cell, seconds in zip(cells, expected_seconds(cells, home, threads), strict=True)
    )
    return Expansion(
        name=spec.name,
        runs=str(home),
        workers=workers,
        cells=expanded,
        finished=sum(cell.finished for cell in expanded),
        train_flops=sum(cell.train_flops for cell in expanded),
        expected_seconds=sum(cell.expected_seconds for cell in expanded if not cell.finished) / workers,
    )
