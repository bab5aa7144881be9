"""Values during training: a panel each, a line each, and bands where there are intervals."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.figures import save_chart, step_chart

ROWS: list[dict[str, Any]] = [
    {"panel": panel, "line": line, "step": step, "value": step / 40, "low": step / 50, "high": step / 30}
    for panel in ("accuracy", "score")
    for line in ("1 layer", "2 layers")
    for step in (0, 10, 20)
]


def test_there_is_a_panel_each_and_all_share_their_axes_and_colours() -> None:
    panels = step_chart(ROWS, "a title", label="share").to_dict()["hconcat"]
    assert [panel["title"]["text"] for panel in panels] == ["accuracy", "score"]
    for panel in panels:
        band, line = (layer["encoding"] for layer in panel["layer"])
        assert line["x"]["scale"]["domain"] == [0, 20]
        assert line["y"]["scale"]["domain"] == [0, 1]
        assert band["y2"]["field"] == "high"
        assert line["color"]["scale"]["domain"] == ["1 layer", "2 layers"]
    assert [panel["layer"][1]["encoding"]["y"]["title"] for panel in panels] == ["share", None]


def test_without_intervals_there_is_no_band() -> None:
    plain = [{name: row[name] for name in ("panel", "line", "step", "value")} for row in ROWS]
    assert [len(panel["layer"]) for panel in step_chart(plain, "a title").to_dict()["hconcat"]] == [1, 1]


@pytest.mark.parametrize("rows", [ROWS, []])
def test_it_becomes_a_picture(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    svg = save_chart(step_chart(rows, "a title"), tmp_path / "steps.svg").read_text()
    for words in ("a title", *{row["line"] for row in rows}, *{row["panel"] for row in rows}):
        assert words in svg
