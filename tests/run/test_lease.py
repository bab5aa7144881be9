"""Who may write: one at a time, the next after expiry with a higher number, and never the one before."""

import contextlib
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

from deepwide.run import LeaseHeld, LeaseLost, LeaseWatch, RunFolder, UnreadableRun, remaining
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
    config = ToyConfig(steps=400, checkpoint_every=5, seconds_per_step=0.01).model_dump(mode="json")
    folder = RunFolder.create(tmp_path, config, data_fingerprint="d", numerics=NUMERICS)
    command = [sys.executable, "-m", "deepwide", "worker", str(folder.path), "--lease", "1", "--owner", "sleeper"]
    sleeper = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _until(lambda: folder.latest_checkpoint("numpy") is not None)
        sleeper.send_signal(signal.SIGSTOP)
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
        sleeper.wait()


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
