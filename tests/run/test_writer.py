"""What the owner writes: refused when the lease is lost or the run has finished, whole or not there."""

import contextlib
import errno
import os
import time
from pathlib import Path

import numpy as np
import pytest

from deepwide import faults
from deepwide.run import LeaseLost, RunFinished, RunFolder, checkpoint

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
        assert (folder.path / "metrics.jsonl").read_bytes() == b'{"step":1}\n'
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


def test_only_good_checkpoints_count_as_kept(folder: RunFolder) -> None:
    with folder.lease("me") as writer:
        for step in (1, 2, 3):
            writer.checkpoint(step, TENSORS, {}, keep=3)
        (folder.path / "checkpoints" / "2" / "state.json").write_text("{")
    with folder.lease("next") as writer:
        writer.checkpoint(4, TENSORS, {}, keep=3)
    assert folder.checkpoint_steps() == [1, 3, 4]
