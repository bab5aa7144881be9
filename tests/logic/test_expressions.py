"""Regular expressions against a matcher that tries every way to split a word."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.logic.expressions import of_expression
from deepwide.logic.words import all_words

Tree = tuple[object, ...]


@cache
def matches(tree: Tree, word: str) -> bool:
    """By the definition of each operator."""
    op, *args = tree
    if op == "letter":
        return word == args[0]
    parts = [arg for arg in args if isinstance(arg, tuple)]
    match op:
        case "|":
            return any(matches(part, word) for part in parts)
        case "&":
            return all(matches(part, word) for part in parts)
        case "~":
            return not matches(parts[0], word)
        case "()":
            return word == ""
        case "*":
            return word == "" or any(
                matches(parts[0], word[:n]) and matches(tree, word[n:]) for n in range(1, len(word) + 1)
            )
    return any(matches(parts[0], word[:n]) and matches(parts[1], word[n:]) for n in range(len(word) + 1))


def text(tree: Tree) -> str:
    op, *args = tree
    if op == "letter":
        return str(args[0])
    parts = [text(arg) for arg in args if isinstance(arg, tuple)]
    match op:
        case "()":
            return "()"
        case "~":
            return f"~({parts[0]})"
        case "*":
            return f"({parts[0]})*"
        case ".":
            return f"({parts[0]})({parts[1]})"
    return f"({parts[0]}){op}({parts[1]})"


TREES: st.SearchStrategy[Tree] = st.recursive(
    st.sampled_from([("letter", "a"), ("letter", "b"), ("()",)]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["~", "*"]), inner), st.tuples(st.sampled_from([".", "|", "&"]), inner, inner)
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_an_automaton_accepts_what_the_expression_matches(tree: Tree) -> None:
    automaton = of_expression(text(tree), "ab")
    assert [automaton.accepts(word) for word in all_words("ab", 5)] == [
        matches(tree, word) for word in all_words("ab", 5)
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a+", "aa*"),
        ("a?b", "b|ab"),
        (".", "a|b"),
        ("~a*", "~(a*)"),
        ("ab|ba&ab", "ab"),
        ("~~a b", "ab"),
        ("a|~a", ".*"),
    ],
)
def test_signs_bind_as_the_grammar_says(one: str, two: str) -> None:
    assert of_expression(one, "ab") == of_expression(two, "ab")


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("", "at the end"),
        ("a|", "at the end"),
        ("(a", "an operator or )"),
        ("a)", "at ')' (character 2)"),
        ("*a", "at '*a' (character 1)"),
        ("a[b]", "at '[b]' (character 2)"),
        ("abc", "lacks c"),
        ("(" * 4000, "nested"),
    ],
)
def test_what_cannot_be_read_costs_a_sentence_with_the_place(expression: str, sentence: str) -> None:
    with pytest.raises(DeepwideError) as caught:
        of_expression(expression, "ab")
    assert sentence in str(caught.value)
