"""Pictures of ranks: every answer is drawn as it is, ticks where there are numbers."""

from typing import Any

from deepwide.figures.separation import bounds_figure, ranks_figure, spectrum_figure
from deepwide.separation import Case, Certificate, bounds_curves, measure, softmax_rank


def rows(chart: Any) -> list[dict[str, Any]]:
    """Every row that a chart draws."""
    return [row for data in chart["datasets"].values() for row in data]


def find(chart: Any, key: str) -> list[Any]:
    """Every value of a key, anywhere."""
    if isinstance(chart, dict):
        own = [chart[key]] if key in chart else []
        return own + [hit for value in chart.values() for hit in find(value, key)]
    return [hit for value in chart for hit in find(value, key)] if isinstance(chart, list) else []


def test_the_threshold_is_marked_and_each_theorem_has_a_colour_and_each_side_a_dash() -> None:
    chart = bounds_figure(bounds_curves(3, 10)).to_dict()
    labels = {row["label"] for row in rows(chart) if "label" in row}
    assert labels == {"threshold log_3 d = 2.1", "threshold 3^L = 27"}
    encodings = [next(each for each in find(chart, name) if isinstance(each, dict)) for name in ("color", "strokeDash")]
    colours, dashes = (dict(zip(e["scale"]["domain"], e["scale"]["range"], strict=True)) for e in encodings)
    assert len({(colours[name], str(dashes[name])) for name in colours}) == len(colours) == 5
    for number in (1, 2):
        assert colours[f"Theorem {number}, at most"] == colours[f"Theorem {number}, at least"]
        assert dashes[f"Theorem {number}, at most"] != dashes[f"Theorem {number}, at least"]
    assert colours["Theorem 1, at most"] != colours["Theorem 2, at most"]


def test_nothing_is_drawn_that_was_not_given() -> None:
    curves = bounds_curves(2, 3)
    drawn = [row for row in rows(bounds_figure(curves).to_dict()) if "bound" in row]
    assert not any(row["bound"] == "measured" for row in drawn)
    expected = {(row["bound"], row.get("depth"), row.get("width"), row["log3"]) for row in curves.rows()}
    assert {(row["bound"], row.get("depth"), row.get("width"), row["log3"]) for row in drawn} == expected
    measured = bounds_curves(2, 3, 1, [Certificate.of(measure(Case(2, 3)))])
    assert any(row.get("bound") == "measured" for row in rows(bounds_figure(measured).to_dict()))


def test_missing_lower_bounds_and_the_open_question_stand_in_the_picture() -> None:
    subtitles = find(bounds_figure(bounds_curves(3, 10)).to_dict(), "subtitle")
    words = " ".join(line for subtitle in subtitles for line in subtitle)
    assert "no lower bound" in words
    assert "open question" in words


def test_ticks_of_ranks_are_the_widths_and_no_others() -> None:
    """Ticks between 2, 3 and 4, shown as whole numbers, read 2, 3, 3, 4, 4."""
    certificates = [Certificate.of(measure(Case(2, width))) for width in (2, 3, 4)]
    chart = ranks_figure(certificates).to_dict()
    ticks = [x["axis"]["values"] for x in find(chart, "x")]
    assert ticks
    assert all(values == [2, 3, 4] for values in ticks)
    assert not find(chart, "shape")  # one number of heads needs no legend
    both = ranks_figure([*certificates, Certificate.of(measure(Case(2, 2, 2)))]).to_dict()
    assert find(both, "shape")


def test_a_spectrum_starts_at_one() -> None:
    drawn = rows(spectrum_figure([softmax_rank(1, 4, points=20)]).to_dict())
    assert drawn[0]["value"] == 1.0
    assert len(drawn) <= 20
