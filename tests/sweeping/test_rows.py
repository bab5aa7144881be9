"""Run folders as rows: the counts are the folder's own, and old or damaged folders do not stop the others."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepwide.run import RunFolder
from deepwide.sweeping import cells_of, make_spec, run_rows
from deepwide.sweeping.worker import work
from sweeping.toys import toys


def forget_counts(folder: RunFolder) -> None:
    """As folders were before runs stated their counts."""
    record = json.loads((folder.path / "config.json").read_text())
    record = {name: record[name] for name in ("config", "data", "numerics")}
    (folder.path / "config.json").write_text(json.dumps(record))


def test_a_row_has_settings_counts_status_and_loss(memory: Path) -> None:
    cells = cells_of(toys(seeds=[3], grid={"width": [5], "lr": [0.1]}, run={"depth": 2}))
    (cell,) = cells
    work([cell.folder(memory).path], owner="one")
    (row,) = run_rows(memory)
    assert (row["id"], row["seed"], row["lr"], row["depth"], row["width"]) == (cell.id, 3, 0.1, 2, 5)
    assert row["block_params"] == 2 * 5 * 5
    assert row["status"] == "done"
    assert row["loss"] == json.loads((memory / cell.id / "result.json").read_text())["loss"]


def test_the_folder_states_its_counts_and_the_config_is_not_resolved_again(memory: Path) -> None:
    (cell,) = cells_of(toys(seeds=[0], grid={}))
    path = cell.folder(memory).path / "config.json"
    record = {key: value for key, value in json.loads(path.read_text()).items() if key not in ("run", "check")}
    path.write_text(json.dumps(record | {"counts": record["counts"] | {"block_params": 77}}))
    assert run_rows(memory)[0]["block_params"] == 77


def test_a_folder_made_before_falls_back_to_its_config(memory: Path) -> None:
    run: dict[str, Any] = {"data": {"source": "python"}, "batch": 8, "context": 64, "steps": 3, "model.heads": 2}
    spec = make_spec({"name": "old", "run": run, "grid": {"depth": [1, 2], "width": [16]}})
    cells = cells_of(spec)
    folders = [cell.folder(memory) for cell in cells]
    stated = run_rows(memory)
    for folder in folders:
        forget_counts(folder)
    assert run_rows(memory) == stated
    assert {row["depth"] for row in stated} == {1, 2}
    assert {row["status"] for row in stated} == {"unfinished"}


def test_an_old_config_that_nobody_understands_is_unreadable_and_the_others_are_rows(memory: Path) -> None:
    (cell,) = cells_of(toys(seeds=[0], grid={}))
    cell.folder(memory)
    old = RunFolder.create(memory, {"layers": 3}, data_fingerprint="d", numerics="0")
    rows = {row["id"]: row for row in run_rows(memory)}
    assert rows[cell.id]["status"] == "unfinished"
    assert rows[old.id]["status"] == "unreadable"
    assert "layers" in rows[old.id]["error"]


def test_a_folder_that_states_its_counts_is_read_without_the_trainer(memory: Path) -> None:
    """Fits read thousands of folders: neither training nor the model is loaded for them."""
    run: dict[str, Any] = {"data": {"source": "python"}, "batch": 8, "context": 64, "steps": 3, "model.heads": 2}
    (cell,) = cells_of(make_spec({"name": "new", "run": run, "grid": {"depth": [1], "width": [16]}}))
    cell.folder(memory)
    program = (
        "import sys\n"
        "from deepwide.sweeping import run_rows\n"
        "rows = run_rows(sys.argv[1])\n"
        "assert rows[0]['depth'] and rows[0]['lr'], rows\n"
        "print([name for name in sys.modules if name.startswith(('deepwide.training', 'deepwide.model', 'torch'))])\n"
    )
    words = [sys.executable, "-c", program, str(memory)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
