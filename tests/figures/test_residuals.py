"""What a fit misses."""

from pathlib import Path
from typing import Any

import pytest

from deepwide.figures import residual_plot, save_chart
from deepwide.fitting import Fit
from figures.fits import data, large, layers, spec, transition


def test_every_leverage_is_inside_the_frame() -> None:
    above = [r._replace(leverage=1.04) for r in transition().residuals]
    for rows, most in ((transition().residuals, 1.02), (tuple(above), 1.04 * 1.02)):
        made = layers(spec(residual_plot(transition().model_copy(update={"residuals": rows}))))
        places = [each["encoding"]["x"] for each in made if "x" in each["encoding"]]
        scales = [x["scale"] for x in places if x.get("field") == "leverage"]
        assert len(scales) == 2
        assert all(scale["domain"] == [0, pytest.approx(most)] for scale in scales)


def test_influence_and_tails_are_shown() -> None:
    fit = transition()
    points = data(residual_plot(fit), "quantile")
    runs = sorted((row for row in points if "loss" in row), key=lambda row: row["residual"])
    assert len(runs) == len(fit.residuals)
    assert [row["quantile"] for row in runs] == sorted(row["quantile"] for row in runs)
    curve = [row for row in data(residual_plot(fit), "line") if row["line"] == 1]
    k, h, e = len(fit.names), curve[0]["leverage"], curve[0]["residual"] / 100
    assert e**2 * h / (k * fit.noise**2 * (1 - h) ** 2) == pytest.approx(0.5)  # Cook's distance


def test_a_fit_without_leverage_has_one_panel() -> None:
    bare = tuple(r._replace(leverage=0.0) for r in transition().residuals)
    drawn = spec(residual_plot(transition().model_copy(update={"residuals": bare})))
    assert "hconcat" not in drawn
    assert not [each for each in layers(drawn) if each["encoding"].get("x", {}).get("field") == "leverage"]


def test_many_depths_get_a_scale_of_colours_and_unknown_ones_no_legend() -> None:
    def colours(fit: Fit) -> list[dict[str, Any]]:
        made = [layer["encoding"] for layer in layers(spec(residual_plot(fit)))]
        return [encoding["color"] for encoding in made if "color" in encoding]

    assert all(len(colour["scale"]["range"]) == 4 for colour in colours(transition()))
    for colour in colours(large()):
        scale = colour["scale"]
        assert len(scale["range"]) == len(set(scale["range"])) == len(scale["domain"]) > 4
    unknown = tuple(r._replace(depth=None) for r in transition().residuals)
    assert all(set(colour) == {"value"} for colour in colours(transition().model_copy(update={"residuals": unknown})))


def test_sizes_are_written_as_people_write_them(tmp_path: Path) -> None:
    text = save_chart(residual_plot(large()), tmp_path / "residuals.svg").read_text(encoding="utf-8")
    assert ">1B<" in text
    assert ">1G<" not in text
