"""Public data: in the folder given, or where DEEPWIDE_DATA says; a sentence where they are not."""

import hashlib
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.studies.public_data import file_row, public_file


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)


def write(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    path = folder / "data" / "points.csv"
    path.write_text("a\n1\n")
    return path


def test_a_folder_that_is_given_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, local = write(tmp_path / "mine"), write(tmp_path / "gemstones")
    monkeypatch.setenv("DEEPWIDE_DATA", str(tmp_path))
    assert public_file("", "gemstones", "data/points.csv") == local
    assert public_file(str(tmp_path / "mine"), "gemstones", "data/points.csv") == given


def test_the_folder_above_the_collection_is_asked_for_where_it_is_read(tmp_path: Path) -> None:
    local = write(tmp_path / "gemstones")
    assert public_file(str(tmp_path), "gemstones", "data/points.csv", inside=True) == local
    with pytest.raises(DeepwideError, match=r"set data to the folder that holds gemstones/data/points\.csv"):
        public_file(str(tmp_path / "gemstones"), "gemstones", "data/points.csv", inside=True)


def test_a_file_that_is_not_there_costs_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeepwideError, match="not on this machine: set data to the folder"):
        public_file("", "gemstones", "data/points.csv")
    with pytest.raises(DeepwideError, match=r"nowhere has no data/points\.csv"):
        public_file("nowhere", "gemstones", "data/points.csv")
    monkeypatch.setenv("DEEPWIDE_DATA", str(tmp_path))
    with pytest.raises(DeepwideError, match=r"gemstones has no data/points\.csv"):
        public_file("", "gemstones", "data/points.csv")


def test_a_source_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert file_row(path) == {"file": "points.csv", "bytes": 4, "sha256": hashlib.sha256(b"a\n1\n").hexdigest()}
