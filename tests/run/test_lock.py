"""The folder's lock and the file system's clock."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.run import LeaseHeld, RunFolder
from deepwide.run.lock import file_system_time, lock


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    return RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")


def test_a_process_frozen_inside_a_write_holds_others_off_and_says_so(folder: RunFolder) -> None:
    code = f"""
import os, signal
from pathlib import Path
from deepwide.run.lock import lock
with lock(Path({str(folder.path)!r})):
    print("in", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""
    frozen = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "in\n"
        with pytest.raises(LeaseHeld, match="does not move on"), folder.lease("second", patience=0.2):
            pass
    finally:
        frozen.kill()
        frozen.communicate()
    with folder.lease("second"):
        pass


def test_a_file_system_without_locks_stops_the_run(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(DeepwideError, match="has no locks"), folder.lease("me"):
        pass


def test_the_time_is_the_file_system_s_and_not_this_machine_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = time.time() - 1
    monkeypatch.setattr(time, "time", lambda: before + 1e6)
    with lock(tmp_path) as now:
        assert before <= now < before + 60
    assert before <= file_system_time(tmp_path) < before + 60
    (tmp_path / "touched").touch()
    assert abs(file_system_time(tmp_path) - os.stat(tmp_path / "touched").st_mtime) < 60


def test_the_time_can_be_read_while_another_holds_the_lock(tmp_path: Path) -> None:
    with lock(tmp_path):
        assert file_system_time(tmp_path) > 0
