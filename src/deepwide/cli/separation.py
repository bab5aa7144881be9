"""`deepwide bounds` and `deepwide rank`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deepwide.cli.app import Json, app, console, print_json

if TYPE_CHECKING:
    from flint import arb

Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Save the picture: .svg, .png, .html or .json (Vega-Lite)."),
]

_BOUNDS_EXAMPLE = """
Example: [bold]deepwide bounds --depth 6 --width 1000 --heads 16 --match 2[/bold]
says that a network of depth 2 must be about 10^17 wide to match it.
"""


@app.command(epilog=_BOUNDS_EXAMPLE)
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
        Path | None, typer.Option(metavar="FOLDER", help="Certificates whose ranks to show in the picture.")
    ] = None,
    json: Json = False,
) -> None:
    """How large can and must the separation rank be? Theorems 1 and 2, and the exact count."""
    from deepwide.separation import theorems as theory

    found = theory.bounds(depth, width, heads)
    count = theory.log3_count(depth, width)
    with_heads = _count_with_heads(depth, width, heads)
    matches = theory.match(depth, width, heads, match) if match is not None else []
    wider = theory.widen(depth, width, heads) if found.regime == "above" else None
    answer: dict[str, Any] = {
        "depth": depth,
        "width": width,
        "heads": heads,
        "threshold": float(found.threshold),
        "regime": found.regime,
        "theorem": found.theorem,
        "lower": _side(found.lower, found.lower_formula),
        "upper": _side(found.upper, found.upper_formula),
        "count": _side(count, "Σ_k min(multiset(D, k), d·multiset(D, C − k)), D = d(d+1)/2, C = (3^L − 1)/2"),
        "count_less_relations": _count_less_relations(depth, width, heads),
        "count_with_heads": with_heads,
        "notes": _bounds_notes(found, count, with_heads),
        "match": [
            {
                "form": m.form,
                "formula": m.where_from,
                "lower_log3": float(m.lower),
                "width": None if m.width is None else _plain(m.width),
            }
            for m in matches
        ],
        "corollary_2": wider
        and {
            "depth": wider.depth,
            "width": wider.width,
            "beta1": float(wider.beta1),
            "beta2": float(wider.beta2),
            "shallower": wider.shallower,
        },
    }
    if plot:
        from deepwide.figures.separation import bounds_figure, save

        save(bounds_figure(depth, width, heads, measured), plot)
        answer["plot"] = str(plot)
    if json:
        print_json(answer)
    else:
        _show_bounds(answer, found.why, match)


def _side(value: "arb | None", formula: str) -> dict[str, Any] | None:
    from deepwide.separation.theorems import show_log3

    if value is None:
        return None
    return {"log3": float(value), "about": show_log3(value) if value > 0 else None, "formula": formula}


_DEEPEST_WITH_HEADS = 5


def _count_with_heads(depth: int, width: int, heads: int) -> dict[str, Any] | None:
    """The count for more heads has no closed sum, so it is given where its blocks can be listed quickly."""
    from deepwide.separation.counting import count
    from deepwide.separation.theorems import log3

    if heads == 1 or width % heads or depth > _DEEPEST_WITH_HEADS:
        return None
    total = count(depth, width, heads).total
    return _side(log3(total), f"the same, cut down by the {width * width // heads} forms that {heads} heads see")


def _count_less_relations(depth: int, width: int, heads: int) -> dict[str, Any] | None:
    """The sharper count of one head, where blocks can be listed quickly and it differs."""
    from deepwide.separation.counting import count, multiset, relations
    from deepwide.separation.theorems import log3

    if heads > 1 or depth > _DEEPEST_WITH_HEADS:
        return None
    plain, D = count(depth, width), width * (width + 1) // 2
    left = [multiset(D, k) - relations(depth, width, k) for k in range(len(plain.blocks))]
    sharper = sum(map(min, plain.blocks, left))
    if sharper == plain.total:
        return None
    return _side(log3(sharper), "the same, less the relations that isotropic vectors give (docs/theory.md, 5.4)")


def _plain(value: "arb") -> float | str:
    number = float(value)
    return number if number < 1e300 else value.str(6, radius=False)


def _bounds_notes(found: Any, count: "arb", with_heads: dict[str, Any] | None) -> list[str]:
    notes = []
    if found.width % found.heads:
        notes.append(
            f"{found.heads} heads do not divide a width of {found.width}; the formulas do not mind, but the count "
            "with heads needs it: the count shown is that of one head."
        )
    elif found.heads > 1 and with_heads is None:
        notes.append(
            f"The count with {found.heads} heads has no closed form, and beyond depth {_DEEPEST_WITH_HEADS} too many "
            "blocks to list: the count shown is that of one head, and more heads only lower it."
        )
    if found.regime == "at":
        notes.append("L = log_3 d belongs to neither theorem: only the count speaks here.")
    elif found.lower is None:
        notes.append("With as many heads as width the lower bound is undefined.")
    elif not found.lower > 0:
        notes.append("The lower bound says nothing here: every rank is at least 1.")
    if found.regime == "above":
        notes.append("Theorem 2's constant c2 is garbled in the text to hand; see docs/theory.md for the reading used.")
        if found.upper is not None:
            notes += _open_question(found, count, with_heads)
    return notes


def _open_question(found: Any, count: "arb", with_heads: dict[str, Any] | None) -> list[str]:
    """Said of these heads where their own count is known, else of one head: the printed bound is the same."""
    if with_heads is not None:
        passes, whose = with_heads["log3"] > float(found.upper), f"the count with {found.heads} heads"
    else:
        passes, whose = bool(count > found.upper), "the count" if found.heads == 1 else "the count of one head"
    if not passes:
        return []
    unknown = found.heads > 1 and with_heads is None
    return [
        f"Open question: {whose} passes Theorem 2's printed upper bound. Either the count stops "
        "being met at such depths, or the printed bound assumes something not in the text to hand."
        + f" Whether the count with {found.heads} heads passes it is not known here."
        * unknown
    ]


def _show_bounds(answer: dict[str, Any], why: str, match: int | None) -> None:
    from rich.table import Table

    from deepwide.separation.case import Case

    out = console()
    out.print(f"depth {answer['depth']}, width {answer['width']}, heads {answer['heads']}")
    out.print(f"threshold log_3 d = {answer['threshold']:.4g}; {why}\n")
    table = Table("separation rank", "log_3", "about", "formula", box=None, pad_edge=False)
    theorem = f"Theorem {answer['theorem']}"
    rows = [(f"{theorem}, at least", answer["lower"]), (f"{theorem}, at most", answer["upper"])]
    rows.append(("exact count, at most", answer["count"]))
    rows.append(("less relations, at most", answer["count_less_relations"]))
    rows.append((f"with {answer['heads']} heads, at most", answer["count_with_heads"]))
    for name, side in rows:
        if side:
            table.add_row(name, f"{side['log3']:.6g}", side["about"] or "–", side["formula"])
    out.print(table)
    broken = Case(3, 4)
    out.print(
        "\nThe count is a proved upper bound, by dimension. Random weights met it (with more heads, the count with "
        "heads) in every measurement with as many positions on both sides and neither mask nor residual connection, "
        f"but for L = 3, d = 4: there it is {broken.bound + broken.relations}, and {broken.relations} relations, "
        f"proved and measured, leave a rank of {broken.bound}. "
        "Beyond what was measured nothing is claimed but the upper bound.",
        style="dim",
    )
    if answer["match"]:
        out.print(f"\nCorollary 1: the width at which depth {match} could match, by the lower bound used:")
        table = Table("lower bound", "log_3", "width", box=None, pad_edge=False)
        for row in answer["match"]:
            width = row["width"]
            table.add_row(
                row["formula"],
                f"{row['lower_log3']:.6g}",
                "says nothing" if width is None else f"{width:.3g}" if isinstance(width, float) else width,
            )
        out.print(table)
        out.print(
            "The paper's 2·10^17 and 2·10^5 (d = 1000, H = 16, L = 6) follow from the second form.",
            style="dim",
        )
    wider = answer["corollary_2"]
    if wider:
        out.print(
            f"\nCorollary 2: depth {wider['depth']} and width {wider['width']} has more rank by the theorems "
            f"(β1 = {wider['beta1']:.3g}, β2 = {wider['beta2']:.3g})"
            + ("." if wider["shallower"] else "; that is not shallower, so here it says nothing of use.")
        )
    for note in answer["notes"]:
        out.print(f"Note: {note}")
    if "plot" in answer:
        out.print(f"Picture: {answer['plot']}")


_RANK_EXAMPLE = """
Examples: [bold]deepwide rank --depth 2 --width 3 --blocks[/bold] (49, in a blink);
[bold]deepwide rank --depth 1..3 --width 2..3 --out ranks[/bold] (a table, resumable);
[bold]deepwide rank --verify ranks/L2-d3-H1-seed0.json[/bold].
"""


@app.command(epilog=_RANK_EXAMPLE)
def rank(
    depth: Annotated[str | None, typer.Option(metavar="L", help="Layers: 2, 1..3 or 1,3.")] = None,
    width: Annotated[str | None, typer.Option(metavar="d", help="Model width: 3, 2..6 or 2,4.")] = None,
    heads: Annotated[str, typer.Option(metavar="H", help="Attention heads: 1, 1..4 or 1,2.")] = "1",
    positions: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Positions on the output's side and the other; default the width."),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="SIDES", help="The side of each position in order, such as ABBA.")
    ] = None,
    at: Annotated[int, typer.Option(help="The position the output is read at; −1 is the last.")] = -1,
    every_partition: Annotated[
        bool, typer.Option(help="Proposition 1: eq. 3 directly, over every balanced partition.")
    ] = False,
    weights: Annotated[
        str, typer.Option(metavar="WHICH", help="random, identity, or an .npz or .safetensors file.")
    ] = "random",
    seed: Annotated[int, typer.Option(help="Draws the weights and the sample points.")] = 0,
    prime: Annotated[int | None, typer.Option(help="The field to work in; default 1048573.")] = None,
    blocks: Annotated[bool, typer.Option(help="Show each block beside its bound.")] = False,
    full_grid: Annotated[
        bool, typer.Option(help="No grading, no Gram form: eq. 3 position by position (slow, independent).")
    ] = False,
    residual: Annotated[bool, typer.Option(help="Add the residual connection.")] = False,
    causal: Annotated[bool, typer.Option(help="Each position sees only itself and earlier ones.")] = False,
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--confirm/--no-confirm",
            help="Again with a second prime and by FLINT; default: if it takes under a minute.",
        ),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="How much memory may be used, such as 8GB.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PLACE", help="Certificates: a folder, or a .json file for one case."),
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check a certificate again, independently.")
    ] = None,
    softmax: Annotated[
        bool, typer.Option(help="A real softmax transformer instead: numerical ε-rank, no proof.")
    ] = False,
    epsilon: Annotated[str, typer.Option(help="With --softmax: count singular values above these.")] = "1e-3,1e-6",
    points: Annotated[int, typer.Option(help="With --softmax: points on each side of the grid.")] = 200,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Measure the separation rank of a network exactly, over a prime field, with a certificate."""
    from deepwide.cli import rank as work
    from deepwide.quantities import parse_bytes

    if plot:
        from deepwide.figures.separation import check_ending

        check_ending(plot)
    budget = parse_bytes(memory) if memory else None
    if verify:
        work.verify(verify, budget, json)
        return
    grid = work.shapes(depth, width, heads, weights)
    if softmax:
        work.softmax(grid, positions, seed, causal, weights, epsilon, points, plot, json)
        return
    if every_partition:
        others = {
            "--causal": causal,
            "--at": at != -1,
            "--partition": partition,
            "--out": out,
            "--plot": plot,
            "--blocks": blocks,
            "--full-grid": full_grid,
            "--confirm": confirm is True,
            "--no-confirm": confirm is False,
        }
        work.only_every_partition([name for name, given in others.items() if given])
        work.every_partition(grid, positions, seed, prime, weights, residual, budget, json)
        return
    options = {"at": at, "residual": residual, "causal": causal, "weights": weights, "seed": seed}
    cases = work.cases(grid, positions, partition, options)
    work.ranks(cases, prime, full_grid, confirm, budget, out, blocks, plot, json)
