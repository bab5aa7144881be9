"""A study trains, measures, judges and writes; it resumes, and says when its rules were changed afterwards."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from deepwide import faults
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
from studies.fakes import Sums, Toys


def files(home: Path) -> set[str]:
    return {path.name for path in home.iterdir()}


def test_a_study_writes_its_folder_and_ends_in_a_verdict(tmp_path: Path) -> None:
    seen: list[str] = []
    result = run_study(Toys(), out=tmp_path, progress=lambda what, _: seen.append(what))
    assert [verdict.outcome for verdict in result.verdicts] == [REPRODUCED]
    assert {"started.json", "measured.json", "study.json", "runs.csv", "runs"} <= files(tmp_path)
    assert read_result(tmp_path) == result
    assert not result.rules_changed
    assert {"toys", "measuring"} <= set(seen)
    assert result.rows()[0]["outcome"] == REPRODUCED


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


def test_a_study_does_not_begin_where_a_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Needy(Toys):
        libraries: ClassVar[Mapping[str, str]] = {"flint": "rank"}

    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(DeepwideError, match=r"needs flint.*deepwide\[rank\]"):
        run_study(Needy(), out=tmp_path / "needy")
    assert not (tmp_path / "needy").exists()


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


# Time differs from run to run; everything else may not.
TIMES = re.compile(rb'"(?:training_|measuring_)?seconds":[^,}]*|(?:Training|Measuring) took [^.]*(?:\.\d[^.]*)*\.')


def contents(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): TIMES.sub(b"", path.read_bytes()) for path in sorted(home.rglob("*"))
        if path.is_file()
    }  # fmt: skip


def in_a_process(study: Sums, home: Path, fault: str) -> int:
    """How a study ends that runs in a process of its own, which is killed at a point."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            faults.arm(fault)
            run_study(study, out=home)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_study_killed_at_any_write_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, log = tmp_path / "whole", tmp_path / "log"
    assert in_a_process(Sums(), whole, f"log:{log}") == 0
    points = log.read_text().splitlines()
    assert any("parts" in point or "part-2" in point for point in points)
    expected = contents(whole)
    assert not (whole / "parts").exists()
    for number in range(1, len(points) + 1):
        home = tmp_path / f"killed-{number}"
        assert in_a_process(Sums(), home, str(number)) == -signal.SIGKILL
        assert in_a_process(Sums(), home, "") == 0, points[number - 1]
        assert contents(home) == expected, points[number - 1]


def test_finished_parts_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def fail_at_two(number: int) -> None:
        begun.append(number)
        if number == 2 and begun.count(2) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Sums, "before", staticmethod(fail_at_two))
    with pytest.raises(KeyboardInterrupt):
        run_study(Sums(), out=tmp_path / "cut")
    assert len(list((tmp_path / "cut" / "parts").iterdir())) == 2
    run_study(Sums(), out=tmp_path / "cut")
    assert begun == [0, 1, 2, 2, 3]
    run_study(Sums(), out=tmp_path / "whole")
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_parts_of_other_code_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr(Sums, "before", staticmethod(lambda number: begun.append(number) or 1 / (2 - number)))
    with pytest.raises(ZeroDivisionError):
        run_study(Sums(), out=tmp_path)
    monkeypatch.setattr(Sums, "before", staticmethod(begun.append))
    monkeypatch.setattr("deepwide.studies.folder.code_version", lambda: {"source": "another"})
    result = run_study(Sums(), out=tmp_path)
    assert begun == [0, 1, 2, 0, 1, 2, 3]
    assert [note.code for note in result.notes] == ["code_changed"]


def test_parts_are_measured_again_when_a_file_that_is_read_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, begun = tmp_path / "data", list[int]()
    data.write_text("one")
    changes = (f"data='{data}'",)
    monkeypatch.setattr(Sums, "before", staticmethod(lambda number: begun.append(number) or 1 / (1 - number)))
    with pytest.raises(ZeroDivisionError):
        run_study(Sums(), changes=changes, out=tmp_path / "s")
    data.write_text("two")
    monkeypatch.setattr(Sums, "before", staticmethod(begun.append))
    run_study(Sums(), changes=changes, out=tmp_path / "s")
    assert begun == [0, 1, 0, 1, 2, 3]


def test_training_and_measuring_are_timed_apart(tmp_path: Path) -> None:
    trained = run_study(Toys(), changes=("depths=[1]", "steps=5"), out=tmp_path / "toys").measured
    assert trained.training_seconds is not None
    assert trained.measuring_seconds is not None
    assert trained.training_seconds > 0
    assert trained.seconds == trained.training_seconds + trained.measuring_seconds
    assert run_study(Sums(), out=tmp_path / "sums").measured.training_seconds == 0


def test_a_study_without_its_data_does_not_begin(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="there is no file lost"):
        run_study(Sums(), "paper", out=tmp_path / "sums")
    assert not (tmp_path / "sums").exists()
    forecast = dry_run(Sums(), "paper", out=tmp_path / "sums")
    assert forecast.missing == "there is no file lost: set data to one."


def test_a_dry_run_says_what_is_in_the_folder_and_what_is_left(tmp_path: Path) -> None:
    small = ("depths=[1]", "steps=5")
    first = dry_run(Toys(), changes=small, out=tmp_path)
    assert first.folder is not None
    assert first.folder.state == "new"
    run_study(Toys(), changes=small, out=tmp_path)
    done = dry_run(Toys(), changes=small, out=tmp_path)
    assert done.folder is not None
    assert (done.folder.state, done.folder.finished_runs) == ("finished", 1)
    assert (first.expected_seconds or 0) > 0 == done.expected_seconds
