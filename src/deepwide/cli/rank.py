"""`deepwide rank`: measure separation ranks; `rank verify`, `rank partitions` and `rank softmax` beside it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from deepwide import separation
from deepwide.answers import Note
from deepwide.cli.app import Json, Plot, app, console, print_json
from deepwide.errors import DeepwideError
from deepwide.quantities import parse_bytes, plural, show_bytes, show_seconds
from deepwide.separation import (
    PRIME,
    Case,
    Certificate,
    Forecast,
    TooLargeError,
    Watcher,
    certify,
    forecast,
    make_case,
)

if TYPE_CHECKING:
    from deepwide.separation import Store

WORTH_SAYING = 10.0  # seconds: shorter work starts without a forecast


def say(sentence: str) -> None:
    """A line on standard error: nothing that belongs to the answer."""
    print(sentence, file=sys.stderr)


class Terminal(Watcher):
    """Notes and forecasts on standard error; a progress bar if someone is watching."""

    def note(self, note: Note) -> None:
        say(f"{note}; ask with --confirm." if note.code == "not-confirmed" else f"{note}.")

    @contextmanager
    def stage(self, name: str, seconds: float) -> Iterator[Callable[[float], None] | None]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        watcher = Console(stderr=True)
        if seconds > WORTH_SAYING and not watcher.is_terminal:
            say(f"{name}: about {show_seconds(seconds)} (estimated).")
        if seconds < 1.5 or not watcher.is_terminal:
            yield None
            return
        columns = (TextColumn(name), BarColumn(), TextColumn("{task.percentage:.0f}%"), TimeElapsedColumn())
        with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=watcher, transient=True) as progress:
            task = progress.add_task(name, total=1.0)
            yield lambda share: progress.update(task, completed=share)


def show_forecasts(forecasts: list[Forecast], json: bool) -> None:
    """What a dry run found."""
    if json:
        print_json({"dry_run": True, "cases": [entry.model_dump(mode="json") for entry in forecasts]})
        return
    row = "{:>5} {:>5} {:>5} {:>7} {:>13} {:>9} {:>9} {:>9}  {}"
    out = console()
    out.print(row.format("depth", "width", "heads", "blocks", "largest block", "memory", "measure", "confirm", ""))
    for entry in forecasts:
        case = entry.case
        words = ["stored"] * entry.stored + ["not confirmed by default"] * (not entry.confirms and not entry.stored)
        out.print(
            row.format(
                case.depth, case.width, case.heads, entry.blocks, entry.largest_block, show_bytes(entry.bytes),
                show_seconds(entry.seconds), show_seconds(entry.confirm_seconds), ", ".join(words),
            ),
            soft_wrap=True,
        )  # fmt: skip
    out.print(
        f"about {show_seconds(sum(e.total_seconds for e in forecasts))} in total (estimated). Nothing was measured."
    )


class RankTable:
    """One case in full, or a row for each of several as it is done."""

    _ROW = "{:>5} {:>5} {:>5} {:>12} {:>12} {:>8}  {}"

    def __init__(self, *, single: bool, json: bool, blocks: bool) -> None:
        self.single, self.json, self.blocks = single, json, blocks
        if not (single or json):
            head = self._ROW.format("depth", "width", "heads", "rank", "upper bound", "time", "")
            console().print(head.rstrip())

    def add(self, certificate: Certificate, store: "Store | None", stored: bool) -> None:
        """Show one more."""
        if self.json:
            return
        if self.single:
            _show_one(certificate, self.blocks, store, stored)
            return
        case = certificate.case
        words = ["reaches the bound" if certificate.reached else "below the bound", _confirmed(certificate)]
        words += ["stored"] * stored
        out = console()
        out.print(
            self._ROW.format(
                case.depth, case.width, case.heads, certificate.rank, certificate.bound,
                show_seconds(certificate.seconds, 5), ", ".join(words),
            ),
            soft_wrap=True,
        )  # fmt: skip
        if self.blocks:
            out.print(f"      blocks {list(certificate.blocks)}", soft_wrap=True)


def _confirmed(certificate: Certificate) -> str:
    second = certificate.confirmed
    return f"confirmed modulo {second.prime} by {second.algorithm.upper()}" if second else "not confirmed"


def _show_one(certificate: Certificate, blocks: bool, store: "Store | None", stored: bool) -> None:
    out = console()
    case, rank, bound = certificate.case, certificate.rank, certificate.bound
    a, b = case.positions
    kinds = [word for word, on in (("residual", case.residual), ("causal", case.causal)) if on]
    about = [f"depth {case.depth}, width {case.width}, heads {case.heads}, {a} + {b} positions", *kinds]
    sure = certificate.reached or certificate.almost_surely_exact
    out.print(
        f"separation rank {'' if sure else 'at least '}{rank}   ({', '.join(about)}, {case.weights} weights)",
        soft_wrap=True,
        markup=False,
    )
    less = certificate.relations
    counted = f"{bound + less} − {less} relations = {bound}" if less else f"{bound}"
    if certificate.reached:
        outcome = f"reached, so {rank} is the exact separation rank"
    elif sure:
        outcome = f"not reached: the rank is at least {rank}, and almost surely equal to it"
    else:
        outcome = f"not reached: the rank is at least {rank}"
    out.print(f"upper bound     {counted} — {outcome}", soft_wrap=True)
    if not certificate.reached and (ideal := certificate.ideal_bound) is not None:
        reached = "reached" if rank == ideal else "not reached"
        out.print(f"by ideals       {ideal} — {reached} (computed modulo a prime, not proved)")
    _show_theorem(case)
    if blocks:
        from rich.table import Table

        table = Table("block", "rank", "upper bound", box=None, pad_edge=False)
        for k, (block_rank, most) in enumerate(zip(certificate.blocks, certificate.block_bounds, strict=True)):
            table.add_row(str(k) if len(certificate.blocks) > 1 else "all", str(block_rank), str(most))
        out.print(table)
    out.print(
        f"measured        modulo {certificate.prime} in {show_seconds(certificate.seconds, 5)}, "
        + _confirmed(certificate)
    )
    if store:
        note = " (stored before; nothing was measured)" if stored else ""
        out.print(f"certificate     {store.path(case)}{note}", soft_wrap=True, markup=False)


def _show_theorem(case: Case) -> None:
    """The theorem for this shape; nothing for networks that the theorems are not about."""
    from deepwide.separation import theorem_for

    if not case.standard:
        return
    answer = theorem_for(case.depth, case.width, case.heads)
    if answer.lower is not None and answer.upper is not None:
        text = f"Theorem {answer.number}:      between {answer.lower.about or '1 (trivial)'} and {answer.upper.about}"
    else:
        text = f"Theorems:       {f'none applies: {answer.why}' if answer.regime == 'at' else 'undefined here'}"
    console().print(text)


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
Prime = Annotated[
    int | None,
    typer.Option(help=f"The field to work in; default: {PRIME}, or drawn anew for weights from a file."),
]
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
    prime: Prime = None,
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
    store = separation.Store(out) if out else None
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

    if separation.is_structured(file):
        _verify_structured(file, parse_bytes(memory) if memory else None, json)
        return
    answer = verify_certificate(file, memory=parse_bytes(memory) if memory else None, watcher=Terminal())
    if json:
        print_json(answer)
        return
    primes = f"modulo {answer.prime}" + (f" and modulo {answer.second_prime}" if answer.second_prime else "")
    primes += f" and modulo {answer.drawn_prime}, drawn now" if answer.drawn_prime else ""
    same = "" if answer.independent else " (the evaluation that made it: there is no other for a causal network)"
    left_out = f" Modulo {answer.points_only} only the points were compared." if answer.points_only else ""
    console().print(
        f"{file} holds: rank {answer.rank} {primes}, measured again from the seeds by {answer.method_name}{same} and "
        f"FLINT.{left_out}",
        soft_wrap=True,
        markup=False,
    )


def _verify_structured(file: Path, memory: int | None, json: bool) -> None:
    checked = separation.verify_structured(file, memory=memory, progress=_say_class())
    if json:
        print_json(checked)
        return
    console().print(
        f"{file} holds: the rank of generic weights is at least {checked.lower} and at most {checked.upper}; blocks "
        f"{', '.join(map(str, checked.blocks))} written down again from the seed, their coefficients compared with the "
        f"Gram form at {checked.compared} random matrices, and ranked modulo {checked.prime} by "
        f"{'FLINT' if checked.algorithm == 'flint' else 'elimination in float64'}.",
        soft_wrap=True,
        markup=False,
    )


def _say_class() -> Callable[[str, float], None]:
    """A line on standard error about a finished class, every ten seconds at most."""
    began = last = time.monotonic()

    def finished(text: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > WORTH_SAYING and share < 1:
            say(f"{text}; {share:.0%} finished, about {show_seconds((now - began) * (1 - share) / share)} left")
            last = now

    return finished


@rank_app.command(epilog="Example: deepwide rank structured --depth 4 --width 2")
def structured(
    depth: Annotated[int, typer.Option(help="Layers.")],
    width: Annotated[int, typer.Option(help="Model width.")],
    weights: Annotated[
        Literal["diagonal", "pairs"], typer.Option(help="pairs: matrices on pairs of indices; slower, reaches more.")
    ] = "diagonal",
    seed: Annotated[int, typer.Option(help="Draws the weights.")] = 0,
    confirm: Annotated[bool, typer.Option(help="Again modulo a second prime.")] = True,
    memory: Memory = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate; resumable.")] = None,
    json: Json = False,
) -> None:
    """A proved lower bound for generic weights of one head, from structured ones: reaches further than sampling."""
    if out and out.exists():
        raise DeepwideError(f"{out} exists; check it with rank verify, or choose another file.")
    answer = separation.structured_rank(
        depth,
        width,
        weights=weights,
        seed=seed,
        confirm=confirm,
        memory=parse_bytes(memory) if memory else None,
        out=out,
        progress=_say_class(),
    )
    if json:
        print_json(answer)
        return
    screen = console()
    if answer.reached:
        outcome = f"{answer.lower}: proved from both sides"
    else:
        outcome = f"at least {answer.lower} by these weights, at most {answer.upper}"
    screen.print(f"separation rank of generic weights {outcome}   (depth {depth}, width {width}, one head)")
    for block in answer.blocks:
        rows, columns = block.largest
        screen.print(
            f"block {block.block}  rank {block.rank} of {block.bound}, by signs in {block.classes} parts, the "
            f"largest {rows} × {columns}"
        )
    second = answer.second
    again = f", again modulo {second.prime} by {second.algorithm}" if second else ", not confirmed"
    screen.print(f"modulo {answer.prime} in {show_seconds(answer.seconds, 5)}{again}; other blocks by Lemma A")
    if out:
        screen.print(f"certificate {out}", soft_wrap=True, markup=False)


@rank_app.command(epilog="Example: deepwide rank partitions --depth 2 --width 2")
def partitions(
    depth: Annotated[int, typer.Option(help="Layers.")],
    width: Annotated[int, typer.Option(help="Model width.")],
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 1,
    positions: Annotated[int | None, typer.Option(help="Positions per side; default: the width.")] = None,
    weights: Weights = "random",
    seed: Seed = 0,
    prime: Annotated[int, typer.Option(help="The field to work in.")] = PRIME,
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
        file_depth, file_width = separation.file_shape(Path(weights))
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
    cases: list[Case],
    store: "Store | None",
    confirm: bool | None,
    prime: int | None,
    full_grid: bool,
    memory: int | None,
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
