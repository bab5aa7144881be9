"""Runs from folders, tables and data in memory."""

import json
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import read_runs
from deepwide.run import RunFolder
from fitting.builders import codes, end, make_sweep, noted, write_csv


def test_a_sweep_folder_gives_one_row_per_run_with_its_counts(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    runs = read_runs(tmp_path)
    assert sorted(zip(runs.depth, runs.seed, runs.loss, strict=True)) == [(1, 0, 1), (1, 1, 2), (2, 0, 3), (2, 1, 4)]
    assert set(runs.block_params) == {16, 32}
    assert len(set(runs.groups)) == 2


def test_unfinished_runs_are_left_out_and_noted(tmp_path: Path) -> None:
    make_sweep(tmp_path, run1={})
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert noted("runs-unfinished", runs.notes)["count"] == 1


def test_a_diverged_run_is_kept_without_a_loss_and_failed_ones_are_noted(tmp_path: Path) -> None:
    make_sweep(tmp_path, run0={"status": "diverged", "step": 3}, run3={"status": "failed", "note": "x"})
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert runs.diverged.sum() == 1
    assert np.isnan(runs.loss[runs.diverged]).all()
    assert noted("runs-diverged", runs.notes)["count"] == 1
    assert noted("runs-failed", runs.notes)["count"] == 1


def test_runs_on_different_data_are_not_mixed(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    config = {"trainer": "toy", "depth": 1, "width": 4, "steps": 4, "seed": 9}
    end(RunFolder.create(tmp_path, config, data_fingerprint="other", numerics="1"), "done", validation_loss=1.0)
    with pytest.raises(DeepwideError, match="different data"):
        read_runs(tmp_path)


def test_a_missing_path_and_an_empty_folder_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="there is no folder or table"):
        read_runs(tmp_path / "nothing")
    with pytest.raises(DeepwideError, match="no run folders"):
        read_runs(tmp_path)


def test_a_damaged_folder_is_a_note_and_the_others_are_fitted(tmp_path: Path) -> None:
    folders = make_sweep(tmp_path)
    (folders[1].path / "config.json").write_text("{")
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert noted("run-unreadable", runs.notes)["folder"] == folders[1].path.name


def test_an_old_folder_whose_config_is_no_longer_valid_is_a_note(tmp_path: Path) -> None:
    folders = make_sweep(tmp_path)
    path = folders[0].path / "config.json"
    document = json.loads(path.read_text())
    document.pop("counts", None)
    document["config"]["width"] = "as it was called once"
    path.write_text(json.dumps(document))
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert "run-unreadable" in codes(runs.notes)


def test_depth_and_counts_are_those_that_a_folder_states(tmp_path: Path) -> None:
    """The config is not resolved again: a folder of a later or earlier version says what it is."""
    (folder, *_) = make_sweep(tmp_path)
    path = folder.path / "config.json"
    document = json.loads(path.read_text())
    document["counts"] = {"depth": 3, "width": 5, "block_params": 900, "total_params": 1000, "tokens": 77}
    path.write_text(json.dumps(document))
    runs = read_runs(tmp_path)
    assert 900 in runs.block_params


def test_folders_and_tables_can_be_fitted_together(tmp_path: Path) -> None:
    make_sweep(tmp_path / "runs")
    table = write_csv(
        tmp_path / "t.csv", "depth,width,block_params,total_params,tokens,seed,loss", "4,8,64,80,100,0,0.5"
    )
    assert len(read_runs([tmp_path / "runs", table])) == 5


def test_a_folder_without_a_finished_run_says_so(tmp_path: Path) -> None:
    make_sweep(tmp_path, run0={}, run1={}, run2={}, run3={})
    with pytest.raises(DeepwideError, match="no finished run: 4 runs in"):
        read_runs(tmp_path)
