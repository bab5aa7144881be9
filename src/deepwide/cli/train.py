"""`deepwide train` and `deepwide check-scaling`."""

import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError, did_you_mean
from deepwide.settings import with_setting

if TYPE_CHECKING:
    from deepwide.run import RunFolder
    from deepwide.training import RunConfig
    from deepwide.training.scaling import Slope

DATA_HELP = (
    "A text file, a folder, a .jsonl or .parquet file (see data.column), a .gz of these, a public set by name "
    "(tinyshakespeare, wikitext-2, enwik8, imdb), hf:owner/name, or python: the standard library's source."
)
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting, as optimiser.lr=3e-4, model.residual=rezero, data.tokeniser=bpe."),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
Threads = Annotated[int | None, typer.Option(min=1, max=4096, help="Threads on a CPU.")]


@app.command(
    epilog="Examples: deepwide train --depth 4 --width 128 --tokens 2M · "
    "torchrun --nproc-per-node 2 -m deepwide train --depth 24 --width 1024 --tokens 1B"
)
def train(
    depth: Annotated[int | None, typer.Option(help="Layers.")] = None,
    width: Annotated[int | None, typer.Option(help="Width of the residual stream.")] = None,
    tokens: Annotated[str | None, typer.Option(help="Training tokens: 2M, 1e9.")] = None,
    preset: Annotated[str | None, typer.Option(help="levine (GPT-2's kind), llama, or linear (the theory's).")] = None,
    data: Annotated[str | None, typer.Option(help=DATA_HELP)] = None,
    seed: Annotated[int | None, typer.Option(help="Of initial weights and the order of the data.")] = None,
    settings: Settings = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; options and --set go over it.")] = None,
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
    network: Annotated[bool, typer.Option("--network", help="Allow fetching a public set or hf:owner/name.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what the run would be, and start nothing.")] = False,
    json: Json = False,
) -> None:
    """Train one transformer. The same command again resumes it, or shows its result when it is over.

    The run's folder, named by all that determines its numbers, holds its config, metrics, checkpoints and result.
    """
    _needs_torch()
    from deepwide.run.folder import local_path
    from deepwide.settings import read_toml
    from deepwide.training import override, resolve

    if network:
        os.environ["DEEPWIDE_NETWORK"] = "1"
    local_path(runs, "--runs")
    fields = read_toml(config) if config else {}
    given: dict[str, object] = {
        "model.depth": depth, "model.width": width, "model.preset": preset, "tokens": tokens, "data.source": data,
        "seed": seed,
    }  # fmt: skip
    fields = override(_over(fields, given), settings or [])
    if "model" not in fields:
        raise DeepwideError("a network needs --depth and --width, or a --config that gives them.")
    if not {"tokens", "steps"} & fields.keys():
        raise DeepwideError("a run needs a budget: --tokens 2M, or --set steps=1000.")
    run = _tuned(resolve(fields), fields, device, precision, compiled)
    if dry_run:
        _show_plan(run, json)
        return
    folder = _train(run, runs, device, threads, log or [], quiet=json)
    if folder is not None:
        _show_result(folder, json)
        if folder.result() is None:
            raise typer.Exit(130)


def _tuned(run: "RunConfig", fields: dict[str, Any], device: str, precision: str, compiled: str) -> "RunConfig":
    """The config with what the hardware decides, unless the settings say it."""
    from deepwide.training import RunConfig
    from deepwide.training.tuning import choose_precision, try_compile

    changes: dict[str, Any] = {}
    if "precision" not in fields:
        changes["precision"] = choose_precision(device) if precision == "auto" else precision
    if compiled not in ("off", "on", "auto"):
        raise DeepwideError(f"--compile must be off, on or auto, not '{compiled[:40]}'.")
    run = RunConfig.of(run.model_dump() | changes)
    if "compile" not in fields and compiled == "auto":
        assert run.steps
        trial = try_compile(run, device)
        pays = trial.pays(run.steps)
        words = f"{trial.plain * 1e3:.1f} ms a step, compiled {trial.compiled * 1e3:.1f} after {trial.compiling:.0f} s"
        print(f"torch.compile {'pays' if pays else 'does not pay'}: {words}.", file=sys.stderr)
        return RunConfig.of(run.model_dump() | {"compile": pays})
    return RunConfig.of(run.model_dump() | {"compile": run.compile or compiled == "on"})


def _train(
    run: "RunConfig", runs: Path, device: str, threads: int | None, log: list[str], *, quiet: bool
) -> "RunFolder | None":
    """Run it; returns its folder on the first process, None on the others."""
    import torch

    from deepwide.run import RunFolder
    from deepwide.shape import flops
    from deepwide.signals import stop_on_signals
    from deepwide.training import NUMERICS, data_fingerprint
    from deepwide.training import train as work
    from deepwide.training.hardware import find_device, peak_flops
    from deepwide.training.progress import Bar
    from deepwide.training.sinks import check_sink, open_sink

    for asked in log:
        check_sink(asked)
    if threads:
        torch.set_num_threads(threads)
    resolved = run.model_dump(mode="json")
    folder = RunFolder.create(runs, resolved, data_fingerprint=data_fingerprint(run), numerics=NUMERICS)
    first = int(os.environ.get("RANK", "0")) == 0
    if folder.result() is not None:
        if log and first:
            print(f"This run is over already, so nothing goes to {', '.join(log)}.", file=sys.stderr)
        return folder if first else None
    assert run.steps
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals(second_interrupts=True))
        if not first:
            work(folder, None, device=device, threads=threads, stop=stop)
            return None
        lease = stack.enter_context(folder.lease(f"{os.uname().nodename}:{os.getpid()}"))
        sinks = [open_sink(asked, folder.id, resolved, lambda words: print(words, file=sys.stderr)) for asked in log]
        for sink in sinks:
            stack.callback(sink.close)
        cost = flops(run.architecture.shape, run.context).training_per_token
        peak = 0.0 if quiet else peak_flops(find_device(device), run.precision)
        bar = None if quiet else stack.enter_context(Bar(run.steps, 0, cost, peak, Console(stderr=True)))

        def tell(record: Any) -> None:
            if bar:
                bar(record)
            for sink in sinks:
                sink.record(record)

        work(folder, lease, device=device, threads=threads, progress=tell, stop=stop)
    return folder


