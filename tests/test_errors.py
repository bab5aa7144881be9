"""The one exception, and the names it offers."""

import json
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import (
    EXTRAS,
    DeepwideError,
    MissingExtraError,
    at_least_one,
    did_you_mean,
    explain,
    is_installed,
    needs,
    one_line,
    quoted,
)

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


PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
DISTRIBUTION = {"vl_convert": "vl-convert-python", "flint": "python-flint"}
# A Python in which these libraries are not installed.
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
"""


def python(program: str, *blocked: str) -> "subprocess.CompletedProcess[str]":
    code = BLOCK.format(blocked=set(blocked)) + program
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def cli(words: str, *blocked: str) -> "subprocess.CompletedProcess[str]":
    return python(f"sys.argv[1:] = {words.split()!r}\nfrom deepwide.cli import main\nmain()", *blocked)


def test_the_table_is_that_of_pyproject() -> None:
    declared = PROJECT["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        names = {wanted.partition(">")[0] for wanted in declared[extra]} - {"deepwide[train]"}
        assert {DISTRIBUTION.get(module, module) for module in modules} == names, extra
    assert set(declared) == {*EXTRAS, "all", "dev"}


def test_the_core_is_light() -> None:
    assert {wanted.partition(">")[0] for wanted in PROJECT["dependencies"]} == {"numpy", "pydantic", "rich", "typer"}


def test_what_is_installed_is_not_complained_about() -> None:
    needs("numpy", "plot")
    assert is_installed("json")
    assert not is_installed("no_such_module_at_all")


def test_a_missing_library_is_a_sentence_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(
        MissingExtraError, match=r"pip install 'deepwide\[plot\]' \(in a clone: '.\[plot\]'\)\.$"
    ) as caught:
        needs("altair", "plot")
    assert isinstance(caught.value, DeepwideError)
    assert isinstance(caught.value, ImportError)


def test_a_missing_module_of_ours_is_a_defect_and_stays_one() -> None:
    error = ModuleNotFoundError("No module named 'deepwide.lawz'", name="deepwide.lawz")
    assert explain(error) is error


@pytest.mark.parametrize(
    ("words", "blocked", "extra"),
    [
        ("plan 1.3B --plot map.svg", "altair", "plot"),
        ("plan 1.3B --plot map.svg", "vl_convert", "plot"),
        ("audit gpt2 --plot map.html", "altair", "plot"),
        ("bounds --depth 6 --width 1000", "flint", "rank"),
        ("rank --depth 2 --width 2", "flint", "rank"),
        ("rank softmax --depth 1 --width 4 --points 20", "scipy", "rank"),
        ("fit results/fit/depth-width-long.csv", "scipy", "fit"),
        ("train --depth 2 --width 32 --tokens 10k --dry-run", "torch", "train"),
        ("serve . --port 0", "fastapi", "serve"),
        ("serve . --port 0", "uvicorn", "serve"),
    ],
)
def test_the_command_line_names_the_extra(words: str, blocked: str, extra: str) -> None:
    done = cli(words, blocked)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert f"deepwide[{extra}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["plan 1.3B", "audit gpt3-175b", "count gpt2", "laws", "models llama"])
def test_the_planner_works_with_the_core_alone(words: str) -> None:
    everything = {module for modules in EXTRAS.values() for module in modules}
    done = cli(words, *everything, "pandas", "transformers")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "blocked", "extra"),
    [
        ("deepwide.bounds(6, 1000)", "flint", "rank"),
        ("deepwide.rank(depth=2, width=2)", "flint", "rank"),
        ("deepwide.train({'model': {'depth': 1, 'width': 8}, 'tokens': 1000})", "torch", "train"),
        ("deepwide.sweep('sweeps/first.toml', runs='/nonexistent')", "torch", "train"),
        ("deepwide.fit('results/fit/depth-width-long.csv')", "scipy", "fit"),
    ],
)
def test_the_library_names_the_extra(program: str, blocked: str, extra: str) -> None:
    done = python(f"import deepwide\ntry: {program}\nexcept deepwide.DeepwideError as error: print(error)", blocked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert f"deepwide[{extra}]" in done.stdout
