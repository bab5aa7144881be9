"""`deepwide bounds`: how large the separation rank must and can be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deepwide.cli.app import Json, Plot, app, console, print_json
from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    from deepwide.separation import Bounds

_EXAMPLE = """
Example: [bold]deepwide bounds --depth 6 --width 1000 --heads 16 --match 2[/bold]
says that a network of depth 2 must be about 10^17 wide to match it.
"""


@app.command(epilog=_EXAMPLE)
def bounds(
    depth: Annotated[int, typer.Option(help="Layers, L.")],
    width: Annotated[int, typer.Option(help="Model width, d.")],
    heads: Annotated[int, typer.Option(help="Attention heads, H.")] = 1,
    match: Annotated[
        int | None,
        typer.Option(metavar="DEPTH", help="Corollary 1: how wide must a network of this depth be?"),
    ] = None,
    plot: Plot = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="With --plot: certificates whose ranks to show in the picture."),
    ] = None,
    json: Json = False,
) -> None:
    """How large can and must the separation rank be? Theorems 1 and 2, and the dimension count."""
    from deepwide import separation

    if measured and not plot:
        raise DeepwideError("--measured adds ranks to the picture, so it needs --plot FILE.")
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)
    answer = separation.bounds(depth, width, heads, match=match)
    if plot:
        from deepwide.figures import bounds_figure, save_chart

        certificates = separation.Store(measured).certificates() if measured else []
        save_chart(bounds_figure(separation.bounds_curves(depth, width, heads, certificates)), plot)
    if json:
        print_json({**answer.model_dump(mode="json"), **({"plot": str(plot)} if plot else {})})
        return
    _show(answer)
    if plot:
        console().print(f"Picture: {plot}")


def _show(answer: "Bounds") -> None:
    from rich.table import Table

    from deepwide.separation import Case, upper_bounds

    out = console()
    out.print(f"depth {answer.depth}, width {answer.width}, heads {answer.heads}")
    out.print(f"threshold log_3 d = {answer.threshold:.4g}; {answer.why}\n")
    table = Table("separation rank", "log_3", "about", "formula", box=None, pad_edge=False)
    for name, side in answer.sides:
        table.add_row(name, f"{side.log3:.6g}", side.about or "–", side.formula)
    out.print(table)
    exception = upper_bounds(Case(3, 4))
    out.print(
        "\nThe dimension count is a proved upper bound. What structured weights reach is a proved lower bound for "
        "generic weights with at least as many positions per side as the width. With random weights, as many "
        "positions on both sides and neither mask nor residual connection, every measured rank reached the count "
        "(with more heads: the "
        f"count for these heads), except at L = 3, d = 4: there {exception.relations} proved relations lower it from "
        f"{exception.total + exception.relations} to {exception.total}, which was reached. With one head at depth 2 it "
        "is proved to be reached. For other sizes that were not measured only the bounds are claimed.",
        style="dim",
    )
    if answer.match:
        out.print(f"\nCorollary 1: the width at which depth {answer.match_depth} could match, for each lower bound:")
        table = Table("lower bound", "log_3", "width", box=None, pad_edge=False)
        for row in answer.match:
            width = "any (trivial)" if row.width is None else row.width
            shown = f"{width:.3g}" if isinstance(width, float) else width
            table.add_row(row.formula, f"{row.lower_log3:.6g}", shown)
        out.print(table)
        out.print(
            "The paper's 2·10^17 and 2·10^5 (d = 1000, H = 16, L = 6) follow from the second form.",
            style="dim",
        )
    wider = answer.wider
    if wider:
        out.print(
            f"\nCorollary 2: according to the theorems depth {wider.depth} and width {wider.width} has a larger rank "
            f"(β1 = {wider.beta1:.3g}, β2 = {wider.beta2:.3g})"
            + ("." if wider.shallower else "; that is not shallower, so it does not help here.")
        )
    for note in answer.notes:
        out.print(f"Note: {note}")
