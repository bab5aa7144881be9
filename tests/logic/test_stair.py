"""STAIR_k: formulas of the promised depth, exact for every word; nothing shallower, for small k."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.logic.expressions import of_expression
from deepwide.logic.games import Direction, equivalent
from deepwide.logic.stair import stair_expression, stair_formula
from deepwide.logic.tableau import of_formula
from deepwide.logic.words import all_words


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("direction", ["past", "future", "both"])
def test_formulas_are_the_language(k: int, direction: Direction) -> None:
    language = of_expression(stair_expression(k), "abc")
    formula = stair_formula(k, direction)
    assert of_formula(formula, "abc", "first" if direction == "future" else "last") == language
    assert formula.depth == (k // 2 + 1 if direction == "both" else k)
    assert [language.accepts(word) for word in all_words("abc", 6)] == [
        "a" * k in word.replace("c", "") for word in all_words("abc", 6)
    ]


@pytest.mark.parametrize("k", range(1, 10))
def test_one_level_less_does_not_tell_k_letters_from_one_fewer(k: int) -> None:
    inside, outside = "a" * k + "b", "a" * (k - 1) + "b"
    for direction, depth in (("past", k), ("both", k // 2 + 1)):
        assert equivalent(inside, outside, depth - 1, direction)  # type: ignore[arg-type]
        assert not equivalent(inside, outside, depth, direction)  # type: ignore[arg-type]


def test_there_is_no_stair_without_steps() -> None:
    with pytest.raises(DeepwideError, match="k must be at least 1"):
        stair_expression(0)
