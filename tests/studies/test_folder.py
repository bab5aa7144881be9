"""A study's folder: written whole, read back, and one sentence about what is damaged or another's."""

import csv
import re
from pathlib import Path

import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.studies import read_result, run_study
from deepwide.studies.folder import code_version, write_table
from studies.fakes import Toys


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
    with pytest.raises(DeepwideError, match="holds toys"):
        run_study(Others(), changes=("depths=[1]", "steps=5"), out=finished)
    with pytest.raises(DeepwideError, match="other settings"):
        run_study(Toys(), changes=("depths=[1]", "steps=6"), out=finished)
    assert {path: path.read_bytes() for path in finished.iterdir() if path.is_file()} == before


def test_a_table_has_every_column_of_every_row(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"a": 1, "b": "x,y"}, {"a": 2, "c": None}])
    with open(tmp_path / "t.csv", newline="") as file:
        assert list(csv.reader(file)) == [["a", "b", "c"], ["1", "x,y", ""], ["2", "", ""]]


def test_the_code_version_names_our_source_and_the_libraries() -> None:
    code = code_version()
    assert code["deepwide"] == deepwide.__version__
    assert {"source", "python", "numpy", "torch"} <= code.keys()
    assert re.fullmatch("[0-9a-f]{16}", code["source"])
