"""Numbers say what they are, intervals have their limits, times are split where that is known."""

import dataclasses

import pytest

from deepwide.answers import Interval
from deepwide.studies import Measured, StudyResult, show_interval, show_measured, show_time
from studies.fakes import Toys


def result(**changes: object) -> StudyResult:
    measured = Measured(numbers={"done": Interval(1.0, 0.9, 1.0)})
    fields: dict[str, object] = {
        "study": "toys", "preset": "cpu", "question": Toys.question, "source": "", "measured": measured,
        "settings": {"depths": [1, 2], "steps": 31}, "verdicts": tuple(rule.judge(measured) for rule in Toys.rules),
        "seconds": 90.0, "rule_hash": "0123", "rule_hash_at_start": "0123", "code": {"deepwide": "9.9"},
    }  # fmt: skip
    return StudyResult.model_validate(fields | changes)


def test_a_number_is_shown_with_what_it_is() -> None:
    class Counted(Toys):
        rules = (dataclasses.replace(Toys.rules[0], quantity="share of toys"),)

    assert show_measured(Toys(), result(), 0) == "done: 1 (95%: 0.9 to 1)"
    assert show_measured(Counted(), result(), 0) == "share of toys: 1 (95%: 0.9 to 1)"
    none = tuple(verdict.model_copy(update={"measured": None}) for verdict in result().verdicts)
    assert show_measured(Counted(), result(verdicts=none), 0) == ""


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"seconds": 90.0}, "It took 90 s."),
        ({"training_seconds": 90.0, "measuring_seconds": 300.0},
         "Training took 90 s of one worker, measuring 5.0 min."),
        ({"training_seconds": 0.0, "measuring_seconds": 3.0}, "Measuring took 3 s."),
    ],
)  # fmt: skip
def test_the_time_is_split_where_that_is_known(times: dict[str, float], sentence: str) -> None:
    assert show_time(Measured.model_validate(times)) == sentence


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.36, 0.27, 0.45), "0.36 (95%: 0.27 to 0.45)"),
        (Interval(3.0), "3"),
        (Interval(57264.0), "57,264"),
        (Interval(0.12345), "0.1235"),
        (Interval(1.0, 1.0, 1.0), "1 (95%: 1 to 1)"),
        (Interval(3.00002, 3.00001, 3.00003), "3.00002 (95%: 3.00001 to 3.00003)"),
        (dataclasses.replace(Interval(3.0), low=1.0), "3"),
    ],
)
def test_an_interval_is_shown_with_its_limits_if_it_has_both(interval: Interval, text: str) -> None:
    assert show_interval(interval) == text
