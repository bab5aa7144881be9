"""Who may write: one at a time, the next after expiry with a higher number, and never the one before.

And under what: the folder's lock, the file system's clock, and whether a process still lives.
"""

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deepwide import files
from deepwide.errors import DeepwideError
from deepwide.run import (
    LeaseHeld,
    LeaseLost,
    LeaseWatch,
    RunFolder,
    UnreadableRun,
    is_disk_full,
    owner_name,
    remaining,
)
from deepwide.run import lease as run_lease
from deepwide.run.lease import file_system_time, is_dead, lock, this_process
from deepwide.run.toy import NUMERICS, ToyConfig

TENSORS = {"w": np.arange(6.0)}


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    return RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")


def expire(folder: RunFolder, seconds: float = 3600) -> None:
    """As if the owner had not renewed for so long (its process lives, so only time can tell)."""
    then = time.time() - seconds
    os.utime(folder.path / "lease.json", (then, then))


def test_a_second_worker_learns_who_holds_it_and_how_long(folder: RunFolder) -> None:
    with (
        folder.lease("first"),
        pytest.raises(LeaseHeld, match=r"held by first for (59|60) seconds"),
        folder.lease("second"),
    ):
        pass


def test_a_lease_given_back_is_free_at_once(folder: RunFolder) -> None:
    for number in (1, 2, 3):
        with folder.lease("me") as lease:
            assert lease.number == number


def test_after_expiry_the_next_owner_gets_a_higher_number_and_every_late_write_is_refused(folder: RunFolder) -> None:
    with folder.lease("late", seconds=30) as late:
        late.append({"step": 1})
        late.checkpoint(1, TENSORS, {})
        expire(folder)
        with folder.lease("next") as following:
            assert following.number == late.number + 1
            before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
            writes: list[Callable[[], None]] = [
                lambda: late.append({"step": 2}),
                lambda: late.cut_metrics(0),
                lambda: late.checkpoint(2, TENSORS, {}),
                lambda: late.checkpoint(1, TENSORS, {"other": 1}),
                lambda: late.finish("done"),
            ]
            for write in writes:
                with pytest.raises(LeaseLost, match="taken over by next; this worker's write was refused"):
                    write()
            assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before
            following.append({"step": 2})
    record = folder.lease_record()
    assert record is not None
    assert (record["owner"], record["ended"]) == ("next", "interrupted"), (
        "the late one did not give back what it had lost"
    )
    assert folder.metrics() == [{"step": 1}, {"step": 2}]


def test_the_heartbeat_keeps_a_lease_past_its_length(folder: RunFolder) -> None:
    with folder.lease("alive", seconds=0.3):
        time.sleep(1.0)
        with pytest.raises(LeaseHeld), folder.lease("second"):
            pass


