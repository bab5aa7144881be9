"""Run folders as records: finished, unfinished and damaged ones side by side."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from deepwide.run import RunFolder, read_runs

SAME: dict[str, Any] = {"data_fingerprint": "d", "numerics": "1"}
COUNTS = {"depth": 2, "width": 8, "block_params": 1536, "tokens": 512}


def create(runs: Path, lr: float, **result: object) -> RunFolder:
    folder = RunFolder.create(runs, {"lr": lr}, **SAME, counts=COUNTS)
    if result:
        with folder.lease("me") as writer:
            writer.finish(**result)  # type: ignore[arg-type]
    return folder


def test_every_run_is_a_record_with_config_counts_and_result(tmp_path: Path) -> None:
    done = create(tmp_path, 0.1, status="done", loss=2.5)
    waiting = create(tmp_path, 0.2)
    diverged = create(tmp_path, 0.3, status="diverged", why="the loss rose")
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
    folder = create(tmp_path, 0.1, status="done")
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
    good, bad = create(tmp_path, 0.1, status="done"), create(tmp_path, 0.2, status="done")
    (bad.path / name).write_bytes(content)
    records = {record.id: record for record in read_runs(tmp_path)}
    assert records[good.id].status == "done"
    assert records[bad.id].status == "unreadable"
    assert name in records[bad.id].error


def test_a_run_that_lost_its_config_or_has_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    lost, odd = create(tmp_path, 0.1, status="done"), create(tmp_path, 0.2, status="done")
    for folder in (lost, odd):
        (folder.path / "config.json").unlink()
    (odd.path / "config.json").mkdir()
    (tmp_path / ".slurm").mkdir()
    (tmp_path / "notes").mkdir()
    assert {record.id: record.status for record in read_runs(tmp_path)} == {lost.id: "unreadable", odd.id: "unreadable"}
    shutil.rmtree(odd.path)
    (record,) = read_runs(tmp_path)
    assert "config.json" in record.error
