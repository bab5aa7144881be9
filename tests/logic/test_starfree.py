"""Formulas of star-free languages against the automaton they were built from."""

import pytest
from hypothesis import assume, given, settings

from deepwide.errors import DeepwideError
from deepwide.logic.expressions import of_expression
from deepwide.logic.ltl import Formula, subformulas
from deepwide.logic.starfree import depth_bound, starfree_formula
from deepwide.logic.tableau import of_formula
from deepwide.logic.words import Words, all_words, holds
from logic.literal import formulas

WORDS = list(all_words("ab", 8))
PACKED = Words.of(WORDS, "ab")


@settings(max_examples=40, deadline=None)
@given(formulas(leaves=4))
def test_every_formula_s_language_is_star_free_and_has_a_formula_of_futures(f: Formula) -> None:
    monoid = of_formula(f, "ab").monoid
    assert monoid.aperiodic
    assume(len(monoid.elements) <= 30)
    again = starfree_formula(monoid)
    assert {part.op for part in subformulas(again)} <= {"a", "b", "true", "false", "!", "&", "|", "U>"}
    assert again.depth <= depth_bound(len(monoid.elements))
    assert holds(again, PACKED, "first").tolist() == [monoid.automaton.accepts(word) for word in WORDS]


@pytest.mark.parametrize("expression", ["a", "a*", ".*a"])
def test_small_ones_have_the_same_minimal_automaton(expression: str) -> None:
    language = of_expression(expression, "ab")
    assert of_formula(starfree_formula(language.monoid), "ab", "first") == language


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [("(aa)*", "not star-free, so it has no formula: the powers of 'a' never settle"), (".*abbabba.*", "at most 60")],
)
def test_what_has_no_formula_costs_a_sentence(expression: str, sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        starfree_formula(of_expression(expression, "ab").monoid)


def test_the_bound_grows_like_a_factorial() -> None:
    assert [depth_bound(n) for n in range(1, 6)] == [0, 3, 12, 45, 192]
