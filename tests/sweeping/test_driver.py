"""Drivers and workers on this machine: killed, doubled, starved of disk, and yet every cell ends exactly once."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.run import RunFolder, read_lease
from deepwide.run.lease import _machine
from deepwide.sweeping import Cell, Driver, Resources, Spec, cell_state, cells_of, export, table
from deepwide.sweeping import driver as driver_module
from deepwide.sweeping.executors import LocalExecutor
from deepwide.sweeping.worker import Exit, work
from sweeping.toys import deepwide, start, toys, write_toml


def drive(spec: Spec, runs: Path, **options: int) -> Driver:
    driver = Driver(LocalExecutor(Resources(lease_seconds=5), 2), per_worker=options.get("per_worker", 16))
    driver.drive(cells_of(spec), runs)
    return driver


def states(spec: Spec, runs: Path) -> Counter[str]:
    return Counter(cell_state(cell, runs).state for cell in cells_of(spec))


def csv(spec: Spec, runs: Path, home: Path) -> bytes:
    export(table(cells_of(spec), runs), home / "table.csv")
    return (home / "table.csv").read_bytes()


def test_a_sweep_runs_to_its_end_and_then_does_nothing(memory: Path) -> None:
    spec = toys()
    assert drive(spec, memory).outcome.started >= 2
    assert states(spec, memory) == {"done": 8}
    before = {path: path.stat().st_mtime_ns for path in memory.rglob("*") if path.is_file()}
    assert drive(spec, memory).outcome.started == 0
    assert {path: path.stat().st_mtime_ns for path in memory.rglob("*") if path.is_file()} == before


def test_a_cell_that_raises_has_failed_and_the_others_run(memory: Path) -> None:
    spec = toys(grid={"fail_at": [0, 3]}, seeds=[0])
    drive(spec, memory)
    assert states(spec, memory) == {"done": 1, "failed": 1}
    (failed,) = (s for s in (cell_state(cell, memory) for cell in cells_of(spec)) if s.state == "failed")
    assert failed.error == "RuntimeError: the toy fails here on purpose"
    logs = "".join(path.read_text() for path in memory.rglob("worker.log"))
    assert "Traceback" in logs


def test_a_cell_that_ends_its_worker_each_time_fails_after_three_and_holds_up_nobody(memory: Path) -> None:
    spec = toys(grid={"exit_at": [0, 3, 0, 0]}, seeds=[0, 1])
    drive(spec, memory, per_worker=4)
    assert states(spec, memory) == {"done": 2, "failed": 2}
    assert "3 times" in next(s.error for s in (cell_state(c, memory) for c in cells_of(spec)) if s.state == "failed")


def test_a_diverging_cell_says_so(memory: Path) -> None:
    spec = toys(grid={"lr": [0.05, 1e5]}, run={"steps": 200, "checkpoint_every": 100}, seeds=[0])
    drive(spec, memory)
    assert states(spec, memory) == {"done": 1, "diverged": 1}


def test_an_unreadable_cell_is_left_alone_and_named_while_the_others_run(memory: Path) -> None:
    spec = toys()
    bad = cells_of(spec)[3].folder(memory)
    (bad.path / "metrics.jsonl").write_text("{\n{}\n")
    driver = drive(spec, memory)
    assert list(driver.outcome.unreadable) == [bad.id]
    assert "metrics.jsonl is unreadable (line 1" in driver.outcome.unreadable[bad.id]
    assert states(spec, memory)["done"] == 7
    assert (bad.path / "metrics.jsonl").read_text() == "{\n{}\n"


def test_a_lease_damaged_while_its_worker_runs_ends_that_cell_and_not_the_drive(memory: Path) -> None:
    spec = toys(grid={"width": [2, 3]}, seeds=[0], run={"seconds_per_step": 0.3, "steps": 4})
    cells = cells_of(spec)
    damaged = memory / cells[0].id / "lease.json"
    driver = Driver(LocalExecutor(Resources(lease_seconds=5), 2))

    def damage() -> None:
        if (memory / cells[0].id / "metrics.jsonl").exists():
            damaged.write_text("{")

    outcome = driver.drive(cells, memory, on_tick=damage)
    assert list(outcome.unreadable) == [cells[0].id]
    assert states(spec, memory) == {"unreadable": 1, "done": 1}


def test_sigterm_to_the_driver_checkpoints_and_the_sweep_resumes_to_the_same_table(
    memory: Path, tmp_path: Path
) -> None:
    slow = {"seconds_per_step": 0.1, "steps": 25, "checkpoint_every": 20}
    file = write_toml(tmp_path / "toys.toml", grid={"width": [2, 3]}, run=slow)
    spec = toys(grid={"width": [2, 3]}, run=slow)
    driver = start("sweep", "run", file, "--runs", memory / "runs")
    _until(lambda: states(spec, memory / "runs")["running"] == 2)
    began = time.monotonic()
    driver.send_signal(signal.SIGTERM)
    driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert time.monotonic() - began < 20, "on a busy machine, too"
    stopped = [cell_state(cell, memory / "runs") for cell in cells_of(spec)]
    assert sum(s.state == "interrupted" and s.checkpoint is not None for s in stopped) == 2
    assert deepwide("sweep", "resume", file, "--runs", memory / "runs").returncode == 0
    drive(spec, memory / "whole")
    assert csv(spec, memory / "runs", tmp_path) == csv(spec, memory / "whole", tmp_path)


@pytest.mark.parametrize("shift", [3600.0, -3600.0], ids=["an hour ahead", "an hour behind"])
def test_a_driver_whose_clock_is_wrong_finishes_at_once(
    memory: Path, monkeypatch: pytest.MonkeyPatch, shift: float
) -> None:
    """Only the file system's clock counts for leases; a worker is judged by whether it renews its own."""
    spec = toys(grid={"width": [2, 3]}, seeds=[0], run={"seconds_per_step": 0.3, "steps": 6})
    (abandoned, other) = cells_of(spec)
    abandon_elsewhere(abandoned.folder(memory), seconds_ago=30)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + shift)
    driver = Driver(LocalExecutor(Resources(lease_seconds=5), 2))
    driver.drive([abandoned, other], memory, stop=deadline(40))
    assert states(spec, memory) == {"done": 2}
    assert driver.outcome.started == 2, "no healthy worker was stopped, no expired lease was waited for"


