"""`deepwide tour`: the main jobs on embedded defaults, for a newcomer. Each step is a command anyone can type."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import app, console

MODELS = "gpt3-175b llama-3-8b llama-3.1-405b qwen2.5-32b gpt2-xl smollm2-360m pythia-1b"


@app.command(epilog="Example: deepwide tour --out out")
def tour(out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out")) -> None:
    """A minute's walk: plan a 1.3B model, audit GPT-3, draw the map, ask the theory, measure a rank."""
    picture = (out / "map.svg").resolve()
    steps = (
        ("How deep and how wide should 1.3B parameters be?", "plan 1.3B"),
        ("Were these built too deep? And the map of it", f"audit {MODELS} --plot {shlex.quote(str(picture))}"),
        ("What does the theory say of depth 6 and width 1000?", "bounds --depth 6 --width 1000 --match 2"),
        ("And what does a real instance do, exactly?", "rank --depth 3 --width 2"),
    )
    for number, (question, command) in enumerate(steps, 1):
        console().rule(f"{number}. {question}")
        console().print(f"[bold]$ deepwide {command}[/bold]\n")
        app(shlex.split(command), standalone_mode=False)
        print()
    console().print(f"The map is at {picture}")
    console().print("Next: deepwide plan --help, deepwide audit path/to/config.json, deepwide models")
