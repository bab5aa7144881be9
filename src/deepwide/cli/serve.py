"""`deepwide serve`: the pages, with a server behind them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.quantities import plural
from deepwide.serving import PORT, Address


@app.command(epilog="Examples: deepwide serve runs · deepwide serve . --port 0 --law law.json")
def serve(
    folder: Annotated[Path, typer.Argument(help="Where your sweeps, studies and certificates are.")] = Path("."),
    port: Annotated[int, typer.Option(help="The port; 0 takes any free one.")] = PORT,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    expose: Annotated[
        bool, typer.Option("--expose", help="Let other machines in (with --host); there is no password.")
    ] = False,
    law: Annotated[list[Path] | None, typer.Option(help="A fitted law's JSON file to offer; may be repeated.")] = None,
    json: Json = False,
) -> None:
    """Serve the planner, separation ranks, sweeps live and studies as pages; reads only. Ctrl-C stops it."""
    from deepwide import serving

    def started(address: Address) -> None:
        if json:
            print_json(address)
        else:
            studies = "1 study" if address.studies == 1 else f"{address.studies:,} studies"
            what = f"{plural(address.sweeps, 'sweep')} and {studies}"
            out = console()
            out.print(f"Serving {address.folder} ({what}) at", markup=False, soft_wrap=True)
            out.print(f"  {address.url}", markup=False, soft_wrap=True)
            out.print("It reads only. Ctrl-C stops it.")
            if address.exposed:
                out.print("Other machines can reach it, and there is no password.")
        sys.stdout.flush()

    serving.serve(folder, host=host, port=port, expose=expose, laws=tuple(law or ()), started=started)
