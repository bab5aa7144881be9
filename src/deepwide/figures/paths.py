"""Accuracy of sums of paths by their length: one panel per recipe, published values beside ours."""

from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import GREY, framed, inline, line_style, panel_title


def path_chart(
    rows: Sequence[dict[str, Any]], published: Sequence[float], title: str, subtitle: str | Sequence[str] = ""
) -> Any:
    """An Altair chart of rows with `recipe`, `length`, `accuracy`, `low`, `high` and `whole_network`.

    `published` has the accuracy of lengths 0, 1, 2 …, and stands in the first panel.
    """
    import altair as alt

    sources = ["measured here", "published code"]
    style = line_style("source", sources)
    colour = style["color"]
    x = alt.X("length:O", title="path length", axis=alt.Axis(labelAngle=0, grid=False))
    charts: list[Any] = []
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        here = [row | {"source": sources[0]} for row in rows if row["recipe"] == recipe]
        points = list(here)
        if not charts:
            points += [
                {"length": length, "accuracy": accuracy, "source": sources[1]}
                for length, accuracy in enumerate(published)
            ]
        label = None if charts else "share sorted correctly"
        y = alt.Y("accuracy:Q", title=label, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".1f"))
        base = alt.Chart(inline(points)).encode(x=x, color=colour)
        bars = (
            alt.Chart(inline([row for row in here if row.get("low") is not None]))
            .mark_rule(strokeWidth=2)
            .encode(x=x, y=alt.Y("low:Q", title=label), y2="high:Q", color=colour)
        )
        whole = alt.Chart(inline(here[:1])).mark_rule(strokeDash=[4, 3], color=GREY).encode(y="whole_network:Q")
        drawn = alt.layer(
            whole,
            bars,
            base.mark_line().encode(y=y, **style),
            base.mark_point(filled=True, size=45, opacity=1).encode(y=y),
        )
        charts.append(drawn.properties(width=270, height=260, title=panel_title(recipe)))
    return framed(alt.hconcat(*charts), title, subtitle)
