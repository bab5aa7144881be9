"""Runs in real folders, and what is left in them."""

from collections.abc import Callable
from typing import Any

import torch

from deepwide.run import RunFolder
from deepwide.training import continue_run

TINY: dict[str, Any] = {
    "model": {"depth": 2, "width": 16},
    "steps": 7,
    "batch": 4,
    "context": 16,
    "evaluation": {"every": 3, "sequences": 5},
    "checkpoint_every": 2,
}
MakeRun = Callable[..., RunFolder]


def finish(run: RunFolder, **options: Any) -> RunFolder:
    """Train a run to its end, or until an option stops it."""
    with run.lease("test") as lease:
        continue_run(run, lease, device="cpu", threads=1, **options)
    return run


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    """The tensors of the last checkpoint."""
    saved = run.latest_checkpoint()
    assert saved is not None
    return saved.tensors
