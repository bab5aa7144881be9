"""Pictures of fits: what stands in them is what the fit says, and all of it is inside the frame."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.figures import draw_fit, fitted_map, loss_curves, resample_plot, residual_plot, save_chart
from deepwide.fitting import Fit, RidgeFit, TransitionFit, fit_ridge, fit_surface, fit_transition, simulate
from deepwide.fitting.runs import Runs
from deepwide.laws import TransitionLaw, transition_law

TRUTH = TransitionLaw(name="truth", a=3.2, b=0.25)
SIZES = np.geomspace(1e4, 4e6, 8)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return simulate(TRUTH, depths=(1, 2, 4, 8), sizes=SIZES, seeds=2, noise=0.003)


@pytest.fixture(scope="module")
def transition(runs: Runs) -> TransitionFit:
    return fit_transition(runs, bootstrap=50)


@pytest.fixture(scope="module")
def large() -> RidgeFit:
    """Of Gemstones' sizes and as many depths."""
    sizes = (5e8, 1e9, 2e9)
    many = simulate(transition_law(), depths=tuple(range(10, 66, 5)), sizes=np.array(sizes), seeds=1, noise=0.001)
    return fit_ridge(many, bootstrap=50)


def spec(chart: Any) -> dict[str, Any]:
    made: dict[str, Any] = chart if isinstance(chart, dict) else json.loads(chart.to_json())
    return made


def data(chart: Any, field: str) -> list[dict[str, Any]]:
    """The rows that have a field, each once."""
    rows = [row for rows in spec(chart)["datasets"].values() for row in rows if field in row]
    return [json.loads(row) for row in dict.fromkeys(json.dumps(row) for row in rows)]


