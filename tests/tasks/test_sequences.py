"""Answers are right, checked one example at a time in plain Python."""

import itertools
import math

import pytest

from deepwide.tasks import make_task
from deepwide.tasks.sequences import Reversing, Sorting


@pytest.mark.parametrize("length", [1, 2, 9])
def test_copies_come_after_the_separator_and_only_they_count(length: int) -> None:
    batch = make_task("copying", {"length": length, "symbols": 5}).batch(0, 50, 1)
    assert batch.mask_BT is not None
    for tokens, targets, mask in zip(
        batch.tokens_BT.tolist(), batch.targets.tolist(), batch.mask_BT.tolist(), strict=True
    ):
        assert tokens[length] == 5
        assert tokens[1:] == targets[:-1]
        assert [target for target, counts in zip(targets, mask, strict=True) if counts] == tokens[:length]


@pytest.mark.parametrize("network", ["encoder", "decoder"])
def test_sorted_sequences_are_sorted(network: str) -> None:
    task = make_task("sorting", {"network": network})
    assert task.kind == network
    batch = task.batch(0, 50, 1)
    for tokens, targets in zip(batch.tokens_BT.tolist(), batch.targets.tolist(), strict=True):
        assert targets[-8:] == sorted(tokens[:8])
    assert batch.answers == 50 * 8
    assert task.context == (8 if network == "encoder" else 16)
    assert task.vocab == (10 if network == "encoder" else 11)


@pytest.mark.parametrize("shortest", [None, 1, 4])
def test_reversed_sequences_are_reversed_at_every_length(shortest: int | None) -> None:
    task = make_task("reversing", {"length": 6, "symbols": 7} | ({"shortest": shortest} if shortest else {}))
    batch = task.batch(0, 200, 1)
    assert batch.source_BS is not None
    lengths = []
    for row in range(200):
        real = batch.source_padding_BS[row].tolist() if batch.source_padding_BS is not None else [True] * 6
        length = sum(real)
        assert real == [True] * length + [False] * (6 - length)
        source, answer = batch.source_BS[row].tolist()[:length], batch.targets[row].tolist()[:length]
        assert answer == source[::-1]
        assert batch.tokens_BT[row].tolist()[:length] == [7, *answer[:-1]]
        lengths.append(length)
    assert set(lengths) == set(range(shortest or 6, 7))
    assert batch.answers == sum(lengths)


def test_the_position_s_loss_is_the_entropy_of_the_answer_by_position() -> None:
    """Every sequence counted: 3⁴ of them, the frequencies of the i-th smallest, their entropy."""
    ordered = [sorted(sequence) for sequence in itertools.product(range(3), repeat=4)]
    expected = 0.0
    for i in range(4):
        shares = [sum(row[i] == v for row in ordered) / len(ordered) for v in range(3)]
        expected -= sum(share * math.log(share) for share in shares) / 4
    assert Sorting(length=4, symbols=3).position_loss == pytest.approx(expected)
    assert Reversing(length=4, symbols=3).position_loss == pytest.approx(math.log(3))
