"""Rules judge what was measured; what may be measured, and what a verdict's number is."""

import dataclasses
import math

import pytest
from pydantic import ValidationError

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import Measured, Ruling
from studies.fakes import Toys
from studies.test_study import one_sentence


def test_a_rule_has_three_outcomes() -> None:
    rule = dataclasses.replace(Toys.rules[0], decide=lambda _: Ruling("maybe"))
    with pytest.raises(AssertionError, match="three outcomes"):
        rule.judge(Measured())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_measurement(value: float) -> None:
    with pytest.raises(ValidationError, match="no measurement"):
        Measured(numbers={"rate": Interval(1.0, value)})
    with pytest.raises(ValidationError, match="no measurement"):
        Measured(tables={"rates": [{"rate": value}]})


def test_measurements_survive_json() -> None:
    measured = Measured(numbers={"rate": Interval(1.0, None, 2.0)}, tables={"t": [{"a": 1, "b": None, "c": 0.1}]})
    assert Measured.model_validate_json(measured.model_dump_json()) == measured
    assert measured.number("rate").high == 2
    assert measured.table("u") == []
    with pytest.raises(DeepwideError, match="no number 'speed'") as caught:
        measured.number("speed")
    assert one_sentence(caught.value)


def test_a_number_is_named_by_its_rule_or_by_what_was_measured() -> None:
    measured = Measured(numbers={"seeds": Interval(3.0), "share": Interval(0.5, 0.4, 0.6)})
    rule = Toys.rules[0]
    assert rule.quantity_in(measured, Interval(0.5, 0.4, 0.6)) == "share"
    assert rule.quantity_in(measured, Interval(0.5)) == ""
    assert rule.quantity_in(measured, None) == ""
    named = dataclasses.replace(rule, quantity="toys per day")
    assert named.quantity_in(measured, Interval(3.0)) == "toys per day"
    assert named.quantity_in(measured, None) == ""
    assert named.source == rule.source, "what a number is called is no part of the rule"
