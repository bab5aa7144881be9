"""The one command that every executor starts, its environment, and workers as processes of this machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepwide.run import UnreadableRun
from deepwide.sweeping import Exit, Resources, cells_of
from deepwide.sweeping.executors import LocalExecutor, cores, worker_command, worker_environment
from deepwide.sweeping.ray import run_command
from deepwide.sweeping.slurm import SlurmExecutor
from sweeping.toys import toys


def test_the_command_is_this_python_s_worker_with_what_it_was_given(tmp_path: Path) -> None:
    resources = Resources(threads=3, device="cpu", lease_seconds=7.5)
    command = worker_command([tmp_path / "a", tmp_path / "b"], "me:1", resources)
    assert command[:4] == [sys.executable, "-m", "deepwide", "worker"]
    assert command[-2:] == [str(tmp_path / "a"), str(tmp_path / "b")]
    options = dict(zip(command[4:-2:2], command[5:-2:2], strict=True))
    assert options == {"--owner": "me:1", "--lease": "7.5", "--threads": "3", "--device": "cpu"}


def test_libraries_get_as_many_threads_as_the_worker() -> None:
    environment = worker_environment(Resources(threads=5))
    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "5"


def test_a_worker_finds_this_deepwide_from_anywhere(tmp_path: Path) -> None:
    import deepwide

    code = "import deepwide; print(deepwide.__file__)"
    environment = {"PYTHONPATH": worker_environment(Resources())["PYTHONPATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == deepwide.__file__


def test_the_leave_to_use_the_network_reaches_workers_on_other_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPWIDE_NETWORK", "1")
    assert worker_environment(Resources())["DEEPWIDE_NETWORK"] == "1"
    monkeypatch.delenv("DEEPWIDE_NETWORK")
    assert "DEEPWIDE_NETWORK" not in worker_environment(Resources())


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


@pytest.mark.parametrize("kind", ["link", "pipe"])
@pytest.mark.parametrize("executor", ["local", "slurm", "ray"])
def test_a_log_that_is_a_link_or_a_pipe_is_refused_by_every_executor(
    memory: Path, kind: str, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    folder, elsewhere = cell.folder(memory / "runs").path, memory / "elsewhere"
    if kind == "link":
        (folder / "worker.log").symlink_to(elsewhere)
    else:
        os.mkfifo(folder / "worker.log")
    monkeypatch.setenv("PATH", "/nowhere")  # nothing is submitted
    start = {
        "local": lambda: LocalExecutor(Resources()).start([folder], "me"),
        "slurm": lambda: SlurmExecutor(Resources(), 1, (), memory / "runs").start([folder], "me"),
        "ray": lambda: run_command([sys.executable, "-c", "print(1)"], {}, str(folder / "worker.log")),
    }
    with pytest.raises(UnreadableRun, match="not a regular file"):
        start[executor]()
    assert not elsewhere.exists()
