"""The worker: one exit code for each way a folder can end, and no step without the lease."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepwide import files
from deepwide.errors import OutsideError
from deepwide.run import RunFolder, RunWriter
from deepwide.sweeping import Exit, cells_of, work
from deepwide.sweeping.trainers import ToyTrainer
from sweeping.toys import toys


@pytest.fixture
def folder(memory: Path) -> RunFolder:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    return cell.folder(memory)


def trains(monkeypatch: pytest.MonkeyPatch, train: Callable[..., None]) -> None:
    monkeypatch.setattr(ToyTrainer, "train", lambda _, folder, writer, **options: train(folder, writer, **options))


def test_a_folder_is_finished_once(folder: RunFolder) -> None:
    assert work([folder.path], owner="me") == Exit.FINISHED
    result = folder.result()
    assert work([folder.path], owner="me") == Exit.FINISHED
    assert folder.result() == result


def test_a_folder_of_another_worker_is_left_alone(folder: RunFolder) -> None:
    with folder.lease("other"):
        assert work([folder.path], owner="me") == Exit.HELD
    assert folder.result() is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_does_not_change_how_a_worker_ends(folder: RunFolder) -> None:
    """Python ends with 1 or 120 if it cannot flush: a full disk passed for a worker that never began."""
    program = (
        "import sys; from pathlib import Path; from deepwide.sweeping import work; print('a line'); "
        f"sys.exit(work([Path({str(folder.path)!r})], owner='me'))"
    )
    with folder.lease("other"), open("/dev/full", "w") as full:
        command = [sys.executable, "-c", program]
        assert subprocess.run(command, stdout=full, stderr=full, check=False, timeout=60).returncode == Exit.HELD


def test_a_fenced_worker_stops_at_its_next_step_and_not_only_at_its_next_write(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[float] = []

    def compute_without_writing(_: RunFolder, __: RunWriter, *, stop: Callable[[], bool], **___: Any) -> None:
        """A trainer that logs rarely: hundreds of steps between two records."""
        held = folder.lease_record()
        assert held is not None
        taken = folder.path / "lease.json"
        taken.write_text(taken.read_text().replace('"number":1', '"number":2').replace('"me"', '"other"'))
        deadline = time.monotonic() + 10
        while not stop() and time.monotonic() < deadline:
            steps.append(time.monotonic())
            time.sleep(0.01)

    trains(monkeypatch, compute_without_writing)
    assert work([folder.path], owner="me", seconds=0.3) == Exit.FENCED
    assert steps[-1] - steps[0] < 8, "it trained on without a lease"
    held = folder.lease_record()
    assert held is not None
    assert (held["owner"], held["ended"]) == ("other", ""), "it gave back nothing that was not its own"


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (MemoryError("too large"), "oom", "too large"),
        (RuntimeError("a\nbug"), "failed", "RuntimeError: a bug"),
    ],
)
def test_an_error_of_the_trainer_is_the_run_s_result(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, error: Exception, status: str, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    trains(monkeypatch, fail)
    assert work([folder.path], owner="me") == Exit.FINISHED
    result = folder.result()
    assert result is not None
    assert result["status"] == status
    assert words in result["error"]


def test_a_full_disk_is_no_result_and_stops_the_worker(
    memory: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (other,) = cells_of(toys(grid={}, seeds=[1]))
    second = other.folder(memory)
    trains(monkeypatch, fail)
    assert work([folder.path, second.path], owner="me") == Exit.DISK_FULL
    held = folder.lease_record()
    assert held is not None
    assert held["ended"] == "disk_full"
    assert second.lease_record() is None, "the next cell was not begun"


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.ESTALE, errno.EMFILE, errno.ETIMEDOUT, errno.ENOENT, errno.EACCES, errno.EROFS]
)
def test_an_error_that_may_pass_is_no_result(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    trains(monkeypatch, fail)
    assert work([folder.path], owner="me") == Exit.PASSING
    assert folder.result() is None
    held = folder.lease_record()
    assert held is not None
    assert held["ended"] == "interrupted"
    assert os.strerror(number) in held["note"]


@pytest.mark.parametrize("what", ["checkpoints", "."])
def test_a_folder_that_is_away_for_a_moment_is_no_result(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Moved or unmounted under a worker that wanted to write, and back before it says so."""
    train, away = ToyTrainer.train, folder.path.parent / "away"

    def taken_away(self: ToyTrainer, folder: RunFolder, writer: RunWriter, **options: Any) -> None:
        save = files.move

        def move(source: Path, target: Path) -> None:
            if target.parent.name != "checkpoints" or away.exists():
                save(source, target)
                return
            place = folder.path / what
            place.rename(away)
            try:
                save(source, target)
            finally:
                away.rename(place)

        monkeypatch.setattr(files, "move", move)
        train(self, folder, writer, **options)

    monkeypatch.setattr(ToyTrainer, "train", taken_away)
    assert work([folder.path], owner="me") == Exit.PASSING
    assert folder.result() is None
    assert "No such file" in (folder.lease_record() or {})["note"]
    monkeypatch.undo()
    assert work([folder.path], owner="me") == Exit.FINISHED
    assert (folder.result() or {})["status"] == "done"


def test_data_that_somebody_can_put_back_are_no_result(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OutsideError("the tokens are damaged: delete that folder, they are made again.")

    trains(monkeypatch, fail)
    assert work([folder.path], owner="me") == Exit.PASSING
    assert folder.result() is None
    assert (folder.lease_record() or {})["note"] == "the tokens are damaged: delete that folder, they are made again."


def test_the_most_serious_of_several_is_the_exit_code(memory: Path, folder: RunFolder) -> None:
    (other,) = cells_of(toys(grid={}, seeds=[1]))
    damaged = other.folder(memory)
    (damaged.path / "metrics.jsonl").write_text("{\n{}\n")
    assert work([damaged.path, folder.path], owner="me") == Exit.UNREADABLE
    assert folder.result() is not None, "the others were run"


def test_a_worker_asked_to_stop_leaves_a_checkpoint(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    train = ToyTrainer.train

    def asked(self: ToyTrainer, folder: RunFolder, writer: RunWriter, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        train(self, folder, writer, **options)

    monkeypatch.setattr(ToyTrainer, "train", asked)
    assert work([folder.path], owner="me") == Exit.STOPPED
    assert folder.checkpoint_steps() == [0]
    monkeypatch.undo()
    assert work([folder.path], owner="me") == Exit.FINISHED
