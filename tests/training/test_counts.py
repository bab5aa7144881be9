"""Counts of a run, against arithmetic written out."""

from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.model import Transformer
from deepwide.training import estimate_run, hardware, resolve, run_counts
from training.builders import TINY


def test_counts_of_a_small_run() -> None:
    run = resolve({"model": {"depth": 2, "width": 16}, "steps": 10, "batch": 4, "context": 16})
    counts = run_counts(run)
    blocks = 2 * (12 * 16**2 + 13 * 16) + 2 * 16
    assert (counts.depth, counts.width, counts.steps, counts.tokens) == (2, 16, 10, 640)
    assert (counts.block_params, counts.total_params) == (blocks, blocks + 256 * 16 + 16 * 16)
    matrices, scores = 2 * 12 * 16**2 + 256 * 16, 2 * 2 * 16 * 16
    assert counts.train_flops == 6 * (matrices + scores) * 640
    assert counts.train_bytes > 16 * counts.total_params, "weights, gradients and two moments, four bytes each"


@pytest.mark.parametrize("task", ["copying", "sorting", "reversing", "repeats", "parity", "majority", "matching"])
def test_the_network_of_every_task_has_as_many_parameters_as_counted(task: str) -> None:
    run = resolve({"model": {"depth": 2, "width": 16, "preset": "llama"}, "steps": 10, "task": task})
    model = Transformer(run.architecture)
    assert sum(parameter.numel() for parameter in model.parameters()) == run_counts(run).total_params


def test_sizes_and_flops_are_exact_and_time_follows_the_speed_measured(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TINY | {"data": str(text), "steps": 10}
    speeds = iter([1e9, 1e12])  # of one thread, which is all there is here
    monkeypatch.setattr(hardware, "peak_flops", lambda *_, **__: next(speeds))
    slow, quick = estimate_run(config, device="cpu"), estimate_run(config, device="cpu")
    assert slow.total_params == 2 * (12 * 16**2 + 13 * 16) + 2 * 16 + 256 * 16 + 16 * 16
    assert slow.tokens == 10 * 4 * 16
    matrices = 2 * 12 * 16**2 + 256 * 16  # of the blocks and the head
    scores = 2 * 2 * 16 * 16  # QKᵀ and AV of both layers, per position of a context of 16
    assert slow.train_flops == 6 * (matrices + scores) * slow.tokens
    assert slow.seconds - quick.seconds == pytest.approx(slow.train_flops / 0.5 * (1e-9 - 1e-12), rel=1e-6)
    assert quick.seconds > 0


def test_nothing_is_started_and_repeated_data_are_noted(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    estimate = estimate_run(TINY | {"data": str(text), "tokens": "1M", "steps": None}, device="cpu")
    (note,) = estimate.notes
    assert note.code == "repeated_data"
    assert note.data["epochs"] == pytest.approx(1e6 / note.data["available"], rel=1e-3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("examples", "epochs"), [(None, None), (100, None), (40, 1.6)])
def test_examples_of_a_task_repeat_when_there_are_too_few(examples: int | None, epochs: float | None) -> None:
    task: dict[str, Any] = {"name": "sorting"} | ({"examples": examples} if examples else {})
    notes = estimate_run({"model": {"depth": 1, "width": 16}, "steps": 16, "batch": 4, "task": task}).notes
    assert [note.data["epochs"] for note in notes] == ([epochs] if epochs else [])


def test_the_speed_is_measured_on_one_thread_and_the_others_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    monkeypatch.setattr(hardware, "peak_flops", lambda *_, **__: used.append(torch.get_num_threads()) or 1e9)
    estimate = estimate_run(
        {"model": {"depth": 1, "width": 16}, "steps": 2, "task": "sorting"}, device="cpu", threads=2
    )
    assert (used, torch.get_num_threads(), estimate.peak_flops) == ([1], 2, 2e9)
