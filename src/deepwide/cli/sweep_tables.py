"""How a sweep's cells and state look in a terminal."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deepwide.cli.app import console
from deepwide.errors import one_line
from deepwide.quantities import plural, show_bytes, show_count, show_seconds
from deepwide.sweeping import STATES, CellState, Expansion, SweepState

if TYPE_CHECKING:
    from deepwide.sweeping import Verification

MOST_ROWS = 40
MOST_PLANNED = 500
FRAME_ROWS = 4  # of a live table, that are not cells: title, header, caption, cursor
NOT_DAMAGE = {"leftover": "left by killed workers", "unchecked": "from before checksums, unchecked"}
LINE_SECONDS = 10.0  # between lines, when the output is a log
COLOURS = {"done": "green", "running": "cyan", "waiting": "dim", "interrupted": "yellow", "lost": "yellow"}
# What moves or needs a person comes first where there is no room for all.
ORDER = ("running", "unreadable", "failed", "oom", "diverged", "lost", "disk_full", "interrupted", "waiting", "done")


def show_expansion(expansion: Expansion, out: Console) -> None:
    """One line per cell, of a very large sweep for the first; then the sum."""
    table = _table(f"{expansion.name}: {len(expansion.cells)} cells")
    for title in ("run", "cell"):
        table.add_column(title, no_wrap=title == "run")
    for title in ("params", "total", "tokens", "FLOPs", "memory", "expected"):
        table.add_column(title, justify="right")
    for cell in expansion.cells[:MOST_PLANNED]:
        table.add_row(
            cell.id[:8],
            escape(cell.name),
            show_count(cell.block_params),
            show_count(cell.total_params),
            show_count(cell.tokens),
            show_count(cell.train_flops),
            show_bytes(cell.train_bytes),
            show_seconds(cell.expected_seconds),
        )
    if len(expansion.cells) > MOST_PLANNED:
        table.caption = f"{len(expansion.cells) - MOST_PLANNED:,} more cells: --json lists all"
    out.print(table)
    number, workers = len(expansion.cells), plural(expansion.workers, "worker")
    left = f"Expected: {show_seconds(expansion.expected_seconds)} with {workers} on this machine"
    if expansion.finished == number:
        left = "Nothing is left to run"
    out.print(
        f"{left}; {show_count(expansion.train_flops)} FLOPs in total. {expansion.finished} of {number} cells have "
        f"finished already. Runs: {_near(Path(expansion.runs))}",
        soft_wrap=True,
        markup=False,
    )


def state_table(state: SweepState, most: int = MOST_ROWS) -> Table:
    """The table that `status` prints and `run` keeps up to date; long sweeps show what moves."""
    table = _table(f"{state.name}: {summary(state)}")
    for title in ("run", "cell", "state"):
        table.add_column(title, no_wrap=title != "cell")
    for title in ("step", "loss", "saved"):
        table.add_column(title, justify="right")
    table.add_column("note", overflow="fold")
    shown = _shown(state.cells, most)
    for cell in shown:
        colour = COLOURS.get(cell.state, "red")
        table.add_row(
            cell.id[:8],
            escape(cell.name),
            f"[{colour}]{cell.state}[/{colour}]",
            "" if cell.step is None else f"{cell.step:,} of {cell.steps:,}",
            "" if cell.loss is None else f"{cell.loss:.4f}",
            "" if cell.checkpoint is None else f"{cell.checkpoint:,}",
            escape(cell.error or cell.owner),  # errors quote with brackets
        )
    if len(shown) < len(state.cells):
        table.caption = f"{len(state.cells) - len(shown)} more cells: --json lists all"
    return table


def summary(state: SweepState) -> str:
    """How many cells are in which state, and the time left."""
    counts = ", ".join(f"{state.counts[name]} {name}" for name in STATES if name in state.counts)
    if not state.left or state.expected_seconds is None:
        return counts
    return f"{counts}; {show_seconds(state.expected_seconds)} left"


def show_state(state: SweepState, out: Console) -> None:
    """The table once."""
    out.print(state_table(state))
    if note := state.note("finished_before"):
        text = str(note)
        out.print(text[:1].upper() + text[1:])


def show_verification(verification: "Verification", out: Console) -> None:
    """What is damaged, line by line, with its remedy; then how many runs are whole."""
    for finding in verification.damaged:
        where = f"{finding.run}/{finding.file}"
        out.print(one_line(f"{where}: {finding.what}. To do: {finding.remedy}."), soft_wrap=True, markup=False)
    others = Counter(finding.kind for finding in verification.findings if finding.kind != "damaged")
    text = f"{verification.whole} of {plural(verification.runs, 'run')} whole"
    text += "".join(f"; {plural(count, 'file')} {NOT_DAMAGE[kind]}" for kind, count in sorted(others.items()))
    out.print(f"{text}.", soft_wrap=True, markup=False)


def watch_states(states: Iterable[SweepState], out: Console) -> None:
    """A table that is redrawn with each state."""
    from rich.live import Live

    with Live(console=out, auto_refresh=False) as live:
        for state in states:
            live.update(state_table(state, _room(out)), refresh=True)


@contextmanager
def live_state(*, quiet: bool) -> Iterator[Callable[[SweepState], None] | None]:
    """What to call with each new state: it redraws the table in a terminal, and adds a line on change to a log."""
    out = console()
    if quiet:
        yield None
        return
    if not out.is_terminal:
        yield _line_on_change()
        return
    from rich.live import Live

    with Live(console=out, transient=True, auto_refresh=False) as live:
        yield lambda state: live.update(state_table(state, _room(out)), refresh=True)


def _line_on_change() -> Callable[[SweepState], None]:
    """How many cells are in which state, on standard error, when that has changed; at most every ten seconds."""
    last_counts: dict[str, int] = {}
    last_time = time.monotonic()

    def line(state: SweepState) -> None:
        nonlocal last_counts, last_time
        if time.monotonic() - last_time >= LINE_SECONDS:
            last_time = time.monotonic()
            if state.counts != last_counts:
                last_counts = state.counts
                text = f"{time.strftime('%H:%M:%S')} {state.name}: {summary(state)}"
                print(text, file=sys.stderr, flush=True)

    return line


def _shown(cells: Sequence[CellState], most: int) -> Sequence[CellState]:
    """The cells there is room for: all in the order of the file, or those first that move or need a person."""
    if len(cells) <= most:
        return cells
    return sorted(cells, key=lambda cell: ORDER.index(cell.state))[:most]


def _room(out: Console) -> int:
    return max(1, min(MOST_ROWS, out.height - FRAME_ROWS))


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")


def _near(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
