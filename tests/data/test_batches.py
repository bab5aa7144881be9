"""Batches depend on seed and index alone, and an epoch sees every window once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deepwide.data import training_batch, validation_batches
from deepwide.errors import DeepwideError

STREAM = np.arange(1000, dtype=np.uint16)


def test_an_epoch_sees_every_window_once_and_the_next_starts_elsewhere() -> None:
    windows = (1000 - 10 - 1) // 10
    first, second = (training_batch(STREAM, n * windows, windows, 10, seed=3)[:, 0].tolist() for n in (0, 1))
    assert len(set(first)) == len(set(second)) == windows
    assert sorted(b - a for a, b in zip(sorted(first), sorted(first)[1:], strict=False)) == [10] * (windows - 1)
    assert first != second


@given(st.integers(0, 500), st.integers(1, 9), st.integers(0, 5))
def test_a_batch_is_its_sequences_however_it_is_cut(first: int, count: int, seed: int) -> None:
    whole = training_batch(STREAM, first, count, 16, seed)
    parts = [training_batch(STREAM, first + i, 1, 16, seed) for i in range(count)]
    assert torch.equal(whole, torch.cat(parts))
    assert (whole[:, 1:] - whole[:, :-1] == 1).all()


def test_the_order_of_the_data_never_changes() -> None:
    """A change here changes the numbers of every run: raise NUMERICS."""
    assert training_batch(STREAM, 0, 6, 16, seed=0)[:, 0].tolist() == ORDER


ORDER = [645, 725, 181, 341, 85, 277]


def test_validation_is_always_the_same_and_within_the_stream() -> None:
    batches = validation_batches(STREAM, 70, 16, 4)
    assert sum(len(batch) for batch in batches) == (1000 - 1) // 16
    assert torch.equal(torch.cat(batches), torch.cat(validation_batches(STREAM, 70, 16, 7)))


def test_too_little_text_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="too few for a context of 16"):
        training_batch(STREAM[:17], 0, 1, 16, 0)
    with pytest.raises(DeepwideError, match="too few for a context of 16"):
        validation_batches(STREAM[:16], 1, 16, 1)
