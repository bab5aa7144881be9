"""Repeated blocks, checked one example at a time in plain Python."""

import itertools

import pytest

from deepwide.errors import DeepwideError
from deepwide.tasks import make_task

SMALL = {"length": 12, "symbols": 14, "shortest": 2, "longest": 5}


def sequences(rows: int = 500, **changes: int) -> list[tuple[list[int], list[bool]]]:
    """Whole sequences, with what counts in them."""
    batch = make_task("repeats", SMALL | changes).batch(0, rows, 1)
    assert batch.mask_BT is not None
    lists = zip(batch.tokens_BT.tolist(), batch.targets.tolist(), batch.mask_BT.tolist(), strict=True)
    result = []
    for tokens, targets, mask in lists:
        assert tokens[1:] == targets[:-1]
        result.append(([*tokens, targets[-1]], [False, *mask]))
    return result


def test_what_counts_follows_the_same_token_as_before_and_nothing_else_does() -> None:
    for sequence, counts in sequences():
        pairs = list(itertools.pairwise(sequence))
        assert [False] + [pair in pairs[:place] for place, pair in enumerate(pairs)] == counts


def test_one_block_comes_twice_and_all_other_tokens_once() -> None:
    lengths, offsets, places = set(), set(), set()
    for sequence, counts in sequences():
        first, last = counts.index(True) - 1, len(counts) - 1 - counts[::-1].index(True)
        block = sequence[first : last + 1]
        assert len(block) == sum(counts) + 1
        start = sequence.index(block[0])
        assert sequence[start : start + len(block)] == block
        assert start + len(block) <= first
        assert len(set(sequence)) == len(sequence) - len(block)
        lengths.add(len(block))
        offsets.add(first - start)
        places.add(first)
    assert lengths == {2, 3, 4, 5}
    assert offsets == set(range(2, 12)), "no offset is left out, so none helps"
    assert places == set(range(2, 12))


def test_every_symbol_may_stand_anywhere() -> None:
    starts = {sequence[0] for sequence, _ in sequences()}
    assert starts == set(range(14))


def test_the_copy_accuracy_is_the_share_of_predictable_tokens_that_are_right() -> None:
    import torch

    task = make_task("repeats", SMALL)
    batch = task.batch(0, 50, 1)
    assert batch.mask_BT is not None
    logits = torch.nn.functional.one_hot(batch.targets, 14).float()
    logits[~batch.mask_BT] = 0  # a network that copies, and knows nothing else
    assert task.metrics(task.measure(batch, 0.0, lambda: logits))["accuracy"] == 1
    assert task.metrics(task.measure(batch, 0.0, lambda: -logits))["accuracy"] == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shortest": 6}, r"shortest \(6\) must not exceed longest \(5\)"),
        ({"longest": 7}, "two blocks of 7 do not fit into 13 tokens"),
        ({"symbols": 12}, "symbols"),
        ({"shortest": 1}, "shortest"),
    ],
)
def test_blocks_that_do_not_fit_cost_a_sentence(changes: dict[str, int], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        make_task("repeats", SMALL | changes)
