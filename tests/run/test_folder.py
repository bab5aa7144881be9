"""A run folder: named by what determines its numbers, made once, whole or not there."""

import json
import multiprocessing
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.run import RunFolder, UnreadableRun, run_id

SAME = {"data_fingerprint": "d", "numerics": "1"}


def create(runs: Path) -> str:
    return RunFolder.create(runs, {"lr": 0.1}, **SAME).id


def test_the_same_inputs_give_the_same_folder(tmp_path: Path) -> None:
    one = RunFolder.create(tmp_path, {"lr": 0.1, "depth": 2}, **SAME)
    two = RunFolder.create(tmp_path, {"depth": 2, "lr": 1e-1}, **SAME)
    assert one.path == two.path
    assert one.config == {"lr": 0.1, "depth": 2}


def test_whatever_determines_the_numbers_is_in_the_name() -> None:
    ids = {
        run_id({"lr": 0.1}, **SAME),
        run_id({"lr": 0.2}, **SAME),
        run_id({"lr": 0.1}, data_fingerprint="e", numerics="1"),
        run_id({"lr": 0.1}, data_fingerprint="d", numerics="2"),
    }
    assert len(ids) == 4


def test_config_is_written_once_and_lies_beside_the_result(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    written = (folder.path / "config.json").stat()
    RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    assert (folder.path / "config.json").stat().st_ino == written.st_ino
    assert json.loads((folder.path / "config.json").read_text()) == {
        "config": {"lr": 0.1},
        "data": "d",
        "numerics": "1",
    }


def test_a_folder_renamed_or_a_config_edited_is_refused(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    path = folder.path / "config.json"
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(UnreadableRun, match="renamed or the file changed"):
        RunFolder.open(folder.path)


def test_a_folder_without_config_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="is not a run folder"):
        RunFolder.open(tmp_path)


def test_many_processes_that_create_the_same_run_at_once_all_get_it(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        ids = pool.map(create, [tmp_path] * 40)
    assert len(set(ids)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [ids[0]]


def test_a_result_taken_back_is_kept_beside(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    assert folder.reopen() is None
    with folder.lease("one") as lease:
        lease.finish("failed", error="why")
    assert folder.reopen() == "failed"
    assert folder.result() is None
    assert json.loads((folder.path / "result.1.json").read_text())["error"] == "why"
    with folder.lease("two") as lease:
        lease.finish("done")
    assert folder.result() == {"status": "done"}
