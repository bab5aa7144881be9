"""B-RASP: what is printed is read back, and bits of many words agree with the definition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.logic.brasp import Attention, Program, accepts, parse_program
from deepwide.logic.words import Words, all_words
from logic.literal import answer, programs

SHORT = list(all_words("ab", 4))


@settings(max_examples=60, deadline=None)
@given(programs())
def test_what_is_printed_is_read_back(program: Program) -> None:
    assert parse_program(str(program)) == program


@settings(max_examples=120, deadline=None)
@given(programs(), st.lists(st.text("ab", min_size=1, max_size=12), max_size=8))
def test_bits_agree_with_the_definition(program: Program, longer: list[str]) -> None:
    texts = SHORT + longer
    assert accepts(program, Words.of(texts, "ab")).tolist() == [answer(program, text) for text in texts]


@settings(max_examples=60, deadline=None)
@given(programs())
def test_scores_of_j_alone_say_the_same_and_are_no_deeper(program: Program) -> None:
    simple = program.simple
    assert simple.depth <= program.depth  # less only where a constant makes a part disappear
    assert all(each.rule.simple for each in simple.definitions if isinstance(each.rule, Attention))
    assert [answer(simple, text) for text in SHORT] == [answer(program, text) for text in SHORT]


def test_an_example_by_hand() -> None:
    """The nearest earlier letter is an a; depth counts nested attention, not definitions by position."""
    program = parse_program(
        """
        # whether the position before has an a, and then the one before that has a b
        before := rightmost[j<i, 1] Q_a : 0
        pair   := before & !Q_b
        P      := rightmost[j<i, 1] before(j) & Q_b(i) | pair : 1
        """
    )
    assert program.depth == 2
    assert program.depths["pair"] == 1
    assert [answer(program, word) for word in ("a", "ab", "aab", "aaba")] == [True, False, True, False]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no definition"),
        ("# nothing", "has no definition"),
        ("P := ", "line 1 of the program cannot be read at its end"),
        ("P := Q_a &", "at its end"),
        ("P = Q_a", "line 1 of the program cannot be read at '= Q_a'"),
        ("P := leftmost[j=i, Q_a] 1 : 0", "a mask"),
        ("P := leftmost[j<i Q_a] 1 : 0", ", is expected"),
        ("P := leftmost[j<i, Q_a] 1 : Q_a(j)", "no j in this part"),
        ("P := Q_a(j)", "no j in this part"),
        ("P := R", "uses 'R', which is not defined"),
        ("P1 := Q_a\nP2 := P3", "line 2 of the program uses 'P3', which is not defined: define it above"),
        ("P := 1\nP := 0", "defines P again"),
        ("Q_a := 1", "defines Q_a again"),
        ("P := (Q_a", "an operator or )"),
        ("P := " + "(" * 5000, "nested"),
        ("P := 1 1", "the end of the line"),
        ("P := {", "cannot be read at '{'"),
    ],
)
def test_what_cannot_be_read_costs_a_sentence_with_the_place(text: str, sentence: str) -> None:
    with pytest.raises(DeepwideError) as caught:
        parse_program(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_vectors_at_i_cost_a_sentence() -> None:
    many = " & ".join(f"P{n}(i)" for n in range(11))
    text = "\n".join(f"P{n} := 1" for n in range(11)) + f"\nR := leftmost[none, {many}] 1 : 0"
    with pytest.raises(DeepwideError, match="speak of 11 vectors at i"):
        _ = parse_program(text).simple
