"""`deepwide rank`: measure separation ranks; `rank verify`, `rank partitions` and `rank softmax` beside it."""

from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.cli.rank_tables import WORTH_SAYING, RankTable, Terminal, say, show_forecasts
from deepwide.cli.separation import Plot
from deepwide.errors import DeepwideError
from deepwide.quantities import parse_bytes, plural, show_seconds
from deepwide.separation import (
    PRIME,
    Case,
    Forecast,
    Store,
    TooLargeError,
    certify,
    file_shape,
    forecast,
    make_case,
)

_EXAMPLE = """
Examples: [bold]deepwide rank --depth 2 --width 3 --blocks[/bold] (49, at once);
[bold]deepwide rank --depth 1..3 --width 2..3 --out ranks[/bold] (a table, resumable);
[bold]deepwide rank verify ranks/L2-d3-H1-seed0.json[/bold].
"""

rank_app = typer.Typer(invoke_without_command=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
app.add_typer(rank_app, name="rank", epilog=_EXAMPLE)

Depth = Annotated[str | None, typer.Option(metavar="L", help="Layers: 2, 1..3 or 1,3.")]
Width = Annotated[str | None, typer.Option(metavar="d", help="Model width: 3, 2..6 or 2,4.")]
Heads = Annotated[str, typer.Option(metavar="H", help="Attention heads: 1, 1..4 or 1,2.")]
Positions = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Positions on the output's side and on the other; default: the width."),
]
Seed = Annotated[int, typer.Option(help="Draws the weights and the sample points.")]
Weights = Annotated[str, typer.Option(metavar="WHICH", help="random, identity, or an .npz or .safetensors file.")]
Prime = Annotated[int, typer.Option(help="The field to work in.")]
Memory = Annotated[str | None, typer.Option(help="How much memory may be used, such as 8GB.")]
Residual = Annotated[bool, typer.Option(help="Add the residual connection.")]
Causal = Annotated[bool, typer.Option(help="Each position sees only itself and earlier ones.")]


@rank_app.callback()
def rank(
    context: typer.Context,
    depth: Depth = None,
    width: Width = None,
    heads: Heads = "1",
    positions: Positions = None,
    partition: Annotated[
        str | None, typer.Option(metavar="SIDES", help="The side of each position in order, such as ABBA.")
    ] = None,
    at: Annotated[int, typer.Option(help="The position the output is read at; −1 is the last.")] = -1,
    weights: Weights = "random",
    seed: Seed = 0,
    prime: Prime = PRIME,
    blocks: Annotated[bool, typer.Option(help="Show each block beside its bound.")] = False,
    full_grid: Annotated[
        bool, typer.Option(help="No grading, no Gram form: eq. 3 position by position (slow, independent).")
    ] = False,
    residual: Residual = False,
    causal: Causal = False,
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--confirm/--no-confirm",
            help="Again with a second prime and by FLINT; default: if it takes under a minute.",
        ),
    ] = None,
    memory: Memory = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PLACE", help="Certificates: a folder, or a .json file for one case."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Show sizes, memory and estimated times; measure nothing.")] = False,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Measure the separation rank of a network exactly, over a prime field, with a certificate."""
    if context.invoked_subcommand:
        _refuse_misplaced(context)
        return
    if dry_run and plot:
        raise DeepwideError("--dry-run measures nothing, so there is nothing to --plot.")
    if dry_run and blocks:
        raise DeepwideError("--dry-run measures nothing, so it has no --blocks to show.")
    if json and blocks:
        raise DeepwideError("--json always contains the blocks; leave out --blocks.")
    if positions and partition:
        raise DeepwideError("--positions and --partition both place the positions; give one of them.")
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)
    cases = [
        make_case(
            number, size, head_count, positions=_positions(positions, size) if positions else None,
            partition=partition or "", at=at, residual=residual, causal=causal, weights=weights, seed=seed,
        )
        for number, size, head_count in _shapes(depth, width, heads, weights)
    ]  # fmt: skip
    store = Store(out) if out else None
    if store and store.holds_one and len(cases) > 1:
        raise DeepwideError(f"{len(cases)} cases need a folder for their certificates, not the file {out}.")
    budget = parse_bytes(memory) if memory else None
    forecasts = _forecasts(cases, store, confirm, prime, full_grid, budget)
    if dry_run:
        show_forecasts(forecasts, json)
        return
    shown = RankTable(single=len(cases) == 1, json=json, blocks=blocks)
    expected = sum(entry.total_seconds for entry in forecasts)
    if len(forecasts) > 1 and expected > WORTH_SAYING:
        say(f"{plural(len(forecasts), 'case')}: about {show_seconds(expected)} in total (estimated).")
    certificates = []
    for entry in forecasts:
        certificate = certify(
            entry.case, store, confirm, prime=prime, full_grid=full_grid, memory=budget, watcher=Terminal()
        )
        certificates.append(certificate)
        shown.add(certificate, store, entry.stored)
    if plot:
        from deepwide.figures import ranks_figure, save_chart

        save_chart(ranks_figure(certificates), plot)
    if json:
        print_json(certificates[0] if len(cases) == 1 else {"cases": [c.model_dump(mode="json") for c in certificates]})
    elif plot:
        console().print(f"Picture: {plot}")


@rank_app.command(epilog="Example: deepwide rank verify ranks/L2-d3-H1-seed0.json")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Check a certificate again, from its seeds, by another evaluation and by FLINT."""
    from deepwide.separation import verify as verify_certificate

    answer = verify_certificate(file, memory=parse_bytes(memory) if memory else None, watcher=Terminal())
    if json:
        print_json(answer)
        return
    primes = f"modulo {answer.prime}" + (f" and modulo {answer.second_prime}" if answer.second_prime else "")
    same = "" if answer.independent else " (the evaluation that made it: there is no other for a causal network)"
    left_out = f" Modulo {answer.points_only} only the points were compared." if answer.points_only else ""
    console().print(
        f"{file} holds: rank {answer.rank} {primes}, measured again from the seeds by {answer.method_name}{same} and "
        f"FLINT.{left_out}",
        soft_wrap=True,
        markup=False,
    )


