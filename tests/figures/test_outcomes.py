"""The map of who trained: a panel per depth, a symbol per outcome; and curves with a band where there is one."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.figures import growth_chart, outcome_map, save_chart

ROWS: list[dict[str, Any]] = [
    {"scheme": scheme, "depth": depth, "lr": lr, "warmup": warmup, "state": state, "validation_loss": loss}
    for scheme, depth, lr, warmup, state, loss in [
        ("a", 6, 1e-3, 12, "trained", 0.123),
        ("b", 6, 1e-3, 12, "stuck", 2.25),
        ("a", 6, 1e-2, 12, "diverged", None),
        ("a", 48, 1e-3, 12, "seeds differ", 1.2),
        ("a", 6, 1e-3, 0, "trained", 0.2),
    ]
]


def labels(panel: dict[str, Any], shared: dict[str, Any]) -> list[str]:
    data = panel["data"]
    rows = shared[data["name"]] if "name" in data else data["values"]
    return [row["label"] for row in rows]


def test_a_panel_holds_a_depth_and_its_tiles_say_how_they_ended(tmp_path: Path) -> None:
    chart = outcome_map(ROWS, "a title", "below")
    spec = chart.to_dict()
    panels = spec["hconcat"]
    assert [panel["title"]["text"] for panel in panels] == ["6 layers", "48 layers", "6 layers, no warm-up"]
    assert [labels(panel, spec.get("datasets", {})) for panel in panels] == [
        ["● 0.12", "○ 2.25", "×"],
        ["? 1.20"],
        ["● 0.20"],
    ]
    for panel in panels:
        assert panel["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["a", "b"]
    colours = panels[0]["layer"][0]["encoding"]["color"]["scale"]
    assert len(set(colours["range"])) == len(colours["domain"]) == 4
    assert "trained" in save_chart(chart, tmp_path / "map.svg").read_text()


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_line_of_growth_has_a_band_where_there_is_an_interval(logarithmic: bool, tmp_path: Path) -> None:
    rows = [
        {
            "line": line,
            "depth": depth,
            "change": depth**power,
            "low": depth**power / 2 if power > 1 else None,
            "high": 9,
        }
        for line, power in (("one", 1), ("two", 2))
        for depth in (6, 12, 24)
    ]
    chart = growth_chart(rows, "depth", "change", "a title", lines="line", logarithmic=logarithmic)
    spec = chart.to_dict()
    band, line, _ = spec["layer"]
    assert "isValid" in str(band["transform"])
    assert line["encoding"]["y"]["scale"].get("type") == ("log" if logarithmic else None)
    assert line["encoding"]["color"]["scale"]["domain"] == ["one", "two"]
    assert "two" in save_chart(chart, tmp_path / "growth.svg").read_text()
