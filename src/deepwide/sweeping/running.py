"""The verbs of a sweep as functions: what would run, run it, ask where it stands, watch it, retry.

    state = sweep("sweeps/first.toml", progress=lambda state: print(state.counts))

A page, a study or the command line call these; nobody needs to know about executors, drivers or leases.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, did_you_mean, needs
from deepwide.quantities import plural
from deepwide.run import FINISHED, LEASE_SECONDS, has_result, local_path, read_run
from deepwide.sweeping.driver import Driver, Outcome
from deepwide.sweeping.executors import Executor, LocalExecutor, Resources
from deepwide.sweeping.grid import cells_of
from deepwide.sweeping.spec import Spec, as_spec
from deepwide.sweeping.state import StateReader, SweepState, cells_per_worker, expected_seconds

PAUSES = 9  # times as long as a look at all cells took: so looking takes a tenth of the driver's time
SpecLike = Spec | Mapping[str, Any] | str | Path


def sweep(
    spec: SpecLike,
    *,
    runs: Path | str | None = None,
    on: str = "local",
    processes: int | None = None,
    threads: int = 1,
    gpus: float = 0.0,
    device: str = "auto",
    lease_seconds: float = LEASE_SECONDS,
    resume: bool = False,
    progress: Callable[[SweepState], None] | None = None,
    every: float = 1.0,
    stop: Callable[[], bool] | None = None,
) -> SweepState:
    """Run every cell that has not finished, and return where the sweep stands then. A finished sweep does nothing.

    `progress` is called with the state at most once in `every` seconds (of many thousands of cells, more rarely). When
    `stop()` is true, running cells write a checkpoint, and the next call resumes them. `resume` refuses a sweep of
    which no cell was begun. What went wrong with the sweep is a note: `disk_full`, `unreadable`, `blocked` (by an error
    that did not pass, or by data that are missing or damaged), `stopped`; and `finished_before` if nothing was to do.
    """
    spec = as_spec(spec)
    home = runs_folder(spec, runs)
    cells = cells_of(spec)
    if resume and not any((home / cell.id).exists() for cell in cells):
        raise DeepwideError(
            f"no cell of {spec.name} was begun in {home}: run it first, or name the folder of its runs."
        )
    resources = Resources(threads=threads, gpus=gpus, device=device, lease_seconds=lease_seconds)
    executor = executor_named(on, resources, processes, home)
    if on == "local" and device not in ("auto", "cpu"):
        _check_device(device)
    unfinished = sum(not has_result(home / cell.id) for cell in cells)
    if unfinished and on == "local" and any(cell.config.get("trainer") != "toy" for cell in cells):
        needs("torch", "train")
    seconds = expected_seconds(cells, home, threads)
    driver = Driver(executor, per_worker=cells_per_worker(seconds))
    reader = StateReader(spec.name, cells, home, seconds, max(1, min(executor.slots, unfinished)))
    report = _throttled(progress, reader, every, driver.outcome) if progress else lambda: None
    outcome = driver.drive(cells, home, on_tick=report, stop=stop or (lambda: False))
    return reader.read(started=outcome.started, notes=_notes(outcome, home, unfinished))


def executor_named(on: str, resources: Resources, processes: int | None, runs: Path) -> Executor:
    """`local`, `ray`, `ray://host:port`, `slurm`, or `slurm:` followed by options of sbatch."""
    if on == "local":
        return LocalExecutor(resources, processes)
    if on.partition(":")[0] == "ray":
        from deepwide.sweeping.ray import RayExecutor

        address = on if on.startswith("ray://") else on.partition(":")[2]
        return RayExecutor(resources, processes, address or None)
    if on.partition(":")[0] == "slurm":
        from deepwide.sweeping.slurm import SlurmExecutor

        return SlurmExecutor(resources, processes, on.partition(":")[2].split(), runs)
    raise DeepwideError(f"cannot run on '{on[:40]}': {did_you_mean(on, ('local', 'ray', 'slurm'))}")


def sweep_state(
    spec: SpecLike, runs: Path | str | None = None, *, processes: int | None = None, threads: int = 1
) -> SweepState:
    """Where each cell stands, read from its folder, and the time left with as many workers as run now."""
    return _reader(spec, runs, processes, threads).read()


def watch(
    spec: SpecLike,
    runs: Path | str | None = None,
    *,
    processes: int | None = None,
    threads: int = 1,
    every: float = 1.0,
) -> Iterator[SweepState]:
    """The state of a sweep that others run, again and again until no cell is left."""
    reader = _reader(spec, runs, processes, threads)
    while True:
        state = reader.read()
        yield state
        if not state.left:
            return
        time.sleep(every)


def retry(spec: SpecLike, statuses: Sequence[str] = ("failed", "oom"), runs: Path | str | None = None) -> list[str]:
    """Take back the results of cells that ended so, and return their ids: the next run resumes from their checkpoints.

    Unreadable cells are left alone.
    """
    for status in statuses:
        if status not in FINISHED or status == "done":
            allowed = [name for name in FINISHED if name != "done"]
            raise DeepwideError(f"cells that ended '{status[:40]}' cannot be retried: {did_you_mean(status, allowed)}")
    spec = as_spec(spec)
    home = runs_folder(spec, runs)
    reopened = []
    for cell in cells_of(spec):
        if has_result(home / cell.id) and read_run(home / cell.id).status in statuses:
            cell.folder(home).reopen()
            reopened.append(cell.id)
    return reopened


def runs_folder(spec: Spec, runs: Path | str | None = None) -> Path:
    """Where the run folders of a sweep are: `runs/NAME` unless it is given."""
    return (local_path(runs, "runs") if runs is not None else Path("runs") / spec.name).absolute()


def _reader(spec: SpecLike, runs: Path | str | None, processes: int | None, threads: int) -> StateReader:
    """A reader that forecasts as if the workers of now went on, or those that this machine has room for."""
    spec = as_spec(spec)
    home, cells = runs_folder(spec, runs), cells_of(spec)
    reader = StateReader(spec.name, cells, home)
    state = reader.read()
    if state.left:
        slots = LocalExecutor(Resources(threads=threads), processes).slots
        workers = processes or state.counts.get("running", 0) or slots
        reader.forecast(expected_seconds(cells, home, threads), min(workers, state.left))
    return reader


def _throttled(
    progress: Callable[[SweepState], None], reader: StateReader, every: float, outcome: Outcome
) -> Callable[[], None]:
    """Report now and then; where looking at very many cells takes long, more rarely."""
    next_time = time.monotonic()

    def report() -> None:
        nonlocal next_time
        began = time.monotonic()
        if began >= next_time:
            progress(reader.read(started=outcome.started))
            ended = time.monotonic()
            next_time = ended + max(every, PAUSES * (ended - began))

    return report


def _notes(outcome: Outcome, home: Path, unfinished: int) -> list[Note]:
    notes = []
    if outcome.disk_full:
        text = f"the disk of {home} is full: free some room and resume the sweep; nothing was lost."
        notes.append(Note.of("disk_full", text, folder=str(home)))
    if outcome.unreadable:
        more = len(outcome.unreadable) - 1
        text = next(iter(outcome.unreadable.values()))
        text += f" ({more} more like it: see the state of each cell)" if more else ""
        notes.append(Note.of("unreadable", text, cells=dict(outcome.unreadable)))
    if outcome.blocked:
        more = len(outcome.blocked) - 1
        text = f"{plural(more + 1, 'cell')} could not go on: {next(iter(outcome.blocked.values())).rstrip('.')}. "
        text += "Nothing was lost: mend that, and run the sweep again."
        notes.append(Note.of("blocked", text, cells=dict(outcome.blocked)))
    if outcome.stopped:
        notes.append(Note.of("stopped", "the sweep was stopped: cells that were running resume from their checkpoints"))
    if not unfinished:
        notes.append(Note.of("finished_before", "every cell had finished already: nothing was run."))
    return notes


def _check_device(device: str) -> None:
    """Refuse a device that is not here: every cell would fail on it. Asked in another process, which frees a GPU."""
    code = "import sys; from deepwide.training import find_device; find_device(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, device], capture_output=True, check=False)
    if done.returncode:
        raise DeepwideError(f"there is no device '{device[:40]}' here: use cpu, or auto.")


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
    workers = LocalExecutor(Resources(threads=threads), processes).slots
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
