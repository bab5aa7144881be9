"""Tokens per parameter against compute, one line per surface; a band where a surface has limits."""

from collections.abc import Mapping, Sequence
from typing import Any

from deepwide.figures.style import HEIGHT, POWER_LABEL, WIDTH, framed, inline, line_style, log_ticks


def compute_chart(rows: Sequence[Mapping[str, Any]], title: str, subtitle: str | Sequence[str] = "") -> Any:
    """An Altair chart of rows with `source`, `train_flops`, `tokens_per_param`, and `low` and `high` or None."""
    import altair as alt

    sources = list(dict.fromkeys(row["source"] for row in rows))
    numbers = [row[name] for row in rows for name in ("tokens_per_param", "low", "high") if row[name] is not None]
    span = (min(numbers) / 1.2, max(numbers) * 1.2)
    scale = alt.Scale(type="log", domain=span, nice=False)
    flops = sorted({row["train_flops"] for row in rows})
    x = alt.X("train_flops:Q", title="training FLOPs",
              scale=alt.Scale(type="log", domain=[flops[0], flops[-1]], nice=False),
              axis=alt.Axis(labelExpr=POWER_LABEL, grid=False, values=flops))  # fmt: skip
    y = alt.Y("tokens_per_param:Q", title="tokens per parameter", scale=scale,
              axis=alt.Axis(values=log_ticks(*span), format="~s"))  # fmt: skip
    style = line_style("source", sources)
    bands = [row for row in rows if row["low"] is not None and row["high"] is not None]
    layers = [
        alt.Chart(inline([dict(row) for row in bands])).mark_area(fillOpacity=0.15)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, title="tokens per parameter"), y2="high:Q", color=style["color"]),
        alt.Chart(inline([dict(row) for row in rows])).mark_line(strokeWidth=2).encode(x=x, y=y, **style),
        alt.Chart(inline([dict(row) for row in rows])).mark_point(filled=True, size=30, opacity=1)
        .encode(x=x, y=y, color=style["color"]),
    ]  # fmt: skip
    return framed(alt.layer(*layers), title, subtitle, WIDTH, HEIGHT)
