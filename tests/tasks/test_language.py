"""Language modelling is a task like others: windows of a corpus, each position with the token that follows.

Windows depend on seed and index alone, and an epoch sees every one once.
"""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deepwide.data import DataConfig, prepare
from deepwide.errors import DeepwideError
from deepwide.tasks import Language
from deepwide.tasks.language import training_windows, validation_windows


@pytest.fixture
def language(small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Language:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    return Language(DataConfig(source=str(small_corpus), validation=0.2), context=16)


def test_targets_are_the_tokens_that_follow(language: Language) -> None:
    batch = language.batch(5, 3, seed=2)
    windows_BT = torch.from_numpy(training_windows(prepare(language.data).train, 5, 3, 16, 2))
    assert torch.equal(batch.tokens_BT, windows_BT[:, :-1])
    assert torch.equal(batch.targets, windows_BT[:, 1:])
    assert batch.inputs == {}
    assert batch.answers == 48


def test_nothing_is_read_before_the_first_batch() -> None:
    nowhere = Language(DataConfig(source="no/such/file"), context=8)
    assert (nowhere.kind, nowhere.head, nowhere.classes, nowhere.vocab) == ("decoder", "tokens", 0, 256)


def test_examples_are_the_windows_of_an_epoch(language: Language) -> None:
    count = language.examples
    assert count is not None
    starts = {tuple(row.tolist()) for row in language.batch(0, count, seed=0).tokens_BT}
    again = {tuple(row.tolist()) for row in language.batch(0, count + 1, seed=0).tokens_BT[:count]}
    assert starts == again
    assert count == (len(language.corpus.train) - 16 - 1) // 16


def test_bits_per_byte_are_nats_over_bytes_of_text(language: Language) -> None:
    sums: dict[str, float] = {}
    text = 0
    for batch in language.evaluation(7, together=3):
        text += int(np.count_nonzero(batch.targets.numpy()))  # token 0 ends a document and stands for no text
        for name, value in language.measure(batch, 2.0, lambda: pytest.fail("not needed")).items():
            sums[name] = sums.get(name, 0) + value
    metrics = language.metrics(sums)
    assert metrics["loss"] == 2.0
    assert metrics["bits_per_byte"] == pytest.approx(2.0 * 7 * 16 / math.log(2) / text)


STREAM = np.arange(1000, dtype=np.uint16)


def test_an_epoch_sees_every_window_once_and_the_next_starts_elsewhere() -> None:
    windows = (1000 - 10 - 1) // 10
    first, second = (training_windows(STREAM, n * windows, windows, 10, seed=3)[:, 0].tolist() for n in (0, 1))
    assert len(set(first)) == len(set(second)) == windows
    assert sorted(b - a for a, b in zip(sorted(first), sorted(first)[1:], strict=False)) == [10] * (windows - 1)
    assert first != second


@given(st.integers(0, 500), st.integers(1, 9), st.integers(0, 5))
def test_a_batch_is_its_sequences_however_it_is_cut(first: int, count: int, seed: int) -> None:
    whole = training_windows(STREAM, first, count, 16, seed)
    parts = [training_windows(STREAM, first + i, 1, 16, seed) for i in range(count)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert (whole[:, 1:] - whole[:, :-1] == 1).all()


def test_the_order_of_the_data_never_changes() -> None:
    """A change here changes the numbers of every run: raise NUMERICS."""
    assert training_windows(STREAM, 0, 6, 16, seed=0)[:, 0].tolist() == ORDER


ORDER = [645, 725, 181, 341, 85, 277]


def test_validation_is_always_the_same_and_within_the_stream() -> None:
    batches = validation_windows(STREAM, 70, 16, 4)
    assert sum(len(batch) for batch in batches) == (1000 - 1) // 16
    assert np.array_equal(np.concatenate(batches), np.concatenate(validation_windows(STREAM, 70, 16, 7)))


def test_too_little_text_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="too few for a context of 16"):
        training_windows(STREAM[:17], 0, 1, 16, 0)
    with pytest.raises(DeepwideError, match="too few for a context of 16"):
        validation_windows(STREAM[:16], 1, 16, 1)
