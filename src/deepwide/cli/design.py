"""`deepwide sweep design`: which runs to do next, and `--auto`, which does them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from deepwide.cli.app import Json, Plot, console, print_json
from deepwide.cli.sweep import Device, Gpus, Network, On, Processes, Runs, Set, Threads, group, read
from deepwide.errors import DeepwideError
from deepwide.quantities import show_count, show_seconds
from deepwide.signals import stop_on_signals

if TYPE_CHECKING:
    from deepwide.designing import Design
    from deepwide.fitting import Runs as KnownRuns

MOST_ROWS = 40


@group.command(
    epilog="Example: deepwide sweep design sweeps/design-small.toml --target 400k --budget 5e12 --to next.toml"
)
def design(
    base: Annotated[Path, typer.Argument(help="A sweep: its settings, and what may be run.", metavar="BASE.toml")],
    known: Annotated[
        list[Path] | None, typer.Argument(help="Runs so far: folders or tables (default: none).", metavar="[RUNS]...")
    ] = None,
    target: Annotated[str, typer.Option(help="The size, in block parameters, to be known: 1.3B.")] = ...,  # type: ignore[assignment]
    budget: Annotated[str, typer.Option(help="FLOPs (1e17), or time of one worker (30min, 2h).")] = ...,  # type: ignore[assignment]
    goal: Annotated[
        Literal["depth", "loss"], typer.Option(help="What is to be known there: the best depth, or the loss at it.")
    ] = "depth",
    sizes: Annotated[
        str | None, typer.Option(help="Sizes that may be run: 10k,40k or 10k:1M (default: iso.params).")
    ] = None,
    depths: Annotated[
        str | None, typer.Option(help="Depths that may be run: 1,2,4 or 1:16 (default: iso.depths).")
    ] = None,
    tokens: Annotated[
        str | None, typer.Option(help="Lengths that may be run: 2M or 1M:8M (default: the base's).")
    ] = None,
    length: Annotated[
        str | None, typer.Option(help="Tokens of the run that is planned: 8M (default: the longest that may be run).")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="By how much losses of one shape differ between seeds, if known: 1.5%."),
    ] = None,
    rehearse: Annotated[
        int,
        typer.Option(help="Before any run: made-up sweeps of the chosen runs, to see what they may end with; 0: none."),
    ] = 20,
    until: Annotated[float | None, typer.Option(help="Stop when the interval's high/low is at most this.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Runs per batch, at least.")] = 4,
    column: Annotated[
        list[str] | None, typer.Option(help="Map a column of a table of runs, as for fit: loss=val_loss. Repeat.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Choose rows of a table of runs, as for fit: dataset=c4. Repeat.")
    ] = None,
    best_of: Annotated[
        str | None, typer.Option(help="Columns of which each shape's best setting counts, besides lr: batch,warmup.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Write the next batch as a sweep: a .toml file.")] = None,
    plot: Plot = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Run, fit and design until the interval or the budget is reached.")
    ] = False,
    set_: Set = None,
    runs: Runs = None,
    on: On = "local",
    processes: Processes = None,
    threads: Threads = 1,
    gpus: Gpus = 0.0,
    device: Device = "auto",
    network: Network = False,
    json: Json = False,
) -> None:
    """Choose the runs that shrink a target's interval most for a budget; starts nothing unless --auto is given."""
    from deepwide.designing import run_designs, sweep_design

    if auto and (column or where or best_of):
        raise DeepwideError("--auto reads tables by their usual names: leave --column, --where and --best-of out.")
    if auto and to is not None:
        raise DeepwideError("--auto writes each batch into the folder of its runs: leave --to out, or --auto.")
    if to is not None:
        _check_target(to, base)
    if plot is not None:
        from deepwide.figures import check_suffix

        check_suffix(plot)
    if base.suffix != ".toml" and base.is_file():
        raise DeepwideError(
            f"{base.name} is no sweep: give first a .toml file that says what may be run, then {base.name} as the runs "
            "so far."
        )
    spec = read(base, set_, network)
    asked: dict[str, Any] = {
        "target": target, "budget": budget, "goal": goal, "sizes": sizes, "depths": depths, "tokens": tokens,
        "length": length, "noise": noise, "until": until, "batch": batch, "threads": threads, "folder": runs,
        "rehearse": rehearse,
    }  # fmt: skip
    if not auto:
        answer = sweep_design(spec, _known(known, column, where, best_of), **asked)
    else:
        from deepwide.cli.sweep_tables import live_state

        with stop_on_signals() as stop, live_state(quiet=json) as progress:
            answer = run_designs(
                spec,
                known or (),
                **asked,
                report=None if json else _report,
                progress=progress,
                stop=stop,
                on=on,
                processes=processes,
                gpus=gpus,
                device=device,
            )
    if plot is not None:
        from deepwide.figures import design_chart, save_chart

        save_chart(design_chart(answer), plot)
    if to is not None and answer.runs:
        answer.save_spec(to)
    if json:
        print_json(answer)
    else:
        show_design(answer, console(), to)
    _end(answer)