def abandon_elsewhere(folder: RunFolder, seconds_ago: float) -> None:
    """As if a worker of another machine had died so long ago, holding a lease of five seconds."""
    with folder.lease("elsewhere", seconds=5):
        pass
    path = folder.path / "lease.json"
    held = json.loads(path.read_text())
    held["process"]["machine"] = "another"
    path.write_text(json.dumps(held | {"ended": ""}))
    then = time.time() - seconds_ago
    os.utime(path, (then, then))


def deadline(seconds: float) -> Callable[[], bool]:
    """A reason to stop, so that a test that would never end fails instead."""
    began = time.monotonic()
    return lambda: time.monotonic() - began > seconds


class CutOff:
    """An executor whose first worker is cut off: it holds its lease, renews nothing, and is never said to have ended.

    One poll is one second, for the driver's clock and for the file system's.
    """

    name, slots = "cut off", 1

    def __init__(self) -> None:
        self.seconds, self.stopped = 0.0, 0
        self.owners: list[str] = []
        self.lease, self.renewed = Path(), 0.0

    def start(self, folders: Sequence[Path], owner: str) -> int:
        self.owners.append(owner)
        self.lease = folders[0] / "lease.json"
        if len(self.owners) == 1:
            with RunFolder.open(folders[0]).lease(owner, seconds=60):
                pass
            self.lease.write_text(json.dumps(json.loads(self.lease.read_text()) | {"ended": "", "process": {}}))
            self.renewed = self.lease.stat().st_mtime
        else:
            work(folders, owner=owner)
        return len(self.owners)

    def poll(self, job: int) -> int | None:
        self.seconds += 1.0
        return 0 if job > 1 else None

    def stop(self, jobs: Sequence[int]) -> None:
        self.stopped += len(jobs)
        if len(self.owners) == 1:  # so much time has passed on the file system too
            os.utime(self.lease, (self.renewed - self.seconds,) * 2)


