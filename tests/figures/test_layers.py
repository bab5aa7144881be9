"""Values by layer: a panel per condition, a line per network, and nothing below the floor."""

from pathlib import Path
from typing import Any

from deepwide.figures import layer_chart, save_chart

ROWS: list[dict[str, Any]] = [
    {"layer": layer, "network": network, "panel": panel, "rest": value**layer, "low": value**layer / 2, "high": None}
    for panel in ("one", "two")
    for network, value in (("slow", 0.9), ("quick", 1e-9))
    for layer in range(4)
]


def spec(**arguments: Any) -> dict[str, Any]:
    chart: dict[str, Any] = layer_chart(ROWS, "rest", "a title", "below", **arguments).to_dict()
    return chart


def datasets(chart: dict[str, Any]) -> list[Any]:
    """The rows of each panel, wherever Altair has put them."""
    shared = chart.get("datasets", {})
    return [
        shared[panel["data"]["name"]] if "name" in panel["data"] else panel["data"]["values"]
        for panel in chart["hconcat"]
    ]


def test_there_is_a_panel_per_condition_with_its_rows() -> None:
    panels = spec()["hconcat"]
    assert [panel["title"]["text"] for panel in panels] == ["one", "two"]
    sizes = [len(values) for values in datasets(spec())]
    assert sizes == [8, 8]


def test_values_below_the_floor_are_drawn_on_it() -> None:
    text = str(spec(floor=1e-12))
    assert "1e-27" not in text
    assert "1e-12" in text
    assert "1e-27" in str(spec()) or "1.0000000000000002e-27" in str(spec())


def test_the_axis_spans_the_data_and_only_the_first_panel_names_it() -> None:
    first, second = spec(floor=1e-12)["hconcat"]
    y = [panel["layer"][1]["encoding"]["y"] for panel in (first, second)]
    assert y[0]["scale"]["domain"] == [1e-12, 1.0]
    assert [axis["title"] for axis in y] == ["rest", None]


def test_it_becomes_a_picture(tmp_path: Path) -> None:
    svg = save_chart(layer_chart(ROWS, "rest", "a title"), tmp_path / "layers.svg").read_text()
    for words in ("a title", "slow", "quick", "one", "two"):
        assert words in svg
