"""A rule's text holds all that its verdict hangs on: a constant, a helper, a default, what a closure holds."""

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepwide.studies.fingerprint import source_of

MODULE = """
LIMIT = 0.5
OTHER = 1

def helper(x):
    return [y for y in x if y > LIMIT]

def unused(x):
    return x

def decide(x, most=3):
    return helper(x)[:most]

def within(limit):
    return lambda x: x < limit

closed = within(4)
"""


def loaded(text: str, home: Path) -> Any:
    path = home / f"rules_{len(list(home.iterdir()))}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("rules", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("before", "after"),
    [("LIMIT = 0.5", "LIMIT = 0.6"), ("y > LIMIT", "y >= LIMIT"), ("most=3", "most=4"), ("[:most]", "[most:]")],
)
def test_a_change_of_anything_that_a_rule_uses_changes_its_text(before: str, after: str, tmp_path: Path) -> None:
    original, changed = loaded(MODULE, tmp_path), loaded(MODULE.replace(before, after), tmp_path)
    assert source_of(original.decide) != source_of(changed.decide)


def test_a_change_of_anything_else_does_not(tmp_path: Path) -> None:
    text = MODULE.replace("OTHER = 1", "OTHER = 2").replace("return x\n", "return -x\n")
    assert source_of(loaded(MODULE, tmp_path).decide) == source_of(loaded(text, tmp_path).decide)


def test_what_a_closure_or_a_partial_holds_belongs_to_the_rule(tmp_path: Path) -> None:
    original, changed = loaded(MODULE, tmp_path), loaded(MODULE.replace("within(4)", "within(5)"), tmp_path)
    assert source_of(original.closed) != source_of(changed.closed)
    partial: list[Callable[..., Any]] = [functools.partial(original.decide, most=most) for most in (1, 1, 2)]
    assert source_of(partial[0]) == source_of(partial[1]) != source_of(partial[2])


def test_functions_that_call_each_other_come_once(tmp_path: Path) -> None:
    module = loaded("def a(x):\n    return b(x)\n\ndef b(x):\n    return a(x)\n", tmp_path)
    assert source_of(module.a).count("def a") == source_of(module.a).count("def b") == 1


def typed(text: str) -> Any:
    """A function as it comes from a session."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names["decide"]


def test_a_rule_typed_into_a_session_has_a_text_too() -> None:
    texts = [
        source_of(typed(f"LIMIT = {limit}\ndef decide(x):\n    return [y {sign} {most} for y in x if y < LIMIT]"))
        for limit, sign, most in [(1, "+", 2), (1, "+", 2), (3, "+", 2), (1, "-", 2), (1, "+", 4)]
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4
