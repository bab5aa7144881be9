"""What all pictures share."""

import itertools
import math
from collections.abc import Sequence

import altair as alt
import pytest

from deepwide.figures.style import (
    CATEGORIES,
    WIDTH,
    depth_colour,
    framed,
    inline,
    line_style,
    log_ticks,
    share,
    size_axis,
    style_sheet,
)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (50, 3000, [50, 100, 200, 500, 1000, 2000]),
        (1, 1e4, [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000]),
        (1e3, 1e9, [10**n for n in range(3, 10)]),
        (82_000, 130_000, [100_000, 120_000]),
        (2.4, 2.6, []),
    ],
)
def test_ticks_are_round_and_fewer_per_decade_over_many_decades(low: float, high: float, expected: list[int]) -> None:
    assert log_ticks(low, high) == expected


def test_a_frame_says_what_it_shows_on_white() -> None:
    chart = alt.Chart(inline([{"size": 1e5, "loss": 2.0}])).mark_point().encode(x=size_axis("size", (1e4, 1e6)))
    spec = framed(chart, "Loss", ["points: runs", "bands: 95%"], WIDTH, 300).to_dict()
    assert (spec["background"], spec["width"], spec["height"]) == ("white", WIDTH, 300)
    assert spec["title"]["text"] == "Loss"
    assert spec["title"]["subtitle"] == ["points: runs", "bands: 95%"]
    assert spec["encoding"]["x"]["scale"]["domain"] == [1e4, 1e6]
    assert list(spec["datasets"].values()) == [[{"size": 1e5, "loss": 2.0}]]


# What a colour becomes to an eye without one kind of cone, in linear RGB: Machado, Oliveira and Fernandes (2009).
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
# Linear RGB to CIE XYZ over the white point.
TO_XYZ = ((0.4339, 0.3763, 0.1899), (0.2126, 0.7152, 0.0722), (0.0177, 0.1095, 0.873))


def lab(colour: str, eye: str) -> tuple[float, float, float]:
    """CIE L*a*b* of what an eye sees."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    rgb = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    seen = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in EYES[eye]]
    xyz = [sum(a * b for a, b in zip(row, seen, strict=True)) for row in TO_XYZ]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def nearest(colours: Sequence[str]) -> float:
    """The least distance between any two of the colours to any eye; about 2 can just be told apart side by side."""
    return min(
        math.dist(lab(one, eye), lab(other, eye)) for one, other in itertools.combinations(colours, 2) for eye in EYES
    )


def test_categories_are_told_apart_by_every_kind_of_eye() -> None:
    assert nearest(CATEGORIES) > 15
    assert nearest(("#1e8449", "#c0392b")) < 15  # a green and a red that were here before


@pytest.mark.parametrize("number", [2, 3, 5, 8])
def test_depths_are_ordered_from_dark_to_light_for_every_eye_and_in_print(number: int) -> None:
    colours = depth_colour([str(n) for n in range(number)]).to_dict()["scale"]["range"]
    for eye in EYES:
        lightness = [lab(colour, eye)[0] for colour in colours]
        assert lightness == sorted(lightness)
        assert min(b - a for a, b in itertools.pairwise(lightness)) > 2


def test_lines_have_a_dash_each_and_no_two_the_same_colour_and_dash() -> None:
    names = [str(n) for n in range(12)]
    style = {name: encoding.to_dict()["scale"]["range"] for name, encoding in line_style("x", names).items()}
    assert len({str(dash) for dash in style["strokeDash"][:8]}) == 8
    assert len(set(zip(style["color"], map(str, style["strokeDash"]), strict=True))) == 12


def test_a_style_sheet_has_every_colour_for_light_and_for_dark() -> None:
    sheet = style_sheet({"mine": "#000000"})
    assert "--mine: #000000;" in sheet
    assert "--mine: #808080;" in sheet
    assert "@media screen and (prefers-color-scheme: dark)" in sheet  # paper is never dark


def test_a_share_of_a_logarithmic_axis() -> None:
    assert [share(x, 10, 1000) for x in (10, 100, 1000)] == pytest.approx([0, 0.5, 1])
