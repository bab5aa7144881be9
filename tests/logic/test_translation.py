"""Logic to programs and back: the same answers, and the promised depth."""

import numpy as np
import pytest
from hypothesis import given, settings

from deepwide.logic.brasp import Program, accepts, parse_program
from deepwide.logic.ltl import Formula, parse
from deepwide.logic.translation import formula_depth, to_formula, to_program
from deepwide.logic.words import Words, all_words, holds, random_words
from logic.literal import answer, formulas, programs

SHORT = Words.of(list(all_words("ab", 6)), "ab")
LONG = random_words("ab", 200, 70, seed=3)


@settings(max_examples=100, deadline=None)
@given(formulas())
def test_a_program_answers_as_its_formula_at_the_same_depth(f: Formula) -> None:
    program = to_program(f)
    assert program.depth <= f.depth  # less only where a constant makes an argument disappear
    for words in (SHORT, LONG):
        assert np.array_equal(accepts(program, words), holds(f, words))


@pytest.mark.parametrize(
    "text",
    ["a", "P a", "a S (b S< a)", "G(a -> F> b)", "X X X a", "H<(a | Y b)", "F(a & P< b)", "(a S b) & (a S b -> a)"],
)
def test_depth_is_preserved(text: str) -> None:
    assert to_program(parse(text)).depth == parse(text).depth


@settings(max_examples=60, deadline=None)
@given(programs(most=3))
def test_a_formula_answers_as_its_program_within_the_promised_depth(program: Program) -> None:
    f = to_formula(program)
    assert f.depth <= formula_depth(program) <= 2 * program.depth
    for words in (SHORT, LONG):
        assert np.array_equal(holds(f, words, program.at), accepts(program, words))


@pytest.mark.parametrize(
    ("line", "levels"),
    [
        ("rightmost[j<i, Q_a] Q_b : Q_b", 1),
        ("rightmost[j<=i, !Q_a] Q_b : Q_b", 1),
        ("leftmost[j>i, Q_b] Q_b : 1", 1),
        ("leftmost[j>=i, !Q_b] Q_a : 1", 1),
        ("leftmost[j<i, Q_a] 1 : Q_b", 2),
        ("rightmost[j>=i, Q_a] Q_a : 0", 2),
        ("leftmost[none, Q_a] 1 : 0", 2),
        ("rightmost[none, !Q_b] 1 : 0", 2),
    ],
)
def test_only_the_nearest_position_costs_one_level(line: str, levels: int) -> None:
    program = parse_program(
        f"R := rightmost[j<i, Q_a] Q_b : 1\nP := {line.replace('Q_a', 'R').replace('Q_b', 'R & Q_b')}"
    )
    assert formula_depth(program) == levels + 1
    assert to_formula(program).depth == levels + 1
    texts = list(all_words("ab", 5))
    assert holds(to_formula(program), Words.of(texts, "ab"), "last").tolist() == [answer(program, w) for w in texts]


def test_there_and_back_keeps_the_depth() -> None:
    stair = parse("P(a & (c S< (a & (c S< a))))")
    assert to_formula(to_program(stair)).depth == stair.depth == 3
