"""A plan with a limit on time keeps to it, to the budget, and loses as little as can be."""

from typing import Any

import pytest

from deepwide import DeepwideError, plan
from deepwide.planning import Plan


def limited(budget: str = "300M", **options: Any) -> Plan:
    answer = plan(budget, **options)
    assert answer.speed is not None
    return answer


def test_without_a_machine_nothing_changes() -> None:
    assert plan("300M").speed is None


def test_a_machine_without_a_limit_keeps_the_shape_and_says_how_quick_it_is() -> None:
    answer = limited(machine="captured")
    assert answer.shape == plan("300M").shape
    assert answer.speed is not None
    assert answer.speed.limit_seconds is None
    assert answer.speed.loss_percent.value == 0
    assert answer.fixed is None
    own = next(row for row in answer.speed.frontier if row.chosen)
    assert own.decode_seconds == answer.speed.decode_seconds


def test_captured_and_the_default_constants_are_one_machine() -> None:
    assert limited(latency="0.3ms").speed == limited(machine="captured", latency="0.3ms").speed


@pytest.mark.parametrize(("machine", "latency"), [("captured", "0.3ms"), ("eager", "4ms"), ("tensor-8", "500us")])
def test_the_plan_keeps_to_the_limit_and_the_budget(machine: str, latency: str) -> None:
    free, answer = plan("300M"), limited(machine=machine, latency=latency)
    speed = answer.speed
    assert speed is not None
    assert speed.limit_seconds is not None
    assert speed.decode_seconds.value <= speed.limit_seconds
    assert speed.decode_seconds.value > 0.8 * speed.limit_seconds  # and uses it
    assert answer.shape.depth < free.shape.depth
    assert answer.reached <= 1.001 * max(free.reached, answer.budget)
    assert answer.fixed == "latency"
    assert answer.notes[-2].code == "speed-limit"
    # Of the shapes on the frontier that keep to the limit, the plan's has the least loss.
    quick = [row for row in speed.frontier if row.decode_seconds.value <= speed.limit_seconds]
    assert min(quick, key=lambda row: row.loss_percent.value).chosen


def test_less_time_costs_more_loss_and_fewer_layers() -> None:
    answers = [limited(machine="eager", latency=time).speed for time in ("8ms", "5ms", "3ms", "2ms")]
    losses = [speed.loss_percent.value for speed in answers if speed]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


def test_nothing_on_the_frontier_beats_another_in_time_and_loss() -> None:
    speed = limited(machine="eager").speed
    assert speed is not None
    rows = [row for row in speed.frontier if not row.chosen]
    assert len(rows) >= 4
    times, losses = [row.decode_seconds.value for row in rows], [row.loss_percent.value for row in rows]
    assert times == sorted(times)
    assert losses == sorted(losses, reverse=True)


def test_throughput_is_a_limit_on_the_time_of_a_batch() -> None:
    many = limited(machine="captured", throughput=20_000, batch=8).speed
    assert many is not None
    assert many.limit_seconds == pytest.approx(8 / 20_000)
    assert many.tokens_per_second >= 20_000


def test_a_limit_that_the_plan_meets_changes_nothing() -> None:
    answer = limited(machine="captured", latency="1s")
    assert answer.shape == plan("300M").shape
    assert answer.fixed is None


def test_a_fixed_depth_stays_and_the_size_gives_way() -> None:
    answer = limited(machine="captured", latency="0.25ms", depth=12)
    assert answer.shape.depth == 12
    assert answer.reached < 0.9 * answer.budget


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"latency": "1us"}, "nothing decodes within 1 µs per token on 'captured'"),
        ({"latency": "soon"}, "'soon' is not a time"),
        ({"throughput": "-3"}, "not a number of tokens per second"),
        ({"latency": "1ms", "width": 512}, "chooses the width"),
        ({"machine": "eager", "layer_us": 5.0}, "leave bandwidth and layer_us out"),
        ({"machine": "abacus"}, "no machine 'abacus'"),
    ],
)
def test_bad_limits_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        plan("300M", **options)
