"""Small formulas: those that are known to be there, exact on every language, and none where there is none."""

import pytest

from deepwide.logic import Words, all_words, holds, of_expression, of_formula, parse
from deepwide.logic.ltl import written_size
from deepwide.logic.smallest import _Positions, small_formula

OPERATORS = ("!a", "Y a", "P< a", "H< a", "P a", "H a", "a & b", "a | b", "a S< b", "a S b")


@pytest.mark.parametrize("text", OPERATORS)
def test_values_are_those_of_the_evaluator(text: str) -> None:
    """Bit for bit at the ends of words of every length, so at every position."""
    positions, formula = _Positions.of("ab"), parse(text)
    args = [positions.where(name) for name in ("ab" if len(formula.args) == 2 else "a")]
    value, place = positions.value(formula.op, *args), 0
    expected = holds(formula, Words.of(positions.words, "ab"), "last")
    for word, answer in zip(positions.words, expected, strict=True):
        place += len(word)
        assert bool(value >> (place - 1) & 1) == answer, word


@pytest.mark.parametrize(
    ("expression", "depth", "size"),
    [
        ("a*b*", 2, 5),
        (".*a.a.*", 3, 6),
        ("~(.*aa.*)", 2, 6),
        ("(ab)*", 2, 14),  # a conjunction of several
        ("(a|b)*abb", 2, 7),
        ("a*", 1, 2),
        ("a&b", 0, 2),  # empty
    ],
)
def test_a_small_formula_is_found_and_means_the_language(expression: str, depth: int, size: int) -> None:
    language = of_expression(expression, "ab")
    formula = small_formula(language)
    assert formula is not None
    assert (formula.depth <= depth, written_size(formula) <= size) == (True, True), str(formula)
    assert not formula.has_future
    assert of_formula(formula, "ab", "last").difference(language) is None
    words = list(all_words("ab", 7))
    assert holds(formula, Words.of(words, "ab"), "last").tolist() == [language.accepts(word) for word in words]


def test_what_is_not_star_free_has_no_formula() -> None:
    assert small_formula(of_expression("(aa)*", "a"), most=3000) is None


def test_too_few_trials_find_nothing() -> None:
    assert small_formula(of_expression("(ab)*", "ab"), most=20) is None
