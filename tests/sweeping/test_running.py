"""The verbs of a sweep as functions: what the command line, a page and a study call."""

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.sweeping import Outcome, SweepState, cells_of, expand, retry, running, sweep, sweep_state, watch, work
from sweeping.toys import TABLE, toys, write_toml


def test_a_sweep_from_python_runs_to_its_end_and_then_does_nothing(memory: Path) -> None:
    states: list[SweepState] = []
    state = sweep(toys(run={"seconds_per_step": 0.1}), runs=memory, processes=2, progress=states.append, every=0.1)
    assert state.counts == {"done": 8}
    assert state.started >= 2
    assert state.notes == ()
    assert (state.left, state.expected_seconds, state.failed) == (0, 0.0, False)
    assert any("running" in seen.counts for seen in states)
    assert all(seen.expected_seconds is not None for seen in states)
    assert [cell.id for cell in state.cells] == [cell.id for cell in cells_of(toys(run={"seconds_per_step": 0.1}))]
    again = sweep(toys(run={"seconds_per_step": 0.1}), runs=memory)
    assert [note.code for note in again.notes] == ["finished_before"]
    assert again.started == 0


def test_deepwide_offers_it() -> None:
    assert deepwide.sweep is sweep
    assert deepwide.SweepState is SweepState


def test_stop_leaves_checkpoints_and_a_note_and_the_next_call_resumes(memory: Path) -> None:
    spec = toys(grid={}, run={"seconds_per_step": 0.05, "steps": 30, "checkpoint_every": 30})
    seen: list[SweepState] = []

    def stop() -> bool:
        return any((cell.step or 0) > 2 for state in seen[-1:] for cell in state.cells)

    state = sweep(spec, runs=memory, processes=2, progress=seen.append, every=0.1, stop=stop)
    assert [note.code for note in state.notes] == ["stopped"]
    assert state.counts == {"interrupted": 2}
    assert all(cell.checkpoint for cell in state.cells)
    assert sweep(spec, runs=memory, resume=True).counts == {"done": 2}


def test_progress_is_called_no_more_often_than_asked(memory: Path) -> None:
    calls: list[float] = []
    sweep(
        toys(run={"seconds_per_step": 0.1}), runs=memory, progress=lambda _: calls.append(time.monotonic()), every=0.5
    )
    assert len(calls) >= 2
    assert min(b - a for a, b in pairwise(calls)) >= 0.5


def test_an_error_in_progress_ends_the_sweep_in_good_order(memory: Path) -> None:
    spec = toys(grid={}, run={"seconds_per_step": 0.1, "steps": 50})

    def fail(state: SweepState) -> None:
        if state.counts.get("running"):
            raise RuntimeError("no more room on the page")

    with pytest.raises(RuntimeError, match="no more room"):
        sweep(spec, runs=memory, progress=fail, every=0.1)
    assert "running" not in sweep_state(spec, memory).counts


def test_unreadable_cells_are_a_note_and_not_an_exception(memory: Path) -> None:
    bad = cells_of(toys())[:2]
    for cell in bad:
        (cell.folder(memory).path / "metrics.jsonl").write_text("{\n{}\n")
    state = sweep(toys(), runs=memory)
    (note,) = state.notes
    assert note.code == "unreadable"
    assert set(note.data["cells"]) == {cell.id for cell in bad}
    assert "1 more like it" in note.text
    assert "--" not in note.text
    assert state.counts == {"unreadable": 2, "done": 6}
    assert state.failed


def test_one_damaged_lease_does_not_keep_the_others_from_running(memory: Path) -> None:
    damaged = cells_of(toys())[0]
    (damaged.folder(memory).path / "lease.json").write_text("{")
    assert sweep(toys(), runs=memory).counts == {"unreadable": 1, "done": 7}


def test_resume_refuses_a_sweep_that_was_not_begun(memory: Path) -> None:
    with pytest.raises(DeepwideError, match=r"no cell of toys was begun in .*: run it first"):
        sweep(toys(), runs=memory, resume=True)


