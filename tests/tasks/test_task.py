"""A batch is its examples however it is cut, and sums over parts are sums over the whole."""

import numpy as np
import pytest
import torch

from deepwide.tasks import Batch, answer_metrics, measure_answers


def batch_of(*, masked: bool) -> Batch:
    tokens = np.arange(12).reshape(3, 4)
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    return Batch.of(tokens, tokens % 3, mask=mask if masked else None, source=tokens[:, :2])


def test_rows_cut_every_part() -> None:
    part = batch_of(masked=True).rows(1, 3)
    assert len(part) == 2
    assert part.tokens_BT[0].tolist() == [4, 5, 6, 7]
    assert part.source_BS is not None
    assert part.source_BS.tolist() == [[4, 5], [8, 9]]
    assert part.padding_BT is None
    assert part.answers == 5


def test_a_network_gets_the_parts_that_are_there() -> None:
    assert set(batch_of(masked=True).inputs) == {"mask_BT", "source_BS"}
    assert set(batch_of(masked=False).inputs) == {"source_BS"}
    assert batch_of(masked=False).answers == 12


@pytest.mark.parametrize("masked", [False, True])
def test_accuracy_counts_the_answers_that_count(masked: bool) -> None:
    batch = batch_of(masked=masked)
    answers_BT = batch.targets.clone()
    answers_BT[0, 3] = (answers_BT[0, 3] + 1) % 3  # behind the mask
    answers_BT[2, 1] = (answers_BT[2, 1] + 1) % 3
    logits_BTV = torch.nn.functional.one_hot(answers_BT, 3).float()
    whole = measure_answers(batch, 0.5, lambda: logits_BTV)
    parts = [
        measure_answers(batch.rows(i, i + 1), 0.5, lambda i=i: logits_BTV[i : i + 1])  # type: ignore[misc]
        for i in range(3)
    ]
    assert {name: sum(part[name] for part in parts) for name in whole} == whole
    metrics = answer_metrics(whole)
    assert metrics["loss"] == 0.5
    assert metrics["accuracy"] == (6 / 7 if masked else 10 / 12)
    assert metrics["whole_accuracy"] == (2 / 3 if masked else 1 / 3)


def test_a_class_is_one_answer_per_example() -> None:
    batch = Batch.of(np.zeros((4, 3)), np.array([0, 1, 1, 0]))
    logits_BC = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert measure_answers(batch, 2.0, lambda: logits_BC) == {
        "nats": 8.0, "answers": 4, "right": 3, "examples": 4, "whole": 3,
    }  # fmt: skip
