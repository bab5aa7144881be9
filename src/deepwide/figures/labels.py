"""Labels beside points, each at the corner where it hits the least; a label without room is left to its tooltip."""

from collections.abc import Sequence
from typing import Any, NamedTuple

CORNERS = (("left", 7, -5), ("left", 7, 14), ("right", -7, -5), ("right", -7, 14))  # align, dx, dy
LETTER, ABOVE, BELOW = 5.8, 9, 3  # pixels of a label of font size 10: a letter's width, its reach about the baseline
NEAR = 7  # pixels from a point within which a label would seem to be its own


class Spot(NamedTuple):
    """A point in pixels from the upper left, and what is to stand beside it."""

    x: float
    y: float
    text: str = ""


def corners(spots: Sequence[Spot], width: float, height: float, lines: Sequence[Spot] = ()) -> list[int | None]:
    """For each spot with a text the corner it stands at: no text hits another, few hit a point or leave the picture.

    Of corners that are as good by that, it is the one that covers least of the `lines`, given as points along them.
    """
    taken: list[tuple[float, float, float, float]] = []
    chosen: list[int | None] = []
    for spot in spots:
        ways = []
        for corner, (align, dx, dy) in enumerate(CORNERS):
            long = LETTER * len(spot.text)
            left, top = spot.x + dx - (long if align == "right" else 0), spot.y + dy - ABOVE
            box = (left, left + long, top, top + ABOVE + BELOW)
            if spot.text and not any(_meet(box, other) for other in taken):
                out = left < 0 or left + long > width or top < 0 or top + ABOVE + BELOW > height
                hit = sum(_meet(box, (s.x - NEAR, s.x + NEAR, s.y - NEAR, s.y + NEAR)) for s in spots)
                crossed = sum(_meet(box, (s.x - 1, s.x + 1, s.y - 1, s.y + 1)) for s in lines)
                ways.append((100 * out + hit, crossed, corner, box))
        chosen.append(min(ways)[2] if ways else None)
        taken += [min(ways)[3]] if ways else []
    return chosen


def label_layers(chart: Any, field: str, **style: Any) -> list[Any]:
    """Texts of a chart whose rows have a `corner`, as `corners` places them."""
    import altair as alt

    layers = [
        outlined(chart.transform_filter(alt.datum.corner == corner), field, align=align, dx=dx, dy=dy, **style)
        for corner, (align, dx, dy) in enumerate(CORNERS)
    ]
    return [layer for part in (0, 1) for layer in (each[part] for each in layers)]  # no outline over another's letters


def outlined(chart: Any, field: str, **style: Any) -> list[Any]:
    """A text on its baseline, and below it its outline in white, so that it can be read over lines."""
    import altair as alt

    white = {"stroke": "white", "strokeWidth": 3, "strokeOpacity": 0.85, "strokeJoin": "round"}
    return [
        chart.mark_text(baseline="alphabetic", **style, **outline).encode(text=f"{field}:N", tooltip=alt.value(None))
        for outline in (white, {})
    ]


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
