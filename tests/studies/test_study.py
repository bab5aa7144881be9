"""A study's settings, the hash of its rules, and its result as a table."""

import dataclasses

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import REPRODUCED, Measured, Ruling, StudyResult
from studies.fakes import Toys


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return "\n" not in text and len(text) < 400 and text.endswith((".", "?"))


def test_a_preset_is_the_settings_with_some_replaced() -> None:
    assert Toys().settings("cpu").model_dump() == {"depths": (1, 2), "steps": 30}
    assert Toys().settings("cpu", ("steps=7", "depths=[4]")).model_dump() == {"depths": (4,), "steps": 7}
    for text, depths in (("4", (4,)), ("4,8", (4, 8)), ("4, 8", (4, 8))):
        assert Toys().settings("cpu", (f"depths={text}",)).model_dump()["depths"] == depths


@pytest.mark.parametrize(
    ("preset", "changes", "match"),
    [
        ("qick", (), "did you mean 'quick'"),
        ("x" * 900, (), "no preset"),
        ("quick", ("step=1",), "did you mean 'steps'"),
        ("quick", ("steps",), "not a setting"),
        ("quick", ("steps=many",), "steps"),
        ("quick", ("steps.first=1",), "one value|table|steps"),
    ],
)
def test_wrong_settings_get_one_sentence(preset: str, changes: tuple[str, ...], match: str) -> None:
    with pytest.raises(DeepwideError, match=match) as caught:
        Toys().settings(preset, changes)
    assert one_sentence(caught.value)


def test_the_hash_of_the_rules_covers_words_and_code() -> None:
    rule = Toys.rules[0]

    class Worded(Toys):
        rules = (dataclasses.replace(rule, text="reproduced if most runs are done"),)

    class Coded(Toys):
        rules = (dataclasses.replace(rule, decide=lambda _: Ruling(REPRODUCED)),)

    class Same(Toys):
        rules = (dataclasses.replace(rule),)

    assert len({Toys().rule_hash, Worded().rule_hash, Coded().rule_hash}) == 3
    assert Same().rule_hash == Toys().rule_hash


def test_a_result_is_one_row_per_claim() -> None:
    measured = Measured(numbers={"done": Interval(1.0, 0.5, 1.0)})
    verdicts = tuple(rule.judge(measured) for rule in Toys.rules)
    result = StudyResult(
        study="toys", preset="quick", question="?", source="", settings={}, measured=measured, verdicts=verdicts,
        seconds=1.0, rule_hash="a", rule_hash_at_start="b", code={},
    )  # fmt: skip
    assert result.rules_changed
    assert result.rows() == [
        {"study": "toys", "preset": "quick", "claim": "every toy finishes", "outcome": REPRODUCED, "measured": 1.0,
         "low": 0.5, "high": 1.0}
    ]  # fmt: skip


def test_a_study_reads_no_files_unless_it_says_so() -> None:
    assert Toys().inputs(Toys().settings("quick")) == ()
