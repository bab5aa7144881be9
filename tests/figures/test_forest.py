"""The forest plot has every pooled set, its lengths and the pooled answer; open ends are arrows."""

from deepwide.answers import Interval
from deepwide.figures.forest import COST, PLACE, _clipped, forest_chart
from deepwide.pooling import evidence


def test_every_pooled_set_and_length_and_the_answer_are_there() -> None:
    answer = evidence()
    spec = forest_chart(answer).to_dict()
    rows = [row for data in spec["datasets"].values() for row in data]
    labels = {row["label"] for row in rows}
    assert {"gemstones: all lengths", "morph: all lengths", "mean over sets", "a set not seen yet"} <= labels
    assert not any("ours" in label for label in labels)
    assert {row["panel"] for row in rows} == {PLACE, COST}
    new = next(row for row in rows if row["label"] == "a set not seen yet" and row["panel"] == PLACE)
    assert (new["value"], new["low"]) == (answer.ratio_new.value, answer.ratio_new.low)


def test_an_interval_beyond_the_axis_ends_in_an_arrow() -> None:
    row = _clipped(Interval(9.0, 0.1, 20.0), (0.25, 2.5))
    assert row == {"value": 2.5, "low": None, "high": None}
