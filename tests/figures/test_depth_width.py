"""The map holds what was put on it, in all three formats, for any mix of shapes."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.auditing import audit
from deepwide.catalogue import find_model
from deepwide.errors import DeepwideError
from deepwide.figures import save_chart
from deepwide.figures.depth_width import Point, depth_width_map
from deepwide.laws import TransitionLaw, transition_law
from deepwide.shape import Shape


def points(*names: str) -> list[Point]:
    verdicts = [audit(find_model(name).shape, name=name) for name in names]
    return [Point.of(v.name, v.shape, v.verdict, v.sentence) for v in verdicts]


def test_every_model_and_every_law_is_in_the_picture(tmp_path: Path) -> None:
    path = save_chart(depth_width_map(points("gpt2", "gpt3-175b", "llama-3-8b")), tmp_path / "map.svg")
    text = " ".join(ElementTree.parse(path).getroot().itertext())
    for word in ("gpt2", "gpt3-175b", "llama-3-8b", "levine", "gemstones", "nanochat", "depth-delusion", "too deep"):
        assert word in text


def test_the_law_s_curve_in_the_chart_is_the_law() -> None:
    spec = json.loads(depth_width_map(points("gpt3-175b")).to_json())
    rows = [row for rows in spec["datasets"].values() for row in rows if row.get("law") == "levine"]
    assert len(rows) > 50
    for row in rows:
        assert float(transition_law().width(row["depth"])[0]) == pytest.approx(row["width"], rel=1e-6)


def test_a_law_without_errors_has_no_band() -> None:
    def bands(law: TransitionLaw) -> int:
        spec = json.loads(depth_width_map(points("gpt2"), law).to_json())
        return sum("fill" in layer["mark"] for layer in spec["layer"])

    assert bands(transition_law()) == 1
    assert bands(TransitionLaw(name="mine", a=5, b=0.05)) == 0


def test_the_band_s_outline_is_the_laws_limits_at_equal_size() -> None:
    spec = json.loads(depth_width_map(points("gpt3-175b")).to_json())
    (layer,) = [layer for layer in spec["layer"] if "fill" in layer["mark"]]
    outline = spec["datasets"][layer["data"]["name"]] if "name" in layer["data"] else layer["data"]["values"]
    assert len(outline) > 100
    for row in outline:
        if row["depth"] > 1:
            limits = transition_law().depth(12 * row["depth"] * row["width"] ** 2)[1:]
            assert min(abs(float(limit[0]) / row["depth"] - 1) for limit in limits) < 1e-6


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 4000)), max_size=6))
def test_any_shapes_can_be_drawn(shapes: list[tuple[int, int]]) -> None:
    spec = depth_width_map([Point.of("p", Shape(depth=d, width=16 * w), "plan") for d, w in shapes]).to_json()
    assert "NaN" not in spec


def test_a_format_nobody_can_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match=r"must end in \.svg, \.png, \.pdf, \.html"):
        save_chart(None, tmp_path / "map.gif")


def test_a_point_lies_on_the_side_of_the_curve_where_its_verdict_puts_it() -> None:
    """Grouped keys and experts make 12·depth·width² a wrong size: the point stands where its own N is."""
    for name in ("qwen3-30b-a3b", "llama-3-8b", "gemma-3-27b", "gpt3-175b", "falcon-180b"):
        spec = json.loads(depth_width_map(points(name)).to_json())
        (row,) = [row for rows in spec["datasets"].values() for row in rows if row.get("name") == name]
        on_the_law = float(transition_law().width(row["depth"])[0])
        assert (row["width"] < on_the_law) == (audit(find_model(name).shape).depth_over_law.value > 1), name
