"""Which process holds a lease, and whether it still lives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deepwide.run import LeaseHeld, RunFolder, owner_name
from deepwide.run.process import is_dead, this_process


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    return RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")


def test_a_dead_process_of_this_machine_is_taken_over_at_once(folder: RunFolder) -> None:
    code = f"""
import os, signal
from deepwide.run import RunFolder
with RunFolder.open({str(folder.path)!r}).lease("dead", seconds=3600):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == -signal.SIGKILL
    with folder.lease("next") as lease:
        assert lease.number == 2


def test_a_dead_process_of_another_machine_is_waited_for(folder: RunFolder) -> None:
    with folder.lease("there"):
        record = (folder.path / "lease.json").read_text()
    elsewhere = record.replace('"machine":"', '"machine":"other ').replace('"ended":"interrupted"', '"ended":""')
    (folder.path / "lease.json").write_text(elsewhere)
    with pytest.raises(LeaseHeld), folder.lease("here"):
        pass


def test_this_process_lives_and_one_with_its_number_and_another_start_does_not() -> None:
    here = this_process()
    if not here["machine"]:
        pytest.skip("there is no /proc here")
    assert not is_dead(here)
    assert is_dead(here | {"started": "1"}), "the number was given to another process since"
    assert not is_dead(here | {"started": "1", "machine": "another"}), "cannot be known from here"


@pytest.mark.parametrize("odd", [None, 3, {}, {"machine": ""}, {"machine": "x", "pid": "1"}])
def test_what_says_nothing_about_a_process_is_not_called_dead(odd: object) -> None:
    assert not is_dead(odd)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    stat = Path(f"/proc/{child.pid}/stat")
    if not stat.exists():
        pytest.skip("there is no /proc here")
    process = this_process() | {"pid": child.pid, "started": stat.read_text().rpartition(")")[2].split()[19]}
    assert not is_dead(process)
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked for its code
    assert is_dead(process)
    child.wait()


def test_an_owner_s_name_says_where_to_look() -> None:
    assert owner_name().endswith(f":{os.getpid()}")
