"""What a run counts: its size and what its training takes, exactly."""

from typing import NamedTuple

from deepwide.shape import flops, training_memory
from deepwide.training.config import RunConfig


class RunCounts(NamedTuple):
    """Exact counts of a resolved run, and the memory of one micro-batch by the formula of `training_memory`."""

    depth: int
    width: int
    block_params: int  # all but embeddings and head
    total_params: int
    steps: int
    tokens: int
    train_flops: int
    train_bytes: int


def run_counts(run: RunConfig) -> RunCounts:
    """The counts of a resolved run. They follow from its config, so they are no part of its id."""
    assert run.steps is not None
    assert run.tokens is not None
    assert run.context is not None
    shape = run.architecture.shape
    memory = training_memory(shape, batch=run.micro_batch or run.batch, sequence=run.context, precision="fp32")
    return RunCounts(
        depth=shape.depth,
        width=shape.width,
        block_params=shape.block_params,
        total_params=shape.total_params,
        steps=run.steps,
        tokens=run.tokens,
        train_flops=flops(shape, run.context).training * run.steps * run.batch,
        train_bytes=memory.total,
    )
