"""Bits of many words at once against the literal definition, one word and position at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.logic.ltl import Formula, parse
from deepwide.logic.words import Words, all_words, check_alphabet, holds, positions_where, random_words
from logic.literal import formulas, true_at

LISTS = st.lists(st.text("abc", min_size=1, max_size=7), min_size=1, max_size=70)


@settings(max_examples=150, deadline=None)
@given(formulas("abc", leaves=8), LISTS)
def test_bits_agree_with_the_definition_at_every_position(f: Formula, texts: list[str]) -> None:
    words = Words.of(texts, "abc")
    truth_TN = positions_where(f, words)
    truth_TW = np.unpackbits(truth_TN.view(np.uint8), axis=1, bitorder="little")[:, : len(texts)]
    for w, text in enumerate(texts):
        assert [bool(bit) for bit in truth_TW[: len(text), w]] == [true_at(f, text, i) for i in range(len(text))]
        assert not truth_TW[len(text) :, w].any()
    assert holds(f, words, "last").tolist() == [true_at(f, text, len(text) - 1) for text in texts]
    assert holds(f, words, "first").tolist() == [true_at(f, text, 0) for text in texts]


def test_a_word_of_a_hundred_thousand_positions_and_a_letter_outside_the_alphabet() -> None:
    words = Words.of(["b" * 100_000 + "a", "b" * 100_001], "ab")
    assert holds(parse("F a"), words).tolist() == [True, False]
    assert holds(parse("F z"), words).tolist() == [False, False]


def test_all_words_are_all_words() -> None:
    assert list(all_words("ab", 2)) == ["a", "b", "aa", "ab", "ba", "bb"]
    assert len(set(all_words("abc", 5, 5))) == 3**5


def test_random_words_are_those_of_their_seed() -> None:
    one, same, other = (random_words("abc", 100, 20, seed) for seed in (1, 1, 2))
    assert (one.letters_TAN == same.letters_TAN).all()
    assert (one.letters_TAN != other.letters_TAN).any()


@pytest.mark.parametrize("word", ["", "abd", "A"])
def test_what_is_no_word_costs_a_sentence(word: str) -> None:
    with pytest.raises(DeepwideError, match=r"is not a word over the letters 'abc'|the empty word"):
        Words.of(["a", word], "abc")


@pytest.mark.parametrize(
    ("alphabet", "letters", "sentence"), [("", "", "made of"), ("a+", "", "made of"), ("a", "ab", "lacks b")]
)
def test_an_alphabet_has_letters_and_those_in_use(alphabet: str, letters: str, sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        check_alphabet(alphabet, letters)
