"""Right answers against difficulty, and the map of layers and hops."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.figures import accuracy_chart, head_map, save_chart

ROWS: list[dict[str, Any]] = [
    {"depth": depth, "hops": k, "accuracy": 1 / (1 + k), "low": -0.2, "high": 1.3, "panel": panel}
    for panel in ("narrow", "wide")
    for depth in (2, 10)
    for k in range(3)
]
HEADS = [
    {"layer": layer, "hops": j, "attention": float(layer == j)} for layer in (1, 2) for j in range(3)
]  # fmt: skip


def values(chart: dict[str, Any], layer: int) -> list[dict[str, Any]]:
    """The rows of a layer, wherever Altair has put them."""
    data = chart["layer"][layer]["data"]
    rows: list[dict[str, Any]] = chart["datasets"][data["name"]] if "name" in data else data["values"]
    return rows


def test_there_is_a_line_per_depth_in_their_order_and_a_threshold() -> None:
    chart = accuracy_chart(ROWS[:6], "hops", "a title", solved=0.9).to_dict()
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["rule", "area", "line", "point"]
    assert values(chart, 0) == [{"accuracy": 0.9}]
    assert chart["layer"][2]["encoding"]["color"]["scale"]["domain"] == ["2", "10"]


def test_bands_end_where_shares_do_and_are_left_out_where_there_is_no_interval() -> None:
    chart = accuracy_chart(ROWS[:6], "hops", "a title", solved=0.9).to_dict()
    assert {(row["low"], row["high"]) for row in values(chart, 1)} == {(0.0, 1.0)}
    alone = [row | {"low": None, "high": None} for row in ROWS[:6]]
    marks = [layer["mark"]["type"] for layer in accuracy_chart(alone, "hops", "a", solved=0.9).to_dict()["layer"]]
    assert marks == ["rule", "line", "point"]


def test_panels_share_one_axis_of_difficulty() -> None:
    chart = accuracy_chart(ROWS, "hops", "a title", solved=0.9, panels="panel").to_dict()
    assert [panel["title"]["text"] for panel in chart["hconcat"]] == ["narrow", "wide"]
    spans = [panel["layer"][2]["encoding"]["x"]["scale"]["domain"] for panel in chart["hconcat"]]
    assert spans == [[0, 2], [0, 2]]
    assert [panel["layer"][2]["encoding"]["x"]["axis"]["values"] for panel in chart["hconcat"]] == [[0, 1, 2]] * 2


@pytest.mark.parametrize("name", ["accuracy", "heads"])
def test_they_become_pictures(name: str, tmp_path: Path) -> None:
    chart = (
        accuracy_chart(ROWS, "hops", "a title", "below", solved=0.9, panels="panel")
        if name == "accuracy"
        else head_map(HEADS, "layer", "hops", "attention", "a title", "below")
    )
    svg = save_chart(chart, tmp_path / "picture.svg").read_text()
    for words in ("a title", "below", *(("wide", "right answers") if name == "accuracy" else ("1.00", "layer"))):
        assert words in svg
