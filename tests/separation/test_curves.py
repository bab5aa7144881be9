"""The curves of a picture: on their side of the threshold, measured only where certificates are given."""

from math import log

import pytest

from deepwide.separation.curves import bounds_curves
from deepwide.separation.store import Store
from separation.builders import PUBLISHED


def test_the_curves_mark_the_threshold_and_the_two_theorems() -> None:
    curves = bounds_curves(3, 10)
    assert curves.by_depth.threshold == pytest.approx(log(10, 3))
    assert curves.by_width.threshold == 27
    for panel in (curves.by_depth, curves.by_width):
        for curve in panel.curves:
            if curve.theorem:
                below = (lambda x: x < curves.by_depth.threshold) if panel.axis == "depth" else (lambda x: x > 27)
                assert all(below(x) is (curve.theorem == 1) for x, _ in curve.points), curve.name
    names = {curve.name for curve in curves.by_depth.curves}
    assert {"Theorem 1, at most", "Theorem 2, at most", "dimension count"} <= names


def test_nothing_is_measured_for_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepwide.separation import field

    monkeypatch.setattr(field, "rank_in_place", lambda *_: pytest.fail("measured"))
    assert not any(curve.name == "measured" for curve in bounds_curves(2, 3).by_depth.curves)


def test_given_certificates_of_the_same_heads_are_among_the_curves() -> None:
    curves = bounds_curves(2, 3, 1, Store(PUBLISHED).certificates())
    measured = {
        panel.axis: dict(c.points)
        for panel in (curves.by_depth, curves.by_width)
        for c in panel.curves
        if c.name == "measured"
    }
    assert measured["depth"][2] == measured["width"][3] == pytest.approx(log(49, 3))
    assert set(measured["width"]) == {1, 2, 3, 4, 5, 6, 8, 10, 12, 16}
    two = bounds_curves(2, 2, 2, Store(PUBLISHED).certificates())
    points = next(dict(c.points) for c in two.by_depth.curves if c.name == "measured")
    assert points[2] == pytest.approx(log(17, 3))


def test_missing_lower_bounds_and_the_open_question_are_said() -> None:
    notes = {note.code: note for note in bounds_curves(3, 10).by_depth.notes}
    assert notes["no-lower-bound"].data["at"]
    assert notes["open-question"].data["at"][0] == 6
