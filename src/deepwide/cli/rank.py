"""What `deepwide rank` does for each of its jobs; `cli.separation` declares the options."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from deepwide.cli.app import console, print_json
from deepwide.errors import DeepwideError
from deepwide.quantities import show_seconds
from deepwide.separation import certificates
from deepwide.separation.case import Case
from deepwide.separation.field import PRIME, another_prime
from deepwide.separation.measurement import (
    Estimate,
    Measurement,
    available_memory,
    check_size,
    confirm,
    estimate,
    measure,
)
from deepwide.separation.network import file_shape
from deepwide.separation.partial import Partial
from deepwide.separation.theorems import bounds, show_log3

_CONFIRM_BY_DEFAULT_SECONDS = 60.0
_LARGE = 500_000  # primes above this make an accident in a rank unlikely
Shape = tuple[int, int, int]


def shapes(depth: str | None, width: str | None, heads: str, weights: str) -> list[Shape]:
    """Every (depth, width, heads) asked for; a weight file answers for depth and width itself."""
    if weights not in ("random", "identity"):
        held = file_shape(Path(weights))
        depth, width = depth or str(held[0]), width or str(held[1])
    if depth is None or width is None:
        missing = "--depth" if depth is None else "--width"
        raise DeepwideError(f"{missing} is missing, as in: deepwide rank --depth 2 --width 3.")
    grid = [(d, w, h) for d in _range(depth, "depth") for w in _range(width, "width") for h in _range(heads, "heads")]
    fitting = [shape for shape in grid if len(grid) == 1 or shape[1] % shape[2] == 0]
    if not fitting:
        raise DeepwideError(f"None of the heads {heads} divides a width of {width} evenly.")
    if len(fitting) < len(grid):
        skipped = sorted({f"{w}/{h}" for _, w, h in set(grid) - set(fitting)})
        print(f"Skipped, because the heads do not divide the width: {', '.join(skipped)}.", file=sys.stderr)
    return fitting


def _range(text: str, what: str) -> list[int]:
    """2, 2..6 or 2,4,8 as a list of numbers."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            numbers += range(int(first), int(last if dots else first) + 1)
    except ValueError:
        numbers = []
    if not numbers or len(numbers) > 1000:
        raise DeepwideError(f"{text!r} is no {what}: write a number (2), a range (2..6) or a list (2,4,8).")
    return numbers


def _positions(text: str | None, width: int) -> tuple[int, int]:
    if text is None:
        return width, width
    parts = text.split(",")
    if len(parts) > 2 or not all(part.strip().isdigit() and int(part) for part in parts):
        raise DeepwideError(f"{text!r} are no positions: write one number for both sides (3) or two (3,1).")
    return int(parts[0]), int(parts[-1])


def cases(grid: list[Shape], positions: str | None, partition: str | None, options: dict[str, Any]) -> list[Case]:
    """The cases to measure, all checked before the first one starts."""
    if positions and partition:
        raise DeepwideError("--positions and --partition both say where the positions are; give one of them.")
    found = []
    for depth, width, heads in grid:
        sides = partition or Case.with_positions(*_positions(positions, width))
        found.append(Case(depth, width, heads, sides=sides, **options))
    return found


