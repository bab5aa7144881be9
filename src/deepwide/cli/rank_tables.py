"""What `deepwide rank` shows: certificates, forecasts, and on standard error notes and progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deepwide.answers import Note
from deepwide.cli.app import console, print_json
from deepwide.quantities import show_bytes, show_seconds
from deepwide.separation import Case, Certificate, Forecast, Store, Watcher

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

    def add(self, certificate: Certificate, store: Store | None, stored: bool) -> None:
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


def _show_one(certificate: Certificate, blocks: bool, store: Store | None, stored: bool) -> None:
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
    from deepwide.separation import bounds_of

    answer = bounds_of(case)
    if answer is None:
        return
    if answer.lower is not None and answer.upper is not None:
        text = f"Theorem {answer.theorem}:      between {answer.lower.about or '1 (trivial)'} and {answer.upper.about}"
    else:
        text = f"Theorems:       {f'none applies: {answer.why}' if answer.regime == 'at' else 'undefined here'}"
    console().print(text)
