"""Workers as processes of this machine."""

import os
import time
from pathlib import Path

from deepwide.sweeping import Exit, Resources, cells_of
from deepwide.sweeping.executors.local import LocalExecutor, cores
from sweeping.toys import toys


def test_a_worker_s_end_is_its_exit_code_and_its_words_are_in_the_log(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0], run={"fail_at": 2}))
    folder = cell.folder(memory)
    executor = LocalExecutor(Resources(), 1)
    job = executor.start([folder.path], "me")
    deadline = time.monotonic() + 60
    while executor.poll(job) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert executor.poll(job) == Exit.FINISHED
    assert "fails here on purpose" in (folder.path / "worker.log").read_text()


def test_stop_waits_until_the_worker_has_saved(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0], run={"steps": 1000, "seconds_per_step": 0.05}))
    folder = cell.folder(memory)
    executor = LocalExecutor(Resources(), 1)
    job = executor.start([folder.path], "me")
    deadline = time.monotonic() + 60
    while not folder.checkpoint_steps() and time.monotonic() < deadline:
        time.sleep(0.05)
    executor.stop([job])
    assert executor.poll(job) == Exit.STOPPED
    held = folder.lease_record()
    assert held is not None
    assert held["ended"] == "interrupted"


def test_one_worker_per_core_unless_asked_otherwise() -> None:
    assert LocalExecutor(Resources()).slots == cores() == len(os.sched_getaffinity(0))
    assert LocalExecutor(Resources(threads=10**6)).slots == 1
    assert LocalExecutor(Resources(), 7).slots == 7
