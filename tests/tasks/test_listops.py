"""ListOps, against a reader that parses and computes with lists, and against a recursive generator's distribution."""

import random
from statistics import mean, median
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.tasks import make_task
from deepwide.tasks.listops import CLOSE, DIGITS, OPERATORS, ListOps

NAMES = {DIGITS + i: name for i, name in enumerate(OPERATORS)}


def evaluate(tokens: list[int]) -> tuple[int, int, int]:
    """The value of an expression, how many tokens it has, and how deep it is nested, by recursion."""
    if tokens[0] < DIGITS:
        return tokens[0], 1, 1
    arguments, place, deepest = [], 1, 0
    while tokens[place] != CLOSE:
        value, size, depth = evaluate(tokens[place:])
        arguments.append(value)
        place, deepest = place + size, max(deepest, depth)
    assert 2 <= len(arguments) <= 10
    apply: dict[str, Any] = {"MIN": min, "MAX": max, "MED": lambda a: int(median(a)), "SM": lambda a: sum(a) % 10}
    return apply[NAMES[tokens[0]]](arguments), place + 1, deepest + 1


@pytest.mark.parametrize("sizes", [{}, {"shortest": 100, "longest": 400}, {"depth": 3, "longest": 40}])
def test_expressions_are_whole_and_worth_what_a_parser_says(sizes: dict[str, int]) -> None:
    task = ListOps(**sizes)
    batch = task.batch(0, 300, 5)
    assert batch.padding_BT is not None
    for tokens, real, answer in zip(batch.tokens_BT.tolist(), batch.padding_BT.tolist(), batch.targets, strict=True):
        value, size, depth = evaluate(tokens)
        assert value == answer
        assert size == sum(real)
        assert real == [place < size for place in range(len(real))]
        assert task.shortest <= size <= task.longest
        assert depth <= task.depth


def recursive(rng: random.Random, depth: int) -> list[int]:
    """An expression by the published recipe: an operator with probability ¼ above the deepest level, else a digit."""
    if depth >= 10 or rng.random() > 0.25:
        return [rng.randrange(10)]
    arguments = [recursive(rng, depth + 1) for _ in range(rng.randint(2, 10))]
    return [DIGITS + rng.randrange(4), *(token for argument in arguments for token in argument), CLOSE]


def test_expressions_are_distributed_as_the_recursive_recipe_draws_them() -> None:
    rng = random.Random(1)
    wanted: list[list[int]] = []
    while len(wanted) < 2500:
        tokens = recursive(rng, 1)
        if 16 <= len(tokens) <= 64:
            wanted.append(tokens)
    batch = ListOps().batch(0, 2500, 0)
    assert batch.padding_BT is not None
    drawn = [row[: sum(real)] for row, real in zip(batch.tokens_BT.tolist(), batch.padding_BT.tolist(), strict=True)]
    for measure in (
        len,
        lambda tokens: sum(token >= DIGITS and token != CLOSE for token in tokens),
        lambda tokens: evaluate(tokens)[2],
        lambda tokens: evaluate(tokens)[0],
        lambda tokens: mean(token for token in tokens if token < DIGITS),
    ):
        ours, theirs = ([float(measure(tokens)) for tokens in some] for some in (drawn, wanted))
        error = np.sqrt((np.var(ours) + np.var(theirs)) / 2500)
        assert abs(mean(ours) - mean(theirs)) < 4 * error
        assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.1)


def test_repeats_are_rare() -> None:
    rows = ListOps().batch(0, 3000, 0).tokens_BT.tolist()
    assert len({tuple(row) for row in rows}) >= 2999


def test_what_cannot_be_drawn_is_refused() -> None:
    for sizes, sentence in (
        ({"shortest": 60, "longest": 62}, r"longest \(62\) must be at least shortest \+ 4 = 64"),
        ({"shortest": 500, "longest": 600, "depth": 3}, "too rare with depth 3"),
    ):
        with pytest.raises(DeepwideError, match=sentence):
            make_task("listops", sizes)
