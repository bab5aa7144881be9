"""Which tokens a step sees: a function of seed and step alone, so that a run can resume from anywhere.

The stream is cut into windows of context + 1 tokens, the last of one being the first of the next. The i-th sequence
of a run is window π_e(i mod W) of epoch e = i div W, each epoch with a permutation π and a starting point of its own.
The order does not depend on the model's shape or the batch: runs with the same seed are paired.

Shapes: B sequences, T context.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from deepwide.data.shuffling import key_of, permuted
from deepwide.errors import DeepwideError


def training_batch(stream: NDArray[np.generic], first: int, count: int, context: int, seed: int) -> torch.Tensor:
    """Sequences first … first + count − 1 of the run: B × (T + 1) tokens."""
    windows = (len(stream) - context - 1) // context
    if windows < 1:
        raise DeepwideError(
            f"the training set has {len(stream)} tokens, too few for a context of {context}: give more text or a "
            "shorter context."
        )
    index = np.arange(first, first + count)
    starts = np.empty(count, dtype=np.int64)
    for epoch in range(first // windows, (first + count - 1) // windows + 1):
        here = index // windows == epoch
        key = key_of("order", seed, epoch)
        order = permuted((index[here] % windows).astype(np.uint64), windows, key)
        starts[here] = order.astype(np.int64) * context + key % context
    return _windows(stream, starts, context)


def validation_batches(stream: NDArray[np.generic], sequences: int, context: int, together: int) -> list[torch.Tensor]:
    """The first windows of the validation set, always the same, `together` at a time: each B × (T + 1)."""
    windows = (len(stream) - 1) // context
    if windows < 1:
        raise DeepwideError(
            f"the validation set has {len(stream)} tokens, too few for a context of {context}: give more text, a "
            "larger data.validation or a shorter context."
        )
    starts = np.arange(min(sequences, windows)) * context
    return [_windows(stream, starts[at : at + together], context) for at in range(0, len(starts), together)]


def _windows(stream: NDArray[np.generic], starts: NDArray[np.int64], context: int) -> torch.Tensor:
    rows = np.empty((len(starts), context + 1), dtype=np.int64)
    for row, start in zip(rows, starts, strict=True):
        row[:] = stream[start : start + context + 1]
    return torch.from_numpy(rows)
