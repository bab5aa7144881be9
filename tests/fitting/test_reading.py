"""Runs from folders, tables and data in memory."""

from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import read_runs
from deepwide.run import RunFolder
from fitting.builders import end, make_sweep, noted


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