def test_a_worker_that_renews_nothing_for_the_length_of_its_lease_is_replaced(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    executor = CutOff()
    Driver(executor, clock=lambda: executor.seconds).drive([cell], memory, stop=deadline(30))
    assert cell_state(cell, memory).state == "done"
    assert (len(executor.owners), executor.stopped) == (2, 1)
    assert 60 < executor.seconds < 75, "not before the length of a lease by the driver's own clock, and soon after"


class Lingering(CutOff):
    """An executor whose only worker finishes its cell, and is never said to have ended."""

    def start(self, folders: Sequence[Path], owner: str) -> int:
        self.owners.append(owner)
        work(folders, owner=owner)
        return 1

    def stop(self, jobs: Sequence[int]) -> None:
        self.stopped += len(jobs)


def test_a_worker_that_has_finished_and_does_not_leave_is_not_waited_for(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    executor = Lingering()
    Driver(executor, clock=lambda: executor.seconds).drive([cell], memory, stop=lambda: executor.seconds > 60)
    assert executor.seconds < 30
    assert (len(executor.owners), executor.stopped) == (1, 1)
    assert cell_state(cell, memory).state == "done"


class Scripted:
    """An executor whose workers do what a script says, at once; one poll is one second."""

    name, slots = "slurm", 1  # it knows no exit codes

    def __init__(self, *script: Callable[[RunFolder, str], None]) -> None:
        self.script, self.seconds, self.starts = list(script), 0.0, list[float]()

    def start(self, folders: Sequence[Path], owner: str) -> int:
        self.starts.append(self.seconds)
        if self.script:
            self.script.pop(0)(RunFolder.open(folders[0]), owner)
        else:
            work(folders, owner=owner)
        return 0

    def poll(self, job: int) -> int | None:  # noqa: ARG002
        self.seconds += 0.1
        return -1

    def stop(self, jobs: Sequence[int]) -> None:
        pass

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def drive(self, cells: Sequence[Cell], runs: Path) -> Driver:
        driver = Driver(self, clock=lambda: self.seconds, sleep=self.sleep)
        driver.drive(cells, runs, stop=lambda: self.seconds > 1000)
        return driver


def dies(step: int) -> Callable[[RunFolder, str], None]:
    """A worker that saves a checkpoint and is killed: its lease is neither given back nor renewed."""

    def script(folder: RunFolder, owner: str) -> None:
        with folder.lease(owner) as writer:
            writer.checkpoint(step, {"weights": np.zeros((4, 4)), "momentum": np.zeros((4, 4))}, {})
        path = folder.path / "lease.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"ended": "", "process": GONE}))

    return script


GONE = {"machine": _machine(), "pid": 2**22 + 1, "started": "1"}


def stumbles(note: str) -> Callable[[RunFolder, str], None]:
    """A worker that leaves with an error."""

    def script(folder: RunFolder, owner: str) -> None:
        with folder.lease(owner) as writer:
            writer.leave("interrupted", note)

    return script


def test_deaths_count_only_without_progress(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    executor = Scripted(*[dies(step) for step in (1, 1, 2, 2, 3, 3)])
    driver = executor.drive([cell], memory / "enough")
    assert driver.outcome.started == 7
    assert cell_state(cell, memory / "enough").state == "done", "six deaths, never three without a new checkpoint"
    Scripted(*[dies(step) for step in (1, 2, 2, 2, 3)]).drive([cell], memory / "too many")
    state = cell_state(cell, memory / "too many")
    assert state.state == "failed"
    assert "ended 3 times without a new checkpoint (last: lost)" in state.error


def test_progress_by_somebody_else_s_worker_counts_too(memory: Path) -> None:
    """Three deaths here; before the cell is given up, the worker of another driver saves a checkpoint."""
    (cell,) = cells_of(toys(grid={}, seeds=[0]))

    class WithAnother(Scripted):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            folder = cell.folder(memory)
            if len(self.starts) == 3 and self.seconds > self.starts[2] + 0.5 and folder.checkpoint_steps() == [1]:
                with folder.lease("another") as writer:
                    writer.checkpoint(2, {"weights": np.zeros((4, 4)), "momentum": np.zeros((4, 4))}, {})

    WithAnother(*[dies(1)] * 3).drive([cell], memory)
    assert cell_state(cell, memory).state == "done"


def test_leaving_in_good_order_counts_nothing_on_an_executor_that_knows_no_codes(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    driver = Scripted(*[stumbles("")] * 9).drive([cell], memory)
    assert driver.outcome.started == 10
    assert cell_state(cell, memory).state == "done"


class WithCodes(Scripted):
    """The same on an executor that knows exit codes; a worker without a script finishes its cell."""

    def __init__(self, *codes: Exit) -> None:
        super().__init__(*[lambda *_: None] * len(codes))
        self.codes = list(codes)

    def poll(self, job: int) -> int | None:
        super().poll(job)
        return self.codes.pop(0) if self.codes else Exit.FINISHED


@pytest.mark.parametrize("code", [Exit.HELD, Exit.FENCED, Exit.STOPPED])
def test_a_worker_that_was_fenced_or_asked_to_stop_counts_nothing(memory: Path, code: Exit) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    driver = WithCodes(*[code] * 5).drive([cell], memory)
    assert driver.outcome.started == 6
    assert driver.outcome.blocked == {}
    assert cell_state(cell, memory).state == "done"


def test_a_full_disk_starts_nothing_more(memory: Path) -> None:
    outcome = WithCodes(Exit.DISK_FULL).drive(cells_of(toys(grid={}, seeds=[0, 1])), memory).outcome
    assert outcome.disk_full
    assert outcome.started == 1


def test_an_error_that_passes_is_tried_again_after_a_while_and_one_that_does_not_blocks_that_cell(memory: Path) -> None:
    one, two = cells_of(toys(grid={}, seeds=[0, 1]))
    executor = Scripted(*[stumbles("OSError: [Errno 5] Input/output error")] * 2)
    executor.drive([one], memory / "passes")
    assert cell_state(one, memory / "passes").state == "done"
    waits = [later - sooner for sooner, later in pairwise(executor.starts)]
    assert waits[0] >= 0.5
    assert waits[1] >= 1.0, "each time for longer"

    def only_one(folder: RunFolder, owner: str) -> None:
        if folder.id == one.id:
            stumbles("OSError: [Errno 5] Input/output error")(folder, owner)
        else:
            work([folder.path], owner=owner)

    outcome = Scripted(*[only_one] * 9).drive([one, two], memory / "stays").outcome
    assert outcome.blocked == {one.id: "OSError: [Errno 5] Input/output error"}
    states = [cell_state(cell, memory / "stays") for cell in (one, two)]
    assert [(state.state, state.error) for state in states] == [
        ("interrupted", "OSError: [Errno 5] Input/output error"),
        ("done", ""),
    ]


def test_an_executor_that_refuses_for_a_moment_is_asked_again(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))

    def refuse(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    Scripted(refuse, refuse).drive([cell], memory)
    assert cell_state(cell, memory).state == "done"
    with pytest.raises(BlockingIOError):
        Scripted(*[refuse] * 9).drive([cell], memory / "for ever")


def test_a_folder_that_cannot_be_looked_at_for_a_moment_is_looked_at_again(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, failures = cells_of(toys(grid={}, seeds=[0, 1])), [4]
    read = read_lease

    def away(folder: Path) -> dict[str, Any] | None:
        if folder.name == cells[0].id and failures[0]:
            failures[0] -= 1
            raise OSError(116, "Stale file handle")
        return read(folder)

    monkeypatch.setattr(driver_module, "read_lease", away)
    Scripted().drive(cells, memory / "comes back")
    assert [cell_state(cell, memory / "comes back").state for cell in cells] == ["done", "done"]
    failures[0] = 10**6
    outcome = Scripted().drive(cells, memory / "stays away").outcome
    assert outcome.blocked == {cells[0].id: "[Errno 116] Stale file handle"}
    assert cell_state(cells[1], memory / "stays away").state == "done", "the others run"


@pytest.mark.slow
def test_drivers_and_workers_killed_at_random_leave_the_table_of_an_uninterrupted_sweep(
    memory: Path, tmp_path: Path
) -> None:
    """SIGKILL to whole process groups, seven times, then to the end: the same bytes."""
    run = {"seconds_per_step": 0.02, "steps": 30, "checkpoint_every": 3}
    spec = toys(run=run)
    file, runs = write_toml(tmp_path / "toys.toml", run=run), memory / "runs"
    chance = random.Random(0)
    for _ in range(7):
        driver = start("sweep", "run", file, "--runs", runs, "--processes", "4")
        time.sleep(chance.uniform(1.0, 2.5))
        for pid in [driver.pid, *_workers(runs)]:
            _kill(pid)
        driver.communicate()
    done = deepwide("sweep", "run", file, "--runs", runs, "--processes", "4")
    assert done.returncode == 0, done.stderr
    drive(spec, memory / "whole")
    assert csv(spec, runs, tmp_path) == csv(spec, memory / "whole", tmp_path)
    for cell in cells_of(spec):
        for path in sorted((memory / "whole" / cell.id / "checkpoints").rglob("*.safetensors")):
            assert path.read_bytes() == (runs / path.relative_to(memory / "whole")).read_bytes(), "weights to the bit"


@pytest.mark.slow
def test_eight_processes_and_two_drivers_on_two_hundred_cells_end_each_exactly_once(
    memory: Path, tmp_path: Path
) -> None:
    spec = toys(grid={"width": [2, 3], "lr": [0.01 * k for k in range(1, 11)]}, seeds=list(range(10)))
    run = {"steps": 3, "checkpoint_every": 2}
    spec = toys(grid=dict(spec.grid), seeds=list(spec.seeds), run=run)
    file = write_toml(tmp_path / "toys.toml", grid=dict(spec.grid), seeds=list(spec.seeds), run=run)
    runs = memory / "runs"
    drivers = [start("sweep", "run", file, "--runs", runs, "--processes", "4", "--json") for _ in range(2)]
    answers = [json.loads(driver.communicate(timeout=150)[0]) for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0]
    cells = cells_of(spec)
    assert len(cells) == 200
    assert all(answer["counts"] == {"done": 200} for answer in answers)
    assert min(answer["started"] for answer in answers) > 0, "both drivers worked"
    folders = [path for path in runs.iterdir() if not path.name.startswith(".")]
    assert len(folders) == 200
    owners = set()
    for folder in folders:
        steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert steps == [1, 2, 3], "no record twice"
        held = read_lease(folder)
        assert held is not None
        assert (held["number"], held["ended"]) == (1, "done"), "leased once, by one worker"
        owners.add(held["owner"])
    assert len(owners) >= 8
    assert len(table(cells, runs)) == 200


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_keeps_the_last_checkpoint_says_so_and_resumes_when_there_is_room(
    small_disk: Path, memory: Path, tmp_path: Path
) -> None:
    run = {"steps": 30, "checkpoint_every": 5, "width": 100, "seconds_per_step": 0.03}
    file, spec = write_toml(tmp_path / "toys.toml", grid={}, seeds=[0], run=run), toys(grid={}, seeds=[0], run=run)
    (cell,) = cells_of(spec)
    driver = start("sweep", "run", file, "--runs", small_disk)
    _until(lambda: bool(cell_state(cell, small_disk).checkpoint))
    with open(small_disk / "ballast", "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError:
            pass
    _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 2
    assert "is full: free some room" in errors
    status = cell_state(cell, small_disk)
    assert status.state == "disk_full", status
    assert cell.folder(small_disk).result() is None
    assert cell.folder(small_disk).latest_checkpoint("numpy") is not None, "the last checkpoint is good"
    (small_disk / "ballast").unlink()
    assert deepwide("sweep", "resume", file, "--runs", small_disk).returncode == 0
    drive(spec, memory)
    assert csv(spec, small_disk, tmp_path) == csv(spec, memory, tmp_path)


@pytest.mark.slow
def test_the_real_trainer_interrupted_and_resumed_gives_the_same_table(
    memory: Path, tmp_path: Path, small_corpus: Path
) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "real.toml"
    file.write_text(f"""
name = "real"
seeds = [0, 1]
[run]
model = {{depth = 1, width = 16, heads = 2}}
data.source = "{small_corpus}"
steps = 60
batch = 4
context = 32
checkpoint_every = 5
""")
    runs = memory / "runs"
    words = ("sweep", "run", file, "--device", "cpu", "--runs")
    driver = start(*words, runs)
    _until(lambda: any(runs.glob("*/checkpoints/*")), 90)
    for pid in [driver.pid, *_workers(runs)]:
        _kill(pid)
    driver.communicate()
    assert not list(runs.glob("*/result.json")) or len(list(runs.glob("*/result.json"))) < 2
    for home in (runs, memory / "whole"):
        done = deepwide(*words, home)
        assert done.returncode == 0, done.stderr
        deepwide("sweep", "export", file, "--runs", home, "--to", tmp_path / f"{home.name}.csv")
    assert (tmp_path / "runs.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    weights = sorted((memory / "whole").rglob("*.safetensors"))
    assert weights
    for path in weights:
        assert path.read_bytes() == (runs / path.relative_to(memory / "whole")).read_bytes()


def _workers(runs: Path) -> list[int]:
    """The processes that work in a folder now."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"worker" in words and any(word.startswith(os.fsencode(runs)) for word in words):
            pids.append(int(path.parent.name))
    return pids


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _until(true: object, seconds: float = 60) -> None:
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_leftovers_of_workers_do_not_confuse_a_sweep(memory: Path) -> None:
    spec = toys()
    cells = cells_of(spec)
    folder = cells[0].folder(memory)
    (folder.path / ".result.json.1.abc.tmp").write_text("{")
    (memory / f".{cells[1].id}.1.abc.tmp").mkdir()
    drive(spec, memory)
    assert states(spec, memory) == {"done": 8}
    assert not list(folder.path.glob(".result*"))
    shutil.rmtree(folder.path)
    assert cell_state(cells[0], memory).state == "waiting"
