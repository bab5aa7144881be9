"""Attention patterns of single heads as pictures: a panel per head, dark where a row looks."""

from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import BLUE, framed, inline, panel_title


def attention_chart(rows: Sequence[dict[str, Any]], title: str, subtitle: str | Sequence[str] = "") -> Any:
    """An Altair chart of rows with the fields `head`, `row`, `column`, `attention`, for sequences that come twice.

    White lines part the two copies.
    """
    import altair as alt

    size = 1 + max((row["row"] for row in rows), default=0)
    places = list(range(size))
    charts: list[Any] = []
    for head in dict.fromkeys(row["head"] for row in rows):
        shown = [row for row in rows if row["head"] == head]
        x = alt.X("column:O", title="position looked at", scale=alt.Scale(domain=places), axis=_axis(size))
        y = alt.Y(
            "row:O", title=None if charts else "position looking", scale=alt.Scale(domain=places), axis=_axis(size)
        )
        cells = alt.Chart(inline(shown)).mark_rect().encode(
            x=x, y=y,
            color=alt.Color("attention:Q", title="attention", scale=alt.Scale(domain=[0, 1], range=["#eef3f7", BLUE])),
            tooltip=["row:O", "column:O", "attention:Q"],
        )  # fmt: skip
        half = inline([{"row": size // 2, "column": size // 2}])
        lines = [
            alt.Chart(half).mark_rule(color="white", strokeWidth=2).encode(x=alt.X("column:O", bandPosition=0)),
            alt.Chart(half).mark_rule(color="white", strokeWidth=2).encode(y=alt.Y("row:O", bandPosition=0)),
        ]
        charts.append(alt.layer(cells, *lines).properties(width=280, height=280, title=panel_title(str(head))))
    return framed(alt.hconcat(*charts), title, subtitle)


def _axis(size: int) -> Any:
    import altair as alt

    every = max(1, size // 8)
    return alt.Axis(values=list(range(0, size, every)), labelAngle=0, grid=False)
