"""How every picture looks: one palette, one frame, one axis of sizes, one kind of data. Altair is loaded when used.

chart = alt.Chart(inline(rows)).mark_line().encode(x=size_axis("size", (1e4, 1e6)), y="loss:Q")
framed(chart, "Loss against size", "points: runs", WIDTH, HEIGHT)
"""

import math
from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT = 640, 420  # of a picture with one panel, in pixels

INK, GREY, FAINT, FRAME = "#1c1c1c", "#8e8e8e", "#707070", "#d0d0d0"
BLUE, GREEN, ORANGE, RED = "#2471a3", "#1e8449", "#d35400", "#c0392b"
PURPLE, OCHRE, TEAL, BROWN, SAND = "#7d3c98", "#b7950b", "#117a65", "#b9770e", "#d5a55b"
CATEGORIES = (BLUE, GREEN, ORANGE, RED, PURPLE, INK, OCHRE, TEAL)  # in this order, where nothing else decides


def inline(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as data that stand in the chart itself."""
    import altair as alt

    return alt.InlineData(values=list(rows))


def framed(
    chart: Any,
    title: str,
    subtitle: str | Sequence[str] = "",
    width: int | None = None,
    height: int | None = None,
) -> Any:
    """A finished chart: white ground, title with what the marks mean below it, our frame and font sizes.

    Give width and height for one panel; the panels of a concatenation have their own.
    """
    import altair as alt

    size = {} if width is None else {"width": width, "height": height}
    below = subtitle if isinstance(subtitle, str) else list(subtitle)
    words = alt.TitleParams(title, subtitle=below, subtitleColor=FAINT, anchor="start")
    return (
        chart.properties(background="white", title=words, **size)
        .configure_view(stroke=FRAME)
        .configure_axis(labelFontSize=11, titleFontSize=12)
    )


def size_axis(field: str, span: tuple[float, float], title: str = "block parameters") -> Any:
    """A logarithmic x axis of sizes, labelled 20K, 3M, 1B."""
    import altair as alt

    label = "replace(replace(format(datum.value, '~s'), 'G', 'B'), 'k', 'K')"
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", domain=span, nice=False),
        axis=alt.Axis(values=log_ticks(*span), labelExpr=label, grid=False, labelFlush=False, labelOverlap=True),
    )


def depth_colour(depths: Sequence[str]) -> Any:
    """The colour of the field `depth`: one of its own for each of a few depths, a scale from dark to light for many."""
    import altair as alt

    few = len(depths) <= len(CATEGORIES)
    colours = {"range": CATEGORIES[: len(depths)]} if few else {"scheme": {"name": "viridis", "extent": [0, 0.92]}}
    legend = alt.Legend(symbolOpacity=1, symbolLimit=60, symbolType="circle")
    scale = alt.Scale(domain=list(depths), **colours)
    return alt.Color("depth:O", title="depth", sort=list(depths), legend=legend, scale=scale)


def log_ticks(low: float, high: float) -> list[int]:
    """Round numbers for a logarithmic axis, the fewer per decade the more decades there are.

    >>> log_ticks(50, 3000)
    [50, 100, 200, 500, 1000, 2000]
    """
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 3 else (1, 3) if decades < 5 else (1,)
    return [step * 10**power for power in range(16) for step in steps if low <= step * 10**power <= high]


def share(value: float, low: float, high: float) -> float:
    """How far along a logarithmic axis a value stands, from 0 to 1."""
    return math.log(value / low) / math.log(high / low)
