"""A sweep's report: every run a row, whatever happened to it."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from deepwide.report import Figure, Report, Table, make_report, to_markdown
from deepwide.report.document import MOST_ROWS
from deepwide.report.sweeps import _ordered
from deepwide.sweeping import run_rows, sweep, sweep_state
from report.parts import EVIL, read, write_runs
from sweeping.toys import write_toml


def rows_in(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read(report).files()["runs.csv"].decode())))


def test_a_folder_of_runs_has_its_losses_and_the_law_they_give(tmp_path: Path) -> None:
    home = write_runs(tmp_path / "runs")
    report = make_report(home)
    expected = {row["id"]: row["loss"] for row in run_rows(home)}
    assert {row["id"]: float(row["loss"]) for row in rows_in(report)} == expected
    assert report.lead == "32 of 32 runs finished."
    assert f"{min(expected.values()):.4f}: {min(expected, key=lambda run: expected[run])}" in read(report).text
    assert next(block.name for block in report.blocks() if isinstance(block, Figure)) == "runs"


def test_one_corrupt_run_is_one_row_that_says_so(tmp_path: Path) -> None:
    home = write_runs(tmp_path / "runs")
    broken = sorted(home.iterdir())[3]
    (broken / "config.json").write_text("{")
    report = make_report(home)
    rows = {row["id"]: row for row in rows_in(report)}
    assert len(rows) == 32
    assert rows[broken.name]["status"] == "unreadable"
    assert rows[broken.name]["error"]
    page = read(report).text
    assert "1 run could not be read" in page
    assert [block.name for block in report.blocks() if isinstance(block, Figure)]


def test_runs_that_give_no_law_are_drawn_all_the_same_and_travel_as_json(tmp_path: Path) -> None:
    home = write_runs(tmp_path / "runs", 3)
    report = make_report(home)
    assert "No law was fitted" in read(report).text
    assert [block.name for block in report.blocks() if isinstance(block, Figure)] == ["runs"]
    assert json.loads(read(report).files()["runs.json"]) == run_rows(home)


def test_an_unfinished_sweep_says_that_it_is(tmp_path: Path) -> None:
    page = read(make_report(write_runs(tmp_path / "runs", unfinished=5))).text
    assert "27 of 32 runs finished." in page
    assert "5 runs had not finished on 20" in page


def test_what_a_failed_run_wrote_is_text(tmp_path: Path) -> None:
    report = make_report(write_runs(tmp_path / "runs", error=EVIL))
    assert "<script>alert(1)</script>" in read(report).text
    assert "<script" not in to_markdown(report)


def test_a_sweep_s_file_with_and_without_runs(tmp_path: Path) -> None:
    spec = write_toml(tmp_path / "toys.toml")
    report = make_report(spec, runs=tmp_path / "runs")
    assert report.lead == "0 of 8 runs finished."
    assert f"there is no folder {tmp_path / 'runs'} here" in read(report).text
    assert {row["status"] for row in rows_in(report)} == {"waiting"}
    assert "No law was fitted: no run has finished." in read(report).text
    state = sweep(spec, runs=tmp_path / "runs")
    report = make_report(spec, runs=tmp_path / "runs")
    assert report.lead == "8 of 8 runs finished."
    assert [float(row["loss"]) for row in rows_in(report)] == [cell.loss for cell in state.cells]
    saved = tmp_path / "state.json"
    saved.write_text(sweep_state(spec, tmp_path / "runs").model_dump_json())
    assert make_report(saved).sections == report.sections
    inside = tmp_path / "inside.json"
    inside.write_bytes(read(report).files()["sweep.json"])
    assert make_report(inside).sections == report.sections


def test_of_many_runs_those_are_shown_that_need_a_person_then_the_best() -> None:
    done = [{"id": str(i), "status": "done", "loss": 3 - i / 1000, "depth": 1, "width": 1} for i in range(MOST_ROWS)]
    rows: list[dict[str, Any]] = [*done, {"id": "x", "status": "failed"}, {"id": "y", "status": "unreadable"}]
    assert [row["id"] for row in _ordered(rows)][:3] == ["y", "x", str(MOST_ROWS - 1)]
    assert _ordered(done) == done


def test_without_scipy_the_runs_are_reported_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write_runs(tmp_path / "runs", 4)
    monkeypatch.setattr("deepwide.fitting.kinds.needs", _refuse)
    report = make_report(home)
    assert "No law was fitted: This needs scipy" in read(report).text
    assert [block.name for block in report.blocks() if isinstance(block, Table)] == ["runs"]


def _refuse(module: str, extra: str) -> None:
    from deepwide.errors import MissingExtraError, missing

    raise MissingExtraError(missing(module, extra))
