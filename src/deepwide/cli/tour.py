"""`deepwide tour`: the main jobs on embedded defaults, for a newcomer."""

from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import app, console


@app.command(epilog="Example: deepwide tour --out out")
def tour(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out"),
) -> None:
    """Plan a 1.3B model, audit GPT-3, and draw the map: a minute's walk through deepwide."""
    from deepwide.auditing import audit
    from deepwide.catalogue import find_model
    from deepwide.cli.pictures import draw_verdicts
    from deepwide.cli.tables import show_plan, show_verdicts
    from deepwide.planning import plan

    to = console()
    to.rule("1. How deep and how wide should 1.3B parameters be?   deepwide plan 1.3B")
    show_plan(plan(1_300_000_000), to)
    names = (
        "gpt3-175b",
        "llama-3-8b",
        "llama-3.1-405b",
        "qwen2.5-32b",
        "gpt2-xl",
        "smollm2-360m",
        "pythia-1b",
    )
    to.rule(f"2. Were these built too deep?   deepwide audit {' '.join(names[:3])} …")
    verdicts = [audit(find_model(name).shape, name=name) for name in names]
    show_verdicts(verdicts, to)
    to.rule("3. The map   --plot out/map.svg")
    for suffix in ("svg", "html"):
        path = out / f"map.{suffix}"
        draw_verdicts(verdicts, "levine", path)
        to.print(f"Saved {path.resolve()}")
    to.print("\nNext: deepwide plan --help, deepwide audit path/to/config.json, deepwide models")
