"""The map holds what was put on it, in all three formats, for any mix of shapes."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.catalogue import find_model
from deepwide.errors import DeepwideError
from deepwide.figures import save_chart
from deepwide.figures.depth_width import Point, audit_map, depth_width_map, plan_map
from deepwide.figures.style import HEIGHT, WIDTH, share
from deepwide.laws import Bowl, TransitionLaw, measured_optimum, transition_law
from deepwide.planning import audit, plan
from deepwide.shape import Shape


def points(*names: str) -> list[Point]:
    audits = [audit(find_model(name).shape, name=name) for name in names]
    return [Point.of(a.name, a.shape, a.verdict.outcome, a.sentence) for a in audits]


def rows(chart: Any) -> list[dict[str, Any]]:
    """Everything that is drawn."""
    return [row for values in json.loads(chart.to_json())["datasets"].values() for row in values]


def bands(law: TransitionLaw) -> list[list[dict[str, float]]]:
    """The outlines of the bands, the widest first."""
    spec = json.loads(depth_width_map(points("gpt3-175b"), law).to_json())
    layers = [layer for layer in spec["layer"] if "fill" in layer["mark"]]
    return [spec["datasets"][layer["data"]["name"]] for layer in layers]


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
    own = Bowl(curvature=0.02, error=0.001, x_range=(-1, 1))
    assert len(bands(transition_law())) == 2  # from the law's coefficients, and from the loss data
    assert len(bands(TransitionLaw(name="mine", a=5, b=0.05))) == 1
    assert len(bands(TransitionLaw(name="mine", a=5, b=0.05, bowl=own))) == 0


def test_the_band_s_outline_is_the_laws_limits_at_equal_size() -> None:
    wide, outline = bands(transition_law())
    for row in wide[:: len(wide) // 20]:
        optimum = measured_optimum(12 * row["depth"] * row["width"] ** 2)
        if row["depth"] > 1:
            assert min(abs((limit or 0) / row["depth"] - 1) for limit in (optimum.low, optimum.high)) < 1e-6
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


def test_a_fitted_law_with_a_published_name_is_drawn_beside_it() -> None:
    """Code review, B1: the published curve was drawn in its place."""
    mine = TransitionLaw(name="levine", a=4.5, b=0.08)
    curves = [row for row in rows(depth_width_map(points("gpt2"), mine)) if "law" in row]
    for label, law in (("levine", mine), ("levine (published)", transition_law())):
        drawn = [row for row in curves if row["law"] == label]
        assert drawn
        for row in drawn:
            assert float(law.width(row["depth"])[0]) == pytest.approx(row["width"], rel=1e-6)


def test_a_plan_s_map_has_the_plan_its_neighbours_its_size_and_public_models() -> None:
    best = plan("1.3B")
    chart = plan_map(best)
    kinds = [row["kind"] for row in rows(chart) if "kind" in row]
    assert (kinds.count("plan"), kinds.count("other depths"), kinds.count("public")) == (1, 4, 3)
    matrices = best.params.block / (best.shape.depth * best.shape.width**2)
    spec = json.loads(chart.to_json())
    (line,) = [layer for layer in spec["layer"] if layer["mark"].get("strokeWidth") == 1.2]
    for row in spec["datasets"][line["data"]["name"]]:
        assert matrices * row["depth"] * row["width"] ** 2 == pytest.approx(best.law_params)
    assert "equivalent width" in json.dumps(spec)


def test_lines_of_equal_size_run_from_edge_to_edge_and_are_labelled_inside_the_frame() -> None:
    spec = json.loads(depth_width_map(points("gpt2", "gpt3-175b", "llama-3-8b")).to_json())
    x, y = (spec["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
    # In whatever order Altair has them: the curves have many rows each, the labels one.
    labels, rows_of_curves = sorted((rows for rows in spec["datasets"].values() if "size" in rows[0]), key=len)
    curves: dict[str, list[dict[str, float]]] = {}
    for row in rows_of_curves:
        curves.setdefault(row["size"], []).append(row)
    assert len(curves) >= 5
    for curve in curves.values():
        assert curve[0]["width"] == pytest.approx(x[0]) or curve[0]["depth"] == pytest.approx(y[1])
        assert curve[-1]["width"] == pytest.approx(x[1])
    assert {label["size"] for label in labels} <= set(curves)
    for label in labels:
        assert x[0] <= label["width"] < x[1]
        assert y[0] < label["depth"] < 0.96 * y[1]


def test_verdicts_and_laws_can_be_told_apart_without_colour() -> None:
    spec = json.loads(depth_width_map(points("gpt2", "gpt3-175b", "llama-3-8b")).to_json())
    shapes = next(e["shape"]["scale"]["range"] for layer in spec["layer"] if "shape" in (e := layer["encoding"]))
    dashes = next(
        e["strokeDash"]["scale"]["range"] for layer in spec["layer"] if "strokeDash" in (e := layer["encoding"])
    )
    assert len(set(shapes)) == len(shapes)
    assert len({str(dash) for dash in dashes}) == len(dashes) == 6


def test_an_audit_s_map_has_the_shape_of_the_same_size_at_the_law_s_depth() -> None:
    result = audit("llama-3-8b")
    assert result.instead is not None
    (instead,) = [row for row in rows(audit_map([result])) if row.get("kind") == "the same size at the law's depth"]
    assert (instead["depth"], instead["blocks"]) == (result.instead.depth, "6.96B")
    several = rows(audit_map([result, audit("gpt2")]))
    assert sorted(row["name"] for row in several if "kind" in row) == ["gpt2", "llama-3-8b"]


@pytest.mark.parametrize("names", [("gpt3-175b",), ("gpt2", "gpt2-xl", "llama-3-8b", "gpt3-175b")])
def test_no_law_runs_through_the_label_of_a_size(names: tuple[str, ...]) -> None:
    spec = json.loads(audit_map([audit(name) for name in names]).to_json())
    texts = [layer for layer in spec["layer"] if layer["encoding"].get("text", {}).get("field") == "size"]
    curves = next(layer for layer in spec["layer"] if layer["encoding"].get("color", {}).get("field") == "law")
    labels, lines = (spec["datasets"][layer["data"]["name"]] for layer in (texts[0], curves))
    assert labels
    x = texts[0]["encoding"]["x"]["scale"]["domain"]
    y = texts[0]["encoding"]["y"]["scale"]["domain"]

    def place(row: dict[str, float]) -> tuple[float, float]:
        return WIDTH * share(row["width"], *x), HEIGHT * (1 - row["depth"] / y[1])

    for label in labels:
        left, base = place(label)
        inside = [row for row in map(place, lines) if left + 5 < row[0] < left + 30 and base - 11 < row[1] < base - 2]
        assert inside == [], label["size"]
