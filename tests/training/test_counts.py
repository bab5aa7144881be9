"""Counts of a run, against arithmetic written out."""

import pytest

from deepwide.model import Transformer
from deepwide.training import resolve, run_counts


def test_counts_of_a_small_run() -> None:
    run = resolve({"model": {"depth": 2, "width": 16}, "steps": 10, "batch": 4, "context": 16})
    counts = run_counts(run)
    blocks = 2 * (12 * 16**2 + 13 * 16) + 2 * 16
    assert (counts.depth, counts.width, counts.steps, counts.tokens) == (2, 16, 10, 640)
    assert (counts.block_params, counts.total_params) == (blocks, blocks + 256 * 16 + 16 * 16)
    matrices, scores = 2 * 12 * 16**2 + 256 * 16, 2 * 2 * 16 * 16
    assert counts.train_flops == 6 * (matrices + scores) * 640
    assert counts.train_bytes > 16 * counts.total_params, "weights, gradients and two moments, four bytes each"


@pytest.mark.parametrize("task", ["copying", "sorting", "reversing", "parity", "majority", "matching"])
def test_the_network_of_every_task_has_as_many_parameters_as_counted(task: str) -> None:
    run = resolve({"model": {"depth": 2, "width": 16, "preset": "llama"}, "steps": 10, "task": task})
    model = Transformer(run.architecture)
    assert sum(parameter.numel() for parameter in model.parameters()) == run_counts(run).total_params
