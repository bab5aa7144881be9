"""Errors of the disk and of memory at every write, sync, rename and read in turn: nothing is lost or failed."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deepwide import faults
from deepwide.run import RunFolder, lease
from deepwide.sweeping import Exit
from run.killer import contents, run

CONFIG: dict[str, Any] = {"trainer": "toy", "steps": 3, "checkpoint_every": 2}
ALLOWED = {
    "EIO": {Exit.PASSING, Exit.FINISHED},
    "EMFILE": {Exit.PASSING, Exit.FINISHED},
    "ESTALE": {Exit.PASSING, Exit.FINISHED},
    "ENOSPC": {Exit.DISK_FULL, Exit.FINISHED},
    "MemoryError": {Exit.PASSING, Exit.FINISHED},  # finished: oom
}


@pytest.fixture(autouse=True)
def disarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lease.Lease, "start_heartbeat", lambda _: None)  # every point is the worker's own
    yield
    faults.arm(os.environ.get("DEEPWIDE_FAULT", ""))


def fail_everywhere(
    home: Path, error: str, first: int = 1, stride: int = 1, config: dict[str, Any] = CONFIG
) -> tuple[int, list[str]]:
    """How many points failed in turn, and what was wrong after each."""
    log = home / "points.log"
    assert run(home / "whole", config, f"log:{log}") == 0
    faults.arm("")
    names, expected, wrong = log.read_text().splitlines(), contents(home / "whole"), []
    numbers = range(first, len(names) + 1, stride)
    for number in numbers:
        runs = home / f"{error}-{number}"
        what = f"{number} ({names[number - 1]})"
        try:
            code: int | None = run(runs, config, f"{number}:{error}")
        except (OSError, MemoryError):
            code = None  # of whoever makes the folder: the driver tries again
            if list(runs.glob("*/lease.json")):
                wrong.append(f"{what}: the worker let it through")
        faults.arm("")
        if code is not None and code not in ALLOWED[error]:
            wrong.append(f"{what}: exit code {code}")
        for path in runs.glob("[0-9a-f]*"):
            result = RunFolder.open(path).result()
            if result is not None and result["status"] not in ("done", "oom" if error == "MemoryError" else ""):
                wrong.append(f"{what}: {result}")
            if result is not None and result["status"] == "oom":
                RunFolder.open(path).reopen()
        if run(runs, config, "") != 0:
            wrong.append(f"{what}: could not resume")
        elif {name: h for name, h in contents(runs).items() if "result.1" not in name} != expected:
            wrong.append(f"{what}: differs after resume")
    return len(numbers), wrong


def test_an_io_error_at_any_point_passes(memory: Path) -> None:
    tried, wrong = fail_everywhere(memory, "EIO")
    assert wrong == []
    assert tried > 100


@pytest.mark.parametrize("error", ["ENOSPC", "EMFILE", "ESTALE", "MemoryError"])
def test_so_does_every_other_error_at_every_fifth_point(memory: Path, error: str) -> None:
    assert fail_everywhere(memory, error, first=1 + len(error) % 5, stride=5)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOSPC", "EMFILE", "ESTALE", "MemoryError"])
def test_so_does_every_other_error_at_every_point(memory: Path, error: str) -> None:
    assert fail_everywhere(memory, error)[1] == []


@pytest.mark.slow
@pytest.mark.parametrize(("error", "first"), [("EIO", 3), ("ENOSPC", 7), ("MemoryError", 11)])
def test_the_real_trainer_loses_nothing_either(memory: Path, small_corpus: Path, error: str, first: int) -> None:
    pytest.importorskip("torch")
    config = {
        "model": {"depth": 1, "width": 16, "heads": 2},
        "data": {"source": str(small_corpus)},
        "steps": 4, "batch": 2, "context": 16, "checkpoint_every": 2,
        "evaluation": {"every": 2, "sequences": 2}, "log_every": 1,
    }  # fmt: skip
    tried, wrong = fail_everywhere(memory, error, first=first, stride=13, config=config)
    assert wrong == []
    assert tried >= 8
