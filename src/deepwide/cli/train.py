"""`deepwide train` and `deepwide check-scaling`."""

import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from deepwide.answers import Note
from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError, needs
from deepwide.settings import with_setting

if TYPE_CHECKING:
    from deepwide.training import RunConfig, RunEstimate, ScalingCheck, TrainedRun

DATA_HELP = (
    "A text file, a folder, a .jsonl or .parquet file (see data.column), a .gz of these, a public set by name "
    "(tinyshakespeare, wikitext-2, enwik8, imdb), hf:owner/name, or python: the standard library's source. For "
    "translation and classification: a .tsv or .jsonl file, two aligned files as one,two, or a folder."
)
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting, as lr=3e-4, model.residual=rezero, data.tokeniser=bpe, task.length=12."),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
Threads = Annotated[int | None, typer.Option(min=1, max=4096, help="Threads on a CPU.")]
Network = Annotated[bool, typer.Option("--network", help="Allow fetching a public set or hf:owner/name.")]


@app.command(
    epilog="Examples: deepwide train --depth 4 --width 128 --tokens 2M · deepwide train --task sorting --depth 2 "
    "--width 64 --set steps=2000 · deepwide train --task translation --data pairs.tsv --depth 2 --width 128 "
    "--tokens 2M · torchrun --nproc-per-node 2 -m deepwide train --depth 24 --width 1024 --tokens 1B"
)
def train(
    depth: Annotated[int | None, typer.Option(help="Layers.")] = None,
    width: Annotated[int | None, typer.Option(help="Width of the residual stream.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Training tokens: 2M, 1e9.")] = None,
    preset: Annotated[str | None, typer.Option(help="levine (GPT-2's kind), llama, or linear (the theory's).")] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="language (the default), translation, classification, copying, sorting, reversing, repeats, parity, "
            "majority, matching, hops, connectivity or blocks."
        ),
    ] = None,
    data: Annotated[str | None, typer.Option(help=DATA_HELP)] = None,
    seed: Annotated[int | None, typer.Option(help="Of initial weights and the order of the data.")] = None,
    settings: Settings = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; options and --set override it.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder of run folders.")] = Path("runs"),
    device: Device = "auto",
    threads: Threads = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16, or auto: bf16 where the hardware has it.")] = "auto",
    compiled: Annotated[
        str, typer.Option("--compile", help="torch.compile: off, on, or auto: measured, used if it pays.")
    ] = "off",
    log: Annotated[
        list[str] | None, typer.Option(help="Also record to tensorboard:DIR, wandb:PROJECT or mlflow:EXPERIMENT.")
    ] = None,
    network: Network = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what the run would be and estimate its time; start nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Train one transformer. The same command again resumes it, or shows its result when it is finished.

    The run's folder, named by all that determines its numbers, holds its config, metrics, checkpoints and result.
    """
    _needs_torch()
    from deepwide.settings import read_toml
    from deepwide.training import estimate_run, override, tune

    if network:
        _allow_network()
    fields = override(read_toml(config) if config else {}, [])
    given: dict[str, object] = {
        "model.depth": depth, "model.width": width, "model.preset": preset, "tokens": tokens, "task.name": task,
        "data.source": data, "seed": seed,
    }  # fmt: skip
    fields = override(_with_options(fields, given), settings or [])
    if "model" not in fields:
        raise DeepwideError("a network needs --depth and --width, or a --config that gives them.")
    if not {"tokens", "steps"} & fields.keys():
        raise DeepwideError("a run needs a budget: --tokens 2M, or --set steps=1000.")
    tuned = tune(fields, device=device, precision=precision, compiled=compiled)
    for note in tuned.notes:
        _print_note(note)
    if dry_run:
        _show_estimate(estimate_run(tuned.config, device=device, threads=threads), json)
        return
    finished = _train(tuned.config, runs, device, threads, log or [], quiet=json)
    if int(os.environ.get("RANK", "0")) == 0:
        _show_result(finished, json)
        if finished.status == "stopped":
            raise typer.Exit(130)


def _train(
    run: "RunConfig", runs: Path, device: str, threads: int | None, log: list[str], *, quiet: bool
) -> "TrainedRun":
    """Train with a progress bar; the first signal saves and stops, the second interrupts."""
    from deepwide.cli.progress import Bar
    from deepwide.signals import stop_on_signals
    from deepwide.training import estimate_run
    from deepwide.training import train as train_run

    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals(second_interrupts=True))
        bar = None
        if not quiet and int(os.environ.get("RANK", "0")) == 0:
            estimate = estimate_run(run, device=device, threads=threads)
            cost = estimate.train_flops / estimate.tokens
            bar = stack.enter_context(Bar(estimate.steps, cost, estimate.peak_flops, Console(stderr=True)))
        return train_run(
            run, runs=runs, device=device, threads=threads, log=log, progress=bar, report=_print_note, stop=stop
        )


def _print_note(note: Note) -> None:
    print(f"{note.text[:1].upper()}{note.text[1:]}", file=sys.stderr)


def _show_estimate(estimate: "RunEstimate", json: bool) -> None:
    from deepwide.quantities import plural, show_count, show_seconds
    from deepwide.tasks import TABLED

    if json:
        print_json(estimate)
        return
    source = estimate.config["data"]["source"]
    reads = {"language": f"of '{source}'"} | {task: f"of {task}, '{source}'" for task in TABLED}
    learned = reads.get(estimate.task, f"of {estimate.task}")
    say = partial(console().print, markup=False)
    say(
        f"{estimate.preset}, depth {estimate.depth}, width {estimate.width}, {plural(estimate.heads, 'head')}: "
        f"{show_count(estimate.block_params)} block parameters, {show_count(estimate.total_params)} total.\n"
        f"{estimate.steps} steps of {estimate.batch} × {estimate.context} tokens {learned}, "
        f"{show_count(estimate.tokens)} total; {show_count(estimate.train_flops)} FLOPs.\n"
        f"Estimated time here: {show_seconds(estimate.seconds)}."
    )
    for note in estimate.notes:
        say(f"{note.text[:1].upper()}{note.text[1:]}")
    say("Nothing was started.")


def _show_result(run: "TrainedRun", json: bool) -> None:
    if json:
        print_json({name: value for name, value in run.model_dump(mode="json").items() if name != "records"})
        return
    say = partial(console().print, markup=False, soft_wrap=True)  # a path may have brackets, and stays in one piece
    if run.status == "stopped":
        at = f"at step {run.step}" if run.step else "before its first step"
        say(f"Stopped {at}; the same command resumes it. Folder: {run.path}")
    elif run.status == "done":
        others = "".join(f", {_in_words(name, value)}" for name, value in run.metrics.items())
        unit = "nats per token" if "bits_per_byte" in run.metrics else "nats per answer"
        loss = f"validation loss {run.validation_loss:.4f} {unit}"
        say(f"Done: {loss}{others}, after {run.tokens:,} tokens.\nFolder: {run.path}")
    else:
        say(f"Ended {run.status}: {str(run.why or 'no reason given').removesuffix('.')}.\nFolder: {run.path}")


def _in_words(name: str, value: float) -> str:
    return f"{value:.4f} bits per byte" if name == "bits_per_byte" else f"{name.replace('_', ' ')} {value:.4f}"


def _with_options(fields: dict[str, Any], given: dict[str, object]) -> dict[str, Any]:
    """Settings with those of the options put over them; text stays text, even a folder named 2024."""
    for name, value in given.items():
        if value is not None:
            fields = with_setting(fields, name.split("."), value)
    return fields


def _needs_torch() -> None:
    needs("torch", "train")
    needs("safetensors", "train")


def _allow_network() -> None:
    from deepwide.data import allow_network

    allow_network()


@app.command(
    name="check-scaling",
    epilog="Examples: deepwide check-scaling --plot scaling.svg · "
    "deepwide check-scaling --preset llama --set norm_place=peri --parametrisation completep",
)
def check_scaling(
    parametrisation: Annotated[
        list[str] | None, typer.Option(help="standard, mup, completep; several times for several (default: all).")
    ] = None,
    widths: Annotated[str, typer.Option(help="Widths, at the least of the depths.")] = "32,64,128,256",
    depths: Annotated[str, typer.Option(help="Depths, at the least of the widths.")] = "2,4,8,16",
    preset: Annotated[str, typer.Option(help="levine, llama or linear.")] = "levine",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A choice of the network, as residual=deepnorm.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=1000, help="Training steps before measuring.")] = 4,
    lr: Annotated[float, typer.Option(min=1e-9, max=10, help="The one learning rate.")] = 1e-2,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Repetitions.")] = 2,
    data: Annotated[str, typer.Option(help=DATA_HELP)] = "python",
    network: Network = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .svg, .png, .pdf, .html or .json (Vega-Lite) file.")
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Does one learning rate mean the same at every width and depth? Trains for a few steps and measures.

    A flat line is a fair comparison; a rising one means that a sweep with one learning rate compares learning rates.
    """
    _needs_torch()
    from deepwide.data import DataConfig
    from deepwide.figures import check_suffix, save_chart, scaling_chart
    from deepwide.settings import parse_setting
    from deepwide.training import check_scaling as measure

    if network:
        _allow_network()
    if plot:
        check_suffix(plot)
    choices: dict[str, Any] = {}
    for setting in settings or []:
        path, value = parse_setting(setting)
        choices[".".join(path)] = value
    kinds = {"parametrisations": parametrisation} if parametrisation else {}
    with Console(stderr=True).status("measuring") as status:
        check = measure(
            widths=_sizes(widths, "--widths"), depths=_sizes(depths, "--depths"), preset=preset, steps=steps, lr=lr,
            seeds=range(seeds), data=DataConfig(source=data), threads=threads, progress=status.update,
            **kinds, **choices,
        )  # fmt: skip
    if plot:
        save_chart(scaling_chart(check), plot)
    if json:
        slopes, points = check.rows(), [point._asdict() for point in check.points]
        print_json({"preset": preset, "lr": lr, "steps": steps, "slopes": slopes, "points": points})
        return
    _show_slopes(check, plot)


def _show_slopes(check: "ScalingCheck", plot: Path | None) -> None:
    from rich.table import Table

    places = list(dict.fromkeys(slope.place for slope in check.slopes))
    table = Table("parametrisation", "against", *places, "verdict", box=None)
    for kind, along in dict.fromkeys((slope.parametrisation, slope.along) for slope in check.slopes):
        slopes = [s.slope for s in check.slopes if (s.parametrisation, s.along) == (kind, along)]
        verdict = "flat" if check.is_flat(kind, along) else "not flat"
        table.add_row(kind, along, *(f"{slope:+.2f}" for slope in slopes), verdict)
    to = console()
    to.print("Slopes of ln(change of activations) over ln(width) or ln(depth); 0 is fair.")
    to.print(table)
    if plot:
        to.print(f"Saved the picture: {plot}", markup=False)


def _sizes(text: str, option: str) -> list[int]:
    words = text.split(",")
    if not all(word.strip().isdecimal() and 0 < int(word) <= 100_000 for word in words) or len(words) > 50:
        raise DeepwideError(
            f"{option} must be whole numbers with commas between, such as 32,64,128, not '{text[:40]}'."
        )
    return sorted({int(word) for word in words})
