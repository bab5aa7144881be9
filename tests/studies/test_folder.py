"""A study's folder: written whole, read back, and one sentence about what is damaged or another's."""

import csv
import os
import re
from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.studies import find_study, read_result, run_study, saved_runs
from deepwide.studies.folder import as_started, code_version, look_at, read_measured, working_in, write_table
from studies.fakes import Sums, Toys


class Others(Toys):
    name = "others"


DAMAGED = ["", "{", "[]", "3", "null", "{}", '{"study": 1}', '{"numbers": 3}', "[" * 100_000, '{"a": NaN}']


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("toys")
    run_study(Toys(), changes=("depths=[1]", "steps=5"), out=home)
    return home


def again(home: Path) -> None:
    run_study(Toys(), changes=("depths=[1]", "steps=5"), out=home)


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize("name", ["started.json", "measured.json"])
def test_a_damaged_file_costs_a_sentence_that_names_it(name: str, content: str, finished: Path) -> None:
    path = finished / name
    whole = path.read_text()
    try:
        path.write_text(content)
        with pytest.raises(DeepwideError, match=f"{re.escape(name)}|the measurements have no number") as caught:
            again(finished)
    finally:
        path.write_text(whole)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert str(caught.value).endswith((".", "?"))


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_result_costs_a_sentence_and_is_written_anew(content: str, finished: Path) -> None:
    (finished / "study.json").write_text(content)
    with pytest.raises(DeepwideError, match=r"study\.json is not a study's result") as caught:
        read_result(finished)
    assert "\n" not in str(caught.value)
    again(finished)
    assert read_result(finished).study == "toys"


def test_a_folder_without_a_result_costs_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="There is no file"):
        read_result(tmp_path)


def test_a_folder_of_another_study_or_of_other_settings_is_refused(finished: Path) -> None:
    before = {path: path.read_bytes() for path in finished.iterdir() if path.is_file()}
    with pytest.raises(DeepwideError, match=r"holds the study toys \(quick\), not others: give another folder"):
        run_study(Others(), changes=("depths=[1]", "steps=5"), out=finished)
    with pytest.raises(DeepwideError, match=r"other settings: steps is 5, not 6\. Give its settings to resume it"):
        run_study(Toys(), changes=("depths=[1]", "steps=6"), out=finished)
    assert {path: path.read_bytes() for path in finished.iterdir() if path.is_file()} == before


def started(settings: dict[str, object] | None = None) -> Any:
    return as_started(Sums(), "quick", settings or {"parts": 4, "steps": 3, "data": ""})


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with working_in(tmp_path, started()):
        with pytest.raises(DeepwideError, match="another process is at work in"):
            run_study(Sums(), out=tmp_path)
        state = look_at(tmp_path, started())
        assert (state.state, "another process" in state.refusal) == ("refused", True)
    assert not (tmp_path / "measured.json").exists()
    run_study(Sums(), out=tmp_path)


def test_two_that_start_at_the_same_moment_do_not_both_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other's record replaces ours between our writing and our lock: we lock what is there, not what was."""
    from deepwide.studies import folder

    lock, locked = folder._lock, list[int]()

    def replaced(handle: int, out: Path) -> None:
        lock(handle, out)
        locked.append(os.fstat(handle).st_ino)
        if len(locked) == 1:
            (out / "other.json").write_bytes((out / "started.json").read_bytes())
            (out / "other.json").rename(out / "started.json")

    monkeypatch.setattr(folder, "_lock", replaced)
    with working_in(tmp_path, started()):
        assert locked[1:] == [(tmp_path / "started.json").stat().st_ino] != locked[:1]


def test_what_is_in_a_folder_is_told_without_touching_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "a" / "b"
    assert look_at(home, started()).state == "new"
    assert not (tmp_path / "a").exists()
    monkeypatch.setattr(Sums, "before", staticmethod(lambda number: 1 / (2 - number)))
    with pytest.raises(ZeroDivisionError):
        run_study(Sums(), out=home)
    halfway = look_at(home, started())
    assert (halfway.state, halfway.finished_parts) == ("resumes", 2)
    other = look_at(home, started({"parts": 4, "steps": 9, "data": ""}))
    assert other.refusal == (
        f"{home} holds sums (quick) with other settings: steps is 3, not 9. Give its settings to resume it, or give "
        "another folder."
    )
    monkeypatch.setattr(Sums, "before", staticmethod(lambda _: None))
    run_study(Sums(), out=home)
    assert look_at(home, started()).state == "finished"
    (home / "study.json").unlink()
    assert look_at(home, started()).state == "measured"
    (home / "measured.json").write_text('{"numbers": {')
    torn = look_at(home, started())
    assert torn.state == "refused"
    assert "delete it, and the study is measured again; its runs stay." in torn.refusal
    (home / "measured.json").unlink()
    assert run_study(Sums(), out=home).study == "sums"


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    assert "cannot be written to" in look_at(tmp_path / "file" / "x", started()).refusal
    assert "cannot be written to" in look_at(tmp_path / "file", started()).refusal
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may be root's, whom no mode stops
    assert look_at(tmp_path / "x", started()).refusal == f"{tmp_path} cannot be written to: give another folder."


def test_finished_runs_are_counted(finished: Path, tmp_path: Path) -> None:
    assert saved_runs(finished) == 1
    assert saved_runs(tmp_path / "nowhere") == 0


PUBLISHED = sorted(Path(__file__).parents[2].glob("results/studies/*/measured.json"))


@pytest.mark.parametrize("path", PUBLISHED, ids=[path.parent.name for path in PUBLISHED])
def test_a_published_study_is_judged_by_the_rules_that_stand_here(path: Path) -> None:
    """A changed rule needs a new run, or a page that says that the rules were changed."""
    result, measured = read_result(path.parent), read_measured(path.parent)
    study = find_study(result.study)
    assert measured == result.measured
    assert measured is not None
    assert [rule.judge(measured) for rule in study.rules] == list(result.verdicts)
    page = (path.parent / "page.md").read_text(encoding="utf-8")
    assert result.rule_hash == study.rule_hash
    assert result.rules_changed == ("the rules were changed after this study was started" in page.lower())
    for name, rows in measured.tables.items():
        with open(path.parent / f"{name}.csv", newline="", encoding="utf-8") as file:
            assert len(list(csv.reader(file))) == 1 + len(rows)


def test_a_table_has_every_column_of_every_row(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"a": 1, "b": "x,y"}, {"a": 2, "c": None}])
    with open(tmp_path / "t.csv", newline="") as file:
        assert list(csv.reader(file)) == [["a", "b", "c"], ["1", "x,y", ""], ["2", "", ""]]


def test_the_code_version_names_our_source_and_the_libraries() -> None:
    code = code_version()
    assert code["deepwide"] == deepwide.__version__
    assert {"source", "python", "numpy", "torch"} <= code.keys()
    assert re.fullmatch("[0-9a-f]{16}", code["source"])
