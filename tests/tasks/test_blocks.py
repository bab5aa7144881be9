"""Words of alternating blocks, checked one at a time in plain Python."""

import re
from collections import Counter

import pytest

from deepwide.errors import DeepwideError
from deepwide.tasks import make_task


def words(**parameters: int) -> list[tuple[str, str]]:
    batch = make_task("blocks", parameters).batch(0, 400, 1)
    rows = zip(batch.tokens_BT.tolist(), batch.targets.tolist(), strict=True)
    return [("".join("ab^"[token] for token in tokens), "".join(map(str, answers))) for tokens, answers in rows]


@pytest.mark.parametrize(("blocks", "pattern"), [(2, "a+b+"), (3, "a+b+a+"), (5, "a+b+a+b+a+")])
def test_words_have_so_many_blocks_and_the_last_one_is_marked(blocks: int, pattern: str) -> None:
    for text, answers in words(blocks=blocks, length=12):
        assert text[0] == "^"
        word, marks = text[1:], answers[1:]
        assert re.fullmatch(pattern, word)
        assert marks == "".join(str(int(re.fullmatch(pattern, word[: end + 1]) is not None)) for end in range(12))


def test_lengths_vary_and_what_is_not_there_does_not_count() -> None:
    batch = make_task("blocks", {"blocks": 3, "length": 10, "shortest": 6}).batch(0, 500, 2)
    assert batch.padding_BT is not None
    assert batch.mask_BT is not None
    assert (batch.padding_BT == batch.mask_BT).all()
    assert set((batch.padding_BT.sum(1) - 1).tolist()) == set(range(6, 11))
    assert (batch.tokens_BT[~batch.padding_BT] == 2).all()


def test_changes_are_drawn_evenly() -> None:
    firsts = Counter(text.index("b") - 1 for text, _ in words(blocks=2, length=5))
    assert firsts.keys() == {1, 2, 3, 4}
    assert min(firsts.values()) > 60


@pytest.mark.parametrize("parameters", [{"blocks": 5, "length": 4}, {"length": 9, "shortest": 10}, {"blocks": 1}])
def test_words_too_short_for_their_blocks_cost_a_sentence(parameters: dict[str, int]) -> None:
    with pytest.raises(DeepwideError) as caught:
        make_task("blocks", parameters)
    assert "\n" not in str(caught.value)
