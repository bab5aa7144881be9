"""Values during training: panels side by side, a line per network or measurement, with interval bands."""

from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import framed, inline, line_style, panel_title


def step_chart(
    rows: Sequence[dict[str, Any]],
    title: str,
    subtitle: str | Sequence[str] = "",
    *,
    label: str = "from 0 to 1",
    span: tuple[float, float] = (0.0, 1.0),
) -> Any:
    """An Altair chart of rows with the fields `panel`, `line`, `step`, `value`; `low` and `high` shade a band."""
    import altair as alt

    lines = list(dict.fromkeys(row["line"] for row in rows))
    style = line_style("line", lines)
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    last = max((row["step"] for row in rows), default=1)
    charts: list[Any] = []
    for panel in panels:
        base = alt.Chart(inline([row for row in rows if row["panel"] == panel])).encode(
            x=alt.X("step:Q", title="training step", scale=alt.Scale(domain=[0, last], nice=False),
                    axis=alt.Axis(grid=False, tickCount=5)),
            color=style["color"],
        )  # fmt: skip
        name = None if charts else label
        scale = alt.Scale(domain=list(span), nice=False, clamp=True)
        band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=name, scale=scale), y2="high:Q")
        line = base.mark_line(strokeWidth=1.8).encode(y=alt.Y("value:Q", title=name, scale=scale), **style)
        banded = any(row.get("low") is not None for row in rows)
        drawn = alt.layer(band, line) if banded else alt.layer(line)
        charts.append(
            drawn.properties(width=230 if len(panels) < 4 else 190, height=210, title=panel_title(str(panel)))
        )
    return framed(alt.hconcat(*charts), title, subtitle)
