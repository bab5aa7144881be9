"""Loss against size, with crossings."""

from dataclasses import replace
from typing import Any

import pytest

from deepwide.figures import loss_curves
from deepwide.fitting import TransitionFit
from figures.fits import SIZES, data, layers, spec, transition


def opened(fit: TransitionFit, **limits: Any) -> TransitionFit:
    """The same fit whose first crossing is another."""
    return fit.model_copy(update={"crossings": (replace(fit.crossings[0], **limits), *fit.crossings[1:])})


def test_a_crossing_lies_within_its_bar_and_an_open_side_runs_to_the_edge() -> None:
    pair = transition().crossings[0]
    for low in (None, float(SIZES[0]) / 10, pair.low):
        chart = spec(loss_curves(opened(transition(), low=low)))
        left = layers(chart)[0]["encoding"]["x"]["scale"]["domain"][0]
        row = next(row for row in data(chart, "pair") if "limits" in row)
        assert row["from"] < row["size"] < row["to"] == pytest.approx(pair.high)
        assert row["from_open"] == (low != pair.low)
        assert row["from"] == pytest.approx(pair.low if low == pair.low else left)
        assert ("no limit" in row["limits"]) == (low is None)


def test_a_crossing_outside_the_runs_is_in_the_picture_with_its_curves() -> None:
    size = SIZES[0] / 3
    chart = loss_curves(opened(transition(), size=size, low=None, status="extrapolated"))
    first, last = layers(spec(chart))[0]["encoding"]["x"]["scale"]["domain"]
    (row,) = [row for row in data(chart, "pair") if "extrapolated" in row["pair"]]
    assert first < row["size"] < last
    assert row["from"] == first
    dashed = [row for row in data(chart, "pair") if row["pair"] == "(1, 2)"]
    assert {row["depth"] for row in dashed} == {"1", "2"}
    assert min(row["size"] for row in dashed) == pytest.approx(size)
