"""What all pictures share."""

import altair as alt
import pytest

from deepwide.figures.style import WIDTH, depth_colour, framed, inline, log_ticks, share, size_axis


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (50, 3000, [50, 100, 200, 500, 1000, 2000]),
        (1, 1e4, [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000]),
        (1e3, 1e9, [10**n for n in range(3, 10)]),
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


def test_a_few_depths_have_colours_of_their_own_and_many_a_scale() -> None:
    few, many = depth_colour(["1", "2"]).to_dict(), depth_colour([str(n) for n in range(20)]).to_dict()
    assert len(set(few["scale"]["range"])) == 2
    assert many["scale"]["scheme"]["name"] == "viridis"


def test_a_share_of_a_logarithmic_axis() -> None:
    assert [share(x, 10, 1000) for x in (10, 100, 1000)] == pytest.approx([0, 0.5, 1])
