"""Which tokens a step sees: a function of seed and step alone, so that a run can go on from anywhere.

The stream is cut into windows of context + 1 tokens, the last of one being the first of the next. The i-th sequence
of a run is window π_e(i mod W) of epoch e = i div W, each epoch with a permutation π and a starting point of its own.
The order does not depend on the model's shape or the batch: runs with the same seed are paired.

Shapes: B sequences, T context.
"""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray

from deepwide.errors import DeepwideError

ROUNDS = 4
Numbers = NDArray[np.uint64]


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
        key = _key(seed, epoch)
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


def permuted(index: Numbers, size: int, key: int) -> Numbers:
    """A permutation of 0 … size − 1 without a table: a Feistel network, walked until the result is below size.

    >>> sorted(permuted(np.arange(5, dtype=np.uint64), 5, key=7).tolist())
    [0, 1, 2, 3, 4]
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = np.uint64((1 << int(half)) - 1)
    result = index.copy()
    outside = np.ones(len(index), dtype=bool)
    while outside.any():
        value = result[outside]
        left, right = value >> half, value & mask
        for turn in range(ROUNDS):
            left, right = right, left ^ (_mix(right, key, turn) & mask)
        result[outside] = (left << half) | right
        outside = result >= size
    return result


def _mix(value: Numbers, key: int, turn: int) -> Numbers:
    """The finaliser of splitmix64 (Steele et al. 2014), modulo 2^64."""
    salt = (key + 0x9E3779B97F4A7C15 * (turn + 1)) % 2**64
    z = value + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _key(seed: int, epoch: int) -> int:
    return int.from_bytes(hashlib.sha256(f"deepwide/order/{seed}/{epoch}".encode()).digest()[:8], "little")


def _windows(stream: NDArray[np.generic], starts: NDArray[np.int64], context: int) -> torch.Tensor:
    rows = np.empty((len(starts), context + 1), dtype=np.int64)
    for row, start in zip(rows, starts, strict=True):
        row[:] = stream[start : start + context + 1]
    return torch.from_numpy(rows)
