"""Language modelling is a task like others: windows of a corpus, each position with the token that follows."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from deepwide.data import DataConfig, prepare, training_batch
from deepwide.tasks import Language


@pytest.fixture
def language(small_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Language:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    return Language(DataConfig(source=str(small_corpus), validation=0.2), context=16)


def test_targets_are_the_tokens_that_follow(language: Language) -> None:
    batch = language.batch(5, 3, seed=2)
    windows_BT = training_batch(prepare(language.data).train, 5, 3, 16, 2)
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