def test_the_age_of_a_lease_is_measured_by_the_file_system_s_clock(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder.lease("me", seconds=60):
        held = folder.lease_record()
        assert held is not None
        for shift in (-3600.0, 3600.0):
            ours = time.time() + shift
            monkeypatch.setattr(time, "time", lambda ours=ours: ours)
            assert 50 < remaining(folder.path, held) <= 60
            monkeypatch.undo()
        expire(folder, seconds=45)
        assert 10 < remaining(folder.path, held) < 16
        expire(folder, seconds=61)
        assert remaining(folder.path, held) == 0
        (folder.path / "lease.json").unlink()
        assert remaining(folder.path, held) == 0, "removed since it was read"


def test_a_watch_judges_by_renewals_between_two_looks_of_one_clock(folder: RunFolder) -> None:
    seconds = [1000.0]
    watch = LeaseWatch(clock=lambda: seconds[0])
    with folder.lease("me", seconds=60):
        held = folder.lease_record()
        assert held is not None
        expire(folder)  # old by any clock, but this is the first look
        assert not watch.is_silent(folder.path, held)
        seconds[0] += 59
        assert not watch.is_silent(folder.path, held)
        os.utime(folder.path / "lease.json")
        assert not watch.is_silent(folder.path, held), "renewed"
        seconds[0] += 61
        assert watch.is_silent(folder.path, held)
        assert not watch.is_silent(folder.path, held | {"number": 2}), "the next owner"


@pytest.mark.parametrize("worked", [None, "abc", [1], {}])
def test_a_lease_with_fields_of_the_wrong_kind_is_unreadable(folder: RunFolder, worked: object) -> None:
    with folder.lease("me"):
        pass
    path = folder.path / "lease.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"worked": worked}))
    with pytest.raises(UnreadableRun, match="not those of a lease"), folder.lease("next"):
        pass


@pytest.mark.parametrize("seconds", ["1e999", "1e9", "0", "-1"])
def test_a_lease_of_no_possible_length_is_unreadable_and_not_waited_for(folder: RunFolder, seconds: str) -> None:
    with folder.lease("me", seconds=60):
        pass
    path = folder.path / "lease.json"
    path.write_text(path.read_text().replace('"seconds":60', f'"seconds":{seconds}'))
    with pytest.raises(UnreadableRun, match="seconds are not those of a lease"), folder.lease("next"):
        pass


def test_a_lease_renewed_tomorrow_counts_as_renewed_now(folder: RunFolder) -> None:
    with folder.lease("me", seconds=60):
        expire(folder, seconds=-86400)
        held = folder.lease_record()
        assert held is not None
        assert remaining(folder.path, held, time.time() - 3600) == 60, "a reader whose clock is behind"
        assert (folder.path / "lease.json").stat().st_mtime > time.time() + 3600, "and that marks nothing"
        assert remaining(folder.path, held) == 60
        assert (folder.path / "lease.json").stat().st_mtime < time.time() + 60, "so that it can expire"


def test_after_the_remedy_for_a_lease_a_worker_that_wakes_up_is_refused(folder: RunFolder) -> None:
    """The number starts again at 1 when the file is deleted; the nonce does not."""
    with folder.lease("frozen") as frozen:
        frozen.append({"step": 1})
        (folder.path / "lease.json").unlink()
        with pytest.raises(LeaseLost, match="was removed"):
            frozen.append({"step": 2})
        with folder.lease("new") as new:
            assert new.number == frozen.number == 1
            for write in (lambda: frozen.append({"step": 2}), lambda: frozen.finish("done"), frozen.lease.renew):
                with pytest.raises(LeaseLost, match="taken over by new"):
                    write()
            new.append({"step": 2})
    assert [record["step"] for record in folder.metrics()] == [1, 2]
    assert (folder.lease_record() or {})["owner"] == "new"


def test_a_lock_of_a_folder_that_was_moved_away_is_no_lock(folder: RunFolder, memory: Path) -> None:
    other = memory / "other"
    with lock(folder.path):
        os.rename(folder.path, other)
        RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")
        with lock(folder.path, patience=0):
            assert (folder.path / ".lock").stat().st_ino != (other / ".lock").stat().st_ino


def test_a_lock_that_was_waited_for_is_taken_again_if_its_folder_was_moved_meanwhile(
    folder: RunFolder, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was opened is the old folder's: locking it locks nothing."""
    acquire, other = run_lease._acquire, memory / "other"

    def moved(handle: int, path: Path, deadline: float) -> None:
        acquire(handle, path, deadline)
        if not other.exists():
            os.rename(folder.path, other)
            RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")

    monkeypatch.setattr(run_lease, "_acquire", moved)
    with lock(folder.path), open(folder.path / ".lock", "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_that_is_never_the_file_at_its_path_is_given_up(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "_is_at", lambda *_: False)
    with pytest.raises(LeaseHeld, match="another file each time"), lock(folder.path, patience=0.05):
        pass


def test_a_link_in_place_of_the_lock_is_not_followed(folder: RunFolder, memory: Path) -> None:
    (folder.path / ".lock").unlink(missing_ok=True)
    (folder.path / ".lock").symlink_to(memory / "elsewhere")
    with pytest.raises(UnreadableRun, match="not a regular file"), lock(folder.path):
        pass
    assert not (memory / "elsewhere").exists()


def test_what_is_a_full_disk() -> None:
    assert all(is_disk_full(OSError(number, "full")) for number in (errno.ENOSPC, errno.EDQUOT))
    assert not is_disk_full(OSError(errno.EIO, "no"))


def test_a_lease_is_given_back_although_the_disk_fails_for_a_moment(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise everybody would wait until it expires."""
    failures, write = [2], files.write_file

    def failing(path: Path, content: bytes) -> None:
        if failures[0]:
            failures[0] -= 1
            raise OSError(errno.EIO, "Input/output error")
        write(path, content)

    with folder.lease("me"):
        monkeypatch.setattr(files, "write_file", failing)
    assert (folder.lease_record() or {})["ended"] == "interrupted"


def test_the_heartbeat_notices_a_take_over(folder: RunFolder) -> None:
    with folder.lease("late", seconds=0.6) as late:
        expire(folder)
        with folder.lease("next"):
            deadline = time.monotonic() + 5
            while not late.lost and time.monotonic() < deadline:
                time.sleep(0.02)
            assert late.lost


def test_a_worker_stopped_past_its_lease_and_woken_finds_its_write_refused(tmp_path: Path) -> None:
    """SIGSTOP is what a cut link, a swapped-out or a suspended machine look like to everyone else."""
    config = ToyConfig(steps=4000, checkpoint_every=5, seconds_per_step=0.01).model_dump(mode="json")
    folder = RunFolder.create(tmp_path, config, data_fingerprint="d", numerics=NUMERICS)
    command = [sys.executable, "-m", "deepwide", "worker", str(folder.path), "--lease", "1", "--owner", "sleeper"]
    sleeper = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _until(lambda: folder.latest_checkpoint("numpy") is not None)
        _until(lambda: _stopped_outside_the_lock(sleeper, folder))
        _until(lambda: _can_lease(folder))
        with folder.lease("next") as lease:
            assert lease.number >= 2
            saved = folder.latest_checkpoint("numpy")
            assert saved is not None
            lease.cut_metrics(saved.step)
            before = (folder.path / "metrics.jsonl").read_bytes()
            sleeper.send_signal(signal.SIGCONT)
            _, errors = sleeper.communicate(timeout=30)
            assert sleeper.returncode == 4
            assert "taken over" in errors
            assert (folder.path / "metrics.jsonl").read_bytes() == before
            assert folder.result() is None
    finally:
        sleeper.kill()
        sleeper.communicate()


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


def test_a_process_frozen_inside_a_write_holds_others_off_and_says_so(folder: RunFolder) -> None:
    code = f"""
import os, signal
from pathlib import Path
from deepwide.run.lease import lock
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


def _stopped_outside_the_lock(worker: subprocess.Popen[str], folder: RunFolder) -> bool:
    """Stop the worker; wake it again if that caught it inside the lock, where it would block every take-over."""
    worker.send_signal(signal.SIGSTOP)
    with contextlib.suppress(LeaseHeld), lock(folder.path, 0.2):
        return True
    worker.send_signal(signal.SIGCONT)
    return False


def _can_lease(folder: RunFolder) -> bool:
    with contextlib.suppress(LeaseHeld), folder.lease("probe"):
        return True
    return False


def _until(true: object, seconds: float = 30) -> None:
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
