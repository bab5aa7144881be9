"""A trainer of milliseconds for tests of durability: real steps, checkpoints and metrics, no torch, no data.

A run whose config says `trainer = "toy"` fits a random linear map by gradient descent with momentum; a resumed run is
bit-identical to an uninterrupted one, as the real trainer's must be.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from deepwide.run.folder import RunFolder
from deepwide.run.writer import RunWriter

NUMERICS = "toy-1"


class ToyConfig(BaseModel):
    """What a toy run is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trainer: Literal["toy"] = "toy"
    depth: int = Field(default=1, ge=1, le=64)
    width: int = Field(default=4, ge=1, le=4096)
    seed: int = Field(default=0, ge=0)
    lr: float = Field(default=0.05, gt=0, le=1e6)
    steps: int = Field(default=6, ge=1, le=10**6)
    checkpoint_every: int = Field(default=2, ge=1)
    seconds_per_step: float = Field(default=0.0, ge=0, le=60)
    fail_at: int = Field(default=0, ge=0)  # raises at this step, as a bug would
    exit_at: int = Field(default=0, ge=0)  # ends the process at this step, as a crashing library would


def train(
    folder: RunFolder,
    writer: RunWriter,
    *,
    device: str = "cpu",
    threads: int = 1,
    progress: Callable[[Mapping[str, Any]], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> bool:
    """Train from the last checkpoint on; True when the run has finished, False when it was asked to stop."""
    del device, threads
    config = ToyConfig(**folder.config)
    rng = np.random.default_rng(config.seed)
    target = rng.standard_normal((config.width, config.width))
    weights, momentum = np.zeros_like(target), np.zeros_like(target)
    saved, step = folder.latest_checkpoint("numpy"), 0
    if saved is not None:
        step = saved.step
        weights, momentum = (np.asarray(saved.tensors[name]).copy() for name in ("weights", "momentum"))
    writer.cut_metrics(step)
    loss = float(np.mean((weights - target) ** 2))
    while step < config.steps:
        if stop and stop():
            writer.checkpoint(step, {"weights": weights, "momentum": momentum}, {"loss": loss})
            return False
        step += 1
        if step == config.fail_at:
            raise RuntimeError("the toy fails here on purpose")
        if step == config.exit_at:
            import os

            os._exit(77)
        batch = np.random.default_rng([config.seed, step]).standard_normal((config.width, 8))
        momentum = 0.9 * momentum + (weights - target) @ batch @ batch.T / 8
        weights = weights - config.lr * momentum
        loss = float(np.mean((weights - target) ** 2))
        if not np.isfinite(loss):
            writer.finish("diverged", step=step, loss=None)
            return True
        writer.append({"step": step, "loss": loss})
        if progress:
            progress({"step": step, "steps": config.steps, "loss": loss})
        time.sleep(config.seconds_per_step)
        if step % config.checkpoint_every == 0 or step == config.steps:
            writer.checkpoint(step, {"weights": weights, "momentum": momentum}, {"loss": loss})
    writer.finish("done", step=step, loss=loss)
    return True
