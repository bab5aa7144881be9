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


def corners(spots: Sequence[Spot], width: float, height: float) -> list[int | None]:
    """For each spot with a text the corner it stands at: no text hits another, few hit a point or leave the picture."""
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
                ways.append((100 * out + hit, corner, box))
        chosen.append(min(ways)[1] if ways else None)
        taken += [min(ways)[2]] if ways else []
    return chosen


def label_layers(chart: Any, field: str, **style: Any) -> list[Any]:
    """Texts of a chart whose rows have a `corner`, in white outline so that they can be read over lines."""
    import altair as alt

    return [
        chart.transform_filter(alt.datum.corner == corner)
        .mark_text(align=align, dx=dx, dy=dy, **(style | outline))
        .encode(text=f"{field}:N", tooltip=alt.value(None))
        for outline in ({"stroke": "white", "strokeWidth": 3, "strokeOpacity": 0.8, "strokeJoin": "round"}, {})
        for corner, (align, dx, dy) in enumerate(CORNERS)
    ]


def _meet(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
