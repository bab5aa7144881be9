"""Loss against depth: points and bowl on one scale, labels that do not hit each other."""

from pathlib import Path
from typing import Any

from deepwide.figures import bowl_chart, save_chart
from figures.fits import data, layers, spec

POINTS: list[dict[str, Any]] = [
    {"x": 0.2, "percent": 2.4, "name": "768×3", "class": "smaller"},
    {"x": 0.9, "percent": -0.1, "name": "1280×36", "class": "1B"},
    {"x": 0.91, "percent": -0.1, "name": "1281×36", "class": "1B"},
]
CURVE = [{"x": x, "percent": y, "low": y - 0.3, "high": y + 0.3} for x, y in ((0.2, 2.5), (0.9, 0.0), (3.0, 1.8))]


def test_points_and_curve_are_within_the_axes() -> None:
    chart = spec(bowl_chart(POINTS, CURVE, "a title"))
    encoding = layers(chart)[1]["encoding"]
    first, last = encoding["x"]["scale"]["domain"]
    low, high = encoding["y"]["scale"]["domain"]
    assert first < 0.2 < 3.0 < last
    assert low < -0.3 < 2.8 < high


def test_neighbours_are_labelled_at_different_corners() -> None:
    rows = {row["name"]: row["corner"] for row in data(bowl_chart(POINTS, CURVE, "a title"), "corner")}
    assert rows["1280×36"] != rows["1281×36"]


def test_it_becomes_a_picture(tmp_path: Path) -> None:
    svg = save_chart(bowl_chart(POINTS, CURVE, "a title", x_title="depth"), tmp_path / "bowl.svg").read_text()
    for words in ("a title", "768×3", "loss above the best depth (%)", "depth"):
        assert words in svg
