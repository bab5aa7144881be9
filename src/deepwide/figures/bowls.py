"""Loss against depth at equal size: what is left of each run's loss when its size is taken out, and the fitted bowl."""

from collections.abc import Mapping, Sequence
from typing import Any

from deepwide.figures.labels import Spot, corners, label_layers
from deepwide.figures.style import CATEGORIES, HEIGHT, INK, WIDTH, framed, inline, share


def bowl_chart(
    points: Sequence[Mapping[str, Any]],
    curve: Sequence[Mapping[str, Any]],
    title: str,
    subtitle: str | Sequence[str] = "",
    *,
    x_title: str = "depth / depth of the law",
    colours: str = "class",
) -> Any:
    """An Altair chart of points (`x`, `percent`, `name`, the field `colours`) about a curve (`x`, `percent`, `low`,
    `high`): percent of loss above the bowl's minimum."""
    import altair as alt

    kinds = list(dict.fromkeys(row[colours] for row in points))
    xs = [row["x"] for row in (*points, *curve)]
    span = (min(xs) / 1.1, max(xs) * 1.1)
    heights = [row[name] for row in (*points, *curve) for name in ("percent", "low", "high") if name in row]
    room = 0.06 * (max(heights) - min(heights))  # for a label below the lowest point
    reach = (min(heights) - room, max(heights) + room)
    spots, line_spots = (
        [
            Spot(WIDTH * share(row["x"], *span), HEIGHT * (reach[1] - row["percent"]) / (reach[1] - reach[0]), name)
            for row in rows
            for name in (str(row.get("name", "")),)
        ]
        for rows in (points, curve)
    )
    chosen = corners(spots, WIDTH, HEIGHT, line_spots)
    placed = [{**row, "corner": corner} for row, corner in zip(points, chosen, strict=True)]
    x = alt.X("x:Q", title=x_title, axis=alt.Axis(grid=False, values=[0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5]),
              scale=alt.Scale(type="log", domain=span, nice=False))  # fmt: skip
    y_title = "loss above the best depth (%)"
    y = alt.Y("percent:Q", title=y_title, scale=alt.Scale(domain=reach, nice=False))
    base = alt.Chart(inline(placed)).encode(x=x, y=y)
    line = alt.Chart(inline([dict(row) for row in curve])).encode(x=x)
    layers = [
        line.mark_area(color=INK, fillOpacity=0.12).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q"),
        line.mark_line(color=INK, strokeWidth=1.8).encode(y=y),
        base.mark_point(filled=True, size=60, opacity=0.9).encode(
            color=alt.Color(f"{colours}:N", title=None, sort=kinds,
                            scale=alt.Scale(domain=kinds, range=list(CATEGORIES[: len(kinds)])),
                            legend=alt.Legend(symbolOpacity=1)),
            tooltip=["name:N", "x:Q", "percent:Q"]),
        *label_layers(base, "name", fontSize=10, color=INK),
    ]  # fmt: skip
    return framed(alt.layer(*layers), title, subtitle, WIDTH, HEIGHT)
