"""A reader finds the old file or the new one, never half of either, whatever happens to the writer."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.files import (
    NotRegularError,
    is_temporary,
    open_regular,
    read_json,
    remove_folder,
    write_bytes,
    write_text,
)

KILLED_BETWEEN_WRITE_AND_RENAME = """
import os, signal, sys
from deepwide.files import write_text
os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_text(sys.argv[1], "new" * 100_000)
"""


def test_the_path_comes_back_and_missing_folders_are_made(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a" / "b" / "name.json", "grüße\n")
    assert path == tmp_path / "a" / "b" / "name.json"
    assert path.read_bytes() == "grüße\n".encode()


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    content = bytes(range(256)) * 3
    assert write_bytes(str(tmp_path / "blob"), content).read_bytes() == content


def test_others_may_read_what_is_written(tmp_path: Path) -> None:
    """Temporary files are private by default; a config must not be."""
    assert stat.S_IMODE(write_text(tmp_path / "name", "x").stat().st_mode) == 0o644


def test_a_crash_between_write_and_rename_leaves_the_old_file(tmp_path: Path) -> None:
    path = write_text(tmp_path / "law.json", "old")
    done = subprocess.run([sys.executable, "-c", KILLED_BETWEEN_WRITE_AND_RENAME, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = write_text(tmp_path / "law.json", "old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["law.json"]
    assert path.read_text() == "old"


def test_an_interrupt_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "law.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "law.json").mkdir()
    with pytest.raises(OSError, match=r"law\.json"):
        write_text(tmp_path / "law.json", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["law.json"]


def test_the_content_is_on_disk_before_the_name_points_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    for step in ("fsync", "rename"):
        original = getattr(os, step)

        def noting(*given: Any, name: str = step, function: Any = original) -> Any:
            steps.append(name)
            return function(*given)

        monkeypatch.setattr(os, step, noting)
    write_text(tmp_path / "law.json", "new")
    assert steps == ["fsync", "rename", "fsync"], "file, name, folder"


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path, sizes = tmp_path / "law.json", (1, 200_000)
    contents = {letter * size for letter, size in zip("ab", sizes, strict=True)}
    write_text(path, "a")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content in contents:
                write_text(path, content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {path.read_text() for _ in range(300)} <= contents
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = {"pipe": tmp_path / "pipe", "folder": tmp_path, "device": Path("/dev/zero")}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(NotRegularError, match="not a regular file"):
        open_regular(path)


def test_a_folder_that_is_removed_loses_its_name_before_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "4"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    seen: list[bool] = []
    remove = shutil.rmtree

    def watched(path: Path, **more: Any) -> None:
        seen.append(folder.exists())
        assert is_temporary(path), "a crash from here on leaves what no reader looks at"
        remove(path, **more)

    monkeypatch.setattr(shutil, "rmtree", watched)
    remove_folder(folder)
    assert seen == [False]
    assert list(tmp_path.iterdir()) == []


def test_deep_json_and_half_a_character_get_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(DeepwideError, match="is not a plan: it is nested too deep"):
        read_json(path, "a plan")
    for text in ('["\\ud800"]', '{"\\uDFFF": 1}'):
        path.write_text(text)
        with pytest.raises(DeepwideError, match=r"is not a plan: it is not JSON .*surrogates not allowed"):
            read_json(path, "a plan")
    path.write_text('["\\ud83d\\ude42"]')
    assert read_json(path, "a plan") == ["\N{SLIGHTLY SMILING FACE}"]


@pytest.mark.parametrize("endless", ["/proc/self/pagemap", "/proc/kmsg"])
def test_a_regular_file_without_an_end_is_not_read(endless: str, tmp_path: Path) -> None:
    if not Path(endless).is_file():
        pytest.skip(f"this system has no {endless}")
    (tmp_path / "c.json").symlink_to(endless)
    with pytest.raises(DeepwideError, match="not JSON"):
        read_json(tmp_path / "c.json", "a certificate")
