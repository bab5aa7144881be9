"""Where cells stand: every state, read from the folder alone."""

import json
import os
import time
from pathlib import Path
from unittest import mock

import pytest

from deepwide.answers import to_polars
from deepwide.run import FINISHED, RunFolder
from deepwide.sweeping import STATES, Cell, cell_state, cells_of, make_spec
from deepwide.sweeping.state import Pace, StateReader, cells_per_worker, expected_seconds
from sweeping.toys import toys


def test_more_flops_take_longer_and_more_threads_less(memory: Path) -> None:
    run = {"data": {"source": "python"}, "batch": 8, "context": 64, "steps": 20}
    cells = cells_of(make_spec({"name": "n", "run": run, "grid": {"depth": [1, 8], "width": [64, 1024]}}))
    seconds = expected_seconds(cells, memory)
    assert seconds[0] < seconds[1]
    assert seconds[0] < seconds[2] < seconds[3]
    assert expected_seconds(cells, memory, threads=64)[3] < seconds[3]


def test_a_sweep_assumes_what_a_single_run_does(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(toys(grid={"width": [2]}, seeds=[0]))
    monkeypatch.setattr("deepwide.training.counts.STEP_SECONDS", 1000.0)
    assert expected_seconds(cells, memory)[0] >= 1000 * cells[0].cost.steps


def test_finished_cells_correct_the_estimate(memory: Path) -> None:
    cells = cells_of(toys(grid={"width": [2]}, seeds=[0, 1, 2]))
    guess = expected_seconds(cells, memory)
    with cells[0].folder(memory).lease("me") as writer:
        writer.finish("done", step=4, loss=1.0)
    path = memory / cells[0].id / "lease.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"worked": 1000 * guess[0]}))
    assert expected_seconds(cells, memory)[1] == pytest.approx(1000 * guess[0], rel=0.5)


def test_a_damaged_lease_is_no_reason_to_stop(memory: Path) -> None:
    cells = cells_of(toys(seeds=[0]))
    for content, cell in zip(("{", '{"worked": null}', "", "[]"), cells, strict=True):
        (cell.folder(memory).path / "lease.json").write_text(content)
    assert len(expected_seconds(cells, memory)) == 4


def test_nothing_takes_no_time(memory: Path) -> None:
    assert expected_seconds([], memory) == []


def test_small_cells_share_a_worker() -> None:
    assert cells_per_worker([]) == 16
    assert cells_per_worker([0.5] * 10) == 16
    assert cells_per_worker([4.0, 6.0]) == 4
    assert cells_per_worker([1000.0]) == 1


def test_the_pace_is_the_formula_s_until_work_is_seen_to_be_done() -> None:
    now = [0.0]
    pace = Pace(4, clock=lambda: now[0])
    assert pace.seconds_left(400.0) == 100.0
    now[0] = 1.0
    assert pace.seconds_left(300.0) == 75.0, "a second says nothing yet"
    now[0] = 50.0
    assert pace.seconds_left(300.0) == 150.0, "100 of work took 50 seconds"
    assert pace.seconds_left(500.0) == 125.0, "a cell that starts again is no pace"
    assert pace.seconds_left(0.0) == 0.0


@pytest.fixture
def cell() -> Cell:
    (only,) = cells_of(toys(grid={}, seeds=[3], run={"steps": 8, "width": 5, "depth": 2}))
    return only


def rewrite_lease(folder: RunFolder, **changes: object) -> None:
    path = folder.path / "lease.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_cell_is_described_whether_or_not_it_was_begun(memory: Path, cell: Cell) -> None:
    state = cell_state(cell, memory)
    assert (state.state, state.step, state.steps, state.seed) == ("waiting", None, 8, 3)
    assert (state.depth, state.width, state.block_params) == (2, 5, 50)
    cell.folder(memory)
    assert cell_state(cell, memory) == state


def test_from_running_to_interrupted_to_lost_to_done(memory: Path, cell: Cell) -> None:
    folder = cell.folder(memory)
    with folder.lease("me") as writer:
        writer.append({"step": 2, "loss": 0.5})
        running = cell_state(cell, memory)
        assert (running.state, running.step, running.loss, running.owner) == ("running", 2, 0.5, "me")
        assert running.share_left == 0.75
    assert cell_state(cell, memory).state == "interrupted"
    rewrite_lease(folder, ended="", process={})
    os.utime(folder.path / "lease.json", (time.time() - 3600,) * 2)
    assert cell_state(cell, memory).state == "lost"
    rewrite_lease(folder, ended="disk_full")
    assert cell_state(cell, memory).state == "disk_full"
    with folder.lease("next") as writer:
        writer.finish("done", step=8, loss=0.25)
    done = cell_state(cell, memory)
    assert (done.state, done.step, done.loss, done.number, done.share_left) == ("done", 8, 0.25, 2, 0.0)


@pytest.mark.parametrize("status", ["diverged", "oom"])
def test_the_reason_a_run_ended_for_is_in_its_state(memory: Path, cell: Cell, status: str) -> None:
    with cell.folder(memory).lease("me") as writer:
        writer.finish(status, step=3, why="the loss of step 3 is not a finite number")
    assert cell_state(cell, memory).error == "the loss of step 3 is not a finite number"


def test_a_damaged_folder_is_a_state_with_its_remedy(memory: Path, cell: Cell) -> None:
    folder = cell.folder(memory)
    (folder.path / "config.json").write_text("{")
    state = cell_state(cell, memory)
    assert state.state == "unreadable"
    assert "put it back from a copy" in state.error
    (folder.path / "config.json").unlink()
    (folder.path / "config.json").mkdir()
    assert cell_state(cell, memory).state == "unreadable", "a folder in its place is no reason to stop"


@pytest.mark.parametrize("fields", [{"step": {}}, {"step": "3"}, {"loss": []}, {"loss": "low"}, {"loss": None}])
def test_numbers_of_the_wrong_kind_are_left_out(memory: Path, cell: Cell, fields: dict[str, object]) -> None:
    folder = cell.folder(memory)
    (folder.path / "result.json").write_text(json.dumps({"status": "done", "step": 8, "loss": 1.0} | fields))
    state = cell_state(cell, memory)
    assert state.state == "done"
    assert None in (state.step, state.loss)


def test_a_folder_that_may_only_be_read_still_has_a_state(
    memory: Path, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise PermissionError(30, "Read-only file system")

    with cell.folder(memory).lease("me"):
        monkeypatch.setattr("deepwide.run.lease.file_system_time", read_only)
        assert cell_state(cell, memory).state == "running"


def test_a_sweep_is_the_sum_of_its_cells_and_a_table_of_them(memory: Path) -> None:
    cells = cells_of(toys(run={"steps": 8}))
    with cells[0].folder(memory).lease("me") as writer:
        writer.finish("done", step=8, loss=1.0)
    with cells[1].folder(memory).lease("me") as writer:
        writer.append({"step": 4})
        state = StateReader("toys", cells, memory, [10.0] * 8, workers=2).read()
    assert state.counts == {"waiting": 6, "running": 1, "done": 1}
    assert set(state.counts) <= set(STATES)
    assert state.left == 7
    assert state.expected_seconds == pytest.approx((6 * 10 + 0.5 * 10) / 2)
    rows = state.rows()
    assert [row["id"] for row in rows] == [cell.id for cell in cells]
    assert rows[0]["lr"] == 0.05
    assert to_polars(rows)["state"].to_list() == ["done", "running"] + ["waiting"] * 6
    assert state.to_polars().height == 8


def test_a_finished_cell_is_not_read_twice_and_a_retried_one_is(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(toys(seeds=[0]))
    for cell in cells[:3]:
        with cell.folder(memory).lease("me") as writer:
            writer.finish("failed", error="why")
    reader = StateReader("toys", cells, memory)
    reader.read()
    spy = mock.Mock(side_effect=RunFolder.open)
    monkeypatch.setattr(RunFolder, "open", spy)
    assert reader.read().counts == {"waiting": 1, "failed": 3}
    assert spy.call_count == 0
    monkeypatch.undo()
    cells[0].folder(memory).reopen()
    assert reader.read().counts == {"waiting": 1, "interrupted": 1, "failed": 2}


def test_only_cells_whose_files_changed_or_that_run_are_read_again(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The live table of fifty thousand cells looks at all of them every second."""
    cells = cells_of(toys(seeds=[0]))
    folders = [cell.folder(memory) for cell in cells]
    reader = StateReader("toys", cells, memory)
    reader.read()
    seen: list[str] = []

    def spy(path: Path | str) -> RunFolder:
        seen.append(Path(path).name)
        return opened(path)

    opened = RunFolder.open
    monkeypatch.setattr(RunFolder, "open", spy)
    with folders[1].lease("me") as writer:
        for step in (1, 2):  # the second time nothing but the step has changed, and a running cell is read anyway
            writer.append({"step": step, "loss": 1.0})
            seen.clear()
            assert reader.read().cells[1].step == step
            assert seen == [cells[1].id]
        seen.clear()
        assert reader.read().counts == {"waiting": 3, "running": 1}
        assert seen == [cells[1].id]


def test_every_status_of_a_result_is_a_state() -> None:
    assert set(FINISHED) < set(STATES)
