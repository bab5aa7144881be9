"""The frontier's picture has every shape of the frontier, the plan marked, and the limit."""

import pytest

from deepwide import DeepwideError, plan
from deepwide.figures.frontier import PLANNED, _ticks, frontier_chart


def rows_of(spec: dict[str, dict[str, list[dict[str, object]]]]) -> list[dict[str, object]]:
    return [row for data in spec["datasets"].values() for row in data]


@pytest.mark.parametrize("options", [{}, {"experts": 16, "active": 2}])
def test_every_shape_of_the_frontier_is_there_with_the_plan_and_the_limit(options: dict[str, int]) -> None:
    answer = plan("1.3B", machine="eager", latency="8ms", **options)
    assert answer.speed is not None
    rows = rows_of(frontier_chart(answer).to_dict())
    shapes = [row for row in rows if "name" in row]
    assert len(shapes) == len(answer.speed.frontier)
    (chosen,) = [row for row in shapes if row["kind"] == PLANNED]
    assert chosen["name"] == f"{answer.shape.depth} × {answer.shape.width:,}"
    assert chosen["ms"] == pytest.approx(1000 * answer.speed.decode_seconds.value)
    assert {"ms": 8.0} in rows
    times, losses = [row["ms"] for row in shapes], [row["percent"] for row in shapes]
    assert times == sorted(times)  # type: ignore[type-var]
    assert losses == sorted(losses, reverse=True)  # type: ignore[type-var]


def test_without_a_limit_there_is_no_line_and_without_a_machine_no_picture() -> None:
    rows = rows_of(frontier_chart(plan("1.3B", machine="eager")).to_dict())
    assert not [row for row in rows if "name" not in row]
    with pytest.raises(DeepwideError, match="a frontier needs a plan with a machine or a limit on time"):
        frontier_chart(plan("1.3B"))


def test_ticks_go_below_a_millisecond() -> None:
    assert all(0.02 <= tick <= 0.9 for tick in _ticks(0.02, 0.9))
    assert len(_ticks(0.02, 0.9)) > 2
