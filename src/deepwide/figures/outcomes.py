"""Who trained: a table of tiles, scheme by learning rate, one panel per depth; and curves that grow with depth."""

from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import INK, POWER_LABEL, framed, inline, line_style, panel_title

# Blue against orange and grey is told apart by every kind of eye; a symbol says the same without colour. Every font
# has these symbols: at one that it lacks, a renderer changes the font of the whole text.
STATES = {
    "trained": ("#9ecae1", "●"),
    "seeds differ": ("#deebf7", "?"),
    "stuck": ("#d9d9d9", "○"),
    "diverged": ("#fdae6b", "×"),
}


def outcome_map(rows: Sequence[dict[str, Any]], title: str, subtitle: str = "") -> Any:
    """An Altair chart of rows with the fields scheme, depth, lr, warmup, state and validation_loss (None: diverged)."""
    import altair as alt

    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    words = "    ".join(f"{symbol} {state}" for state, (_, symbol) in STATES.items())
    panels = sorted({(not row["warmup"], row["depth"]) for row in rows})
    charts: list[Any] = []
    for bare, depth in panels:
        here = [row for row in rows if (not row["warmup"], row["depth"]) == (bare, depth)]
        tiles = [row | {"label": _label(row), "rate": f"{row['lr']:g}"} for row in here]
        rates = [f"{lr:g}" for lr in sorted({row["lr"] for row in here})]
        base = alt.Chart(inline(tiles)).encode(
            x=alt.X("rate:O", sort=rates, title="learning rate",
                    axis=alt.Axis(labelAngle=0, domain=False, ticks=False)),
            y=alt.Y("scheme:N", sort=schemes, title=None, scale=alt.Scale(domain=schemes),
                    axis=alt.Axis(domain=False, ticks=False, labels=not charts, labelFontSize=12)),
        )  # fmt: skip
        colour = alt.Color(
            "state:N",
            title=None,
            scale=alt.Scale(domain=list(STATES), range=[fill for fill, _ in STATES.values()]),
            legend=alt.Legend(symbolType="square", symbolOpacity=1, symbolSize=160),
        )
        drawn = base.mark_rect(stroke="white", strokeWidth=2).encode(color=colour)
        text = base.mark_text(fontSize=11, color=INK).encode(text="label:N")
        name = f"{depth} layers" + (", no warm-up" if bare else "")
        size = {"width": max(58 * len(rates), 130 if bare else 0), "height": 26 * len(schemes)}
        charts.append(
            alt.layer(drawn, text).properties(title=panel_title(name), view=alt.ViewBackground(stroke=None), **size)
        )
    return framed(alt.hconcat(*charts, spacing=14), title, [subtitle, words] if subtitle else words)


def growth_chart(
    rows: Sequence[dict[str, Any]],
    x: str,
    y: str,
    title: str,
    subtitle: str = "",
    *,
    lines: str,
    logarithmic: bool = False,
) -> Any:
    """An Altair chart of `y` against `x`, one line per value of `lines`; `low` and `high` give a band."""
    import altair as alt

    names = list(dict.fromkeys(row[lines] for row in rows))
    kind: Any = {"type": "log", "nice": False} if logarithmic else {"zero": False}
    ticks: Any = {"values": sorted({row[x] for row in rows})} if logarithmic else {}
    axis = alt.Axis(grid=False, format="d", **ticks)
    across = alt.X(
        f"{x}:Q", title="depth (layers)" if x == "depth" else x.replace("_", " "), scale=alt.Scale(**kind), axis=axis
    )
    style = line_style(lines, names)
    label = y.replace("_", " ").replace("omega squared", "ω²")
    base = alt.Chart(inline(rows)).encode(x=across, color=style["color"])
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(zero=False)
    up = alt.Y(f"{y}:Q", title=label, scale=scale, axis=alt.Axis(labelExpr=POWER_LABEL) if logarithmic else alt.Axis())
    band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.18).encode(
        y=alt.Y("low:Q", title=label, scale=scale), y2="high:Q"
    )  # fmt: skip
    points = base.mark_point(filled=True, size=26 if logarithmic else 10, opacity=1).encode(y=up)
    return framed(alt.layer(band, base.mark_line().encode(y=up, **style), points), title, subtitle, 560, 360)


def _label(row: dict[str, Any]) -> str:
    symbol, loss = STATES[row["state"]][1], row["validation_loss"]
    return symbol if loss is None else f"{symbol} {loss:.2f}"
