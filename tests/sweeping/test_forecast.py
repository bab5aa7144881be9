"""The expected time: by formula first, then by what finished runs took, then by the pace that is observed."""

import json
from pathlib import Path

import pytest

from deepwide.sweeping import cells_of, make_spec
from deepwide.sweeping.forecast import Pace, cells_per_worker, expected_seconds
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
    monkeypatch.setattr("deepwide.training.estimate.STEP_SECONDS", 1000.0)
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
