"""`deepwide tour`: the main jobs on embedded defaults, for a newcomer. What it shows is what it runs."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from deepwide.cli.app import app, console, load
from deepwide.errors import DeepwideError, is_installed, missing
from deepwide.files import write_text

SWEEP = """\
# Four depths at three sizes on the Python standard library's own source: a demonstration, not a finding.
name = "tour"

[run]
batch = 8
context = 64
model.heads = 2
model.positions = "rotary"
model.parametrisation = "completep"
model.base_width = 64
model.base_depth = 2
optimiser.lr = 4e-3
schedule.kind = "constant"
evaluation.sequences = 256

[iso]
params = ["10k", "30k", "90k"]
depths = [1, 2, 4, 8]
tokens = "150k"
width_multiple = 4
tolerance = 0.4
"""
STUDY = "--set networks=5 --set trained=0"
MODELS = "gpt3-175b llama-3-8b llama-3.1-405b qwen2.5-32b gpt2-xl smollm2-360m pythia-1b"


def steps(home: Path) -> list[tuple[str, str, dict[str, str]]]:
    """Question, command, and what the command needs beyond the core: module and extra."""
    spec, runs, law, picture, fitted, studied = (
        shlex.quote(str(home / name)) for name in ("sweep.toml", "runs", "law.json", "map.svg", "fitted.svg", "study")
    )
    plot, exact, fit = {"altair": "plot", "vl_convert": "plot"}, {"flint": "rank", "scipy": "rank"}, {"scipy": "fit"}
    return [
        ("How deep and how wide should 1.3B parameters be?", "plan 1.3B", {}),
        ("Are these models too deep? With a map", f"audit {MODELS} --plot {picture}", plot),
        ("What does the theory say of depth 6 and width 1000?", "bounds --depth 6 --width 1000 --match 2", exact),
        ("What is the separation rank of a small network, exactly?", "rank --depth 3 --width 2", exact),
        ("And your own data? Four depths at three sizes", f"sweep run {spec} --runs {runs}", {"torch": "train"}),
        (
            "Which depth is best at a size, according to these runs?",
            f"fit {runs} --law {law} --picture map --plot {fitted}",
            {"torch": "train"} | fit | plot,
        ),
        (
            "The loop closes: a plan by that law (a guess, from runs this small)",
            f"plan 100k --law {law}",
            {"torch": "train"} | fit,
        ),
        (
            "And the literature? Claims of one paper, tested (too few networks to decide)",
            f"study run rank-collapse {STUDY} --out {studied}",
            {"torch": "train"} | fit | plot,
        ),
    ]


@app.command(epilog="Example: deepwide tour --out out")
def tour(
    out: Annotated[Path, typer.Option(help="Folder for the pictures, the sweep and its law.")] = Path("out"),
) -> None:
    """A few minutes' walk: plan, audit, ask the theory, measure a rank, run a sweep, fit a law, test a paper."""
    load()
    home = out.resolve()
    console().print(f"The tour's sweep is written to {escape(str(write_text(home / 'sweep.toml', SWEEP)))}")
    for number, (question, command, needed) in enumerate(steps(home), 1):
        console().rule(f"{number}. {question}")
        console().print(f"[bold]$ deepwide {escape(command)}[/bold]\n", soft_wrap=True)
        absent = [(module, extra) for module, extra in needed.items() if not is_installed(module)]
        if absent:
            console().print(f"Skipped. {escape(missing(*absent[0]))}\n")
            continue
        try:
            app(shlex.split(command), standalone_mode=False)
        except DeepwideError as error:  # runs this small may give no law, and then there is none to plan with
            console().print(f"deepwide: {escape(str(error))}\n")
            break
        print()
    console().print(f"The pictures are in {escape(str(home))}")
    console().print("Next: deepwide plan --help, deepwide audit path/to/config.json, deepwide models")
