"""`deepwide time`: what depth costs in time on this machine."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from deepwide.answers import Interval
from deepwide.cli.app import Json, app, console, print_json
from deepwide.cli.tables import add, show, show_facts, table
from deepwide.errors import needs
from deepwide.quantities import show_count, show_seconds

if TYPE_CHECKING:
    from deepwide.timing import MachineProfile

UNITS = {
    "per_byte": (1e12, "ps/byte"),
    "per_flop": (1e12, "ps/FLOP"),
    "per_layer": (1e6, "µs"),
    "constant": (1e6, "µs"),
}


@app.command(epilog="Example: deepwide time --save machine.json, then deepwide plan 1.3B --machine machine.json")
def time(
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Measure for about this long; refused if three rounds take longer. "
            "Default: 240, or as long as three rounds take."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda (written, never run), or auto.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Threads on a CPU (default: torch's).")] = None,
    name: Annotated[str | None, typer.Option(help="What to call this machine.")] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Write the profile as JSON, for plan --machine; after an interruption the command resumes."),
    ] = None,
    presets: Annotated[bool, typer.Option("--presets", help="List the machines that need no measurement.")] = False,
    json: Json = False,
) -> None:
    """Measure training step, prefill and decode at several depths and widths here, and fit a law of time.

    The error is that on shapes left out of the fit, beside a bare roofline's.
    """
    from deepwide.timing import PRESETS, save_machine

    if presets:
        if json:
            print_json([preset.model_dump(mode="json") for preset in PRESETS.values()])
        else:
            show_presets(list(PRESETS.values()), console())
        return
    needs("torch", "train")
    from deepwide.timing import measure_machine

    to = Console(stderr=True)
    keep = None if save is None else save.with_name(f"{save.name}.rounds")
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}"),
        console=to, transient=True, disable=not to.is_terminal,
    ) as bar:  # fmt: skip
        task = bar.add_task("building the networks", total=1.0, left="")
        latest = ""

        def progress(words: str, share: float, left: float) -> None:
            nonlocal latest
            wait = "" if math.isnan(left) else f"{show_seconds(left)} left"
            bar.update(task, completed=share, description=words, left=wait)
            round_now = words.partition(",")[0]
            if not words.startswith("round "):  # of the whole, not of one shape
                bar.console.print(f"{words}, {wait}" if wait else words, highlight=False)
            elif not to.is_terminal and round_now != latest:
                latest = round_now
                print(f"{latest}, {share:.0%} of the time, {wait}", file=sys.stderr, flush=True)

        try:
            profile = measure_machine(
                seconds=seconds, device=device, threads=threads, name=name, progress=progress, keep=keep
            )
        except KeyboardInterrupt:
            where = f"finished rounds are in {keep}, and the same command continues" if keep else "nothing was saved"
            print(f"Interrupted: {where}.", file=sys.stderr)
            raise
    if save and keep:
        save_machine(profile, save)
        keep.unlink(missing_ok=True)
    if json:
        print_json(profile)
        return
    show_machine(profile, console())
    if save:
        console().print(f"Saved the profile: {save}", markup=False)


def show_machine(profile: "MachineProfile", to: Console) -> None:
    """The law of each phase and its errors, then every case."""
    to.print(f"[bold]Time on {profile.name}[/bold] ({profile.precision}, {profile.source})", highlight=False)
    rate, peak = profile.bytes_per_second or 0.0, profile.peak_flops or 0.0
    to.print(f"Measured peak {show_count(peak)} FLOPs/s, reading {rate / 1e9:.1f} GB/s")
    rows = table("phase<", "per byte", "per FLOP", "per layer", "constant", "error left out", "roofline's")
    for phase, law in profile.phases.items():
        cells = [_shown(getattr(law, field), *unit) for field, unit in UNITS.items()]
        errors = ["–" if error is None else f"{error:.1%}" for error in (law.error, law.roofline_error)]
        add(rows, phase, *cells, *errors)
    show(rows, to)
    cases = table("phase<", "shape", "blocks", "batch", "tokens", "measured", "left out", "roofline")
    for t in profile.timings:
        add(
            cases, t.phase, f"{t.depth} × {t.width:,}", show_count(t.block_params), f"{t.batch}", f"{t.tokens:,}",
            f"{1e3 * t.seconds:.3g} ms", f"{t.predicted / t.seconds - 1:+.0%}", f"{t.roofline / t.seconds - 1:+.0%}",
        )  # fmt: skip
    show(cases, to)
    to.print(
        "Errors are medians of |predicted / measured − 1|: of the law fitted to all other shapes, and of "
        "max(bytes / bandwidth, FLOPs / peak).",
        style="dim",
    )


def show_presets(presets: "list[MachineProfile]", to: Console) -> None:
    """The machines that a plan knows by name."""
    for preset in presets:
        to.print(f"[bold]{preset.name}[/bold]")
        law = preset.phases["decode"]
        show_facts([("per layer", _shown(law.per_layer, 1e6, "µs")), ("source", preset.source)], to)


def _shown(interval: Interval, factor: float, unit: str) -> str:
    low, high = interval.low, interval.high
    limits = "" if low is None or high is None else f" ({factor * low:.3g}–{factor * high:.3g})"
    return f"{factor * interval.value:.3g}{limits} {unit}"
