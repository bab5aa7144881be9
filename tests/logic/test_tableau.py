"""The automaton of a formula against the formula on every short word, for all operators and both places."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.logic.expressions import of_expression
from deepwide.logic.ltl import PAST, Formula, Place, parse
from deepwide.logic.tableau import of_formula
from deepwide.logic.words import Words, all_words, holds, random_words
from logic.literal import formulas

WORDS = list(all_words("ab", 8))
PACKED = Words.of(WORDS, "ab")


@settings(max_examples=100, deadline=None)
@given(formulas(), st.sampled_from(("first", "last")))
def test_the_automaton_accepts_the_words_of_the_formula(f: Formula, at: Place) -> None:
    automaton = of_formula(f, "ab", at)
    assert [automaton.accepts(word) for word in WORDS] == holds(f, PACKED, at).tolist()
    assert automaton.minimal == automaton


@settings(max_examples=40, deadline=None)
@given(formulas(ops=PAST))
def test_past_formulas_have_at_most_two_to_the_operators_states(f: Formula) -> None:
    operators = sum(str(f).count(op) for op in "SPHY")
    assert len(of_formula(f, "ab", "last")) <= 2 ** (operators + 1) + 1


@pytest.mark.parametrize(
    ("formula", "expression"),
    [
        ("P(a & Y b)", ".*ba.*"),
        ("G(a -> X b)", "(b|ab)*"),
        ("H< a", "a*."),
        ("F(a & P< b)", ".*b.*a|a"),
        ("a U b", "a*b.*"),
        ("a S< b", ".*ba*."),
        ("true", ".*"),
        ("false", "a&b"),
    ],
)
def test_formulas_and_expressions_meet(formula: str, expression: str) -> None:
    one, two = of_formula(parse(formula), "ab"), of_expression(expression, "ab")
    if formula == "F(a & P< b)":  # read at the last position: an a there with a b before it
        two = of_expression(".*b.*a", "ab")
    assert one == two


def test_agrees_on_long_random_words() -> None:
    f = parse("G(a -> F> b) & F(b & P<(a & Y b)) | X X(a U> b)")
    words = random_words("ab", 64, 200, seed=1)
    letters = words.letters_TAN[:, 0, 0]
    texts = ["".join("a" if int(row) >> w & 1 else "b" for row in letters) for w in range(64)]
    automaton = of_formula(f, "ab")
    assert [automaton.accepts(text) for text in texts] == holds(f, words).tolist()


def test_a_formula_with_too_many_operators_costs_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="17 different temporal operators"):
        of_formula(parse("X " * 17 + "a"), "ab")


def test_the_page_quotes_the_benchmark_and_all_three_programs_agree() -> None:
    root = Path(__file__).parents[2]
    bench = json.loads((root / "results" / "logic" / "bench.json").read_text())
    page = " ".join((root / "docs" / "logic.md").read_text(encoding="utf-8").split())
    speed, rows = bench["evaluation"], bench["automata"]
    assert all(all(row["agrees"].values()) for row in rows)
    assert f"took {speed['evaluate_seconds']:.1f} s, and {speed['pack_seconds']:.1f} s to pack" in page
    flloat, mona = (min(row["ratio"][name] for row in rows) for name in ("flloat", "ltlf2dfa"))
    assert f"at least {flloat:.0f} and {mona:.0f} times as long" in page
