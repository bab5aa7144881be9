"""What lies under the served folder, and that only issued ids open it."""

import os
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.serving import contents as module
from deepwide.serving.contents import Contents
from deepwide.sweeping import read_spec


@pytest.fixture
def contents(home: Path) -> Contents:
    return Contents(home, fresh_seconds=0)


def test_sweeps_studies_and_certificates_are_seen(contents: Contents) -> None:
    index = contents.index()
    assert {(entry.folder, entry.name, entry.runs, entry.finished) for entry in index.sweeps} == {
        ("runs/small", "small", 36, 32),
        ("runs/few", "few", 2, 2),
        ("runs/toys", "toys", 0, 0),
    }
    assert [entry.spec for entry in index.sweeps if entry.name == "toys"] == ["sweeps/toys.toml"]
    status = {entry.folder: entry.status for entry in index.studies}
    assert status == {"studies/begun": "started", "studies/stair-cpu": "finished", "studies/torn": "unreadable"}
    assert index.complete
    assert [certificate.rank for certificate in contents.certificates()] == [18]


def test_a_torn_study_is_one_sentence_and_hides_no_other(contents: Contents) -> None:
    torn = next(entry for entry in contents.index().studies if entry.status == "unreadable")
    assert "not JSON" in torn.error


def test_only_an_id_that_was_issued_opens_anything(contents: Contents, home: Path) -> None:
    key = contents.index().sweeps[0].id
    assert contents.sweep(key) is not None
    for text in ("", "..", "../secret.txt", "runs/small", str(home / "runs" / "small"), key.upper() + "x", "\0"):
        assert contents.sweep(text) is None
        assert contents.study(text) is None
    assert contents.study(key) is None


def test_links_and_hidden_folders_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "runs" / "0123456789abcdef"
    outside.mkdir(parents=True)
    served = tmp_path / "served"
    served.mkdir()
    (served / "link").symlink_to(tmp_path / "outside")
    (served / ".hidden" / "0123456789abcdef").mkdir(parents=True)
    assert Contents(served).index().sweeps == ()


def test_a_study_that_is_a_link_to_another_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"password": "hunter2"}')
    for name in ("begun", "bare"):
        (tmp_path / "served" / name).mkdir(parents=True)
        (tmp_path / "served" / name / "study.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "served" / "begun" / "started.json").write_text("{}")
    assert Contents(tmp_path / "served").index().studies == ()


def test_a_spec_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    monkeypatch.setattr(module, "read_spec", lambda path: read.append(path) or read_spec(path))
    (tmp_path / "other.toml").write_text("[tool]")
    (tmp_path / "one.toml").write_text('name = "one"\nseeds = [0]\n[run]\ntrainer = "toy"\n')
    contents = Contents(tmp_path, fresh_seconds=0)
    for _ in range(3):
        assert [entry.name for entry in contents.index().sweeps] == ["one"]
    assert len(read) == 2
    (tmp_path / "one.toml").write_text('name = "two"\nseeds = [0, 1]\n[run]\ntrainer = "toy"\n')
    assert [entry.name for entry in contents.index().sweeps] == ["two"]


def test_a_walk_ends_early_and_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FOLDERS", 2)
    assert not Contents(home).index().complete


def test_one_walk_serves_everybody_for_a_while(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = Contents(home, fresh_seconds=60)
    index = contents.index()
    monkeypatch.setattr(contents, "_walk", lambda: pytest.fail("walked again"))
    assert contents.index() is index


def test_a_result_that_appears_is_counted_and_one_that_is_there_is_not_asked_again(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "0123456789abcdef"
    run.mkdir(parents=True)
    contents = Contents(tmp_path, fresh_seconds=0)
    assert contents.index().sweeps[0].finished == 0
    (run / "result.json").write_text("{}")
    assert contents.index().sweeps[0].finished == 1


def test_a_folder_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "runs" / "0123456789abcdef").mkdir(parents=True)
    locked = tmp_path / "locked"
    locked.mkdir()
    os.chmod(locked, 0)
    assert len(Contents(tmp_path).index().sweeps) == 1
    os.chmod(locked, 0o700)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="is not a folder"):
        Contents(tmp_path / "absent")


def test_a_number_behind_a_verdict_says_what_it_is(contents: Contents) -> None:
    study = next(entry for entry in contents.index().studies if entry.status == "finished")
    assert study.measured == ("largest k: 8", "largest k: 8", "words compared: 57,264")
