"""What is solved: the share of right answers against difficulty, and which layer looks where."""

from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import BLUE, GREY, INK, depth_colour, framed, inline, panel_title


def accuracy_chart(
    rows: Sequence[dict[str, Any]],
    x: str,
    title: str,
    subtitle: str | Sequence[str] = "",
    *,
    solved: float,
    x_title: str = "",
    panels: str | None = None,
) -> Any:
    """An Altair chart of rows with the fields `depth`, x, `accuracy`, `low` and `high`: one line per depth.

    A dashed line stands at `solved`. `panels` names a field with a panel for each of its values. Bands end at 0 and 1,
    whatever Student's t says.
    """
    import altair as alt

    clipped = [
        row | {"depth": str(row["depth"])}
        | {name: min(1.0, max(0.0, row[name])) for name in ("low", "high") if row.get(name) is not None}
        for row in rows
    ]  # fmt: skip
    depths = sorted({row["depth"] for row in clipped}, key=int)
    span = [min(row[x] for row in rows), max(row[x] for row in rows)]
    ticks = sorted({row[x] for row in rows})  # left to itself the axis writes 1, 2, 2, 3, 3
    colour = depth_colour(depths)
    threshold = (
        alt.Chart(inline([{"accuracy": solved}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="accuracy:Q")
    )
    charts: list[Any] = []
    for panel in dict.fromkeys(row[panels] for row in rows) if panels else [None]:
        here = [row for row in clipped if panels is None or row[panels] == panel]
        base = alt.Chart(inline(here)).encode(
            x=alt.X(f"{x}:Q", title=x_title or x, scale=alt.Scale(domain=span, nice=False),
                    axis=alt.Axis(grid=False, format="d", values=ticks)),
            color=colour,
        )  # fmt: skip
        y_title = None if charts else "right answers"
        y = alt.Y("accuracy:Q", title=y_title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
        banded = [row for row in here if row.get("low") is not None]
        band = (
            [base.properties(data=inline(banded)).mark_area(opacity=0.15).encode(y=alt.Y("low:Q"), y2="high:Q")]
            if banded
            else []
        )
        drawn = alt.layer(
            threshold, *band, base.mark_line().encode(y=y), base.mark_point(filled=True, size=32, opacity=1).encode(y=y)
        )
        words = panel_title(str(panel)) if panels else ""
        charts.append(drawn.properties(width=250 if panels else 420, height=280, title=words))
    return framed(alt.hconcat(*charts) if panels else charts[0], title, subtitle)


def head_map(
    rows: Sequence[dict[str, Any]], y: str, x: str, value: str, title: str, subtitle: str | Sequence[str] = ""
) -> Any:
    """A heat map of shares from 0 to 1 over two small whole numbers, with each share written in its cell."""
    import altair as alt

    base = alt.Chart(inline(rows)).encode(
        x=alt.X(f"{x}:O", title=x, axis=alt.Axis(labelAngle=0)), y=alt.Y(f"{y}:O", title=y)
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            f"{value}:Q", title=value, scale=alt.Scale(domain=[0, 1], range=["#ffffff", BLUE], interpolate="rgb")
        )
    )
    text = base.mark_text(fontSize=11).encode(
        text=alt.Text(f"{value}:Q", format=".2f"),
        color=alt.condition(f"datum['{value}'] > 0.6", alt.value("white"), alt.value(INK)),
    )
    columns, lines = len({row[x] for row in rows}), len({row[y] for row in rows})
    return framed(alt.layer(cells, text), title, subtitle, 48 * columns, 40 * lines)
