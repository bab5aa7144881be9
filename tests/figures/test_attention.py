"""Attention patterns as pictures: a panel per head, a cell per pair, and the two copies parted."""

from pathlib import Path
from typing import Any

from deepwide.figures import attention_chart, save_chart

ROWS: list[dict[str, Any]] = [
    {"head": head, "row": i, "column": j, "attention": float(j == max(i - offset, 0))}
    for head, offset in (("previous", 1), ("induction", 3))
    for i in range(8)
    for j in range(i + 1)
]


def test_there_is_a_panel_per_head_with_its_cells() -> None:
    chart = attention_chart(ROWS, "a title").to_dict()
    shared = chart.get("datasets", {})

    def values(layer: dict[str, Any]) -> Any:  # wherever Altair has put them
        return shared[layer["data"]["name"]] if "name" in layer["data"] else layer["data"]["values"]

    assert [panel["title"]["text"] for panel in chart["hconcat"]] == ["previous", "induction"]
    for panel in chart["hconcat"]:
        cells, vertical, horizontal = panel["layer"]
        assert len(values(cells)) == 8 * 9 / 2
        assert cells["encoding"]["color"]["scale"]["domain"] == [0, 1]
        for line in (vertical, horizontal):
            assert values(line) == [{"row": 4, "column": 4}]


def test_it_becomes_a_picture(tmp_path: Path) -> None:
    svg = save_chart(attention_chart(ROWS, "a title", "below"), tmp_path / "attention.svg").read_text()
    for words in ("a title", "below", "previous", "induction", "looked at", "looking"):
        assert words in svg