def test_a_path_a_table_and_a_spec_are_the_same_sweep(memory: Path, tmp_path: Path) -> None:
    file = write_toml(tmp_path / "toys.toml")
    states = [sweep_state(given, memory) for given in (file, str(file), toys(), TABLE)]
    assert all(state.cells == states[0].cells for state in states)


def test_the_state_of_a_sweep_that_was_not_begun_forecasts_it_and_writes_nothing(memory: Path) -> None:
    state = sweep_state(toys(), memory / "runs", processes=2)
    assert state.counts == {"waiting": 8}
    assert state.expected_seconds is not None
    assert state.expected_seconds > 0
    assert not (memory / "runs").exists()
    assert json.loads(state.model_dump_json())["left"] == 8


def test_watching_ends_when_no_cell_is_left(memory: Path) -> None:
    spec = toys(grid={"width": [2, 3]}, seeds=[0])
    left = []
    for state in watch(spec, memory, every=0.0):
        left.append(state.left)
        if state.left:
            waiting = next(cell for cell in cells_of(spec) if not (memory / cell.id).exists())
            work([waiting.folder(memory).path], owner="me")
    assert left == [2, 1, 0]


def test_retry_takes_back_what_was_asked_for(memory: Path) -> None:
    spec = toys(grid={"fail_at": [0, 3]}, seeds=[0])
    good, bad = cells_of(spec)
    work([cell.folder(memory).path for cell in (good, bad)], owner="me")
    assert retry(spec, ["diverged"], memory) == []
    assert retry(spec, runs=memory) == [bad.id]
    assert sweep_state(spec, memory).counts == {"interrupted": 1, "done": 1}
    for wrong in ("done", "fialed"):
        with pytest.raises(DeepwideError, match="cannot be retried"):
            retry(spec, [wrong], memory)


@pytest.mark.parametrize("runs", ["s3://bucket/runs", "gs://bucket"])
def test_an_address_is_refused_by_every_function(runs: str) -> None:
    for ask in (sweep_state, lambda spec, where: sweep(spec, runs=where), lambda spec, where: retry(spec, runs=where)):
        with pytest.raises(DeepwideError, match="is an address"):
            ask(toys(), runs)


def test_every_cell_is_there_with_its_counts_and_time_and_nothing_is_written(memory: Path) -> None:
    expansion = expand(toys(), runs=memory / "runs", processes=4)
    assert not (memory / "runs").exists()
    cells = cells_of(toys())
    assert [cell.id for cell in expansion.cells] == [cell.id for cell in cells]
    assert expansion.train_flops == sum(6 * cell.config["width"] ** 2 * 4 for cell in cells)
    assert (expansion.workers, expansion.finished) == (4, 0)
    total = sum(cell.expected_seconds for cell in expansion.cells)
    assert 0 < expansion.expected_seconds == total / 4
    assert expansion.cells[0].config == cells[0].config


def test_only_what_is_left_is_expected(memory: Path) -> None:
    spec = toys(seeds=[0])
    for cell in cells_of(spec)[:3]:
        work([cell.folder(memory).path], owner="me")
    expansion = expand(spec, runs=memory, processes=1)
    assert expansion.finished == 3
    assert expansion.expected_seconds == expansion.cells[3].expected_seconds


def test_rows_are_a_table(memory: Path) -> None:
    frame = expand(toys(), runs=memory).to_polars()
    assert frame.height == 8
    assert {"id", "name", "depth", "width", "train_flops", "expected_seconds", "finished"} <= set(frame.columns)


def test_where_looking_takes_long_the_driver_looks_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    now, seen = [0.0], list[float]()
    monkeypatch.setattr("deepwide.sweeping.running.time.monotonic", lambda: now[0])

    class Slow:
        def read(self, started: int) -> None:
            del started
            now[0] += 3.0  # of looking

    report = running._throttled(lambda _: seen.append(now[0]), Slow(), 1.0, Outcome())  # type: ignore[arg-type]
    while now[0] < 100:
        report()
        now[0] += 0.5
    assert len(seen) == 4, "a tenth of the time"
