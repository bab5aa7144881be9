"""What a run counts, exactly; and before it starts an estimate of its time, and how often data repeat."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from deepwide.answers import Answer, Note
from deepwide.data import training_tokens
from deepwide.quantities import show_count
from deepwide.shape import Shape, flops, training_memory
from deepwide.tasks import LANGUAGE
from deepwide.training.config import RunConfig, resolve, stored_config, task_of


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
    block_params, total_params, sequence_flops, train_bytes = _counted(shape, run.context, run.micro_batch or run.batch)
    return RunCounts(
        depth=shape.depth,
        width=shape.width,
        block_params=block_params,
        total_params=total_params,
        steps=run.steps,
        tokens=run.tokens,
        train_flops=sequence_flops * run.steps * run.batch,
        train_bytes=train_bytes,
    )


@lru_cache(maxsize=1024)
def _counted(shape: Shape, context: int, together: int) -> tuple[int, int, int, int]:
    """Parameters, training FLOPs of one sequence, and memory: what very many cells of a sweep share."""
    memory = training_memory(shape, batch=together, sequence=context, precision="fp32")
    return shape.block_params, shape.total_params, flops(shape, context).training, memory.total


# A step reaches about half of the speed of a large matrix product; small networks cost this much on top. Measured on
# one core of a small machine; a sweep assumes the same until its first runs have finished.
SHARE_OF_PEAK = 0.5
STEP_SECONDS, LAYER_SECONDS = 1e-3, 1.5e-3


class RunEstimate(Answer):
    """A run as it would be trained here. Nothing has been started."""

    config: Mapping[str, Any]  # what would be stored
    task: str
    preset: str
    depth: int
    width: int
    heads: int
    block_params: int  # all but embeddings and head
    total_params: int
    steps: int
    batch: int
    context: int
    tokens: int
    train_flops: int
    train_bytes: int  # memory of one micro-batch
    peak_flops: float  # per second, of a matrix product measured here
    seconds: float  # estimated
    notes: tuple[Note, ...] = ()


def estimate_run(
    config: RunConfig | Mapping[str, Any], *, device: str = "auto", threads: int | None = None
) -> RunEstimate:
    """What training this config here would take. Measures the speed of a matrix product for a fifth of a second."""
    import torch

    from deepwide.training.hardware import find_device, peak_flops

    run = resolve(config)
    assert run.steps is not None
    assert run.context is not None
    if threads:
        torch.set_num_threads(threads)
    shape, counts = run.architecture.shape, run_counts(run)
    where, workers = find_device(device), torch.get_num_threads()
    if where.type == "cpu":
        # One thread, for threads that wait for each other on a busy machine measure its load and not its speed; and
        # small products, of which some finish undisturbed.
        torch.set_num_threads(1)
        peak = workers * peak_flops(where, run.precision, size=512)
        torch.set_num_threads(workers)
    else:
        peak = peak_flops(where, run.precision)
    layers = shape.depth + shape.encoder_depth
    return RunEstimate(
        config=stored_config(run),
        task=run.task.name,
        preset=run.model.preset,
        heads=shape.heads,
        batch=run.batch,
        context=run.context,
        **counts._asdict(),
        peak_flops=peak,
        seconds=counts.train_flops / (SHARE_OF_PEAK * peak) + run.steps * (STEP_SECONDS + LAYER_SECONDS * layers),
        notes=data_notes(run),
    )


def data_notes(run: RunConfig) -> tuple[Note, ...]:
    """What a user should know about the data of a resolved run: that they repeat, that some are left out."""
    task = task_of(run)
    notes = [repetition(run)]
    if left_out := getattr(task, "left_out", 0):
        text = f"{left_out:,} rows are left out: {getattr(task, 'unfit', 'they do not fit')}."
        notes.append(Note.of("left_out", text, rows=left_out))
    return tuple(note for note in notes if note is not None)


def repetition(run: RunConfig) -> Note | None:
    """A note when a resolved run sees its data more than once; None too when counting them would take long."""
    assert run.steps is not None
    assert run.tokens is not None
    sequences, task = run.steps * run.batch, task_of(run)
    if run.task.name == LANGUAGE:
        available = training_tokens(run.data)
        if available is None or run.tokens <= available:
            return None
        epochs = run.tokens / available
        source = f"'{run.data.source}' has {show_count(available)} to train on"
        text = f"{show_count(run.tokens)} tokens are {epochs:.3g} epochs: {source}."
    else:
        available = task.examples
        if available is None or sequences <= available:
            return None
        epochs = sequences / available
        text = f"{show_count(sequences)} examples are {epochs:.3g} epochs of {show_count(available)}."
    return Note.of("repeated_data", text, epochs=epochs, available=available)
