"""What lies under the served folder, and that only issued ids open it."""

import os
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.serving import contents as module
from deepwide.serving.contents import Contents


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


def test_a_linked_picture_is_not_a_study_s_figure(tmp_path: Path) -> None:
    secret = tmp_path / "secret.svg"
    secret.write_text("<svg/>")
    link = tmp_path / "link.svg"
    link.symlink_to(secret)
    assert module.is_figure(secret)
    assert not module.is_figure(link)
