"""The one exception, and the names it offers."""

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError, at_least_one, did_you_mean, one_line, quoted

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_a_caller_may_treat_it_as_a_value_error() -> None:
    assert issubclass(DeepwideError, ValueError)


def test_the_nearest_names_are_offered_best_first() -> None:
    assert did_you_mean("qwen4", ["llama", "qwen2", "qwen3_moe", "gpt2"]).startswith("did you mean 'qwen2'")


def test_case_does_not_hide_the_nearest_name() -> None:
    assert did_you_mean("LLAMA", ["llama", "gpt2"]) == "did you mean 'llama'?"


def test_without_a_near_name_a_short_list_is_shown_whole() -> None:
    assert did_you_mean("zzz", ["b", "a"]).startswith("it must be one of 'a', 'b'")


def test_without_a_near_name_a_long_list_is_cut_and_counted() -> None:
    ending = did_you_mean("zzz", [f"name-{i:02}" for i in range(20)], most=3)
    assert ending.startswith("it must be one of 'name-00', 'name-01', 'name-02' and 17 more")


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=12))
def test_any_word_gets_a_name_that_is_allowed(word: str, allowed: list[str]) -> None:
    assert any(f"'{name}'" in did_you_mean(word, allowed) for name in allowed)


@given(JUNK)
def test_any_value_is_quoted_in_one_short_piece(value: object) -> None:
    assert 0 < len(quoted(value)) <= 12 * 40


@pytest.mark.parametrize("digits", [4299, 4301, 100_000])
def test_a_number_too_long_to_print_is_quoted_all_the_same(digits: int) -> None:
    assert len(quoted(10**digits)) < 80
    assert len(quoted(-(10**digits))) < 80


def test_a_list_too_deep_to_print_is_quoted_all_the_same() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert len(quoted(nested)) < 80
    assert len(quoted({"a": nested})) < 80
    with pytest.raises(RecursionError):
        json.dumps(nested)


def test_a_message_stays_on_one_line_whatever_it_quotes() -> None:
    line = one_line("a\nb\x1b[31m\x1e\u2028 é 漢")
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert line.endswith(" é 漢")


def test_an_error_keeps_the_names_that_would_help_through_pickling() -> None:
    error = pickle.loads(pickle.dumps(DeepwideError("it lacks depth.", remedies=["depth"])))
    assert (str(error), error.remedies) == ("it lacks depth.", ("depth",))
    assert DeepwideError("plain.").remedies == ()


@pytest.mark.parametrize("count", ["a", 1.5, True, [2], 0, -1])
def test_a_count_is_a_whole_number_of_at_least_one(count: Any) -> None:
    with pytest.raises(DeepwideError, match=r"^batch must be (a whole number|at least 1), not .*\.$"):
        at_least_one(batch=count)
    at_least_one(batch=None, sequence=np.int64(3))  # type: ignore[arg-type]


def test_where_no_name_is_near_the_caller_may_say_something_else() -> None:
    assert did_you_mean("zzzz", ["llama"], otherwise="see the list.") == "see the list."
    assert did_you_mean("lama", ["llama"], otherwise="see the list.") == "did you mean 'llama'?"
