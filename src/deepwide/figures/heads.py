"""Attention heads: a map on which those that look alike are near each other, and where they look in a sentence."""

from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import BLUE, CATEGORIES, framed, inline, panel_title, ramp

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")


def head_plane(rows: Sequence[dict[str, Any]], title: str, subtitle: str | Sequence[str] = "") -> Any:
    """An Altair chart of rows with the fields `x`, `y`, `layer`, `head` and `role`.

    Colour is the layer, shape the role. Distances mean something, directions do not: the axes have no numbers.
    """
    import altair as alt

    layers = sorted({row["layer"] for row in rows})
    roles = list(dict.fromkeys(row["role"] for row in rows))
    chart = (
        alt.Chart(inline(rows))
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X("x:Q", title=None, axis=None, scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", title=None, axis=None, scale=alt.Scale(zero=False)),
            color=alt.Color("layer:O", title="layer", scale=alt.Scale(domain=layers, range=ramp(len(layers)))),
            shape=alt.Shape("role:N", title="mostly looks at", scale=alt.Scale(domain=roles, range=list(SHAPES))),
            tooltip=["layer:O", "head:O", "role:N"],
        )
    )
    return framed(chart, title, subtitle, 420, 360)


def sentence_attention(rows: Sequence[dict[str, Any]], title: str, subtitle: str | Sequence[str] = "") -> Any:
    """An Altair chart of rows with the fields `head`, `row`, `looking`, `column`, `looked_at` and `attention`.

    One panel per head; `row` and `column` number the words, `looking` and `looked_at` are the words themselves.
    """
    import altair as alt

    def words(place: str, word: str) -> list[str]:
        labels = {row[place]: f"{row[place] + 1} {row[word]}" for row in rows}
        return [labels[number] for number in sorted(labels)]

    shown = [
        row | {"from": f"{row['row'] + 1} {row['looking']}", "to": f"{row['column'] + 1} {row['looked_at']}"}
        for row in rows
    ]
    charts: list[Any] = []
    for head in dict.fromkeys(row["head"] for row in rows):
        cells = (
            alt.Chart(inline([row for row in shown if row["head"] == head]))
            .mark_rect()
            .encode(
                x=alt.X(
                    "to:N", title="word looked at", sort=words("column", "looked_at"), axis=alt.Axis(labelAngle=-60)
                ),
                y=alt.Y("from:N", title=None if charts else "word looking", sort=words("row", "looking")),
                color=alt.Color(
                    "attention:Q", title="attention", scale=alt.Scale(domain=[0, 1], range=["#eef3f7", BLUE])
                ),
                tooltip=["from:N", "to:N", "attention:Q"],
            )
        )
        charts.append(cells.properties(width=250, height=250, title=panel_title(str(head))))
    return framed(alt.hconcat(*charts), title, subtitle)


def share_lines(
    rows: Sequence[dict[str, Any]], title: str, subtitle: str | Sequence[str] = "", *, y_title: str = "attention"
) -> Any:
    """An Altair chart of rows with the fields `layer`, `share`, `kind` and `panel`: one line per kind, from 0 to 1."""
    import altair as alt

    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    colour = alt.Color("kind:N", title=None, sort=kinds, scale=alt.Scale(domain=kinds, range=list(CATEGORIES)))
    charts: list[Any] = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        here = [row for row in rows if row["panel"] == panel]
        layers = sorted({row["layer"] for row in here})
        ticks = layers[:: -(-len(layers) // 6)]  # at most six, all of them layers
        base = alt.Chart(inline(here)).encode(
            x=alt.X("layer:Q", title="layer", axis=alt.Axis(grid=False, format="d", values=ticks)),
            y=alt.Y("share:Q", title=None if charts else y_title, scale=alt.Scale(domain=[0, 1])),
            color=colour,
        )
        drawn = alt.layer(base.mark_line(), base.mark_point(filled=True, size=24, opacity=1))
        charts.append(drawn.properties(width=240, height=240, title=panel_title(str(panel))))
    return framed(alt.hconcat(*charts), title, subtitle)
