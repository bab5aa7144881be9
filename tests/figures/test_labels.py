"""Labels stand where they can be read."""

from hypothesis import given
from hypothesis import strategies as st

from deepwide.figures.labels import ABOVE, BELOW, CORNERS, LETTER, Spot, corners, label_layers

PLACES = st.builds(Spot, st.floats(0, 640), st.floats(0, 420), st.sampled_from(["", "gpt2", "qwen3-30b-a3b"]))


@given(st.lists(PLACES, max_size=12))
def test_no_label_hits_another(spots: list[Spot]) -> None:
    boxes = []
    for spot, corner in zip(spots, corners(spots, 640, 420), strict=True):
        assert spot.text or corner is None
        if corner is not None:
            align, dx, dy = CORNERS[corner]
            long = LETTER * len(spot.text)
            left, top = spot.x + dx - (long if align == "right" else 0), spot.y + dy - ABOVE
            boxes.append((left, left + long, top, top + ABOVE + BELOW))
    for i, (left, right, top, bottom) in enumerate(boxes):
        assert not any(left < r and x < right and top < b and t < bottom for x, r, t, b in boxes[:i])


def test_a_label_at_the_edge_turns_inwards() -> None:
    assert corners([Spot(635, 200, "gpt3-175b")], 640, 420) == [2]
    assert corners([Spot(5, 2, "gpt3-175b")], 640, 420) == [1]


def test_the_second_of_two_at_one_place_goes_elsewhere_and_the_fifth_is_left_out() -> None:
    assert corners([Spot(300, 200, "gpt2")] * 5, 640, 420) == [0, 1, 2, 3, None]


def test_of_two_good_corners_it_takes_the_one_that_no_line_runs_through() -> None:
    label, line = Spot(300, 200, "gpt2"), [Spot(300 + 5 * i, 192) for i in range(-20, 20)]
    assert corners([label], 640, 420) == [0]
    assert corners([label], 640, 420, line) == [1]
    both = [label, Spot(330, 190), Spot(310, 212), Spot(290, 212)]
    assert corners(both, 640, 420, line)[0] == 2, "a point counts more than a line"


def test_a_label_stands_on_its_baseline_over_its_outline() -> None:
    import altair as alt

    layers = [layer.to_dict()["mark"] for layer in label_layers(alt.Chart(alt.Data(values=[])), "name")]
    assert {mark["baseline"] for mark in layers} == {"alphabetic"}
    assert ["stroke" in mark for mark in layers] == [True] * len(CORNERS) + [False] * len(CORNERS)
