"""How every picture looks: one palette, one frame, one axis of sizes, one kind of data. Altair is loaded when used.

chart = alt.Chart(inline(rows)).mark_line().encode(x=size_axis("size", (1e4, 1e6)), y="loss:Q")
framed(chart, "Loss against size", "points: runs", WIDTH, HEIGHT)
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 640, 420  # of a picture with one panel, in pixels

INK, GREY, FAINT, FRAME = "#1c1c1c", "#8e8e8e", "#707070", "#d0d0d0"
# Told apart by every kind of eye (tests/figures/test_style.py computes it): the palette of Okabe and Ito, without its
# yellow, which is lost on white, and with our ink and a brown.
BLUE, ORANGE, PINK, GREEN, AMBER, SKY = "#0072b2", "#d55e00", "#cc79a7", "#009e73", "#e69f00", "#56b4e9"
BROWN, RED, PURPLE, TEAL, SLATE = "#7a4b1e", "#c0392b", "#7d3c98", "#117a65", "#5d6d7e"
# The same on paper and on a dark screen: ground, panels on it, lines, text and text that may be overlooked.
GROUNDS = {
    "light": {"ground": "#ffffff", "panel": "#fafaf9", "line": FRAME, "ink": INK, "faint": "#5c5c5c", "dot": GREY},
    "dark": {"ground": "#14171a", "panel": "#1d2125", "line": "#3d4348", "ink": "#e9e9e7", "faint": "#aeb3b7",
             "dot": "#8b9196"},
}  # fmt: skip
POWER_LABEL = "replace(format(datum.value, '~e'), 'e+', 'e')"  # 1e-3, 5.76e23
SIZE_LABEL = "replace(replace(format(datum.value, '~s'), 'G', 'B'), 'k', 'K')"  # 20K, 3M, 1B
FONT = 'system-ui, "Helvetica Neue", Arial, "Liberation Sans", sans-serif'
CATEGORIES = (BLUE, ORANGE, INK, PINK, GREEN, AMBER, SKY, BROWN)  # in this order, where nothing else decides
RAMP = ("#0d0887", "#6a00a8", "#b12a90", "#e16462", "#fca636")  # of what has an order: along matplotlib's plasma
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [14, 3], [6, 2, 2, 2, 2, 2], [1, 3])  # of lines, likewise


def on_dark(colour: str) -> str:
    """A colour for a dark ground: nearer to white by half.

    >>> on_dark(ORANGE)
    '#eaae80'
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) / 2):02x}" for part in parts)


def style_sheet(named: Mapping[str, str]) -> str:
    """Grounds and named colours as CSS variables, for paper and light screens and for dark ones, and the font."""
    light = GROUNDS["light"] | dict(named) | {"font": FONT}
    dark = GROUNDS["dark"] | {name: on_dark(colour) for name, colour in named.items()}
    rules = (" ".join(f"--{name}: {value};" for name, value in values.items()) for values in (light, dark))
    return ":root {{ {} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}\n".format(*rules)


def ramp(number: int) -> list[str]:
    """Colours from dark to light, as far apart as may be.

    >>> ramp(3)
    ['#0d0887', '#b12a90', '#fca636']
    """
    colours = []
    for i in range(number):
        place = i * (len(RAMP) - 1) / max(1, number - 1)
        low = min(int(place), len(RAMP) - 2)
        one, other = ([int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in RAMP[low : low + 2])
        mixed = (a + (b - a) * (place - low) for a, b in zip(one, other, strict=True))
        colours.append("#" + "".join(f"{round(part):02x}" for part in mixed))
    return colours


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
        .configure_axis(labelFontSize=11, titleFontSize=12, labelFlush=False)
    )


def panel_title(text: str) -> Any:
    """The title of one panel among others, above its frame."""
    import altair as alt

    return alt.TitleParams(text, fontWeight="normal", fontSize=12, color=FAINT, anchor="start", frame="group")


def line_style(field: str, names: Sequence[str]) -> dict[str, Any]:
    """The encodings of lines by name: a colour and a dash each, so that nobody has to tell colours apart."""
    import altair as alt

    legend = alt.Legend(symbolType="stroke", symbolSize=350, symbolStrokeWidth=2, symbolOpacity=1, labelLimit=320)
    colours = [CATEGORIES[i % len(CATEGORIES)] for i in range(len(names))]
    dashes = [DASHES[(i + i // len(CATEGORIES)) % len(DASHES)] for i in range(len(names))]
    common: dict[str, Any] = {"title": None, "sort": list(names), "legend": legend}
    return {
        "color": alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=colours), **common),
        "strokeDash": alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=list(names), range=dashes), **common),
    }


def size_axis(field: str, span: tuple[float, float], title: str = "block parameters") -> Any:
    """A logarithmic x axis of sizes, labelled 20K, 3M, 1B."""
    import altair as alt

    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", domain=span, nice=False),
        axis=alt.Axis(values=log_ticks(*span), labelExpr=SIZE_LABEL, grid=False, labelOverlap=True),
    )


def depth_colour(depths: Sequence[str]) -> Any:
    """The colour of the field `depth`: from dark to light, which is an order to every eye and in print."""
    import altair as alt

    legend = alt.Legend(symbolOpacity=1, symbolLimit=60, symbolType="circle")
    scale = alt.Scale(domain=list(depths), range=ramp(len(depths)))
    return alt.Color("depth:O", title="depth (layers)", sort=list(depths), legend=legend, scale=scale)


def log_ticks(low: float, high: float) -> list[int]:
    """Round numbers for a logarithmic axis, fewer per decade over more decades; equal steps within one.

    >>> log_ticks(50, 3000)
    [50, 100, 200, 500, 1000, 2000]
    >>> log_ticks(82_000, 130_000)
    [100000, 120000]
    """
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 3 else (1, 3) if decades < 5 else (1,)
    ticks = [step * 10**power for power in range(16) for step in steps if low <= step * 10**power <= high]
    if len(ticks) > 1 or high - low < 1:
        return ticks
    rough = (high - low) / 4
    power = 10 ** max(0, math.floor(math.log10(rough)))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return list(range(math.ceil(low / step) * step, math.floor(high) + 1, step))


def share(value: float, low: float, high: float) -> float:
    """How far along a logarithmic axis a value stands, from 0 to 1."""
    return math.log(value / low) / math.log(high / low)
