"""Estimates with their 95% intervals, one row per label, lines of several sources under each other."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from deepwide.figures.style import CATEGORIES, FAINT, SIZE_LABEL, framed, inline, log_ticks

ROOM = 0.06  # of the axis, left free at either end
ROW = 16  # pixels of height per line


def interval_chart(
    rows: Sequence[Mapping[str, Any]],
    title: str,
    subtitle: str | Sequence[str] = "",
    *,
    axis: str = "",
    labels_are: str | None = None,
    lines: str = "source",
    panels: str | None = None,
    log: bool = False,
    width: int = 460,
) -> Any:
    """An Altair chart of rows with `label`, `value`, `low`, `high` and the field `lines`; one panel per `panels`.

    `axis` and `labels_are` say what the values and the labels are. A limit that is None runs to the edge and ends in an
    arrow. With both None the estimate has no interval, and is drawn as a point alone.
    """
    import altair as alt

    sources = list(dict.fromkeys(row[lines] for row in rows))
    labels = list(dict.fromkeys(row["label"] for row in rows))
    counts = Counter((row[panels] if panels else None, row["label"]) for row in rows)
    several = max(counts.values(), default=1)  # lines of one label, under each other
    charts: list[Any] = []
    for panel in dict.fromkeys(row[panels] for row in rows) if panels else [axis]:
        here = [row for row in rows if not panels or row[panels] == panel]
        span = _span(here, log)
        scale = alt.Scale(type="log" if log else "linear", domain=span, nice=False, zero=False)
        ticks: dict[str, Any] = {"labelExpr": SIZE_LABEL, "values": log_ticks(*span)} if log else {"tickCount": 5}
        base = alt.Chart(inline([_placed(row, span) for row in here])).encode(
            x=alt.X("value:Q", title=panel, scale=scale, axis=alt.Axis(grid=True, **ticks)),
            y=alt.Y("label:N", title=None if charts else labels_are, sort=labels,
                    axis=alt.Axis(labelFontSize=12, labelLimit=320, ticks=False, labels=not charts)),
            color=alt.Color(f"{lines}:N", title=None, sort=sources,
                            scale=alt.Scale(domain=sources, range=list(CATEGORIES[: len(sources)])),
                            legend=alt.Legend(symbolType="circle", symbolOpacity=1, labelLimit=320)
                            if several > 1 else None),
        )  # fmt: skip
        if several > 1:
            base = base.encode(yOffset=alt.YOffset(f"{lines}:N", sort=sources))
        rule = base.transform_filter("datum.known").mark_rule(strokeWidth=2)
        layers = [rule.encode(x=alt.X("from:Q", scale=scale, title=panel), x2="to:Q")]
        for end, shape in (("from", "triangle-left"), ("to", "triangle-right")):
            open_end = base.transform_filter(f"datum.known && datum.{end}_open")
            arrow = open_end.mark_point(shape=shape, filled=True, size=55, opacity=1)
            layers.append(arrow.encode(x=alt.X(f"{end}:Q", title=panel)))
        layers.append(base.mark_point(filled=True, size=60, opacity=1))
        height = ROW * len(labels) * several + 12 * len(labels)
        shown = width if not panels else max(180, width // 2)
        charts.append(alt.layer(*layers).properties(width=shown, height=max(60, height)))
    chart = charts[0] if len(charts) == 1 else alt.hconcat(*charts)
    return framed(chart, title, subtitle).configure_axisY(labelColor=FAINT)


def _span(rows: Sequence[Mapping[str, Any]], log: bool) -> tuple[float, float]:
    """From the least to the greatest number, and some room."""
    numbers = [row[name] for row in rows for name in ("value", "low", "high") if row[name] is not None]
    low, high = min(numbers), max(numbers)
    if log:
        room = max(high / low, 1.5) ** ROOM
        return low / room, high * room
    free = ROOM * ((high - low) or abs(high) or 1.0)
    return low - free, high + free


def _placed(row: Mapping[str, Any], span: tuple[float, float]) -> dict[str, Any]:
    low, high = row["low"], row["high"]
    return {
        **row,
        "known": low is not None or high is not None,
        "from": span[0] if low is None else low,
        "to": span[1] if high is None else high,
        "from_open": low is None,
        "to_open": high is None,
    }
