"""Formulas: what is printed is read back, depth is nesting, strict operators express the others at the same depth."""

import pytest
from hypothesis import given, settings

from deepwide.errors import DeepwideError
from deepwide.logic.ltl import Formula, in_strict_operators, letter, parse, show, subformulas
from deepwide.logic.words import all_words
from logic.literal import formulas, true_at

a, b, c = (letter(name) for name in "abc")


def f(op: str, *args: Formula) -> Formula:
    return Formula.of(op, *args)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a & b | c", f("|", f("&", a, b), c)),
        ("a | b & c", f("|", a, f("&", b, c))),
        ("a -> b -> c", f("|", f("!", a), f("|", f("!", b), c))),
        ("a S b S c", f("S", a, f("S", b, c))),
        ("a S< b U> c", f("S<", a, f("U>", b, c))),
        ("!a S b & c", f("&", f("S", f("!", a), b), c)),
        ("P P< a", f("P", f("P<", a))),
        ("H<a", f("H<", a)),
        ("a<->b", f("|", f("&", a, b), f("&", f("!", a), f("!", b)))),
        ("!!a", a),
        ("  ( ( a ) ) ", a),
        ("true S< a", f("S<", f("true"), a)),
        ("t & r", f("&", letter("t"), letter("r"))),
    ],
)
def test_a_text_means_what_the_grammar_says(text: str, meant: Formula) -> None:
    assert parse(text) is meant


@given(formulas("abc", leaves=12))
def test_what_is_printed_is_read_back(g: Formula) -> None:
    assert parse(show(g)) is g


@pytest.mark.parametrize(
    ("text", "depth", "place"),
    [
        ("a & !b", 0, "last"),
        ("P a", 1, "last"),
        ("X X a", 2, "first"),
        ("P(a & (c S< a))", 2, "last"),
        ("F(a & P< b)", 2, "last"),
        ("(a U b) | (b U> a)", 1, "first"),
    ],
)
def test_depth_is_nesting_and_future_formulas_are_read_at_the_first_position(text: str, depth: int, place: str) -> None:
    assert (parse(text).depth, parse(text).reads_at) == (depth, place)


@settings(max_examples=60, deadline=None)
@given(formulas())
def test_strict_operators_express_the_others_at_the_same_depth(g: Formula) -> None:
    strict = in_strict_operators(g)
    assert strict.depth <= g.depth  # less only where a constant made an operator's argument disappear
    assert {part.op for part in subformulas(strict)} <= {"a", "b", "true", "false", "!", "&", "|", "S<", "U>"}
    for word in all_words("ab", 3):
        assert [true_at(g, word, i) for i in range(len(word))] == [true_at(strict, word, i) for i in range(len(word))]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "at the end"),
        ("a &", "at the end"),
        ("a b", "'b' (character 3)"),
        ("(a", "at the end"),
        ("a)", "')' (character 2)"),
        ("a # b", "'# b' (character 3)"),
        ("U a", "'U a' (character 1)"),
        ("a U & b", "'& b' (character 5)"),
        ("Q a", "'Q a' (character 1)"),
        ("(" * 5000 + "a", "nested"),
        ("é", "(character 1)"),
    ],
)
def test_what_cannot_be_read_costs_a_sentence_with_the_place(text: str, place: str) -> None:
    with pytest.raises(DeepwideError) as caught:
        parse(text)
    assert place in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_long_flat_formulas_are_no_trouble() -> None:
    assert parse(" | ".join(["a"] * 10 + ["P b"] * 5000)).depth == 1
    assert parse("X " * 5000 + "a").depth == 5000
