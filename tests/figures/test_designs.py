"""A design as a picture: the curve, its batches, the floor, and where the runs are."""

from pathlib import Path

import pytest

import deepwide
from deepwide.figures import design_chart, save_chart
from designing.bases import REAL, runs


@pytest.fixture(scope="module")
def design() -> deepwide.Design:
    return deepwide.sweep_design(REAL, runs(), target="1M", budget="3e12")


def test_every_batch_and_every_run_is_drawn(design: deepwide.Design) -> None:
    chart = design_chart(design).to_dict()
    curve, below = chart["vconcat"]
    _, line, dots = curve["layer"]
    rows = chart["datasets"]
    assert len(rows[line["data"]["name"]]) == len(design.frontier)
    assert len(rows[dots["data"]["name"]]) == len(design.stages)
    assert sum(row["seeds"] for row in rows[below["data"]["name"]]) == len(design.runs)
    low, high = line["encoding"]["y"]["scale"]["domain"]
    assert low < design.floor < design.now.ratio < high


def test_a_design_without_runs_is_drawn_too(tmp_path: Path) -> None:
    done = deepwide.sweep_design(REAL, runs(), target="1M", budget="3e12", until=100.0)
    assert len(design_chart(done).to_dict()["vconcat"]) == 1
    svg = save_chart(design_chart(done), tmp_path / "design.svg").read_text()
    assert "Best depth at 1M" in svg


def test_a_design_from_nothing_is_drawn(tmp_path: Path) -> None:
    design = deepwide.sweep_design(REAL, target="1M", budget="1e12", rehearse=0)
    svg = save_chart(design_chart(design), tmp_path / "design.svg").read_text()
    assert "high/low of the 95% interval" in svg
    assert "spent (FLOPs)" in svg
