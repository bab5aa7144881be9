"""Who may write: one at a time, the next after expiry with a higher number, and never the one before."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from deepwide.run import LeaseHeld, LeaseLost, RunFinished, RunFolder
from deepwide.run.toy import NUMERICS, ToyConfig

TENSORS = {"w": np.arange(6.0)}


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    return RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")


def expire(folder: RunFolder, seconds: float = 3600) -> None:
    """As if the owner had not renewed for so long (its process lives, so only time can tell)."""
    then = time.time() - seconds
    os.utime(folder.path / "lease.json", (then, then))


def test_a_second_worker_is_told_who_holds_it_and_how_long(folder: RunFolder) -> None:
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
            for write in (
                lambda: late.append({"step": 2}),
                lambda: late.cut_metrics(0),
                lambda: late.checkpoint(2, TENSORS, {}),
                lambda: late.checkpoint(1, TENSORS, {"other": 1}),
                lambda: late.finish("done"),
            ):
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


def test_a_checkpoint_begun_before_the_take_over_is_refused_at_its_end(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deepwide.run import checkpoint

    write = checkpoint.write
    with contextlib.ExitStack() as stack:

        def slow(*words: object) -> None:
            write(*words)  # type: ignore[arg-type]
            expire(folder)
            stack.enter_context(folder.lease("next"))  # clears temporaries, ours among them

        with folder.lease("late") as late:
            monkeypatch.setattr(checkpoint, "write", slow)
            with pytest.raises(LeaseLost):
                late.checkpoint(5, TENSORS, {})
        assert [p.name for p in (folder.path / "checkpoints").iterdir()] == []


def test_the_heartbeat_keeps_a_lease_past_its_length(folder: RunFolder) -> None:
    with folder.lease("alive", seconds=0.3):
        time.sleep(1.0)
        with pytest.raises(LeaseHeld), folder.lease("second"):
            pass


def test_the_heartbeat_notices_a_take_over(folder: RunFolder) -> None:
    with folder.lease("late", seconds=0.6) as late:
        expire(folder)
        with folder.lease("next"):
            deadline = time.monotonic() + 5
            while not late.lost and time.monotonic() < deadline:
                time.sleep(0.02)
            assert late.lost


def test_a_run_that_is_over_cannot_be_leased_or_written(folder: RunFolder) -> None:
    with folder.lease("me") as lease:
        lease.finish("done", loss=1.0)
        with pytest.raises(RunFinished):
            lease.append({"step": 1})
        with pytest.raises(RunFinished):
            lease.finish("failed")
    with pytest.raises(RunFinished, match="finished already"), folder.lease("second"):
        pass
    assert folder.result() == {"status": "done", "loss": 1.0}


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
            found = folder.latest_checkpoint("numpy")
            assert found is not None
            lease.cut_metrics(found.step)
            before = (folder.path / "metrics.jsonl").read_bytes()
            sleeper.send_signal(signal.SIGCONT)
            _, said = sleeper.communicate(timeout=30)
            assert sleeper.returncode == 4
            assert "refused" in said
            assert (folder.path / "metrics.jsonl").read_bytes() == before
            assert folder.result() is None
    finally:
        sleeper.kill()
        sleeper.wait()


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
    import fcntl

    from deepwide.errors import DeepwideError

    def none(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(DeepwideError, match="has no locks"), folder.lease("me"):
        pass


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
