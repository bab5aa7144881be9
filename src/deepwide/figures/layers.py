"""Something measured after every layer, one line per network, in panels side by side, on a logarithmic axis."""

import math
from collections.abc import Sequence
from typing import Any

from deepwide.figures.style import POWER_LABEL, framed, inline, line_style, panel_title


def layer_chart(
    rows: Sequence[dict[str, Any]],
    value: str,
    title: str,
    subtitle: str | Sequence[str] = "",
    *,
    lines: str = "network",
    panels: str = "panel",
    floor: float = 0.0,
) -> Any:
    """An Altair chart of rows with the fields `layer`, `value`, `lines` and `panels`; `low` and `high` shade a band.

    What is below `floor` is drawn on it: where double precision ends, a smaller number means nothing.
    """
    import altair as alt

    clipped = [
        row | {name: max(row[name], floor) for name in (value, "low", "high") if row.get(name) is not None}
        for row in rows
    ]
    positive = [row[name] for row in clipped for name in (value, "low", "high") if (row.get(name) or 0) > 0]
    span = [_power_below(min(positive)), _power_above(max(positive))] if positive else [0.1, 1]
    networks = list(dict.fromkeys(row[lines] for row in rows))
    style = line_style(lines, networks)
    deepest = max((row["layer"] for row in rows), default=1)
    charts: list[Any] = []
    for panel in dict.fromkeys(row[panels] for row in rows):
        base = alt.Chart(inline([row for row in clipped if row[panels] == panel])).encode(
            x=alt.X("layer:Q", title="layer", axis=alt.Axis(grid=False, format="d", tickMinStep=1),
                    scale=alt.Scale(domain=[0, deepest], nice=False)),
            color=style["color"],
        )  # fmt: skip
        label = None if charts else value.replace("_", " ")
        y = alt.Y(
            f"{value}:Q",
            title=label,
            scale=alt.Scale(type="log", domain=span, nice=False, clamp=True),
            axis=alt.Axis(values=_powers(*span), labelExpr=POWER_LABEL),
        )
        band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=label), y2="high:Q")
        drawn = alt.layer(
            band, base.mark_line().encode(y=y, **style), base.mark_point(filled=True, size=24).encode(y=y)
        )
        charts.append(drawn.properties(width=250, height=260, title=panel_title(str(panel))))
    return framed(alt.hconcat(*charts), title, subtitle)


def _power_below(value: float) -> float:
    return float(10.0 ** math.floor(math.log10(value)))


def _power_above(value: float) -> float:
    return float(10.0 ** math.ceil(math.log10(value)))


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten within the span, at most about eight."""
    first, last = round(math.log10(low)), round(math.log10(high))
    step = max(1, math.ceil((last - first) / 8))
    return [10.0**power for power in range(last, first - 1, -step)]
