"""A study trains, measures, judges and writes; it resumes, and says when its rules were changed afterwards."""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.studies import (
    NOT_REPRODUCED,
    REPRODUCED,
    Measured,
    Ruling,
    Workplace,
    dry_run,
    read_result,
    run_study,
)
from studies.fakes import Toys


def files(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


def test_a_study_writes_its_folder_and_ends_in_a_verdict(tmp_path: Path) -> None:
    seen: list[str] = []
    result = run_study(Toys(), out=tmp_path, progress=lambda what, _: seen.append(what))
    assert [verdict.outcome for verdict in result.verdicts] == [REPRODUCED]
    assert {"started.json", "measured.json", "study.json", "page.md", "runs.csv", "runs"} <= files(tmp_path)
    assert read_result(tmp_path) == result
    assert not result.rules_changed
    assert {"toys", "measuring"} <= set(seen)
    assert result.rows()[0]["outcome"] == REPRODUCED
    page = (tmp_path / "page.md").read_text()
    for words in ("Do toys finish?", "**reproduced**", "reproduced if all runs are done", "https://example.org/toys"):
        assert words in page


def test_what_was_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_study(Toys(), out=tmp_path)
    monkeypatch.setattr(Toys, "measure", lambda *_: pytest.fail("measured twice"))
    assert run_study(Toys(), out=tmp_path) == first


def test_an_interrupted_study_resumes_with_its_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Toys, "measure", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_study(Toys(), out=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("result.json")}
    assert before
    run_study(Toys(), out=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("result.json")} == before


def test_a_study_that_is_stopped_says_that_it_resumes(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="resumes"):
        run_study(Toys(), out=tmp_path, stop=lambda: True)
    assert not (tmp_path / "measured.json").exists()
    assert run_study(Toys(), out=tmp_path).verdicts[0].outcome == REPRODUCED


def test_rules_changed_after_the_start_are_reported(tmp_path: Path) -> None:
    run_study(Toys(), out=tmp_path)

    def never(measured: Measured) -> Ruling:
        return Ruling(NOT_REPRODUCED, measured.numbers["done"])

    class Changed(Toys):
        rules = (dataclasses.replace(Toys.rules[0], decide=never),)

    result = run_study(Changed(), out=tmp_path)
    assert result.rules_changed
    assert [note.code for note in result.notes] == ["rules_changed"]
    assert "rules were changed" in (tmp_path / "page.md").read_text()


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    forecast = dry_run(Toys(), "paper")
    assert forecast.runs == 3
    assert forecast.train_flops == 6 * 4 * 20 * (1 + 2 + 3)
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_trains_nothing_gets_no_folders() -> None:
    class Still(Toys):
        def sweeps(self, settings: Any) -> dict[str, Any]:  # noqa: ARG002
            return {}

        def measure(self, settings: Any, workplace: Workplace) -> Measured:  # noqa: ARG002
            raise AssertionError(workplace.runs)

    assert dry_run(Still()).expected_seconds is None


KILLED = """
import os, signal
from deepwide.studies import run_study
from fakes import Toys

class Killed(Toys):
    def measure(self, settings, workplace):
        print("measuring", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

run_study(Killed(), out="toys")
"""


def test_a_study_killed_while_measuring_resumes_and_trains_nothing_again(tmp_path: Path) -> None:
    paths = [str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout == "measuring\n"
    home = tmp_path / "toys"
    before = {path: path.stat().st_mtime_ns for path in (home / "runs").rglob("result.json")}
    assert len(before) == 2
    assert not (home / "measured.json").exists()
    result = run_study(Toys(), out=home)
    assert result.verdicts[0].outcome == REPRODUCED
    assert {path: path.stat().st_mtime_ns for path in (home / "runs").rglob("result.json")} == before


def test_a_study_that_draws_does_not_begin_where_nothing_can_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Drawn(Toys):
        def figures(self, measured: Measured) -> dict[str, Any]:  # noqa: ARG002
            raise AssertionError("drawn")

    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(DeepwideError, match="needs altair"):
        run_study(Drawn(), out=tmp_path / "drawn")
    assert not (tmp_path / "drawn").exists()
