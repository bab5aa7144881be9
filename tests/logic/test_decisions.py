"""Decision diagrams against truth tables."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.logic.decisions import Decision

LEAVES = [Decision.letter("abc", "a"), Decision.letter("abc", "b"), *(Decision.bit("abc", bit) for bit in range(3))]
WORLDS = [(letter, dict(enumerate(bits))) for letter in "abc" for bits in itertools.product((False, True), repeat=3)]
EXPRESSIONS = st.recursive(
    st.sampled_from(range(5)),
    lambda inner: st.one_of(st.tuples(st.just("!"), inner), st.tuples(st.sampled_from("&|"), inner, inner)),
    max_leaves=8,
)


def build(expression: object) -> Decision:
    if isinstance(expression, int):
        return LEAVES[expression]
    assert isinstance(expression, tuple)
    op, *args = expression
    parts = [build(arg) for arg in args]
    return ~parts[0] if op == "!" else parts[0] & parts[1] if op == "&" else parts[0] | parts[1]


def truth(expression: object, letter: str, bits: dict[int, bool]) -> bool:
    if isinstance(expression, int):
        return letter == "ab"[expression] if expression < 2 else bits[expression - 2]
    assert isinstance(expression, tuple)
    op, *args = expression
    parts = [truth(arg, letter, bits) for arg in args]
    return not parts[0] if op == "!" else all(parts) if op == "&" else any(parts)


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_diagrams_have_the_truth_table_of_their_expression_and_are_equal_if_it_is(one: object, two: object) -> None:
    tables = [[truth(each, *world) for world in WORLDS] for each in (one, two)]
    assert [build(one).value(*world) for world in WORLDS] == tables[0]
    assert (build(one) == build(two)) == (tables[0] == tables[1])


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS)
def test_exactly_one_term_holds_where_the_function_is_true(expression: object) -> None:
    terms = build(expression).terms()
    assert build(expression).size == len(terms)
    for letter, bits in WORLDS:
        true = [
            t
            for t in terms
            if letter in t.letters and all(bits[b] for b in t.ones) and not any(bits[b] for b in t.zeros)
        ]
        assert len(true) == truth(expression, letter, bits)


def test_a_function_knows_what_it_depends_on() -> None:
    assert (LEAVES[2] & LEAVES[4] | ~LEAVES[2] & LEAVES[4]).bits == {2}
    assert Decision.constant("ab", True).bits == set()
