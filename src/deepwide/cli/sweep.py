"""`deepwide sweep plan|run|status|resume|retry|export|verify|init` (`design`: see there), and the executors' worker."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError
from deepwide.signals import stop_on_signals

if TYPE_CHECKING:
    from deepwide.sweeping import Spec, SweepState

group = typer.Typer(
    help="Train many transformers from one TOML file, without losing a run.",
    no_args_is_help=True,
    epilog="Example: deepwide sweep plan sweeps/first.toml",
)
app.add_typer(group, name="sweep")

SpecFile = Annotated[Path, typer.Argument(help="The sweep's TOML file.", metavar="SPEC.toml")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Override a key: lr=3e-4, model.preset=llama, 'seeds=[0,1]'.")
]
Runs = Annotated[Path | None, typer.Option(help="Where the run folders are (default: runs/NAME).")]
On = Annotated[str, typer.Option(help="local, ray, ray://HOST:PORT, slurm, or 'slurm:--partition=gpu --time=2:00:00'.")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Workers at a time (default: one per core, or what the cluster has).")
]
Threads = Annotated[int, typer.Option(min=1, max=1024, help="Threads per worker.")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs per worker; a share such as 0.25 with ray.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")]
LeaseSeconds = Annotated[
    float, typer.Option("--lease", min=1, help="Seconds until a silent worker's cell is taken over.")
]
Network = Annotated[bool, typer.Option("--network", help="Allow downloading a public data set or hf:owner/name.")]


@group.command(epilog="Example: deepwide sweep plan sweeps/first.toml --set 'seeds=[0]'")
def plan(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    processes: Processes = None,
    threads: Threads = 1,
    network: Network = False,
    json: Json = False,
) -> None:
    """Every cell with its parameters, FLOPs, memory and expected time; runs nothing and writes nothing."""
    from deepwide.cli.sweep_tables import show_expansion
    from deepwide.sweeping import expand

    expansion = expand(read(spec, set_, network), runs=runs, processes=processes, threads=threads)
    print_json(expansion) if json else show_expansion(expansion, console())


@group.command(
    "resume",
    help="Resume a sweep that was begun: the same as run, but refuses one that was not.",
    epilog="Example: deepwide sweep resume sweeps/first.toml",
)
@group.command(
    "run",
    help="Run every cell that has not finished; a finished sweep does nothing. Ctrl-C saves; run again to resume.",
    epilog="Example: deepwide sweep run sweeps/first.toml --on local",
)
def run(
    context: typer.Context,
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    on: On = "local",
    processes: Processes = None,
    threads: Threads = 1,
    gpus: Gpus = 0.0,
    device: Device = "auto",
    lease: LeaseSeconds = 60.0,
    network: Network = False,
    json: Json = False,
) -> None:
    """Run or resume, by the name it was called."""
    from deepwide.cli.sweep_tables import live_state, show_state
    from deepwide.sweeping import sweep

    parsed = read(spec, set_, network)
    with stop_on_signals() as stop, live_state(quiet=json) as progress:
        state = sweep(
            parsed,
            runs=runs,
            on=on,
            processes=processes,
            threads=threads,
            gpus=gpus,
            device=device,
            lease_seconds=lease,
            resume=context.info_name == "resume",
            progress=progress,
            stop=stop,
        )
    print_json(state) if json else show_state(state, console())
    _end(state)


@group.command(epilog="Example: deepwide sweep retry sweeps/first.toml --failed")
def retry(
    spec: SpecFile,
    failed: Annotated[bool, typer.Option("--failed", help="Cells that failed or ran out of memory.")] = False,
    diverged: Annotated[bool, typer.Option("--diverged", help="Cells that diverged.")] = False,
    set_: Set = None,
    runs: Runs = None,
    json: Json = False,
) -> None:
    """Take back the results of cells that went wrong, so that run starts them again from their last checkpoint."""
    from deepwide.sweeping import retry as retry_cells

    statuses = (("failed", "oom") if failed else ()) + (("diverged",) if diverged else ())
    if not statuses:
        raise DeepwideError("choose which cells to retry: --failed, --diverged or both.")
    parsed = read(spec, set_)
    reopened = retry_cells(parsed, statuses, runs)
    if json:
        print_json({"name": parsed.name, "reopened": reopened})
    elif not reopened:
        console().print(f"No cell ended {' or '.join(statuses)}: nothing to retry.")
    else:
        number = f"{len(reopened)} cell{'s' * (len(reopened) > 1)}"
        console().print(f"{number} will run again: deepwide sweep run {spec}", markup=False)


@group.command(epilog="Example: deepwide sweep status sweeps/first.toml --watch")
def status(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and redraw every second until all finished.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Workers for the time left (default: those that run now).")
    ] = None,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """Where each cell stands, read from its folder, and the time left."""
    from deepwide.cli.sweep_tables import show_state, watch_states
    from deepwide.sweeping import sweep_state
    from deepwide.sweeping import watch as watch_sweep

    parsed = read(spec, set_)
    if watch and not json:
        watch_states(watch_sweep(parsed, runs, processes=processes, threads=threads), console())
        return
    state = sweep_state(parsed, runs, processes=processes, threads=threads)
    print_json(state) if json else show_state(state, console())


@group.command(epilog="Example: deepwide sweep export sweeps/first.toml --to results.parquet")
def export(
    spec: SpecFile,
    set_: Set = None,
    runs: Runs = None,
    to: Annotated[
        Path | None, typer.Option(help="A .csv, .parquet or .json file (default: CSV on standard output).")
    ] = None,
    curves: Annotated[bool, typer.Option("--curves", help="Every record of metrics, not one row per run.")] = False,
    timings: Annotated[
        bool,
        typer.Option("--timings", help="Also what depends on the machine and the day: seconds, tokens per second."),
    ] = False,
    json: Json = False,
) -> None:
    """The results as one table, the same bytes however often the sweep was interrupted."""
    from deepwide import sweeping

    if to is not None:
        sweeping.check_format(to)
    parsed = read(spec, set_)
    cells, home = sweeping.locate(parsed, runs)
    frame = sweeping.curves(cells, home) if curves else sweeping.table(cells, home, timings=timings)
    if frame.is_empty():
        raise DeepwideError(f"no cell of {parsed.name} in {home} has anything to export yet.")
    if missing := sweeping.unfinished(cells, home):
        print(f"{missing} of {len(cells)} cells have not finished: the table is not complete yet.", file=sys.stderr)
    if old := sweeping.unchecked(cells, home):
        print(f"{old} results were written before results carried a checksum: they are unchecked.", file=sys.stderr)
    if to is None:
        print_json(frame.to_dicts()) if json else print(frame.write_csv(), end="")
        return
    sweeping.export(frame, to)
    if json:
        print_json({"name": parsed.name, "rows": len(frame), "columns": frame.columns, "file": str(to)})
        return
    console().print(f"Saved {len(frame)} rows of {len(frame.columns)} columns: {to}", markup=False)


@group.command(epilog="Example: deepwide sweep verify runs/first")
def verify(
    folder: Annotated[Path, typer.Argument(help="A folder of runs, or one run.", metavar="FOLDER")],
    json: Json = False,
) -> None:
    """Read every byte of every run in a folder and print what is damaged and what to do; exit code 1 if anything is."""
    from deepwide.cli.sweep_tables import show_verification
    from deepwide.sweeping import verify as verify_runs

    verification = verify_runs(folder)
    print_json(verification) if json else show_verification(verification, console())
    if verification.damaged:
        raise typer.Exit(1)


@group.command(epilog="Example: deepwide sweep init mine.toml")
def init(
    file: Annotated[Path, typer.Argument(help="The TOML file to write; it must not exist.", metavar="SPEC.toml")],
    json: Json = False,
) -> None:
    """Write a small sweep to start from: a TOML file in which every key is explained."""
    from deepwide.sweeping import write_example

    spec = write_example(file)
    if json:
        print_json({"name": spec.name, "file": str(file)})
        return
    console().print(f"Wrote {file}. Next: deepwide sweep plan {file}", markup=False)


@app.command(hidden=True, epilog="Example: deepwide worker runs/first/0123456789abcdef")
def worker(
    folders: Annotated[list[Path], typer.Argument(help="Run folders.")],
    owner: Annotated[str | None, typer.Option(help="Who holds the lease (default: host and process).")] = None,
    lease: LeaseSeconds = 60.0,
    threads: Threads = 1,
    device: Device = "auto",
    with_parent: Annotated[bool, typer.Option("--with-parent", help="Stop when the parent process is gone.")] = False,
) -> None:
    """Run these folders, those that are free and have not finished; started by executors."""
    from deepwide.run import owner_name
    from deepwide.sweeping import work

    code = work(
        folders, owner=owner or owner_name(), seconds=lease, device=device, threads=threads, with_parent=with_parent
    )
    raise typer.Exit(int(code))


def read(path: Path, overrides: list[str] | None, network: bool = False) -> "Spec":
    """The spec that a command names, with what it overrides."""
    from deepwide.sweeping import read_spec

    if network:
        os.environ["DEEPWIDE_NETWORK"] = "1"  # workers inherit it
    return read_spec(path, overrides or ())


def _end(state: "SweepState") -> None:
    """What the exit code and the last sentence are when the sweep is not as it should be."""
    for code in ("disk_full", "unreadable", "blocked"):
        if note := state.note(code):
            raise DeepwideError(str(note))
    if state.note("stopped"):
        raise KeyboardInterrupt
    if state.failed:
        raise typer.Exit(1)
