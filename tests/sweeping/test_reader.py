"""A folder of runs read again and again: what changed, nothing else, and nothing is written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from benchmarks.web.served import write_runs

from deepwide.run import RunFolder
from deepwide.sweeping import RunsReader, cells_of, sweep, sweep_state
from sweeping.toys import toys


def finish(run: Path, loss: float = 1.0) -> None:
    (run / "result.json").write_text(json.dumps({"status": "done", "step": 40, "loss": loss}))


def test_it_says_what_the_state_of_a_sweep_says(tmp_path: Path) -> None:
    spec = toys()
    sweep(spec, runs=tmp_path)
    expected = sweep_state(spec, tmp_path)
    assert RunsReader(tmp_path, cells_of(spec), name="toys").state() == expected
    without_spec = RunsReader(tmp_path).state()
    assert without_spec.counts == expected.counts == {"done": 8}
    by_id = {cell.id: cell for cell in expected.cells}
    for cell in without_spec.cells:
        same = ("loss", "step", "depth", "width", "train_flops", "seconds", "state", "seed")
        assert [getattr(cell, name) for name in same] == [getattr(by_id[cell.id], name) for name in same]


def test_cells_that_nobody_has_begun_are_waiting(tmp_path: Path) -> None:
    assert RunsReader(tmp_path / "absent", cells_of(toys())).look().counts == {"waiting": 8}


def test_a_second_look_reads_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = write_runs(tmp_path, 12, waiting=2)
    reader = RunsReader(tmp_path)
    assert len(reader.look().cells) == 12
    opened: list[str] = []
    real = RunFolder.open
    monkeypatch.setattr(RunFolder, "open", lambda path: opened.append(Path(path).name) or real(path))
    assert reader.look().cells == ()
    assert opened == []
    finish(tmp_path / names[-1])
    change = reader.look()
    assert opened == [names[-1]]
    assert [(cell.id, cell.state, cell.loss) for cell in change.cells] == [(names[-1], "done", 1.0)]
    assert change.counts["waiting"] == 1


@pytest.mark.parametrize("file", ["config.json", "lease.json", "result.json"])
def test_damage_to_a_run_that_had_been_read_is_seen(tmp_path: Path, file: str) -> None:
    (name,) = write_runs(tmp_path, 1)
    reader = RunsReader(tmp_path)
    assert reader.look().counts == {"done": 1}
    path = tmp_path / name / file
    path.write_text(path.read_text()[:-4])
    assert [cell.state for cell in reader.look().cells] == ["unreadable"]


def test_a_step_of_a_running_run_is_seen(tmp_path: Path) -> None:
    (name,) = write_runs(tmp_path, 1, running=1)
    reader = RunsReader(tmp_path)
    assert [cell.step for cell in reader.look().cells] == [17]
    with open(tmp_path / name / "metrics.jsonl", "a") as file:
        file.write('{"loss":2.0,"step":18}\n')
    assert [(cell.step, cell.loss) for cell in reader.look().cells] == [(18, 2.0)]


def test_an_expired_lease_is_seen_though_no_file_changes(tmp_path: Path) -> None:
    (name,) = write_runs(tmp_path, 1, running=1)
    now = [os.stat(tmp_path / name / "lease.json").st_mtime]
    reader = RunsReader(tmp_path, clock=lambda: now[0])
    assert reader.look().counts == {"running": 1}
    assert reader.look().cells == ()
    now[0] += 3601
    assert [cell.state for cell in reader.look().cells] == ["lost"]


def test_a_run_that_is_removed_or_moved_in_is_told(tmp_path: Path) -> None:
    names = write_runs(tmp_path / "runs", 3)
    reader = RunsReader(tmp_path / "runs")
    reader.look()
    os.rename(tmp_path / "runs" / names[0], tmp_path / "away")
    change = reader.look()
    assert (change.gone, change.total, change.counts) == ((names[0],), 2, {"done": 2})
    os.rename(tmp_path / "away", tmp_path / "runs" / names[0])
    assert [cell.id for cell in reader.look().cells] == [names[0]]
    for path in (tmp_path / "runs" / names[1]).iterdir():
        path.unlink()
    assert reader.look().gone == (names[1],)


def test_a_long_look_is_cut_and_the_next_one_continues(tmp_path: Path) -> None:
    write_runs(tmp_path, 20)
    reader = RunsReader(tmp_path)
    first = reader.look(seconds=0.0)
    assert (len(first.cells), first.unread) == (1, 19)
    seen = len(first.cells)
    for _ in range(19):
        seen += len(reader.look(seconds=0.0).cells)
    assert seen == 20
    assert reader.look().cells == ()


def test_one_corrupt_run_hides_no_other(tmp_path: Path) -> None:
    names = write_runs(tmp_path, 5, corrupt=1)
    change = RunsReader(tmp_path).look()
    assert change.counts == {"unreadable": 1, "done": 4}
    (bad,) = [cell for cell in change.cells if cell.state == "unreadable"]
    assert bad.id == names[-1]
    assert "not JSON" in bad.error


@pytest.mark.parametrize("config", [{"trainer": "toy", "seed": "x"}, {"optimiser": 3}, {"trainer": ["a"]}])
def test_a_strange_config_is_an_unreadable_run(tmp_path: Path, config: dict[str, Any]) -> None:
    RunFolder.create(tmp_path, config, data_fingerprint="d", numerics="n", counts={"depth": 1})
    assert RunsReader(tmp_path).look().counts == {"unreadable": 1}


def test_what_is_no_run_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / ".half-made").mkdir()
    (tmp_path / "notes.txt").write_text("")
    assert RunsReader(tmp_path).look().total == 0


def test_the_time_left_is_by_the_pace_of_finished_runs_and_the_workers_of_now(tmp_path: Path) -> None:
    write_runs(tmp_path, 72, running=1, waiting=1)
    reader = RunsReader(tmp_path)
    change = reader.look()
    flops = {cell.id: cell for cell in change.cells}
    rates = sorted(12.5 / cell.train_flops for cell in flops.values() if cell.state == "done")
    left = sum(cell.train_flops * cell.share_left for cell in flops.values())
    median = (rates[(len(rates) - 1) // 2] + rates[len(rates) // 2]) / 2
    assert change.left == 2
    assert change.expected_seconds == pytest.approx(median * left)


def test_there_is_no_time_left_to_tell_while_nobody_works(tmp_path: Path) -> None:
    write_runs(tmp_path, 6, waiting=2)
    assert RunsReader(tmp_path).look().expected_seconds is None


def test_reading_writes_nothing(tmp_path: Path) -> None:
    write_runs(tmp_path, 6, running=2, waiting=1, corrupt=1)
    before = {str(path): path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    RunsReader(tmp_path).state()
    assert {str(path): path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