@contextmanager
def _bar(label: str, seconds: float) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on standard error for work of more than a second or two, if someone is watching."""
    watcher = Console(stderr=True)
    if seconds < 1.5 or not watcher.is_terminal:
        yield None
        return
    columns = (
        TextColumn(label),
        BarColumn(),
        TextColumn("{task.percentage:.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=watcher, transient=True) as progress:
        task = progress.add_task(label, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def ranks(
    wanted: list[Case], prime: int | None, full_grid: bool, again: bool | None, budget: int | None,
    place: Path | None, blocks: bool, plot: Path | None, json: bool,
) -> None:  # fmt: skip
    """Measure every case that has no certificate yet, printing a row as each is done."""
    prime = prime or PRIME
    memory = budget or int(0.7 * available_memory())
    one_file = place is not None and place.suffix == ".json"
    if one_file and len(wanted) > 1:
        raise DeepwideError(f"{len(wanted)} cases need a folder for their certificates, not the file {place}.")
    paths = {case: place if one_file else place / f"{case.name()}.json" for case in wanted} if place else {}
    kept = {case: _kept(path, case, prime, full_grid) for case, path in paths.items() if path and path.exists()}
    done: list[dict[str, Any]] = []
    single = len(wanted) == 1
    out = console()
    if not single and not json:
        out.print(_ROW.format("depth", "width", "heads", "rank", "count", "time", "").rstrip())
    for case in wanted:
        content = kept.get(case)
        unconfirmed = content is not None and again is True and not content["confirmed"]
        if content is None or unconfirmed:
            try:
                need = check_size(case, full_grid, memory)
            except DeepwideError as error:
                if single:
                    raise
                print(f"Skipped: {error}", file=sys.stderr)
                continue
            known = certificates.measurement_of(content) if content else None
            content = _measure(case, prime, full_grid, again, memory, need, paths.get(case), known)
        done.append(content)
        if not json:
            if single:
                _show_one(content, case, blocks, paths.get(case), case in kept and not unconfirmed)
            else:
                _show_row(content, case, case in kept and not unconfirmed, blocks)
    if plot:
        from deepwide.figures.separation import ranks_figure, save

        save(ranks_figure(done), plot)
    if json:
        print_json(done[0] if single else {"cases": done})
    elif plot:
        out.print(f"Picture: {plot}")


def _kept(path: Path, case: Case, prime: int, full_grid: bool) -> dict[str, Any]:
    """A certificate that is already there; anything else in its place stops the run."""
    content = certificates.read(path)
    same = certificates.case_of(content) == case
    if not same or content["prime"] != prime or content["full_grid"] != full_grid:
        raise DeepwideError(
            f"{path} is the certificate of another measurement (other shape, sides, seed, prime or way); "
            "give another --out, or remove it."
        )
    certificates.check_weights(content, path)
    return content


def _measure(
    case: Case, prime: int, full_grid: bool, again: bool | None, memory: int, need: Estimate, path: Path | None,
    found: Measurement | None,
) -> dict[str, Any]:  # fmt: skip
    """Measure, unless that is `found` already, and confirm; with a path, going on with blocks finished before."""
    label = f"depth {case.depth}, width {case.width}"
    parts: list[Partial] = []

    def going_on(prime: int, algorithm: str) -> dict[str, Any]:
        if path is None:
            return {}
        parts.append(Partial(path, case, prime, full_grid, algorithm))
        if parts[-1].ranks:
            print(f"Going on with {len(parts[-1].ranks)} finished blocks from {parts[-1].path}.", file=sys.stderr)
        return {"finished": parts[-1].ranks, "keep": parts[-1].add}

    if found is None:
        with _bar(label, need.seconds) as progress:
            how = going_on(prime, "dgemm")
            found = measure(case, prime, full_grid=full_grid, memory=memory, progress=progress, **how)
    # The first measurement tells how this machine compares with the one the estimate was made on.
    slower = max(1.0, found.seconds / need.seconds) if need.seconds > 1 else 1.0
    expected = slower * estimate(case, full_grid, flint=True).seconds
    if again is None and expected > _CONFIRM_BY_DEFAULT_SECONDS:
        print(f"Not confirmed: that would take about {show_seconds(expected)}; ask with --confirm.", file=sys.stderr)
        again = False
    second = None
    if again is not False:
        if path and expected > _CONFIRM_BY_DEFAULT_SECONDS:  # what is known is kept while the rest takes its time
            _write(certificates.certificate(found, None), path, parts)
        with _bar(f"{label}, again", expected) as progress:
            how = going_on(another_prime(prime), "flint")
            second = confirm(found, memory=memory, progress=progress, **how)
    content = certificates.certificate(found, second)
    if path:
        _write(content, path, parts)
    return content


def _write(content: dict[str, Any], path: Path, parts: list[Partial]) -> None:
    """The certificate first, and only then away with the blocks it was made of."""
    certificates.write(content, path)
    while parts:
        parts.pop().remove()


def _confirmed(content: dict[str, Any]) -> str:
    second = content["confirmed"]
    return f"confirmed modulo {second['prime']} by {second['algorithm'].upper()}" if second else "not confirmed"


_ROW = "{:>5} {:>5} {:>5} {:>12} {:>12} {:>8}  {}"


def _show_row(content: dict[str, Any], case: Case, kept: bool, blocks: bool) -> None:
    words = [
        "meets the count" if content["rank"] == content["bound"] else "below the count",
        _confirmed(content),
    ]
    words += ["kept"] * kept
    console().print(
        _ROW.format(
            case.depth, case.width, case.heads, content["rank"], content["bound"],
            show_seconds(content["seconds"], 5), ", ".join(words),
        ),
        soft_wrap=True,
    )  # fmt: skip
    if blocks:
        console().print(f"      blocks {content['blocks']}", soft_wrap=True)


def _show_one(content: dict[str, Any], case: Case, blocks: bool, path: Path | None, kept: bool) -> None:
    out = console()
    a, b = case.sides.count("A"), case.sides.count("B")
    extra = [word for word, on in (("residual", case.residual), ("causal", case.causal)) if on]
    about = f"depth {case.depth}, width {case.width}, heads {case.heads}, {a} + {b} positions"
    found, bound = content["rank"], content["bound"]
    least = "" if found == bound or _almost_sure(content) else "at least "
    out.print(
        f"separation rank {least}{found}   ({', '.join([about, *extra])}, {case.weights} weights)",
        soft_wrap=True,
    )
    less = f", less {case.relations} relations: {bound}" if case.relations and len(content["blocks"]) > 1 else ""
    counted = f"count           {bound + case.relations if less else bound}{less}"
    if found == bound:
        out.print(f"{counted}   met: this is the separation rank, proved from both sides", soft_wrap=True)
    else:
        sure = "" if least else ", and almost surely equal to it"
        out.print(f"{counted}   not met: the rank is at least {found}{sure}", soft_wrap=True)
        _show_ideals(case, found)
    _show_theorems(case)
    if blocks:
        table = Table("block", "rank", "count", box=None, pad_edge=False)
        for k, (rank, most) in enumerate(zip(content["blocks"], content["block_bounds"], strict=True)):
            table.add_row(str(k) if len(content["blocks"]) > 1 else "all", str(rank), str(most))
        out.print(table)
    out.print(
        f"measured        modulo {content['prime']} in {show_seconds(content['seconds'], 5)}, {_confirmed(content)}"
    )
    if path:
        out.print(f"certificate     {path}{' (kept; nothing was measured)' if kept else ''}", soft_wrap=True)


def _show_ideals(case: Case, found: int) -> None:
    """The sharper bound of docs/theory.md 5.4, where it is about the network and quickly computed."""
    from deepwide.separation.ideals import affordable, ideal_bounds

    if case.heads == 1 and case.weights == "random" and not (case.causal or case.residual) and affordable(case):
        bound = sum(ideal_bounds(case))
        met = "met" if found == bound else "not met"
        console().print(f"by ideals       {bound}   {met} (computed modulo a prime, not proved)")


def _almost_sure(content: dict[str, Any]) -> bool:
    """Whether a rank below the count may be called almost surely exact: two different large primes agree."""
    second = content["confirmed"]
    return bool(second) and second["prime"] != content["prime"] and min(content["prime"], second["prime"]) >= _LARGE


def _show_theorems(case: Case) -> None:
    """The theorem for this shape; nothing for networks that the theorems are not about."""
    a, b = case.sides.count("A"), case.sides.count("B")
    if case.residual or case.causal or case.weights != "random" or a != b or a < case.width:
        return
    out = console()
    theory = bounds(case.depth, case.width, case.heads)
    if theory.lower is not None and theory.upper is not None:
        low = show_log3(theory.lower) if theory.lower > 0 else "1 (says nothing)"
        out.print(f"Theorem {theory.theorem}       {low} to {show_log3(theory.upper)}")
    else:
        out.print(
            f"Theorems        none applies: {theory.why}" if theory.regime == "at" else "Theorems        undefined here"
        )


def verify(path: Path, budget: int | None, json: bool) -> None:
    """Check a certificate again and say so."""
    content = certificates.read(path)
    need = estimate(certificates.case_of(content), content["full_grid"], flint=True, chain=False)
    with _bar(f"checking {path.name}", need.seconds) as progress:
        found = certificates.verify(path, memory=budget, progress=progress)
    second = content["confirmed"]
    both = second["prime"] if second and certificates.second_is_cheap(content) else None
    if json:
        answer = {"file": str(path), "holds": True, "rank": found.rank, "prime": found.prime, "algorithm": "flint"}
        print_json({**answer, "second_prime": both})
        return
    primes = f"modulo {found.prime}" + (f" and modulo {both}" if both else "")
    left_out = f" Modulo {second['prime']} only the points were checked." if second and not both else ""
    console().print(
        f"{path} holds: rank {found.rank} {primes}, measured again from the seeds by the Gram form and FLINT."
        + left_out,
        soft_wrap=True,
    )


def only_every_partition(given: list[str]) -> None:
    """Refuse the options that would mean nothing over every partition."""
    if "--causal" in given:
        raise DeepwideError(
            "Proposition 1 does not hold for causal networks, so --every-partition takes no --causal; "
            "measure partitions one by one with --causal --partition."
        )
    if given:
        raise DeepwideError(
            f"--every-partition takes every balanced partition, reads the output at the first position, measures the "
            f"full grid twice and keeps nothing, so it takes no {' and no '.join(given)}."
        )


def every_partition(
    grid: list[Shape], positions: str | None, seed: int, prime: int | None, weights: str, residual: bool,
    budget: int | None, json: bool,
) -> None:  # fmt: skip
    """Proposition 1 by eq. 3 itself: every balanced partition, the output read at the first position."""
    if len(grid) != 1:
        raise DeepwideError("--every-partition takes one depth, one width and one number of heads.")
    (depth, width, heads), rows = grid[0], []
    each = _positions(positions, width)
    if each[0] != each[1]:
        raise DeepwideError(f"A balanced partition has as many positions on both sides, not {each[0]} and {each[1]}.")
    number = 2 * each[0]
    first = prime or PRIME
    second = another_prime(first)
    if number > 12:
        raise DeepwideError(f"{number} positions have too many balanced partitions; give --positions 6 or fewer.")
    for other in combinations(range(1, number), each[0] - 1):
        sides = "".join("A" if i in (0, *other) else "B" for i in range(number))
        case = Case(depth, width, heads, sides=sides, at=0, residual=residual, weights=weights, seed=seed)
        found = measure(case, first, full_grid=True, memory=budget)
        again = measure(case, second, full_grid=True, flint=True, memory=budget)
        if again.rank != found.rank:
            raise DeepwideError(f"Partition {sides} measures {found.rank} and, with a second prime, {again.rank}.")
        rows.append({"partition": sides, "rank": found.rank})
        if not json:
            console().print(f"{sides}  {found.rank}")
    same = len({row["rank"] for row in rows}) == 1
    if json:
        print_json(
            {
                "depth": depth,
                "width": width,
                "heads": heads,
                "same": same,
                "primes": [first, second],
                "partitions": rows,
            }
        )
    else:
        verdict = "the same for every balanced partition" if same else "NOT the same for every balanced partition"
        console().print(f"{verdict}: eq. 3 on the full grid, modulo {first} and, by FLINT, {second}")


def softmax(
    grid: list[Shape], positions: str | None, seed: int, causal: bool, weights: str, epsilon: str,
    points: int, plot: Path | None, json: bool,
) -> None:  # fmt: skip
    """The numerical ε-rank of softmax transformers, for each shape."""
    from deepwide.separation.epsilon import softmax_transformer, spectrum

    try:
        levels = [float(level) for level in epsilon.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 < level < 1 for level in levels):
        raise DeepwideError(f"--epsilon {epsilon!r} must be numbers between 0 and 1, such as 1e-3,1e-6.")
    if not 2 <= points <= 2000:
        raise DeepwideError(f"--points must be between 2 and 2000; it was {points}.")
    if weights == "identity":
        raise DeepwideError("--softmax takes random weights or a file, not identity.")
    rows = []
    if not json:
        console().print("numerical: singular values in floating point, no proof", style="dim")
        console().print("  depth width heads  effective rank  " + "  ".join(f"above {level:g}" for level in levels))
    for depth, width, heads in grid:
        file = Path(weights) if weights != "random" else None
        function = softmax_transformer(depth, width, heads, seed, causal=causal, weights=file)
        found = spectrum(function, width, _positions(positions, width), points, seed)
        counts = {f"{level:g}": found.rank(level) for level in levels}
        shape = {"depth": depth, "width": width, "heads": heads}
        rows.append({**shape, "effective_rank": found.effective_rank, "epsilon_rank": counts, "values": found.values})
        if not json:
            cells = "  ".join(f"{n:>{len(f'above {level}')}}" for level, n in counts.items())
            console().print(f"  {depth:>5} {width:>5} {heads:>5}  {found.effective_rank:>14.2f}  {cells}")
    if plot:
        from deepwide.figures.separation import save, spectrum_figure

        save(spectrum_figure(rows), plot)
    if json:
        print_json({"numerical": True, "points": points, "seed": seed, "shapes": rows})
    elif plot:
        console().print(f"Picture: {plot}")
