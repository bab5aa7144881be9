"""A run folder: named by what determines its numbers, made once, whole or not there."""

import json
import multiprocessing
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.run import RunFolder, UnreadableRun, read_runs, run_id

SAME: dict[str, Any] = {"data_fingerprint": "d", "numerics": "1"}


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
    record = json.loads((folder.path / "config.json").read_text())
    assert record | {"check": ""} == {
        "config": {"lr": 0.1},
        "data": "d",
        "numerics": "1",
        "run": folder.id,
        "check": "",
    }


def test_a_count_changed_by_hand_is_named_and_a_config_without_checksum_loads(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME, counts={"depth": 2})
    path = folder.path / "config.json"
    path.write_text(path.read_text().replace('"depth":2', '"depth":3'))
    with pytest.raises(UnreadableRun, match="not what was written"):
        RunFolder.open(folder.path)
    path.write_text(json.dumps({"config": {"lr": 0.1}, "counts": {"depth": 3}} | {"data": "d", "numerics": "1"}))
    assert not RunFolder.open(folder.path).checked


def test_counts_lie_beside_the_config_and_are_no_part_of_the_id(tmp_path: Path) -> None:
    plain = run_id({"lr": 0.1}, **SAME)
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME, counts={"depth": 2, "train_flops": 10**15})
    assert folder.id == plain
    assert RunFolder.open(folder.path).counts == {"depth": 2, "train_flops": 10**15}
    assert RunFolder.open(folder.path).config == {"lr": 0.1}
    assert RunFolder.create(tmp_path, {"lr": 0.1}, **SAME).counts["depth"] == 2, "the first to make it wrote them"


@pytest.mark.parametrize("counts", [3, [1], {"depth": "two"}, {"depth": None}, {"depth": True}])
def test_counts_that_are_no_numbers_are_refused(tmp_path: Path, counts: object) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    record = json.loads((folder.path / "config.json").read_text()) | {"counts": counts}
    (folder.path / "config.json").write_text(json.dumps(record))
    with pytest.raises(UnreadableRun, match="counts"):
        RunFolder.open(folder.path)


def test_half_made_folders_are_cleared_by_the_file_system_s_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = run_id({"lr": 0.1}, **SAME)
    old, young = tmp_path / f".{name}.1.aa.tmp", tmp_path / f".{name}.2.bb.tmp"
    for half, age in ((old, 3600), (young, 0)):
        half.mkdir()
        os.utime(half, (time.time() - age,) * 2)
    ahead = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: ahead)
    RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    assert not old.exists()
    assert young.exists(), "somebody may be making it right now, whatever our clock says"


def test_a_folder_renamed_or_a_config_edited_is_refused(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    path = folder.path / "config.json"
    path.write_text(path.read_text().replace("0.1", "0.2"))
    with pytest.raises(UnreadableRun, match="renamed or the file changed"):
        RunFolder.open(folder.path)


def test_a_config_nested_too_deep_gets_a_sentence(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    deep = '{"a":' * 900 + "1" + "}" * 900
    (folder.path / "config.json").write_text(f'{{"config":{deep},"data":"d","numerics":"1"}}')
    with pytest.raises(UnreadableRun, match="nested too deep"):
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


def test_a_result_taken_back_replaces_no_other_one(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    for why in ("one", "two", "three"):
        if why == "three":
            (folder.path / "result.1.json").unlink()  # somebody tidied up
        with folder.lease("me") as lease:
            lease.finish("failed", error=why)
        folder.reopen()
    kept = {path.name: json.loads(path.read_text())["error"] for path in folder.path.glob("result.*.json")}
    assert kept == {"result.2.json": "two", "result.3.json": "three"}


COUNTS = {"depth": 2, "width": 8, "block_params": 1536, "tokens": 512}


def create_with_result(runs: Path, lr: float, status: str = "", **fields: Any) -> RunFolder:
    folder = RunFolder.create(runs, {"lr": lr}, **SAME, counts=COUNTS)
    if status:
        with folder.lease("me") as writer:
            writer.finish(status, **fields)
    return folder


def test_every_run_is_a_record_with_config_counts_and_result(tmp_path: Path) -> None:
    done = create_with_result(tmp_path, 0.1, status="done", loss=2.5)
    waiting = create_with_result(tmp_path, 0.2)
    diverged = create_with_result(tmp_path, 0.3, status="diverged", why="the loss rose")
    records = {record.id: record for record in read_runs(tmp_path)}
    assert records.keys() == {done.id, waiting.id, diverged.id}
    assert records[done.id].status == "done"
    assert records[done.id].result["loss"] == 2.5
    assert records[done.id].counts == COUNTS
    assert records[done.id].config == {"lr": 0.1}
    assert records[done.id].data_fingerprint == "d"
    assert records[waiting.id].status == "unfinished"
    assert records[waiting.id].counts == COUNTS
    assert records[diverged.id].error == "the loss rose"


def test_one_run_is_read_by_its_own_folder(tmp_path: Path) -> None:
    folder = create_with_result(tmp_path, 0.1, status="done")
    assert [record.id for record in read_runs(folder.path)] == [folder.id]
    assert read_runs(tmp_path / "nowhere") == []


def test_a_folder_without_counts_still_loads(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, {"lr": 0.1}, **SAME)
    assert "counts" not in json.loads((folder.path / "config.json").read_text())
    (record,) = read_runs(tmp_path)
    assert (record.counts, record.status) == ({}, "unfinished")


@pytest.mark.parametrize("name", ["config.json", "result.json"])
@pytest.mark.parametrize("content", [b"{", b"[]", b'{"status":3}', b"\x80\x04K\x01.", b'{"config":' + b"[" * 900])
def test_one_damaged_run_does_not_hide_the_others(tmp_path: Path, name: str, content: bytes) -> None:
    good, bad = create_with_result(tmp_path, 0.1, status="done"), create_with_result(tmp_path, 0.2, status="done")
    (bad.path / name).write_bytes(content)
    records = {record.id: record for record in read_runs(tmp_path)}
    assert records[good.id].status == "done"
    assert records[bad.id].status == "unreadable"
    assert name in records[bad.id].error


def test_a_run_that_lost_its_config_or_has_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    lost, odd = create_with_result(tmp_path, 0.1, status="done"), create_with_result(tmp_path, 0.2, status="done")
    for folder in (lost, odd):
        (folder.path / "config.json").unlink()
    (odd.path / "config.json").mkdir()
    (tmp_path / ".slurm").mkdir()
    (tmp_path / "notes").mkdir()
    assert {record.id: record.status for record in read_runs(tmp_path)} == {lost.id: "unreadable", odd.id: "unreadable"}
    shutil.rmtree(odd.path)
    (record,) = read_runs(tmp_path)
    assert "config.json" in record.error
