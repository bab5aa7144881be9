"""Attention on a word: a line per position and head that looks somewhere, letters below."""

from pathlib import Path
from typing import Any

from deepwide.figures import look_chart, save_chart
from deepwide.logic import analyse_language

LANGUAGE = analyse_language("P(a & (c S< a))", word="bacca", alphabet="abc", search=False)


def values(layer: dict[str, Any], chart: dict[str, Any]) -> list[dict[str, Any]]:
    data = layer["data"]
    rows: list[dict[str, Any]] = chart["datasets"][data["name"]] if "name" in data else data["values"]
    return rows


def test_every_head_and_position_that_looks_somewhere_has_a_line() -> None:
    chart: dict[str, Any] = look_chart(LANGUAGE).to_dict()
    lines, dots, letters = (values(layer, chart) for layer in chart["layer"])
    looking = sum(place is not None for each in LANGUAGE.looks for place in each.positions)
    assert len(lines) == looking > 0
    assert "".join(row["letter"] for row in letters) == "bacca"
    assert len(dots) == 2 * 5
    assert {(row["y"], row["y2"]) for row in lines} == {(0, 1), (1, 2)}
    assert "accepted" in str(chart["title"])


def test_it_is_drawn(tmp_path: Path) -> None:
    save_chart(look_chart(LANGUAGE), tmp_path / "looks.svg")
    assert "Where the heads look on bacca" in (tmp_path / "looks.svg").read_text()
