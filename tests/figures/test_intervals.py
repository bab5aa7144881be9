"""Estimates with intervals: open sides end in arrows at the edge, points without an interval have no line."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.figures import interval_chart, save_chart
from figures.fits import data, layers, spec

ROWS: list[dict[str, Any]] = [
    {"label": "2/4", "source": "ours", "value": 50.0, "low": 30.0, "high": 80.0, "panel": "one"},
    {"label": "2/4", "source": "theirs", "value": 60.0, "low": None, "high": 90.0, "panel": "one"},
    {"label": "4/8", "source": "ours", "value": 200.0, "low": 100.0, "high": None, "panel": "two"},
    {"label": "4/8", "source": "theirs", "value": 300.0, "low": None, "high": None, "panel": "two"},
]


def placed(chart: Any) -> dict[float, dict[str, Any]]:
    return {row["value"]: row for row in data(chart, "known")}


@pytest.mark.parametrize("log", [True, False])
def test_an_open_side_runs_to_the_edge_of_the_picture(log: bool) -> None:
    chart = interval_chart(ROWS, "a title", axis="size", log=log)
    first, last = layers(spec(chart))[0]["encoding"]["x"]["scale"]["domain"]
    rows = placed(chart)
    assert first < 30
    assert last > 300
    assert (rows[50.0]["from"], rows[50.0]["to"]) == (30, 80)
    assert (rows[60.0]["from"], rows[60.0]["from_open"], rows[60.0]["to_open"]) == (first, True, False)
    assert (rows[200.0]["to"], rows[200.0]["to_open"]) == (last, True)
    assert [row["known"] for row in rows.values()] == [True, True, True, False]


def test_panels_have_axes_of_their_own_and_labels_once() -> None:
    chart = spec(interval_chart(ROWS, "a title", panels="panel"))
    domains = [layers(panel)[-1]["encoding"]["x"]["scale"]["domain"] for panel in chart["hconcat"]]
    assert domains[0][1] < 100 < domains[1][1]
    assert [layers(panel)[-1]["encoding"]["y"]["axis"]["labels"] for panel in chart["hconcat"]] == [True, False]


def test_lines_under_one_label_are_apart_and_explained() -> None:
    several = layers(spec(interval_chart(ROWS, "a title")))[-1]["encoding"]
    single = layers(spec(interval_chart(ROWS[::2], "a title")))[-1]["encoding"]
    assert "yOffset" in several
    assert "yOffset" not in single
    assert single["color"]["legend"] is None


def test_it_becomes_a_picture(tmp_path: Path) -> None:
    svg = save_chart(interval_chart(ROWS, "a title", "below", axis="size"), tmp_path / "intervals.svg").read_text()
    for words in ("a title", "below", "2/4", "theirs", "size"):
        assert words in svg
