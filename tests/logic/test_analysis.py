"""One answer about a language: four ways that agree, its depth with a proof, and notes where something is too large."""

from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.logic import Network, analyse_language, equivalent, of_expression, save_network
from deepwide.logic import all_words as every_word
from deepwide.model import load_model


def test_a_formula_has_all_four_forms_and_a_proved_depth() -> None:
    answer = analyse_language("P(a & (c S< a))", word="bacca")
    assert (answer.kind, answer.alphabet, answer.at, answer.formula_depth, answer.program_depth) == (
        "formula", "abc", "last", 2, 2,
    )  # fmt: skip
    assert answer.shape is not None
    assert answer.shape.depth == 2
    assert answer.answers == dict.fromkeys(("formula", "program", "network", "automaton"), True)
    by_direction = {each.direction: each for each in answer.least}
    assert by_direction["past"].exact
    assert by_direction["both"].high == 2
    for pair in by_direction["past"].pairs:
        assert equivalent(pair.inside, pair.outside, pair.depth, "past")
    assert [row["direction"] for row in answer.rows()] == ["past", "future", "both"]


def test_an_expression_gets_a_formula_of_least_depth() -> None:
    answer = analyse_language("/(ab)*/", word="abab")
    assert answer.formula_depth == 2
    assert {(each.low, each.high) for each in answer.least} == {(2, 2)}
    assert answer.answers == dict.fromkeys(("formula", "program", "network", "automaton"), True)


@pytest.mark.parametrize("expression", [".*a", "a.*", "a*b*", "ab|ba"])
def test_the_network_of_an_expression_recognises_it(expression: str, tmp_path: Path) -> None:
    answer = analyse_language(f"/{expression}/", alphabet="ab")
    model, about = load_model(save_network(answer, tmp_path))
    network = Network(model, about["alphabet"], about["at"], ())
    words = list(every_word("ab", 6))
    assert network.accepts(words).tolist() == [of_expression(expression, "ab").accepts(word) for word in words]


def test_a_language_that_is_not_star_free_says_why() -> None:
    answer = analyse_language("/(aa)*/", word="aa")
    assert (answer.star_free, answer.period, answer.formula, answer.shape, answer.least) == (False, "a", None, None, ())
    assert answer.answers == {"automaton": True}
    with pytest.raises(DeepwideError, match="no network to save"):
        save_network(answer, "nowhere")


def test_a_deep_language_falls_back_to_local_divisors() -> None:
    answer = analyse_language("/(ab|ba)*/", search=False)
    assert answer.formula_depth == 15
    assert {note.code for note in answer.notes} >= {"not_shallowest", "long_formula"}


def test_a_program_is_read_as_written() -> None:
    answer = analyse_language("P := rightmost[j<i, Q_a] Q_b : 1; read at first", alphabet="ab", search=False)
    assert (answer.kind, answer.at, answer.program_depth, answer.formula) == (
        "program", "first", 1, "!a S< (a & b) | !P< a",
    )  # fmt: skip


def test_what_is_too_large_is_left_out_with_a_note() -> None:
    answer = analyse_language("X " * 17 + "a", search=True)
    assert answer.states is None
    assert answer.least == ()
    assert answer.program_depth == 17
    assert "17 different temporal operators" in answer.notes[0].text


def test_a_word_that_enlarges_the_alphabet_is_said_to() -> None:
    def said(word: str, alphabet: str | None = None) -> list[str]:
        answer = analyse_language("/(ab)*/", word=word, alphabet=alphabet, search=False)
        return [note.text for note in answer.notes if note.code == "larger_alphabet"]

    assert said("abc") == ["the word has letters that the language does not name (c): everything here is over abc"]
    assert said("ab") == said("abc", "abc") == []


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("/ab", {}, "must end with /"),
        ("/ab/", {"at": "first"}, "no position where it is read"),
        ("a & b", {"alphabet": "a"}, "lacks b"),
        ("a", {"word": "", "alphabet": "a"}, "the empty word has no position"),
        ("a S<", {}, "cannot be read at the end"),
    ],
)
def test_bad_input_costs_a_sentence(text: str, options: dict[str, str], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence) as caught:
        analyse_language(text, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
