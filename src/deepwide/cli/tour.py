"""`deepwide tour`: the main jobs on embedded defaults, for a newcomer. Each step is a command anyone can type."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import app, console
from deepwide.files import write_text

SWEEP = """\
# Four depths at equal size on the Python standard library's own source: a demonstration, not a finding.
name = "tour"
seeds = [0]

[run]
batch = 8
context = 64
schedule.kind = "constant"

[grid]
lr = [3e-3]

[iso]
params = ["100k"]
depths = [1, 2, 4, 8]
tokens = "100k"
tolerance = 0.2
"""
MODELS = "gpt3-175b llama-3-8b llama-3.1-405b qwen2.5-32b gpt2-xl smollm2-360m pythia-1b"


@app.command(epilog="Example: deepwide tour --out out")
def tour(out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out")) -> None:
    """A minute's walk: plan a 1.3B model, audit GPT-3, draw the map, ask the theory, measure a rank, run a sweep."""
    picture, sweep = (out / "map.svg").resolve(), (out / "sweep.toml").resolve()
    steps = [
        ("How deep and how wide should 1.3B parameters be?", "plan 1.3B"),
        ("Were these built too deep? And the map of it", f"audit {MODELS} --plot {shlex.quote(str(picture))}"),
        ("What does the theory say of depth 6 and width 1000?", "bounds --depth 6 --width 1000 --match 2"),
        ("And what does a real instance do, exactly?", "rank --depth 3 --width 2"),
    ]
    if find_spec("torch"):
        write_text(sweep, SWEEP)
        runs = shlex.quote(str(out.resolve() / "runs"))
        steps.append(
            ("And your own data? Four depths at equal size", f"sweep run {shlex.quote(str(sweep))} --runs {runs}")
        )
    for number, (question, command) in enumerate(steps, 1):
        console().rule(f"{number}. {question}")
        console().print(f"[bold]$ deepwide {command}[/bold]\n")
        app(shlex.split(command), standalone_mode=False)
        print()
    if not find_spec("torch"):
        console().print("Training needs torch, so no sweep was run: pip install 'deepwide\\[train]'.")
    console().print(f"The map is at {picture}")
    console().print("Next: deepwide plan --help, deepwide audit path/to/config.json, deepwide models")
