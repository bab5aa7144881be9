"""Run, fit, design, again: until a reason to stop, from any interruption, with the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from deepwide.designing import Design, auto, run_designs
from deepwide.errors import DeepwideError
from deepwide.sweeping import SweepState, cells_of, read_spec, sweep
from designing.bases import TOY

BUDGET = 150_000
ASKED: dict[str, Any] = {"target": "10k", "budget": BUDGET, "batch": 3, "rehearse": 0}
BASE = """
name = "toys"
[run]
trainer = "toy"
[iso]
params = [64, 256, 1024]
depths = [1, 2, 3, 4, 6]
tokens = 4
width_multiple = 1
tolerance = 0.4
"""


def content(folder: Path) -> dict[str, bytes]:
    """What a finished folder holds: designs, results, metrics."""
    names = [*folder.glob("design-*.toml"), *folder.glob("*/result.json"), *folder.glob("*/metrics.jsonl")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(names)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Design, dict[str, bytes]]:
    """One that nobody interrupted."""
    home = tmp_path_factory.mktemp("whole")
    return run_designs(TOY, folder=home, **ASKED), content(home)


def test_it_spends_the_budget_and_no_more(whole: tuple[Design, dict[str, bytes]], tmp_path: Path) -> None:
    design, files = whole
    assert design.stop
    assert design.stop.code == "budget"
    assert 0 < design.spent <= BUDGET
    specs = [name for name in files if name.endswith(".toml")]
    assert len(specs) >= 2
    ids: set[str] = set()
    for name in specs:
        (tmp_path / name).write_bytes(files[name])
        cells = cells_of(read_spec(tmp_path / name))
        assert not ids & {cell.id for cell in cells}, "no run is bought twice"
        ids |= {cell.id for cell in cells}
    assert {name.split("/")[0] for name in files if name.endswith("result.json")} == ids
    assert design.now.runs == len(ids)


@pytest.mark.parametrize("moment", [1, 2])
def test_an_interruption_anywhere_is_resumed_with_the_same_bytes(
    whole: tuple[Design, dict[str, bytes]], tmp_path: Path, moment: int
) -> None:
    calls = 0

    def interrupted(*words: Any, **named: Any) -> SweepState:
        nonlocal calls
        calls += 1
        if calls == moment:
            raise KeyboardInterrupt
        return real(*words, **named)

    real = sweep
    with mock.patch.object(auto, "sweep", interrupted), pytest.raises(KeyboardInterrupt):
        run_designs(TOY, folder=tmp_path, **ASKED)
    again = run_designs(TOY, folder=tmp_path, **ASKED)
    assert again.stop == whole[0].stop
    assert content(tmp_path) == whole[1]


def test_a_killed_process_is_resumed_with_the_same_bytes(
    whole: tuple[Design, dict[str, bytes]], tmp_path: Path
) -> None:
    """Real kills: as soon as the first design is written, and when a third of the results are there."""
    (tmp_path / "toys.toml").write_text(BASE)
    home = tmp_path / "runs"
    words = ["sweep", "design", "toys.toml", "--target", "10k", "--budget", str(BUDGET), "--batch", "3", "--auto",
             "--runs", "runs", "--json"]  # fmt: skip
    wanted = sum(name.endswith("result.json") for name in whole[1])
    for results in (0, wanted // 3):
        process = subprocess.Popen(
            [sys.executable, "-m", "deepwide", *words], cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True
        )
        while process.poll() is None:
            if (home / "design-001.toml").exists() and len(list(home.glob("*/result.json"))) >= results:
                break
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(
        [sys.executable, "-m", "deepwide", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert content(home) == whole[1]
    assert json.loads(done.stdout)["stop"]["code"] == "budget"


def test_a_finished_folder_is_answered_without_a_run(whole: tuple[Design, dict[str, bytes]], tmp_path: Path) -> None:
    run_designs(TOY, folder=tmp_path, **ASKED)
    reports: list[Design] = []
    again = run_designs(TOY, folder=tmp_path, report=reports.append, **ASKED)
    assert again.stop == whole[0].stop
    assert [design.stop for design in reports] == [again.stop]
    more = run_designs(TOY, folder=tmp_path, **ASKED | {"budget": BUDGET + 30_000})
    assert more.spent > again.spent, "a larger budget goes on from there"


def test_a_failed_run_stops_it(tmp_path: Path) -> None:
    base = TOY | {"run": {"trainer": "toy", "fail_at": 2}}
    design = run_designs(base, folder=tmp_path, **ASKED)
    assert design.stop
    assert design.stop.code == "failed"


def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    run_designs(TOY, folder=tmp_path, **ASKED | {"budget": BUDGET // 3})
    with pytest.raises(DeepwideError, match="written for a base sweep with other settings"):
        run_designs(TOY | {"run": {"trainer": "toy", "lr": 0.01}}, folder=tmp_path, **ASKED)