@rank_app.command(epilog="Example: deepwide rank partitions --depth 2 --width 2")
def partitions(
    depth: Annotated[int, typer.Option(help="Layers.")],
    width: Annotated[int, typer.Option(help="Model width.")],
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 1,
    positions: Annotated[int | None, typer.Option(help="Positions per side; default: the width.")] = None,
    weights: Weights = "random",
    seed: Seed = 0,
    prime: Prime = PRIME,
    residual: Residual = False,
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Proposition 1 as an experiment: eq. 3 itself, over every balanced partition. Not for causal networks."""
    from deepwide.separation import compare_partitions

    answer = compare_partitions(
        depth, width, heads, positions=positions, weights=weights, seed=seed, residual=residual, prime=prime,
        memory=parse_bytes(memory) if memory else None,
    )  # fmt: skip
    if json:
        print_json(answer)
        return
    out = console()
    for entry in answer.partitions:
        out.print(f"{entry.partition}  {entry.rank}")
    outcome = "the same" if answer.same else "NOT the same"
    first, second = answer.primes
    out.print(f"{outcome} for every balanced partition: eq. 3 on the full grid, modulo {first} and, by FLINT, {second}")


@rank_app.command(epilog="Example: deepwide rank softmax --depth 1..4 --width 8 --heads 2 --points 120")
def softmax(
    depth: Depth = None,
    width: Width = None,
    heads: Heads = "1",
    positions: Positions = None,
    weights: Annotated[str, typer.Option(metavar="WHICH", help="random, or an .npz or .safetensors file.")] = "random",
    seed: Seed = 0,
    causal: Causal = False,
    epsilon: Annotated[str, typer.Option(help="Count singular values above these times the largest.")] = "1e-3,1e-6",
    points: Annotated[int, typer.Option(help="Points on each side of the grid.")] = 200,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """The numerical ε-rank of a real softmax transformer: floating point, no proof."""
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)
    epsilons = _epsilons(epsilon)
    shapes = _shapes(depth, width, heads, weights)
    out = console()
    from deepwide.separation import SoftmaxRank, softmax_rank

    answers: list[SoftmaxRank] = []
    for number, size, head_count in shapes:
        answer = softmax_rank(
            number, size, head_count, positions=_positions(positions, size), seed=seed, causal=causal,
            weights=weights, epsilons=epsilons, points=points,
        )  # fmt: skip
        if not (json or answers):  # the first one is well
            out.print("numerical: singular values in floating point, no proof", style="dim")
            out.print("  depth width heads  effective rank  " + "  ".join(f"above {level:g}" for level in epsilons))
        answers.append(answer)
        if not json:
            cells = "  ".join(f"{n:>{len(f'above {level}')}}" for level, n in answer.epsilon_rank.items())
            out.print(f"  {number:>5} {size:>5} {head_count:>5}  {answer.effective_rank:>14.2f}  {cells}")
    if plot:
        from deepwide.figures import save_chart, spectrum_figure

        save_chart(spectrum_figure(answers), plot)
    if json:
        plain = [answer.model_dump(mode="json") for answer in answers]
        print_json({"numerical": True, "points": points, "seed": seed, "shapes": plain})
    elif plot:
        out.print(f"Picture: {plot}")


def _refuse_misplaced(context: typer.Context) -> None:
    """`rank --seed 3 verify FILE`: what stands before the command would be ignored."""
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name and getattr(context.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise DeepwideError(f"rank {context.invoked_subcommand} takes its own options, after its name, not {given[0]}.")


def _shapes(depth: str | None, width: str | None, heads: str, weights: str) -> list[tuple[int, int, int]]:
    """Every (depth, width, heads) that is asked for; a weight file gives depth and width itself."""
    if weights not in ("random", "identity") and (depth is None or width is None):
        file_depth, file_width = file_shape(Path(weights))
        depth, width = depth or str(file_depth), width or str(file_width)
    if depth is None or width is None:
        missing = "--depth" if depth is None else "--width"
        raise DeepwideError(f"{missing} is missing, as in: deepwide rank --depth 2 --width 3.")
    grid = list(product(_numbers(depth, "depth"), _numbers(width, "width"), _numbers(heads, "heads")))
    fitting = [shape for shape in grid if len(grid) == 1 or shape[2] < 1 or shape[1] % shape[2] == 0]
    if not fitting:
        raise DeepwideError(f"None of the heads {heads} divides a width of {width} evenly.")
    if len(fitting) < len(grid):
        skipped = sorted({f"{w}/{h}" for _, w, h in set(grid) - set(fitting)})
        say(f"Skipped, because the heads do not divide the width: {', '.join(skipped)}.")
    return fitting


def _numbers(text: str, what: str) -> list[int]:
    """2, 2..6 or 2,4,8 as a list of numbers."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            start, end = int(first), int(last if dots else first)
            if end - start > 1000:
                raise ValueError
            numbers += range(start, end + 1)
    except ValueError:
        numbers = []
    if not numbers or len(numbers) > 1000:
        raise DeepwideError(f"{text[:40]!r} is no {what}: write a number (2), a range (2..6) or a list (2,4,8).")
    return numbers


def _positions(text: str | None, width: int) -> tuple[int, int]:
    if text is None:
        return width, width
    parts = text.split(",")
    if len(parts) > 2 or not all(part.strip().isdecimal() and len(part) < 10 and int(part) for part in parts):
        raise DeepwideError(f"{text[:40]!r} are no positions: write one number for both sides (3) or two (3,1).")
    return int(parts[0]), int(parts[-1])


def _epsilons(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(level) for level in text.split(","))
    except ValueError:
        levels = ()
    if not levels or not all(0 < level < 1 for level in levels):
        raise DeepwideError(f"--epsilon {text[:40]!r} must be numbers between 0 and 1, such as 1e-3,1e-6.")
    return levels


def _forecasts(
    cases: list[Case], store: Store | None, confirm: bool | None, prime: int, full_grid: bool, memory: int | None
) -> list[Forecast]:
    """All cases checked before the first one starts; of several, those that are too large are skipped."""
    forecasts = []
    for case in cases:
        try:
            forecasts.append(forecast(case, store, confirm, prime=prime, full_grid=full_grid, memory=memory))
        except TooLargeError as error:
            if len(cases) == 1:
                raise
            say(f"Skipped: {error}")
    return forecasts
