"""Examples are functions of seed and number, so that runs resume and seeds are paired."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.tasks import Batch, make_task
from deepwide.tasks.generated import TOGETHER, Draw
from deepwide.tasks.sequences import Copying
from deepwide.tasks.task import BUILT_IN

NAMES = list(BUILT_IN)


def same(one: Batch, other: Batch) -> bool:
    pairs = [(one.tokens_BT, other.tokens_BT), (one.targets, other.targets)]
    pairs += [(one.inputs[name], other.inputs[name]) for name in one.inputs]
    return one.inputs.keys() == other.inputs.keys() and all(torch.equal(a, b) for a, b in pairs)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 10**9), st.integers(1, 9), st.integers(0, 99), st.sampled_from([None, 5]))
def test_a_batch_is_its_examples_however_it_is_cut(
    name: str, first: int, rows: int, seed: int, examples: int | None
) -> None:
    task = make_task(name, {"examples": examples} if examples else {})
    whole = task.batch(first, rows, seed)
    assert len(whole) == rows
    for i in range(rows):
        assert same(whole.rows(i, i + 1), task.batch(first + i, 1, seed))


def test_small_batches_are_computed_together_and_are_what_they_would_be_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    generate = Copying.generate

    def counted(self: Copying, draw: Draw) -> Batch:
        calls.append(len(draw))
        return generate(self, draw)

    monkeypatch.setattr(Copying, "generate", counted)
    task = Copying(length=77)
    for step in range(20):
        batch = task.batch(4 * step, 4, 5)
        alone = generate(
            task, Draw(("copying", Copying.version, "training", 5), np.arange(4 * step, 4 * step + 4, dtype=np.uint64))
        )
        assert same(batch, alone)
    assert calls == [4 * (TOGETHER // (4 * task.context))]


@pytest.mark.parametrize("name", NAMES)
def test_seeds_differ_and_the_evaluation_is_always_the_same(name: str) -> None:
    task = make_task(name, {})
    assert not torch.equal(task.batch(0, 8, 0).tokens_BT, task.batch(0, 8, 1).tokens_BT)
    whole, parts = list(task.evaluation(10, together=10)), list(task.evaluation(10, together=3))
    assert torch.equal(whole[0].tokens_BT, torch.cat([part.tokens_BT for part in parts]))
    assert [len(part) for part in parts] == [3, 3, 3, 1]
    seen = {tuple(row) for row in task.batch(0, 2000, 0).tokens_BT.tolist()}
    fresh = [tuple(row) not in seen for row in whole[0].tokens_BT.tolist()]
    assert sum(fresh) >= 9, "not the training examples again"


@pytest.mark.parametrize("name", NAMES)
def test_tokens_lie_in_the_vocabulary_and_examples_in_the_context(name: str) -> None:
    task = make_task(name, {})
    batch = task.batch(0, 500, 3)
    assert batch.tokens_BT.shape[1] <= task.context
    assert batch.tokens_BT.min() >= 0
    assert batch.tokens_BT.max() < task.vocab
    limit = task.classes if task.head != "tokens" else task.vocab
    assert batch.targets.min() >= 0
    assert batch.targets.max() < limit
    assert (batch.source_BS is not None) == (task.kind == "encoder-decoder" or task.head == "pair")


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_a_limited_set_is_seen_once_per_epoch_in_a_new_order(epoch: int) -> None:
    task = make_task("sorting", {"examples": 50, "length": 12})
    rows = [tuple(row) for row in task.batch(50 * epoch, 50, 1).tokens_BT.tolist()]
    first = [tuple(row) for row in task.batch(0, 50, 1).tokens_BT.tolist()]
    assert set(rows) == set(first)
    assert len(set(rows)) == 50
    assert (rows == first) == (epoch == 0)


def test_a_fingerprint_names_task_version_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    prints = [make_task(name, {}).fingerprint for name in NAMES]
    prints.append(make_task("sorting", {"length": 9}).fingerprint)
    assert make_task("sorting", {"length": 8}).fingerprint == make_task("sorting", {}).fingerprint
    monkeypatch.setattr("deepwide.tasks.sequences.Sorting.version", 2)
    prints.append(make_task("sorting", {}).fingerprint)
    assert len(set(prints)) == len(prints)


def test_examples_never_change() -> None:
    """A change here changes the numbers of runs: raise the task's version."""
    for name, (tokens, targets) in FIRST.items():
        batch = make_task(name, {"length": 5}).batch(7, 1, seed=3)
        assert (batch.tokens_BT[0].tolist(), batch.targets[0].tolist()) == (tokens, targets)


def test_symbols_are_uniform() -> None:
    """Chi-squared with 9 degrees of freedom exceeds 33.7 once in 10,000 times."""
    tokens = make_task("sorting", {}).batch(0, 5000, 11).tokens_BT.numpy()
    counts = np.bincount(tokens.ravel(), minlength=10)
    assert ((counts - 4000) ** 2 / 4000).sum() < 33.7


FIRST: dict[str, tuple[list[int], Any]] = {
    "copying": ([2, 3, 3, 8, 2, 16, 2, 3, 3, 8], [3, 3, 8, 2, 16, 2, 3, 3, 8, 2]),
    "sorting": ([3, 6, 2, 3, 6], [2, 3, 3, 6, 6]),
    "reversing": ([16, 9, 8, 13, 9], [9, 8, 13, 9, 8]),
    "parity": ([1, 1, 1, 1, 0], 0),
    "majority": ([0, 1, 0, 1, 0], 0),
    "matching": ([37, 60, 38, 16, 16], 0),
}
