"""`deepwide report`: one file to send."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes


@app.command(
    epilog="Examples: deepwide report runs/first · deepwide report fit.json --format md · deepwide report 1.3B"
)
def report(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of runs or of a study, a sweep's TOML, a table of runs, what --json or fit --out saved (a "
            "plan, audits, a fit, a sweep's status, a study), a budget or a model.",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            help="The file (default: SOURCE-report.html here; missing folders are made); - for standard output."
        ),
    ] = None,
    format_: Annotated[
        Literal["html", "md"] | None, typer.Option("--format", help="html, or md (default: what --out ends in).")
    ] = None,
    fit: Annotated[
        Literal["joint", "transition", "ridge", "surface"], typer.Option(help="Which law to fit to runs.")
    ] = "joint",
    runs: Annotated[
        Path | None, typer.Option(help="Where the runs of a sweep's TOML file are (default: runs/NAME).")
    ] = None,
    json: Json = False,
) -> None:
    """Write one self-contained file about a plan, an audit, a fit, a sweep or a study: text, figures and data."""
    from deepwide.report import make_report, render, write_report

    if out == "-":
        if json:
            raise DeepwideError("--out - prints the report itself: leave out --json, or name a file.")
        sys.stdout.write(render(make_report(source, fit=fit, runs=runs), format_ or "html"))
        return
    path = write_report(source, out, format=format_, fit=fit, runs=runs)
    size = path.stat().st_size
    if json:
        print_json({"file": str(path), "bytes": size})
        return
    console().print(f"Report: {path} ({show_bytes(size)})", markup=False, soft_wrap=True)
