"""What a plan says about its speed, in notes."""

from deepwide import Interval
from deepwide.planning import Speed


def speed(loss: float) -> Speed:
    return Speed(
        machine="mine",
        source="a test",
        batch=2,
        cached=2048,
        limit_seconds=0.008,
        decode_seconds=Interval(0.0079),
        tokens_per_second=253.0,
        train_step_seconds=None,
        loss_percent=Interval(loss),
        frontier=[],
    )


def test_a_limit_that_costs_something_is_a_note() -> None:
    limit, machine = speed(0.5).notes()
    assert limit.code == "speed-limit"
    assert "8 ms per token costs +0.50%" in limit.text
    assert "the last token of 2,048, batch 2, on mine: a test" in machine.text


def test_a_limit_that_costs_nothing_is_none() -> None:
    assert [note.code for note in speed(0.0).notes()] == ["machine"]
