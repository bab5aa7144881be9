"""How a sweep's plan and status look in a terminal."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deepwide.cli.app import console
from deepwide.quantities import show_bytes, show_count, show_seconds
from deepwide.sweeping import Cell, CellStatus, status_of
from deepwide.sweeping.status import OVER, STATES

MOST_ROWS = 40
LINE_SECONDS = 10.0  # between looks, when the output is a log
COLOURS = {"done": "green", "running": "cyan", "waiting": "dim", "interrupted": "yellow", "lost": "yellow"}


def show_plan(name: str, cells: Sequence[Cell], seconds: Sequence[float], slots: int, runs: Path, out: Console) -> None:
    """One line a cell, then the sum."""
    table = _table(f"{name}: {len(cells)} cells")
    for title in ("run", "cell"):
        table.add_column(title, no_wrap=title == "run")
    for title in ("params", "total", "tokens", "FLOPs", "memory", "expected"):
        table.add_column(title, justify="right")
    for cell, expected in zip(cells, seconds, strict=True):
        cost = cell.cost
        table.add_row(
            cell.id[:8],
            escape(cell.name),
            show_count(cost.block_params),
            show_count(cost.total_params),
            show_count(cost.tokens),
            show_count(cost.train_flops),
            show_bytes(cost.train_bytes),
            show_seconds(expected),
        )
    out.print(table)
    left = seconds_to_go(cells, seconds, runs)
    needed = f"{show_seconds(sum(left) / slots)} with" if left else "nothing is left for"
    out.print(
        f"Expected: {needed} {slots} worker{'s' * (slots > 1)} on this machine, "
        f"{show_count(sum(cell.cost.train_flops for cell in cells))} FLOPs in all. "
        f"{len(cells) - len(left)} of {len(cells)} cells are over already. Runs: {_near(runs)}",
        soft_wrap=True,
        markup=False,
    )


def seconds_to_go(cells: Sequence[Cell], seconds: Sequence[float], runs: Path) -> list[float]:
    """What each cell that is not over will take."""
    return [s for cell, s in zip(cells, seconds, strict=True) if not (runs / cell.id / "result.json").exists()]


def status_table(name: str, states: Sequence[CellStatus]) -> Table:
    """The table that `status` prints and `run` keeps up to date; long sweeps show what moves."""
    table = _table(f"{name}: {_counts(states)}")
    for title in ("run", "cell", "state"):
        table.add_column(title, no_wrap=title != "cell")
    for title in ("step", "loss", "saved"):
        table.add_column(title, justify="right")
    table.add_column("note", overflow="fold")
    shown = states
    if len(states) > MOST_ROWS:
        shown = [state for state in states if state.state not in ("done", "waiting")][:MOST_ROWS]
    for state in shown:
        colour = COLOURS.get(state.state, "red")
        table.add_row(
            state.id[:8],
            escape(state.name),
            f"[{colour}]{state.state}[/{colour}]",
            "" if state.step is None else f"{state.step:,}",
            f"{state.loss:.4f}" if isinstance(state.loss, int | float) else "",
            "" if state.checkpoint is None else f"{state.checkpoint:,}",
            escape(state.note or state.owner),  # errors quote with brackets
        )
    if len(shown) < len(states):
        table.caption = f"{len(states) - len(shown)} more that are done or wait: --json lists all"
    return table


def show_status(name: str, states: Sequence[CellStatus], out: Console, *, nothing_to_do: bool = False) -> None:
    """The table once."""
    out.print(status_table(name, states))
    if nothing_to_do and all(state.state in OVER for state in states):
        out.print("Every cell was over already: nothing was run.")


@contextmanager
def live_status(name: str, cells: Sequence[Cell], runs: Path, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """A function to call often: in a terminal it redraws the table each second, in a log it adds a line on change."""
    out = console()
    if quiet:
        yield lambda: None
        return
    if not out.is_terminal:
        yield _line_on_change(name, cells, runs)
        return
    from rich.live import Live

    drawn = [0.0]
    with Live(console=out, transient=True, auto_refresh=False) as live:

        def redraw() -> None:
            if time.monotonic() - drawn[0] > 1:
                drawn[0] = time.monotonic()
                live.update(status_table(name, [status_of(cell, runs) for cell in cells]), refresh=True)

        yield redraw


def _line_on_change(name: str, cells: Sequence[Cell], runs: Path) -> Callable[[], None]:
    """How many cells are in which state, on standard error, when that has changed; at most every ten seconds."""
    said, looked = [""], [time.monotonic()]

    def say() -> None:
        if time.monotonic() - looked[0] < LINE_SECONDS:
            return
        looked[0] = time.monotonic()
        line = f"{name}: {_counts([status_of(cell, runs) for cell in cells])}"
        if line != said[0]:
            said[0] = line
            print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)

    return say


def _counts(states: Sequence[CellStatus]) -> str:
    counts = Counter(state.state for state in states)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")


def _near(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
