"""Tokens per parameter against compute: a line per surface, a band where there are limits."""

from pathlib import Path
from typing import Any

from deepwide.figures import compute_chart, save_chart
from figures.fits import layers, spec

ROWS: list[dict[str, Any]] = [
    {"source": source, "train_flops": flops, "tokens_per_param": ratio, "low": low, "high": high}
    for source, flops, ratio, low, high in (
        ("ours", 1e20, 22.0, 20.0, 26.0),
        ("ours", 1e24, 17.0, 7.0, 35.0),
        ("printed", 1e20, 40.0, None, None),
        ("printed", 1e24, 100.0, None, None),
    )
]


def test_the_axes_hold_lines_and_band() -> None:
    chart = spec(compute_chart(ROWS, "a title"))
    low, high = layers(chart)[1]["encoding"]["y"]["scale"]["domain"]
    assert low < 7 < 100 < high
    banded = [rows for rows in chart["datasets"].values() if len(rows) == 2]
    assert [{row["source"] for row in rows} for rows in banded] == [{"ours"}]


def test_it_becomes_a_picture(tmp_path: Path) -> None:
    svg = save_chart(compute_chart(ROWS, "a title", "below"), tmp_path / "compute.svg").read_text()
    for words in ("a title", "below", "printed", "training FLOPs", "tokens per parameter"):
        assert words in svg
