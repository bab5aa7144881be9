"""Classes are right, checked one example at a time in plain Python."""

from collections import Counter

import pytest

from deepwide.tasks import make_task


def test_parity_is_whether_ones_are_odd() -> None:
    batch = make_task("parity", {"length": 7}).batch(0, 300, 1)
    assert batch.targets.tolist() == [sum(bits) % 2 for bits in batch.tokens_BT.tolist()]
    assert 0.4 < batch.targets.float().mean() < 0.6


@pytest.mark.parametrize("symbols", [2, 5])
def test_majority_is_the_most_frequent_symbol(symbols: int) -> None:
    batch = make_task("majority", {"symbols": symbols, "length": 8}).batch(0, 300, 1)
    for tokens, answer in zip(batch.tokens_BT.tolist(), batch.targets.tolist(), strict=True):
        counts = Counter(tokens)
        assert answer == min(symbol for symbol, count in counts.items() if count == max(counts.values()))


def test_documents_match_when_they_share_a_topic() -> None:
    batch = make_task("matching", {"focus": 1.0, "topics": 4, "words": 3}).batch(0, 400, 1)
    assert batch.source_BS is not None
    for one, two, answer in zip(
        batch.tokens_BT.tolist(), batch.source_BS.tolist(), batch.targets.tolist(), strict=True
    ):
        (topic,), (other,) = {word // 3 for word in one}, {word // 3 for word in two}
        assert answer == (topic == other)
    assert 0.4 < batch.targets.float().mean() < 0.6


def test_less_focus_makes_documents_harder_to_tell_apart() -> None:
    def shared(focus: float) -> float:
        batch = make_task("matching", {"focus": focus, "words": 8}).batch(0, 2000, 1)
        first_word = batch.tokens_BT[:, 0] // 8
        second_word = batch.tokens_BT[:, 1] // 8
        return float((first_word == second_word).float().mean())

    assert shared(1.0) == 1
    assert shared(0.5) == pytest.approx(0.25 + 0.75 / 8, abs=0.03)
    assert shared(0.0) == pytest.approx(1 / 8, abs=0.03)
