"""Compiled networks: the program's answers on every short word and on long ones, its depth, a Shape, a saved folder."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings

import deepwide
from deepwide.errors import DeepwideError
from deepwide.logic.brasp import Program, accepts, parse_program
from deepwide.logic.ltl import Formula, parse
from deepwide.logic.network import Network, compile_program
from deepwide.logic.translation import to_program
from deepwide.logic.words import Words, all_words, holds
from deepwide.model import load_model, save_model
from logic.literal import answer, formulas, programs

SHORT = list(all_words("ab", 5))
LONG = ["".join(np.random.default_rng(n).choice(list("ab"), size=40 + n)) for n in range(20)]
QUICK = settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))


@QUICK
@given(programs(most=4))
def test_a_network_answers_as_its_program(program: Program) -> None:
    network = compile_program(program, "ab")
    assert network.accepts(SHORT).tolist() == [answer(program, word) for word in SHORT]
    assert np.array_equal(network.accepts(LONG), accepts(program, Words.of(LONG, "ab")))
    assert network.shape.depth <= max(1, program.depth)  # definitions that the answer does not use are left out


@QUICK
@given(formulas())
def test_logic_program_and_network_agree(f: Formula) -> None:
    program = to_program(f)
    network = compile_program(program, "ab")
    words = Words.of(SHORT + LONG, "ab")
    assert np.array_equal(holds(f, words), accepts(program, words))
    assert np.array_equal(holds(f, words), network.accepts(SHORT + LONG))


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_there_is_a_layer_per_level(levels: int) -> None:
    text = "a"
    for _ in range(levels - 1):
        text = f"a & (c S< ({text}))"
    network = compile_program(to_program(parse(f"P({text})")), "abc")
    assert network.shape.depth == levels
    words = list(all_words("abc", 6))
    assert network.accepts(words).tolist() == ["a" * levels in word.replace("c", "") for word in words]


def test_a_network_is_counted_saved_and_loaded(tmp_path: Path) -> None:
    program = to_program(parse("(a S b) | H<(a -> Y b)"))
    network = compile_program(program, "ab")
    parameters = sum(parameter.numel() for parameter in network.model.parameters())
    assert deepwide.count(network.shape).params.total == network.shape.total_params == parameters
    save_model(network.model, tmp_path / "net", alphabet="ab", at=network.at)
    model, about = load_model(tmp_path / "net")
    again = Network(model, about["alphabet"], about["at"], network.heads)
    assert again.model.design == network.model.design
    assert np.array_equal(again.accepts(SHORT), network.accepts(SHORT))


def test_weights_are_integers_and_half_precision_changes_nothing() -> None:
    network = compile_program(to_program(parse("P(a & (b S< (a & Y b))) <-> H(a | P< b)")), "ab")
    for name, parameter in network.model.named_parameters():
        assert name == "head_bias" or torch.equal(parameter, parameter.round())
    whole = network.accepts(SHORT)
    network.model.bfloat16()
    assert np.array_equal(network.accepts(SHORT), whole)


def test_patterns_show_where_a_head_looks() -> None:
    network = compile_program(parse_program("P := rightmost[j<i, Q_a] 1 : 0\nR := leftmost[none, P] Q_b : 1"), "ab")
    first, second = network.patterns("baabb")
    assert (first[0].layer, first[0].look, first[0].vectors) == (0, "rightmost j<i", ("P",))
    assert first[1].argmax(-1).tolist()[2:] == [1, 2, 2]
    assert first[1][0].sum() == 0  # nothing stands before the first position
    assert second[1].argmax(-1).tolist() == [2] * 5


def test_heads_that_do_the_same_are_one() -> None:
    text = "P1 := rightmost[j<i, Q_a] Q_b : 0\nP2 := rightmost[j<i, Q_a] Q_b : 1\nP3 := P1 | P2"
    assert compile_program(parse_program(text), "ab").shape.heads == 1


@pytest.mark.parametrize("word", ["", "abc", "a" * 5000])
def test_what_it_cannot_read_costs_a_sentence(word: str) -> None:
    with pytest.raises(DeepwideError, match="word"):
        compile_program(parse_program("P := Q_a"), "ab").accepts([word])


def test_an_alphabet_must_have_the_letters_in_use() -> None:
    with pytest.raises(DeepwideError, match="lacks b"):
        compile_program(parse_program("P := Q_b"), "ac")