def _check_target(to: Path, base: Path) -> None:
    """A batch replaces nothing but an earlier batch."""
    from deepwide.designing import HEAD

    if to.suffix != ".toml":
        raise DeepwideError(f"{to.name} must end in .toml.")
    if to.exists() and base.exists() and to.samefile(base):
        raise DeepwideError(f"--to {to} is the base sweep, which says what may be run: name another file.")
    if to.is_dir() or (to.is_file() and not to.read_bytes().startswith(HEAD.encode())):
        raise DeepwideError(f"{to} is there already and is no batch of a design: name another file, or move it away.")


def _known(
    known: list[Path] | None, column: list[str] | None, where: list[str] | None, best_of: str | None
) -> "KnownRuns | list[Path] | None":
    """The runs so far: read here where it is said how."""
    if not (column or where or best_of):
        return known or None
    if not known:
        raise DeepwideError("--column, --where and --best-of say how to read a table of runs: give one.")
    from deepwide.cli.fit import columns_of, names_of, rows_asked_for
    from deepwide.fitting import read_runs

    near, limits = rows_asked_for(where or [])
    return read_runs(known, columns_of(column or []), where=near, limits=limits, best_of=names_of(best_of))


def _report(answer: "Design") -> None:
    """Before each batch of --auto: what is known, and what to expect."""
    console().print(f"design-{answer.now.batch + 1:03d}: {answer.headline()}", soft_wrap=True, markup=False)


def show_design(answer: "Design", out: Console, to: Path | None = None) -> None:
    """What is known, what to expect after each batch, the next batch, and what to do with it."""
    out.print(answer.headline(), soft_wrap=True, markup=False)
    out.print()
    if answer.assumed:
        out.print(f"The interval of the target {answer.assumed}", soft_wrap=True, markup=False)
    out.print(_stages(answer))
    if answer.runs:
        out.print()
        out.print(_runs(answer))
    if answer.stop:
        text = str(answer.stop).rstrip(".")
        out.print(f"\n{text[:1].upper()}{text[1:]}.", soft_wrap=True, markup=False)
    for kind, notes in (("Warning", answer.warnings), ("Note", answer.notes)):
        for note in notes:
            out.print(f"{kind}: {note}.", soft_wrap=True, markup=False)
    if answer.runs:
        out.print(f"{answer.time()}.", soft_wrap=True, markup=False)
    if to is not None and answer.runs:
        out.print(f"Wrote the next batch: {to}. Next: deepwide sweep run {to}", soft_wrap=True, markup=False)
    elif to is not None:
        earlier = ", which holds an earlier batch" if to.exists() else ""
        out.print(f"There is no run to do: nothing was written to {to}{earlier}.", soft_wrap=True, markup=False)


def _stages(answer: "Design") -> Table:
    from deepwide.designing import show_high, show_ratio

    table = _table("" if answer.assumed else "The interval of the target")
    table.add_column("after")
    for title in ("runs", "FLOPs", "high/low", "interval"):
        table.add_column(title, justify="right")
    for stage in answer.stages:
        interval = stage.interval
        shown = "" if interval is None else f"{interval.low:.3g} to {show_high(interval)}"
        ratio = show_ratio(stage.ratio)
        ratio = (
            ratio if stage.expected or interval else "none yet"
        )  # what a fit that declines would give is no interval
        when = f"batch {stage.batch}" if stage.batch else "now"
        when = f"{when}{', expected' if stage.expected else ''}"
        table.add_row(when, str(stage.runs), show_count(stage.train_flops) if stage.runs else "0", ratio, shown)
    return table


def _runs(answer: "Design") -> Table:
    table = _table("Runs")
    for title in ("batch", "depth", "width", "params", "tokens", "seed", "FLOPs", "expected"):
        table.add_column(title, justify="right")
    for run in answer.runs[:MOST_ROWS]:
        table.add_row(
            str(run.batch),
            str(run.depth),
            str(run.width),
            show_count(run.block_params),
            show_count(run.tokens),
            str(run.seed),
            show_count(run.train_flops),
            show_seconds(run.expected_seconds),
        )
    if len(answer.runs) > MOST_ROWS:
        table.caption = f"{len(answer.runs) - MOST_ROWS} more runs: --json lists all"
    return table


def _table(title: str) -> Table:
    return Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")


def _end(answer: "Design") -> None:
    code = answer.stop.code if answer.stop else ""
    if code in ("disk_full", "unreadable", "blocked"):
        raise DeepwideError(f"{str(answer.stop).rstrip('.')}.")
    if code == "stopped":
        raise KeyboardInterrupt
    if code == "failed":
        raise typer.Exit(1)