def _show_plan(run: "RunConfig", json: bool) -> None:
    from deepwide.quantities import show_count
    from deepwide.shape import flops

    shape = run.architecture.shape
    cost = flops(shape, run.context).training_per_token * (run.tokens or 0)
    if json:
        print_json({"config": run.model_dump(mode="json"), "total_params": shape.total_params, "train_flops": cost})
        return
    console().print(
        f"{run.model.preset}, depth {shape.depth}, width {shape.width}, {shape.heads} head{'s' * (shape.heads > 1)}: "
        f"{show_count(shape.block_params)} block parameters, {show_count(shape.total_params)} in all.\n"
        f"{run.steps} steps of {run.batch} × {run.context} tokens of '{run.data.source}', "
        f"{show_count(run.tokens or 0)} in all; {show_count(cost)} FLOPs.\nNothing was started.",
        markup=False,
    )


def _show_result(folder: "RunFolder", json: bool) -> None:
    result = folder.result()
    if json:
        print_json({"id": folder.id, "path": str(folder.path), "result": result})
        return
    say = partial(console().print, markup=False)  # a path may have brackets
    if result is None:
        kept = folder.latest_checkpoint()
        at = f"at step {kept.step}" if kept else "before its first step"
        say(f"Stopped {at}; the same command goes on from there. Folder: {folder.path}")
    elif result["status"] == "done":
        say(
            f"Done: validation loss {result['validation_loss']:.4f} nats per token, "
            f"{result['bits_per_byte']:.4f} bits per byte, after {result['tokens']:,} tokens.\nFolder: {folder.path}"
        )
    else:
        why = result.get("why") or result.get("error") or "no reason given"
        say(f"Ended {result['status']}: {str(why).removesuffix('.')}.\nFolder: {folder.path}")


def _over(fields: dict[str, Any], given: dict[str, object]) -> dict[str, Any]:
    """Settings with those of the options put over them; text stays text, even a folder named 2024."""
    for name, value in given.items():
        if value is not None:
            fields = with_setting(fields, name.split("."), value)
    return fields


def _needs_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None or find_spec("safetensors") is None:
        raise DeepwideError("Training needs torch: pip install 'deepwide[train]'.")


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
    steps: Annotated[int, typer.Option(min=1, max=1000, help="Training steps before looking.")] = 4,
    lr: Annotated[float, typer.Option(min=1e-9, max=10, help="The one learning rate.")] = 1e-2,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Repetitions.")] = 2,
    data: Annotated[str, typer.Option(help=DATA_HELP)] = "python",
    plot: Annotated[Path | None, typer.Option(help="Draw it: a .svg, .png or .html file.")] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Does one learning rate mean the same at every width and depth? Trains for a few steps and measures.

    A flat line is a fair comparison; a rising one says that a sweep with one learning rate compares learning rates.
    """
    _needs_torch()
    import torch

    from deepwide.data import DataConfig
    from deepwide.figures import check_suffix, save_chart
    from deepwide.figures.scaling import scaling_chart
    from deepwide.model.architecture import Parametrisation
    from deepwide.training import override
    from deepwide.training.scaling import check_scaling as measure
    from deepwide.training.scaling import slopes

    known = Parametrisation.__args__  # type: ignore[attr-defined]
    kinds = parametrisation or list(known)
    for kind in kinds:
        if kind not in known:
            raise DeepwideError(f"there is no parametrisation '{kind[:40]}': {did_you_mean(kind, known)}")
    if plot:
        check_suffix(plot)
    if threads:
        torch.set_num_threads(threads)
    wide, deep = _sizes(widths, "--widths"), _sizes(depths, "--depths")
    to = Console(stderr=True)
    choices = override({}, settings or [])
    with to.status("measuring") as status:
        points = measure(
            kinds, wide, deep, preset=preset, steps=steps, lr=lr, seeds=range(seeds), data=DataConfig(source=data),
            progress=status.update, **choices,
        )  # fmt: skip
    found = slopes(points)
    if plot:
        save_chart(scaling_chart(points, found), plot)
    if json:
        slope_rows = [s._asdict() | {"flat": s.flat} for s in found]
        print_json({"lr": lr, "steps": steps, "slopes": slope_rows, "points": [p._asdict() for p in points]})
        return
    _show_slopes(found, plot)


def _show_slopes(found: "list[Slope]", plot: Path | None) -> None:
    from rich.table import Table

    places = list(dict.fromkeys(s.place for s in found))
    table = Table("parametrisation", "against", *(f"{place}" for place in places), "verdict", box=None)
    for kind, along in dict.fromkeys((s.parametrisation, s.along) for s in found):
        row = [s for s in found if (s.parametrisation, s.along) == (kind, along)]
        verdict = "flat" if all(s.flat for s in row) else "not flat"
        table.add_row(kind, along, *(f"{s.slope:+.2f}" for s in row), verdict)
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
