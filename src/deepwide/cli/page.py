"""`deepwide page`: the planner as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError


@app.command(epilog="Example: deepwide page --out plan.html --law law.json")
def page(
    out: Annotated[Path, typer.Option(help="The HTML file to write; folders that are missing are made.")],
    law: Annotated[list[Path] | None, typer.Option(help="A fitted law's JSON file to offer; may be repeated.")] = None,
    json: Json = False,
) -> None:
    """Write the planner as one HTML file: dial a budget, see the shape, audit a config.json; no server, no network."""
    from deepwide.files import write_text
    from deepwide.web import plan_page

    if out.suffix.lower() not in (".html", ".htm"):
        raise DeepwideError(f"--out must name an .html file, not {str(out)[:200]!r}.")
    text = plan_page(laws=law or ())
    write_text(out, text)
    if json:
        print_json({"page": str(out), "bytes": len(text.encode())})
        return
    console().print(f"Saved the page: {out} ({len(text.encode()):,} bytes; open it in a browser)", markup=False)
