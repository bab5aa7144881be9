"""Hops, against the definition written out one position at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.tasks import make_task
from deepwide.tasks.hops import Hops, hop_positions


def find(letters: list[int], i: int, k: int) -> int:
    """find^k(i) as the paper defines it; −1 where it is undefined."""
    for _ in range(k):
        before = [j for j in range(i) if letters[j] == letters[i]]
        if not before:
            return -1
        i = before[-1] + 1
    return i


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_pointer_jumping_is_the_definition(length: int, letters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    letters_BN = rng.integers(0, letters, (4, length))
    hops_B = rng.integers(0, 12, 4)
    expected = [
        [find(row, i, k) for i in range(length)] for row, k in zip(letters_BN.tolist(), hops_B.tolist(), strict=True)
    ]
    assert hop_positions(letters_BN, hops_B).tolist() == expected


@pytest.mark.parametrize(("length", "letters", "most"), [(40, 4, 8), (100, 4, 16), (6, 3, 8), (2, 2, 3)])
def test_answers_are_the_letters_that_are_found_and_only_they_count(length: int, letters: int, most: int) -> None:
    task = make_task("hops", {"length": length, "letters": letters, "most": most})
    batch = task.batch(0, 60, 3)
    assert batch.mask_BT is not None
    asked = set()
    for tokens, targets, mask in zip(
        batch.tokens_BT.tolist(), batch.targets.tolist(), batch.mask_BT.tolist(), strict=True
    ):
        k, sequence = tokens[0] - letters, tokens[1:]
        asked.add(k)
        found = [find(sequence, i, k) for i in range(length)]
        assert mask == [False, *(place >= 0 for place in found)]
        assert any(mask), "every example has an answer"
        assert [target for target, counts in zip(targets, mask, strict=True) if counts] == [
            sequence[place] for place in found if place >= 0
        ]
        assert all(one != other for one, other in pairwise(sequence))
    assert max(asked) <= most
    assert length < 40 or asked == set(range(most + 1))


def test_letters_and_hops_are_uniform() -> None:
    """Chi-squared with 3 degrees of freedom exceeds 21.1 once in 10,000 times, with 8 degrees 31.8."""
    tokens = make_task("hops", {"length": 60}).batch(0, 9000, 5).tokens_BT.numpy()
    for counts, limit in (
        (np.bincount(tokens[:, 1], minlength=4), 21.1),
        (np.bincount(tokens[:, 40], minlength=4), 21.1),
        (np.bincount(tokens[:, 0] - 4, minlength=9), 31.8),
    ):
        expected = 9000 / len(counts)
        assert ((counts - expected) ** 2 / expected).sum() < limit


def test_a_sequence_without_an_answer_is_asked_for_fewer_hops() -> None:
    task = Hops(length=8, most=8)
    batch = task.batch(0, 200, 0)
    assert batch.mask_BT is not None
    for tokens, mask in zip(batch.tokens_BT.tolist(), batch.mask_BT.tolist(), strict=True):
        assert any(mask)
        k = tokens[0] - 4
        most = max(j for j in range(9) if any(find(tokens[1:], i, j) >= 0 for i in range(8)))
        assert k <= most
    assert len(set(task.hops_asked(batch.tokens_BT).tolist())) > 2


def test_accuracy_is_reported_for_every_k() -> None:
    task = Hops(length=30, most=3)
    [batch] = task.evaluation(64, 64)

    def all_but_two_hops() -> torch.Tensor:
        """Logits that are right for every k but 2."""
        answer = torch.where(task.hops_asked(batch.tokens_BT)[:, None] == 2, (batch.targets + 1) % 4, batch.targets)
        return torch.nn.functional.one_hot(answer, task.vocab).float()

    metrics = task.metrics(task.measure(batch, 1.0, all_but_two_hops))
    assert [metrics[f"accuracy_{k}"] for k in range(4)] == [1, 1, 0, 1]
    assert 0.5 < metrics["accuracy"] < 0.9
    assert metrics["loss"] == 1.0


def test_examples_never_change() -> None:
    """A change here changes the numbers of runs: raise the task's version."""
    batch = Hops(length=8, most=2).batch(7, 1, seed=3)
    assert (batch.tokens_BT[0].tolist(), batch.targets[0].tolist()) == FIRST


FIRST = ([6, 2, 3, 2, 1, 0, 3, 0, 3], [0, 2, 2, 2, 2, 2, 3, 2, 3])
