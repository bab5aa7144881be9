"""Automata: minimal forms, differences and monoids against enumeration."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.logic.automata import Automaton, explore
from deepwide.logic.expressions import of_expression
from deepwide.logic.words import all_words

WORDS = list(all_words("ab", 7))


@st.composite
def automata(draw: st.DrawFn, most: int = 5) -> Automaton:
    n = draw(st.integers(1, most))
    state = st.integers(0, n - 1)
    moves = tuple((draw(state), draw(state)) for _ in range(n))
    return Automaton("ab", moves, frozenset(draw(st.sets(state))))


def language(automaton: Automaton) -> list[bool]:
    return [automaton.accepts(word) for word in WORDS]


@settings(max_examples=100, deadline=None)
@given(automata())
def test_the_minimal_automaton_has_the_same_words_and_no_two_equivalent_states(automaton: Automaton) -> None:
    minimal = automaton.minimal
    assert language(minimal) == language(automaton)
    assert minimal.minimal == minimal
    assert not minimal.accepts("")
    futures = {
        tuple(minimal.run(word, state) in minimal.accepting for word in ["", *WORDS]) for state in range(len(minimal))
    }
    assert len(futures) == len(minimal)


@settings(max_examples=100, deadline=None)
@given(automata(), automata())
def test_a_difference_is_a_shortest_word_on_which_they_differ(one: Automaton, two: Automaton) -> None:
    differing = [word for word, x, y in zip(WORDS, language(one), language(two), strict=True) if x != y]
    if (word := one.difference(two)) is None:
        assert not differing
        assert one.minimal == two.minimal
    else:
        assert one.accepts(word) != two.accepts(word)
        assert one.minimal != two.minimal
        assert not differing or len(word) == len(differing[0])


def test_combinations_are_boolean() -> None:
    one, two = of_expression("a.*", "ab"), of_expression(".*b", "ab")
    both = one.combined(two, lambda x, y: x and y)
    assert both.minimal == of_expression("a.*&.*b", "ab")
    assert [word for word in WORDS[:6] if both.accepts(word)] == ["ab"]
    assert one.complement.accepts("b")
    assert of_expression("ab", "ab").shortest() == "ab"
    assert of_expression("a&b", "ab").shortest() is None


@pytest.mark.parametrize(
    ("expression", "size", "period"),
    [
        ("(ab)*", 6, None),  # 1, a, b, ab, ba, 0
        ("(aa)*", 4, "a"),
        (".*a.*", 2, None),
        ("(a|b)*", 2, None),
        ("((a|b)(a|b))*", 3, "a"),
        (".*ab.*", 5, None),
        ("(a(ab)*b)*", None, None),
        ("(ab|ba)*", None, None),
        ("(b*ab*a)*b*", None, "a"),
    ],
)
def test_the_monoid_says_what_is_star_free(expression: str, size: int | None, period: str | None) -> None:
    monoid = of_expression(expression, "ab").monoid
    assert monoid.aperiodic == (period is None)
    assert size is None or len(monoid.elements) == size
    if period is not None:
        assert monoid.period is not None
        loops = of_expression(expression, "ab")
        lasts = [loops.run(monoid.period * n, state) for state in range(len(loops)) for n in range(20, 40)]
        assert len({tuple(lasts[k::20]) for k in range(20)}) > 1  # its powers still change after twenty


@settings(max_examples=60, deadline=None)
@given(automata(4))
def test_monoid_elements_are_what_words_do(automaton: Automaton) -> None:
    monoid = automaton.monoid
    effects = {
        tuple(monoid.automaton.run(word, s) for s in range(len(monoid.automaton))) for word in all_words("ab", 6)
    }
    assert effects <= set(monoid.elements)
    for element, word in zip(monoid.elements, monoid.words, strict=True):
        assert element == tuple(monoid.automaton.run(word, state) for state in range(len(monoid.automaton)))


def test_what_is_too_large_costs_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="more than 20,000 states"):
        explore("a", 0, lambda state, _: state + 1, lambda _: False)
    n = 9
    rotate, swap = tuple((i + 1) % n for i in range(n)), (1, 0, *range(2, n))
    full = Automaton("ab", tuple(zip(rotate, swap, strict=True)), frozenset({0}))
    with pytest.raises(DeepwideError, match="more than 20,000 elements"):
        _ = full.monoid
    with pytest.raises(DeepwideError, match="cannot be combined"):
        full.combined(of_expression("a", "a"), lambda x, y: x and y)


def test_products_of_letters_generate_every_element() -> None:
    monoid = of_expression("(ab)*a?", "ab").monoid
    for one, two in itertools.product(monoid.elements, repeat=2):
        assert tuple(two[state] for state in one) in monoid.elements