def layers(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The single charts of a specification, with what they inherit."""
    shared = part.get("encoding", {})
    inside = [
        each | {"encoding": shared | each.get("encoding", {})}
        for key in ("layer", "hconcat", "concat")
        for each in part.get(key, [])
    ]
    return [layer for each in inside for layer in layers(each)] if inside else [part]


def opened(fit: TransitionFit, **limits: Any) -> TransitionFit:
    """The same fit whose first crossing is another."""
    return fit.model_copy(update={"crossings": (replace(fit.crossings[0], **limits), *fit.crossings[1:])})


def test_a_crossing_lies_within_its_bar_and_an_open_side_runs_to_the_edge(transition: TransitionFit) -> None:
    pair = transition.crossings[0]
    for low in (None, float(SIZES[0]) / 10, pair.low):
        chart = spec(loss_curves(opened(transition, low=low)))
        left = layers(chart)[0]["encoding"]["x"]["scale"]["domain"][0]
        row = next(row for row in data(chart, "pair") if "limits" in row)
        assert row["from"] < row["size"] < row["to"] == pytest.approx(pair.high)
        assert row["from_open"] == (low != pair.low)
        assert row["from"] == pytest.approx(pair.low if low == pair.low else left)
        assert ("no limit" in row["limits"]) == (low is None)


def test_a_crossing_outside_the_runs_is_in_the_picture_with_its_curves(transition: TransitionFit) -> None:
    size = SIZES[0] / 3
    chart = loss_curves(opened(transition, size=size, low=None, status="extrapolated"))
    first, last = layers(spec(chart))[0]["encoding"]["x"]["scale"]["domain"]
    (row,) = [row for row in data(chart, "pair") if "extrapolated" in row["pair"]]
    assert first < row["size"] < last
    assert row["from"] == first
    dashed = [row for row in data(chart, "pair") if row["pair"] == "(1, 2)"]
    assert {row["depth"] for row in dashed} == {"1", "2"}
    assert min(row["size"] for row in dashed) == pytest.approx(size)


def test_runs_that_diverged_are_explained_and_the_loss_has_no_unit(runs: Runs) -> None:
    diverged = np.zeros(len(runs), dtype=bool)
    for chosen in (diverged, diverged | (np.arange(len(runs)) == 3)):
        fit = fit_transition(replace(runs, diverged=chosen), bootstrap=0)
        for picture in (spec(loss_curves(fit)), spec(residual_plot(fit))):
            shapes = [e["shape"] for layer in layers(picture) if "shape" in (e := layer.get("encoding", {}))]
            assert shapes
            assert all((shape["legend"] is not None) == chosen.any() for shape in shapes)
            assert "nats" not in json.dumps(picture)


def test_the_best_of_its_size_is_best_of_all_within_a_factor_of_root_two(large: RidgeFit) -> None:
    rows = data(fitted_map(large), "blocks")
    trained = [row for row in rows if row["kind"] != "public"]
    best = [row for row in trained if row["kind"].startswith("best")]
    size = {row["shape"]: 12 * row["depth"] * row["width"] ** 2 for row in rows}
    assert 3 <= len(best) <= 6
    for one in best:
        near = [row for row in trained if abs(math.log(size[row["shape"]] / size[one["shape"]])) < 0.346]
        assert len(near) > 1
        assert float(one["detail"]) <= min(float(row["detail"]) for row in near)


def test_public_models_are_of_the_runs_sizes_and_do_not_stretch_the_map(
    large: RidgeFit, transition: TransitionFit
) -> None:
    for fit in (large, transition):
        rows = data(fitted_map(fit), "blocks")
        public, trained = (
            [row for row in rows if (row["kind"] == "public") == is_public] for is_public in (True, False)
        )
        assert len(public) <= 6
        for row in public:
            assert fit.params_range[0] / 2 < 12 * row["depth"] * row["width"] ** 2 < 2 * fit.params_range[1]
            assert row["width"] < 1.5 * max(other["width"] for other in trained)
    assert len([row for row in data(fitted_map(large), "blocks") if row["kind"] == "public"]) >= 3


def test_runs_of_different_lengths_are_not_compared(large: RidgeFit) -> None:
    longer = [r._replace(tokens=1e9 * (1 + i % 2)) for i, r in enumerate(large.residuals)]
    rows = data(fitted_map(large.model_copy(update={"residuals": tuple(longer)})), "blocks")
    assert {row["kind"] for row in rows} == {"run", "public"}


def test_every_leverage_is_inside_the_frame(transition: TransitionFit) -> None:
    above = [r._replace(leverage=1.04) for r in transition.residuals]
    for rows, most in ((transition.residuals, 1.02), (tuple(above), 1.04 * 1.02)):
        made = layers(spec(residual_plot(transition.model_copy(update={"residuals": rows}))))
        (scale,) = [e["x"]["scale"] for each in made if (e := each["encoding"]).get("x", {}).get("field") == "leverage"]
        assert scale["domain"] == [0, pytest.approx(most)]


def test_many_depths_get_a_scale_of_colours_and_unknown_ones_no_legend(
    transition: TransitionFit, large: RidgeFit
) -> None:
    def colours(fit: Fit) -> list[dict[str, Any]]:
        made = [layer["encoding"] for layer in layers(spec(residual_plot(fit)))]
        return [encoding["color"] for encoding in made if "color" in encoding]

    assert all(len(colour["scale"]["range"]) == 4 for colour in colours(transition))
    assert all(colour["scale"]["scheme"]["name"] == "viridis" for colour in colours(large))
    unknown = tuple(r._replace(depth=None) for r in transition.residuals)
    assert all(set(colour) == {"value"} for colour in colours(transition.model_copy(update={"residuals": unknown})))


def test_sizes_are_written_as_people_write_them(large: RidgeFit, tmp_path: Path) -> None:
    text = save_chart(residual_plot(large), tmp_path / "residuals.svg").read_text(encoding="utf-8")
    assert ">1B<" in text
    assert ">1G<" not in text


def test_a_ridge_is_resampled_as_its_best_depth_and_its_cost(runs: Runs) -> None:
    fit = fit_ridge(runs, base="power", bootstrap=50)
    assert fit.minimum is not None
    shown = {layer["encoding"][axis]["title"] for layer in layers(spec(resample_plot(fit))) for axis in "xy"}
    assert {name.split(" (")[0] for name in shown} == {"best depth", "cost of a factor 2", "its power of the size"}
    rows = [rows for rows in spec(resample_plot(fit))["datasets"].values() if len(rows) == 1]
    found = {value for (row,) in rows for value in row.values()}
    for value in (fit.minimum.value, fit.cost(2).value, fit.drift.value):
        assert min(abs(value - each) for each in found) < 1e-12


def test_resamples_without_a_bowl_are_counted_not_drawn(runs: Runs) -> None:
    fit = fit_ridge(runs, base="power", bootstrap=50)
    at = fit.names.index("b2")
    flat = tuple(-v if i == at else v for i, v in enumerate(fit.resamples[0]))
    chart = spec(resample_plot(fit.model_copy(update={"resamples": (flat, flat, *fit.resamples[2:])})))
    assert "2 have no best depth" in chart["title"]["subtitle"]
    assert {len(rows) for rows in chart["datasets"].values()} == {1, 48}


def test_a_surface_in_shape_is_resampled_by_its_exponents(runs: Runs) -> None:
    rng = np.random.default_rng(0)
    many = replace(runs, tokens=rng.choice([1e8, 2e8, 4e8, 8e8], len(runs)))
    fit = fit_surface(many, terms="shape", counting="block", bootstrap=20)
    titles = {layer["encoding"][axis]["title"] for layer in layers(spec(resample_plot(fit))) for axis in "xy"}
    assert titles == {f"exponent of {name}" for name in ("width", "depth", "params", "tokens")}


def test_a_slope_that_was_assumed_leaves_one_parameter(runs: Runs, tmp_path: Path) -> None:
    chart = resample_plot(fit_transition(runs, bootstrap=50, slope=0.25))
    assert "red: the estimate" in spec(chart)["title"]["subtitle"]
    assert save_chart(chart, tmp_path / "a.png").stat().st_size > 1000


def test_what_cannot_be_resampled_says_why(transition: TransitionFit, runs: Runs) -> None:
    with pytest.raises(DeepwideError, match="fit with a bootstrap of 1000"):
        resample_plot(transition.model_copy(update={"resamples": ()}))
    none = fit_transition(runs.select(runs.depth <= 2), bootstrap=50)
    assert not none.names
    with pytest.raises(DeepwideError, match="no law, so there is none to resample"):
        resample_plot(none)


def test_a_fit_is_drawn_by_name(tmp_path: Path) -> None:
    law = TransitionLaw(name="truth", a=3.2, b=0.25)
    runs = simulate(law, depths=(2, 4), sizes=[1e4, 3e4, 1e5, 3e5, 1e6], noise=0.002)
    assert b"<svg" in draw_fit(fit_transition(runs, bootstrap=0), tmp_path / "curves.svg").read_bytes()[:300]
    ridge = fit_ridge(runs, base=law, bootstrap=0)
    assert draw_fit(ridge, tmp_path / "residuals.html").stat().st_size > 1000
    for picture, said in (("portrait", "no picture 'portrait'"), ("curves", "of a transition fit")):
        with pytest.raises(DeepwideError, match=said):
            draw_fit(ridge, tmp_path / "x.svg", picture)
