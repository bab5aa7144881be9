"""What the owner writes: refused when the lease is lost or the run has finished, whole or not there."""

import contextlib
import errno
import itertools
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from deepwide import faults, files
from deepwide.run import LeaseLost, RunFinished, RunFolder, UnreadableRun, checkpoint

TENSORS = {"w": np.arange(6.0)}


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    return RunFolder.create(memory, {"lr": 0.1}, data_fingerprint="d", numerics="1")


def test_a_checkpoint_begun_before_the_take_over_is_refused_at_its_end(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = checkpoint.write
    with contextlib.ExitStack() as stack:

        def slow(*words: object) -> None:
            write(*words)  # type: ignore[arg-type]
            then = time.time() - 3600
            os.utime(folder.path / "lease.json", (then, then))
            stack.enter_context(folder.lease("next"))  # clears temporaries, ours among them

        with folder.lease("late") as late:
            monkeypatch.setattr(checkpoint, "write", slow)
            with pytest.raises(LeaseLost):
                late.checkpoint(5, TENSORS, {})
        assert [p.name for p in (folder.path / "checkpoints").iterdir()] == []


def test_a_run_that_has_finished_cannot_be_leased_or_written(folder: RunFolder) -> None:
    with folder.lease("me") as lease:
        lease.finish("done", loss=1.0)
        with pytest.raises(RunFinished):
            lease.append({"step": 1})
        with pytest.raises(RunFinished):
            lease.finish("failed")
    with pytest.raises(RunFinished, match="finished already"), folder.lease("second"):
        pass
    assert folder.result() == {"status": "done", "loss": 1.0}


def test_an_append_cut_short_by_a_full_disk_leaves_no_half_line(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(file: object, content: bytes, name: str) -> None:
        assert name == "append of metrics"
        file.write(content[: len(content) // 2])  # type: ignore[attr-defined]
        file.flush()  # type: ignore[attr-defined]
        raise OSError(errno.ENOSPC, "No space left on device")

    with contextlib.suppress(OSError), folder.lease("me") as writer:
        writer.append({"step": 1})
        monkeypatch.setattr(faults, "write", half)
        with pytest.raises(OSError, match="No space"):
            writer.append({"step": 2})
        monkeypatch.undo()
        assert len((folder.path / "metrics.jsonl").read_bytes().splitlines()) == 1
        writer.append({"step": 2})
        raise OSError(errno.ENOSPC, "No space left on device")
    assert folder.metrics() == [{"step": 1}, {"step": 2}]
    held = folder.lease_record()
    assert held is not None
    assert held["ended"] == "disk_full"


def test_a_lease_says_whether_its_owner_left_in_good_order_or_with_an_error(folder: RunFolder) -> None:
    with folder.lease("orderly"):
        pass
    held = folder.lease_record()
    assert held is not None
    assert (held["ended"], held.get("note")) == ("interrupted", None)
    with contextlib.suppress(ValueError), folder.lease("broken"):
        raise ValueError("a\nbug")
    held = folder.lease_record()
    assert held is not None
    assert (held["ended"], held["note"]) == ("interrupted", "ValueError: a bug")


def test_metrics_past_the_step_a_run_resumes_from_are_cut(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        for step in range(1, 6):
            writer.append({"step": step})
        writer.cut_metrics(3)
    assert [record["step"] for record in folder.metrics()] == [1, 2, 3]


def test_a_finished_run_keeps_as_many_checkpoints_as_were_asked_for(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        for step in (1, 2, 3, 4, 5):
            writer.checkpoint(step, TENSORS, {}, 4)
        writer.finish("done", 3)
    assert folder.checkpoint_steps() == [3, 4, 5]
    assert folder.checkpoint_at(3, "numpy").step == 3


def test_only_good_checkpoints_count_as_kept(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        for step in (1, 2, 3):
            writer.checkpoint(step, TENSORS, {}, keep=3)
        (folder.path / "checkpoints" / "2" / "state.json").write_text("{")
    with folder.lease("next") as writer:
        writer.checkpoint(4, TENSORS, {}, keep=3)
    assert folder.checkpoint_steps() == [1, 3, 4]


@pytest.mark.parametrize("strike", range(1, 24))
def test_saving_a_step_again_never_puts_the_checkpoint_there_at_risk(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, strike: int
) -> None:
    """A worker that resumes and is asked to stop before its first step saves where it stands."""
    with folder.lease("me") as writer:
        writer.append({"step": 1})
        writer.checkpoint(1, TENSORS, {})
    points = itertools.count(1)

    def fails(name: str) -> None:
        if next(points) == strike:
            raise OSError(errno.EIO, os.strerror(errno.EIO), name)

    with folder.lease("next") as writer, monkeypatch.context() as patched:
        patched.setattr(faults, "point", fails)
        with contextlib.suppress(OSError):
            writer.checkpoint(1, TENSORS, {})
    with folder.lease("last"):
        assert folder.checkpoint_steps() == [1]


def test_a_damaged_checkpoint_is_replaced_when_the_run_comes_by_again(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        writer.checkpoint(1, TENSORS, {"try": 1})
        (folder.path / "checkpoints" / "1" / "state.json").write_text("{")
        writer.checkpoint(1, TENSORS, {"try": 2})
    assert folder.checkpoint_at(1, "numpy").state == {"try": 2}


def test_a_run_that_has_lost_its_checkpoints_does_not_start_over(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        writer.append({"step": 1})
        writer.checkpoint(1, TENSORS, {})
    shutil.rmtree(folder.path / "checkpoints")
    for replaced in (lambda: None, lambda: (folder.path / "checkpoints").mkdir()):  # gone, or a disk not mounted
        replaced()
        with pytest.raises(UnreadableRun, match=r"checkpoints is unreadable \(it is gone.*mounted"), folder.lease("me"):
            pass
        assert folder.metrics() == [{"step": 1}], "nothing was changed"
        assert (folder.lease_record() or {})["ended"] == "unreadable"


def test_deleting_metrics_and_checkpoints_is_how_to_ask_for_a_new_start(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        writer.append({"step": 1})
        writer.checkpoint(1, TENSORS, {})
    shutil.rmtree(folder.path / "checkpoints")
    (folder.path / "metrics.jsonl").unlink()
    with folder.lease("me") as writer:
        writer.append({"step": 1})
    with folder.lease("me"):
        assert folder.latest_checkpoint("numpy") is None, "killed before its first checkpoint, it may start over"


def test_a_new_start_killed_before_its_first_checkpoint_may_start_again(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        writer.append({"step": 1})
        writer.checkpoint(1, TENSORS, {})
    shutil.rmtree(folder.path / "checkpoints")
    (folder.path / "metrics.jsonl").unlink()
    with folder.lease("me") as writer:
        writer.append({"step": 1})
        killed = (folder.path / "lease.json").read_text()
    (folder.path / "lease.json").write_text(killed)
    os.utime(folder.path / "lease.json", (0, 0))
    with folder.lease("me"):
        pass


def test_an_error_while_a_lease_is_taken_does_not_leave_it_held(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(files, "clear_temporaries", fail)
        with pytest.raises(OSError, match="Input/output"), folder.lease("me"):
            pass
    held = folder.lease_record()
    assert held is not None
    assert (held["ended"], held["note"]) == ("interrupted", "OSError: [Errno 5] Input/output error")


def test_metrics_changed_under_a_running_worker_stop_it(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        writer.append({"step": 1})
        (folder.path / "metrics.jsonl").unlink()
        with pytest.raises(UnreadableRun, match="somebody changed it"):
            writer.append({"step": 2})
        writer.leave("unreadable")


def test_a_result_that_appears_ends_the_right_to_write(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        (folder.path / "result.json").write_text('{"status":"done"}')
        with pytest.raises(RunFinished):
            writer.append({"step": 1})


def test_a_cut_file_resumes_from_the_newest_checkpoint_that_is_not_past_it(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        for step in (1, 2, 3, 4):
            writer.append({"step": step})
            if step % 2 == 0:
                writer.checkpoint(step, TENSORS, {})
    path = folder.path / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for left, step in ((4, 4), (3, 2), (2, 2)):
        path.write_bytes(b"".join(lines[:left]))
        saved = folder.latest_checkpoint("numpy")
        assert saved is not None
        assert saved.step == step
    path.write_bytes(lines[0])
    with pytest.raises(UnreadableRun, match=r"does not hold the records before any of its 2 checkpoints.*starts over"):
        folder.latest_checkpoint("numpy")


def test_a_checkpoint_that_cannot_be_read_now_is_not_a_damaged_one(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder.lease("me") as writer:
        for step in (1, 2):
            writer.checkpoint(step, TENSORS, {})
    read, broken, number = files.open_regular, {"2"}, errno.EIO

    def failing(path: Path) -> object:
        if path.parent.name in broken:
            raise OSError(number, os.strerror(number), str(path))
        return read(path)

    monkeypatch.setattr(files, "open_regular", failing)
    saved = folder.latest_checkpoint("numpy")
    assert saved is not None
    assert saved.step == 1, "the one before will do"
    broken.add("1")
    with pytest.raises(OSError, match="Input/output error"):
        folder.latest_checkpoint("numpy")
    broken, number = {"2"}, errno.EMFILE
    with pytest.raises(OSError, match="Too many open files"):  # says nothing about the checkpoint: never go back for it
        folder.latest_checkpoint("numpy")


def test_what_a_killed_worker_left_is_removed_by_the_next_one(folder: RunFolder) -> None:
    with folder.lease("one") as writer:
        writer.append({"step": 1})
        writer.checkpoint(1, TENSORS, {})
    left = [folder.path / ".result.json.1.ab.tmp", folder.path / "checkpoints" / ".2.1.ab.tmp"]
    left[0].write_text("half")
    left[1].mkdir()
    with folder.lease("two"):
        assert not any(path.exists() for path in left)


def test_the_names_of_new_files_outlive_a_power_cut_before_a_checkpoint_does(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with folder.lease("one") as writer:
        writer.append({"step": 1})
        events: list[str] = []
        monkeypatch.setattr(faults, "point", events.append)
        writer.checkpoint(1, TENSORS, {})
        monkeypatch.undo()
    renamed = events.index("before rename to 1")
    assert f"before fsync of the folder {folder.id}" in events[:renamed]


def test_metrics_that_are_a_link_are_not_followed(folder: RunFolder, memory: Path) -> None:
    (folder.path / "metrics.jsonl").symlink_to(memory / "elsewhere")
    with folder.lease("me") as lease, pytest.raises(UnreadableRun, match="it is a link"):
        lease.append({"step": 1, "loss": 1.0})
    assert not (memory / "elsewhere").exists()


def test_after_an_error_the_metrics_are_written_and_synced_anew(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync that failed has dropped what it could not write; the next one says that all is well (fsyncgate)."""

    sync, path = files.sync, folder.path / "metrics.jsonl"

    def failing(handle: int, name: str) -> None:
        if name == "metrics.jsonl":
            raise OSError(errno.EIO, "Input/output error", name)
        sync(handle, name)

    def train() -> None:
        with monkeypatch.context() as broken, folder.lease("one") as lease:
            lease.append({"step": 1, "loss": 1.0})
            broken.setattr(files, "sync", failing)
            lease.checkpoint(1, TENSORS, {})

    with pytest.raises(OSError, match="metrics"):
        train()
    content, before = path.read_bytes(), path.stat().st_ino
    synced: list[int] = []
    monkeypatch.setattr(
        files, "sync", lambda handle, name: (synced.append(os.fstat(handle).st_ino), sync(handle, name))
    )
    with folder.lease("two"):
        pass
    assert path.read_bytes() == content
    assert path.stat().st_ino != before
    assert path.stat().st_ino in synced
    with folder.lease("three"):
        assert path.stat().st_ino in synced, "once is enough"
