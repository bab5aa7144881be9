"""Slurm, played by three scripts on PATH: jobs are submitted as text, watched, lost and submitted again."""

import os
import shlex
import time
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.sweeping import Driver, Resources, cell_state, cells_of, executor_named
from deepwide.sweeping.slurm import ENDED, SlurmExecutor
from sweeping.toys import toys

SBATCH = """#!/bin/sh
# A real one queues; this one starts the script at once, and every third job dies as on a node that fails.
for script; do :; done
echo "$*" >> "$SLURM_HOME/asked"
number=$(($(cat "$SLURM_HOME/number" 2>/dev/null || echo 100) + 1))
echo $number > "$SLURM_HOME/number"
[ $((number % 3)) -eq 0 ] && export DEEPWIDE_FAULT=25
sh "$script" > "$SLURM_HOME/$number.out" 2>&1 &
echo $! > "$SLURM_HOME/$number.pid"
echo "$number;cluster"
"""
SQUEUE = """#!/bin/sh
for file in "$SLURM_HOME"/*.pid; do
  kill -0 "$(cat "$file")" 2>/dev/null && basename "$file" .pid
done
exit 0
"""
SCANCEL = """#!/bin/sh
for job; do kill -TERM "$(cat "$SLURM_HOME/$job.pid")"; done
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "slurm"
    home.mkdir()
    for name, script in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (home / name).write_text(script)
        (home / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_HOME", str(home))
    return home


def executor(runs: Path, *options: str) -> SlurmExecutor:
    slurm_executor = SlurmExecutor(Resources(threads=1, lease_seconds=5), 2, options, runs)
    slurm_executor.ask_every = 0.2
    return slurm_executor


def test_a_sweep_under_slurm_ends_although_every_third_job_dies(slurm: Path, memory: Path) -> None:
    spec = toys()
    driver = Driver(executor(memory, "--partition=cpu"), per_worker=2)
    driver.drive(cells_of(spec), memory)
    assert [cell_state(cell, memory).state for cell in cells_of(spec)] == ["done"] * 8
    asked = (slurm / "asked").read_text()
    assert "--parsable --partition=cpu" in asked
    assert len(asked.splitlines()) == driver.outcome.started > 4
    assert max(cell_state(cell, memory).number for cell in cells_of(spec)) >= 2, "a cell was taken over"


TIME_LIMIT = """#!/bin/sh
# Every job gets SIGTERM after three seconds, as at the end of a partition's time.
for script; do :; done
number=$(($(cat "$SLURM_HOME/number" 2>/dev/null || echo 100) + 1))
echo $number > "$SLURM_HOME/number"
sh "$script" > "$SLURM_HOME/$number.out" 2>&1 &
echo $! > "$SLURM_HOME/$number.pid"
(sleep 3; kill -TERM "$(cat "$SLURM_HOME/$number.pid")" 2>/dev/null) > /dev/null 2>&1 &
echo "$number"
"""


@pytest.mark.slow
def test_a_cell_that_needs_more_jobs_than_crashes_are_allowed_is_not_declared_failed(slurm: Path, memory: Path) -> None:
    """A time limit is no crash: the worker was asked to stop, wrote its checkpoint and gave its lease back."""
    (slurm / "sbatch").write_text(TIME_LIMIT)
    spec = toys(grid={}, seeds=[0], run={"steps": 100, "checkpoint_every": 50, "seconds_per_step": 0.1})
    driver = Driver(executor(memory))
    driver.drive(cells_of(spec), memory)
    (cell,) = cells_of(spec)
    assert driver.outcome.started > 3
    assert cell_state(cell, memory).state == "done"


def test_the_batch_script_is_text_that_runs_the_worker_in_place_of_the_shell(memory: Path) -> None:
    folder = cells_of(toys())[0].folder(memory).path
    script = SlurmExecutor(Resources(threads=4, gpus=0.5), None, [], memory).script([folder], "me")
    for line in (
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --gpus=1",
        "#SBATCH --signal=B:TERM@60",
        "export OMP_NUM_THREADS=4",
    ):
        assert line in script.splitlines()
    assert script.splitlines()[-1].startswith("exec ")
    assert str(folder) in script.splitlines()[-1]


def test_paths_with_spaces_and_quotes_stay_one_word(memory: Path) -> None:
    folder = cells_of(toys())[0].folder(memory / "o'er $(touch x) there").path
    last = SlurmExecutor(Resources(), None, [], memory).script([folder], "me").splitlines()[-1]
    assert str(folder) in shlex.split(last)


def test_without_slurm_one_sentence_says_what_is_missing(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(memory))
    with pytest.raises(DeepwideError, match="needs sbatch on PATH"):
        Driver(executor(memory)).drive(cells_of(toys()), memory)


def test_a_refused_job_and_an_unknown_executor_are_sentences(slurm: Path, memory: Path) -> None:
    (slurm / "sbatch").write_text("#!/bin/sh\necho 'invalid partition' >&2\nexit 1\n")
    with pytest.raises(DeepwideError, match="sbatch refused the job: invalid partition"):
        Driver(executor(memory)).drive(cells_of(toys()), memory)
    with pytest.raises(DeepwideError, match="did you mean 'slurm'"):
        executor_named("slrum", Resources(), None, memory)


def test_a_queue_that_does_not_answer_does_not_end_a_job(slurm: Path, memory: Path) -> None:
    queue = executor(memory)
    folder = cells_of(toys(run={"steps": 40, "seconds_per_step": 0.1}))[0].folder(memory).path
    job = queue.start([folder], "me")
    (slurm / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error' >&2\nexit 1\n")
    time.sleep(1.5)
    assert queue.poll(job) is None
    queue.stop([job])


def test_a_job_that_the_queue_does_not_list_yet_has_not_ended(slurm: Path, memory: Path) -> None:
    (slurm / "sbatch").write_text("#!/bin/sh\necho 7\n")
    (slurm / "squeue").write_text("#!/bin/sh\nexit 0\n")
    queue = executor(memory)
    queue.ask_every = 0.0
    job = queue.start([cells_of(toys())[0].folder(memory).path], "me")
    assert queue.poll(job) is None, "sbatch has just answered"
    queue._submitted[job] -= 60
    assert queue.poll(job) == ENDED
