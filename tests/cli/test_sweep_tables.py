"""How a sweep looks in a terminal: what moves first, the time left, brackets as they are."""

import io
from typing import Any

import pytest
from rich.console import Console

from deepwide.answers import Note
from deepwide.cli.sweep_tables import show_expansion, show_state, state_table, summary
from deepwide.sweeping import CellState, SweepState, expand


def cell(number: int, state: str, **fields: Any) -> CellState:
    return CellState(id=f"{number:016d}", name=f"x={number}", state=state, **fields)


def sweep(*cells: CellState, **fields: Any) -> SweepState:
    counts: dict[str, int] = {}
    for one in cells:
        counts[one.state] = counts.get(one.state, 0) + 1
    left = sum(one.state in ("waiting", "running") for one in cells)
    return SweepState(name="s", runs="r", cells=cells, counts=counts, left=left, **fields)


def text(state: SweepState, most: int = 40) -> str:
    out = Console(width=200, record=True, file=io.StringIO())
    out.print(state_table(state, most))
    return out.export_text()


def test_notes_and_names_may_have_brackets() -> None:
    odd = CellState(id="0" * 16, name="x=[1]", state="oom", error="[enforce fail at alloc.cpp:1] [/x]")
    shown = text(sweep(odd))
    assert "[enforce fail at alloc.cpp:1] [/x]" in shown
    assert "x=[1]" in shown


def test_running_cells_come_first_where_there_is_no_room_for_all() -> None:
    cells = [cell(n, "done") for n in range(20)] + [cell(n, "waiting") for n in range(20, 40)]
    cells += [cell(40, "running"), cell(41, "failed")]
    shown = text(sweep(*cells), most=4)
    assert "x=40" in shown
    assert "x=41" in shown
    assert "38 more cells" in shown
    everything = text(sweep(*cells), most=50)
    assert everything.index("x=39") < everything.index("x=40"), "the order of the file where all fit"


def test_a_running_cell_shows_its_step_of_so_many_and_the_title_the_time_left() -> None:
    state = sweep(cell(0, "running", step=120, steps=4000, loss=2.5), cell(1, "waiting"), expected_seconds=9000.0)
    shown = text(state)
    assert "120 of 4,000" in shown
    assert "1 waiting, 1 running; 2.5 h left" in shown


@pytest.mark.parametrize("expected", [None, 0.0])
def test_no_time_is_shown_where_none_is_known_or_nothing_is_left(expected: float | None) -> None:
    assert summary(sweep(cell(0, "done"), expected_seconds=expected)) == "1 done"


def test_a_sweep_that_had_finished_before_says_so() -> None:
    out = Console(width=200, record=True, file=io.StringIO())
    show_state(
        sweep(cell(0, "done"), notes=(Note.of("finished_before", "every cell had finished: nothing to do."),)), out
    )
    assert "Every cell had finished: nothing to do." in out.export_text()


def test_the_plan_of_a_very_large_sweep_shows_its_first_cells_and_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.sweeping.state._speeds", lambda widths: dict.fromkeys(widths, 1e9))
    expansion = expand({"name": "many", "seeds": list(range(502)), "run": {"trainer": "toy"}})
    out = Console(width=200, record=True, file=io.StringIO())
    show_expansion(expansion, out)
    shown = out.export_text()
    assert "seed=499" in shown
    assert "seed=500" not in shown
    assert "2 more cells: --json lists all" in shown
    assert "0 of 502 cells have finished" in shown
