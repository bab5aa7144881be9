"""`deepwide tour`: the main jobs on embedded defaults, for a newcomer. Each step is a command anyone can type."""

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import app, console
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
MODELS = "gpt3-175b llama-3-8b llama-3.1-405b qwen2.5-32b gpt2-xl smollm2-360m pythia-1b"


@app.command(epilog="Example: deepwide tour --out out")
def tour(out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out")) -> None:
    """A few minutes' walk: plan, audit GPT-3, ask the theory, measure a rank, run a sweep, fit a law, plan by it."""
    home = out.resolve()
    picture = home / "map.svg"
    questions = [
        ("How deep and how wide should 1.3B parameters be?", "plan 1.3B"),
        ("Were these built too deep? And the map of it", f"audit {MODELS} --plot {_quoted(picture)}"),
        ("What does the theory say of depth 6 and width 1000?", "bounds --depth 6 --width 1000 --match 2"),
        ("And what does a real instance do, exactly?", "rank --depth 3 --width 2"),
    ]
    for number, (question, command) in enumerate(questions, 1):
        _step(number, question, command)
    if find_spec("torch"):
        _loop(home, len(questions) + 1)
    else:
        console().print("Training needs torch, so no sweep was run: pip install 'deepwide\\[train]'.")
    console().print(f"The pictures are in {home}")
    console().print("Next: deepwide plan --help, deepwide audit path/to/config.json, deepwide models")


def _loop(home: Path, number: int) -> None:
    """A sweep, the law fitted to it, a plan by that law."""
    from deepwide.fitting import load_fit
    from deepwide.laws import save_law

    spec, runs, fit, law = (home / name for name in ("sweep.toml", "runs", "fit.json", "law.json"))
    write_text(spec, SWEEP)
    _step(number, "And your own data? Four depths at three sizes", f"sweep run {_quoted(spec)} --runs {_quoted(runs)}")
    # Three sizes are too few to show where depths cross; a bowl in depth needs no more.
    how = f"--kind ridge --base power --out {_quoted(fit)} --picture map --plot {_quoted(home / 'fitted.svg')}"
    _step(number + 1, "What depth is best at a size, by these runs?", f"fit {_quoted(runs)} {how}")
    found = load_fit(fit).law()
    if found is None:
        console().print("Runs this small gave no law here, and fit says so; with one: deepwide plan --law law.json")
        return
    save_law(found, law)
    _step(
        number + 2,
        "The loop closes: a plan by that law (a guess, from runs this small)",
        f"plan 100k --law {_quoted(law)}",
    )


def _step(number: int, question: str, command: str) -> None:
    console().rule(f"{number}. {question}")
    console().print(f"[bold]$ deepwide {command}[/bold]\n", soft_wrap=True)
    app(shlex.split(command), standalone_mode=False)
    print()


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
