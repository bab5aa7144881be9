"""`deepwide sweep plan|run|status|resume|retry|export`, and the worker that executors start."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError
from deepwide.signals import stop_on_signals

if TYPE_CHECKING:
    from deepwide.sweeping import Cell, CellStatus, Outcome, Spec

sweep = typer.Typer(
    help="Train many transformers from one TOML file, without losing a run.",
    no_args_is_help=True,
    epilog="Example: deepwide sweep plan sweeps/first.toml",
)
app.add_typer(sweep, name="sweep")

SpecFile = Annotated[Path, typer.Argument(help="The sweep's TOML file.", metavar="SPEC.toml")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key: lr=3e-4, model.preset=llama, 'seeds=[0,1]'.")
]
Runs = Annotated[Path | None, typer.Option(help="Where the run folders are (default: runs/NAME).")]
On = Annotated[str, typer.Option(help="local, ray, ray://HOST:PORT, slurm, or 'slurm:--partition=gpu --time=2:00:00'.")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Workers at a time (default: one a core, or what the cluster has).")
]
Threads = Annotated[int, typer.Option(min=1, max=1024, help="Threads a worker.")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs a worker; a share such as 0.25 with ray.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")]
LeaseSeconds = Annotated[
    float, typer.Option("--lease", min=1, help="Seconds until a silent worker's cell is taken over.")
]


@sweep.command(epilog="Example: deepwide sweep plan sweeps/first.toml --set 'seeds=[0]'")
def plan(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    processes: Processes = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """Every cell with its parameters, FLOPs, memory and expected time; runs nothing and writes nothing."""
    from deepwide.cli.sweep_tables import seconds_to_go, show_plan
    from deepwide.sweeping.executors import Resources, executor_named
    from deepwide.sweeping.expect import expected_seconds

    made, cells, home = _read(spec, set_, runs)
    slots = executor_named("local", Resources(threads=threads), processes, home).slots
    seconds = expected_seconds(cells, home, threads)
    if json:
        print_json(
            {
                "name": made.name,
                "runs": str(home),
                "workers": slots,
                "expected_seconds": sum(seconds_to_go(cells, seconds, home)) / slots,
                "cells": [_cell_json(cell) | {"expected_seconds": s} for cell, s in zip(cells, seconds, strict=True)],
            }
        )
        return
    show_plan(made.name, cells, seconds, slots, home, console())


@sweep.command(epilog="Example: deepwide sweep run sweeps/first.toml --on local")
def run(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    on: On = "local",
    processes: Processes = None,
    threads: Threads = 1,
    gpus: Gpus = 0.0,
    device: Device = "auto",
    lease: LeaseSeconds = 60.0,
    json: Json = False,
) -> None:
    """Run every cell that is not over; a finished sweep does nothing. Ctrl-C checkpoints; run again to go on."""
    made, cells, home = _read(spec, set_, runs)
    _drive(made, cells, home, on, processes, threads, gpus, device, lease, json)


@sweep.command(epilog="Example: deepwide sweep resume sweeps/first.toml")
def resume(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    on: On = "local",
    processes: Processes = None,
    threads: Threads = 1,
    gpus: Gpus = 0.0,
    device: Device = "auto",
    lease: LeaseSeconds = 60.0,
    json: Json = False,
) -> None:
    """Go on with a sweep that was begun: the same as run, but refuses one that was not."""
    made, cells, home = _read(spec, set_, runs)
    if not any((home / cell.id).exists() for cell in cells):
        raise DeepwideError(f"no cell of {made.name} was begun in {home}: use deepwide sweep run, or give --runs.")
    _drive(made, cells, home, on, processes, threads, gpus, device, lease, json)


@sweep.command(epilog="Example: deepwide sweep retry sweeps/first.toml --failed")
def retry(
    spec: SpecFile,
    failed: Annotated[bool, typer.Option("--failed", help="Cells that failed or ran out of memory.")] = False,
    diverged: Annotated[bool, typer.Option("--diverged", help="Cells that diverged.")] = False,
    set_: Set = None,
    runs: Runs = None,
    json: Json = False,
) -> None:
    """Take back the results of cells that went wrong, so that run starts them again from their last checkpoint."""
    made, cells, home = _read(spec, set_, runs)
    wanted = (("failed", "oom") if failed else ()) + (("diverged",) if diverged else ())
    if not wanted:
        raise DeepwideError("say which cells to retry: --failed, --diverged or both.")
    reopened = []
    for cell in cells:
        if (home / cell.id).exists():
            folder = cell.folder(home)
            ended = folder.result()
            if ended and ended["status"] in wanted:
                folder.reopen()
                reopened.append(cell)
    if json:
        print_json({"name": made.name, "reopened": [cell.id for cell in reopened]})
        return
    if not reopened:
        console().print(f"None of {len(cells)} cells ended {' or '.join(wanted)}: nothing to retry.")
        return
    console().print(f"{len(reopened)} of {len(cells)} cells will run again: deepwide sweep run {spec}", markup=False)


@sweep.command(epilog="Example: deepwide sweep status sweeps/first.toml --watch")
def status(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and redraw every second until all is over.")] = False,
    json: Json = False,
) -> None:
    """Where each cell stands, read from its folder."""
    from deepwide.cli.sweep_tables import show_status, status_table
    from deepwide.sweeping import status_of
    from deepwide.sweeping.status import OVER

    made, cells, home = _read(spec, set_, runs)
    states = [status_of(cell, home) for cell in cells]
    if json:
        print_json(_status_json(made, states))
        return
    if not watch:
        show_status(made.name, states, console())
        return
    from rich.live import Live

    with Live(status_table(made.name, states), console=console(), refresh_per_second=4) as live:
        while any(state.state not in (*OVER, "unreadable") for state in states):
            time.sleep(1)
            states = [status_of(cell, home) for cell in cells]
            live.update(status_table(made.name, states))


@sweep.command(epilog="Example: deepwide sweep export sweeps/first.toml --to results.parquet")
def export(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    to: Annotated[
        Path | None, typer.Option(help="A .csv, .parquet or .json file (default: CSV on standard output).")
    ] = None,
    curves: Annotated[bool, typer.Option("--curves", help="Every record of metrics, not one row a run.")] = False,
    timings: Annotated[
        bool,
        typer.Option("--timings", help="Also what depends on the machine and the day: seconds, tokens per second."),
    ] = False,
    json: Json = False,
) -> None:
    """The results as one table, the same bytes however often the sweep was interrupted."""
    from deepwide.sweeping import results

    if to is not None:
        results.check_format(to)
    made, cells, home = _read(spec, set_, runs)
    frame = results.metrics(cells, home) if curves else results.table(cells, home, timings=timings)
    if frame.is_empty():
        raise DeepwideError(f"no cell of {made.name} in {home} has anything to export yet.")
    missing = sum(not (home / cell.id / "result.json").exists() for cell in cells)
    if missing:
        print(f"{missing} of {len(cells)} cells are not over: the table is not complete yet.", file=sys.stderr)
    if to is None:
        print_json(frame.to_dicts()) if json else print(frame.write_csv(), end="")
        return
    results.export(frame, to)
    if json:
        print_json({"name": made.name, "rows": len(frame), "columns": frame.columns, "file": str(to)})
        return
    console().print(f"Saved {len(frame)} rows of {len(frame.columns)} columns: {to}", markup=False)


@app.command(hidden=True, epilog="Example: deepwide worker runs/first/0123456789abcdef")
def worker(
    folders: Annotated[list[Path], typer.Argument(help="Run folders.")],
    owner: Annotated[str | None, typer.Option(help="Who holds the lease (default: host and process).")] = None,
    lease: LeaseSeconds = 60.0,
    threads: Threads = 1,
    device: Device = "auto",
    with_parent: Annotated[bool, typer.Option("--with-parent", help="Stop when the parent process is gone.")] = False,
) -> None:
    """Run these folders, those that are free and not over; started by executors."""
    from deepwide.run import owner_name
    from deepwide.sweeping.worker import work

    code = work(
        folders, owner=owner or owner_name(), seconds=lease, device=device, threads=threads, with_parent=with_parent
    )
    raise typer.Exit(code)


def _read(path: Path, overrides: list[str] | None, runs: Path | None) -> "tuple[Spec, list[Cell], Path]":
    from deepwide.run.folder import local_path
    from deepwide.sweeping import cells_of, read_spec

    if runs is not None:
        local_path(runs, "--runs")
    spec = read_spec(path, overrides or ())
    return spec, cells_of(spec), (runs or Path("runs") / spec.name).absolute()


def _drive(
    spec: "Spec",
    cells: "list[Cell]",
    home: Path,
    on: str,
    processes: int | None,
    threads: int,
    gpus: float,
    device: str,
    lease: float,
    json: bool,
) -> None:
    from deepwide.cli.sweep_tables import live_status, show_status
    from deepwide.sweeping import Driver, Resources, executor_named, status_of
    from deepwide.sweeping.expect import cells_per_worker, expected_seconds

    resources = Resources(threads=threads, gpus=gpus, device=device, lease_seconds=lease)
    executor = executor_named(on, resources, processes, home)
    if on == "local" and device not in ("auto", "cpu"):
        _check_device(device)
    driver = Driver(executor, per_worker=cells_per_worker(expected_seconds(cells, home, threads)))
    all_over = all((home / cell.id / "result.json").exists() for cell in cells)
    with stop_on_signals() as stop, live_status(spec.name, cells, home, quiet=json) as redraw:
        outcome = driver.drive(cells, home, each_tick=redraw, stop=stop)
    states = [status_of(cell, home) for cell in cells]
    if json:
        print_json(_status_json(spec, states) | {"started": outcome.started})
    else:
        show_status(spec.name, states, console(), nothing_to_do=all_over)
    _say_what_is_left(outcome, home)
    if any(state.state in ("failed", "oom", "unreadable") for state in states):
        raise typer.Exit(1)


def _check_device(device: str) -> None:
    """Refuse a device that is not here: every cell would fail on it. Asked in another process, which frees a GPU."""
    code = "import sys; from deepwide.training.hardware import find_device; find_device(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, device], capture_output=True, check=False)
    if done.returncode:
        raise DeepwideError(f"there is no device '{device[:40]}' here: use cpu, or auto.")


def _say_what_is_left(outcome: "Outcome", home: Path) -> None:
    if outcome.disk_full:
        raise DeepwideError(
            f"the disk of {home} is full: free some room, then deepwide sweep resume; nothing was lost."
        )
    if outcome.unreadable:
        first = next(iter(outcome.unreadable.values()))
        more = len(outcome.unreadable) - 1
        raise DeepwideError(first + (f" ({more} more like it: deepwide sweep status)" if more else ""))
    if outcome.stopped:
        raise KeyboardInterrupt


def _cell_json(cell: "Cell") -> dict[str, Any]:
    return {"id": cell.id, "varied": dict(cell.varied), **cell.cost._asdict(), "config": dict(cell.config)}


def _status_json(spec: "Spec", states: "list[CellStatus]") -> dict[str, Any]:
    counts = Counter(state.state for state in states)
    return {"name": spec.name, "counts": dict(counts), "cells": [state.as_json() for state in states]}
