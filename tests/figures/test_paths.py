"""Accuracy by path length: one panel per recipe, and the published values in the first."""

from typing import Any

import pytest

from deepwide.figures import path_chart

pytest.importorskip("altair")


def rows(recipe: str) -> list[dict[str, Any]]:
    return [
        {"recipe": recipe, "length": length, "accuracy": 0.5 - 0.1 * length, "low": 0.3, "high": 0.6,
         "whole_network": 0.9}
        for length in range(3)
    ]  # fmt: skip


def values(chart: dict[str, Any], panel: dict[str, Any]) -> list[tuple[str, int, Any]]:
    lines = next(layer for layer in panel["layer"] if layer["mark"]["type"] == "line")
    points = chart["datasets"][lines["data"]["name"]]
    return [(point["source"], point["length"], point["accuracy"]) for point in points]


def test_published_values_stand_beside_ours_in_the_first_panel_only() -> None:
    chart = path_chart([*rows("a"), *rows("b")], [0.4, 0.3], "title").to_dict()
    first, second = chart["hconcat"]
    ours = [("measured here", length, pytest.approx(0.5 - 0.1 * length)) for length in range(3)]
    assert values(chart, first) == [*ours, ("published code", 0, 0.4), ("published code", 1, 0.3)]
    assert values(chart, second) == ours
    assert (first["title"]["text"], second["title"]["text"]) == ("a", "b")


def test_without_intervals_there_are_only_points() -> None:
    bare = [row | {"low": None, "high": None} for row in rows("a")]
    chart = path_chart(bare, [], "title").to_dict()
    [panel] = chart["hconcat"]
    [intervals] = [layer["data"] for layer in panel["layer"] if "y2" in layer["encoding"]]
    assert chart["datasets"].get(intervals.get("name"), intervals.get("values", [])) == []
    assert len(values(chart, panel)) == 3
