"""Pictures of the separation rank: bounds and measured ranks; ranks of a range; spectra. They draw answers, only."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from deepwide.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    POWER_LABEL,
    depth_colour,
    framed,
    inline,
    line_style,
    log_ticks,
    panel_title,
)
from deepwide.separation import BoundsCurves, Certificate, Panel, SoftmaxRank

# A theorem has a colour, what it says at least is dashed; the dimension count is black.
_LINES: dict[str, tuple[str, list[int]]] = {
    "Theorem 1, at most": (BLUE, [1, 0]),
    "Theorem 1, at least": (BLUE, [5, 3]),
    "Theorem 2, at most": (ORANGE, [1, 0]),
    "Theorem 2, at least": (ORANGE, [5, 3]),
    "dimension count": (INK, [1, 0]),
}
_WITH_HEADS = (PINK, [9, 3, 2, 3])
_MEASURED = "measured"
_LEAST = 0.1  # of the axis: a lower bound may be as near to 0 as it likes
_WIDTH, _HEIGHT = 340, 280


def bounds_figure(curves: BoundsCurves) -> Any:
    """Theorems, dimension count and measured ranks against depth at one width and against width at one depth."""
    panels = (curves.by_depth, curves.by_width)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves if curve.name != _MEASURED))
    names.sort(key=lambda name: [*_LINES].index(name) if name in _LINES else len(_LINES))
    styles = [_LINES.get(name, _WITH_HEADS) for name in names]
    legend = alt.Legend(symbolType="stroke", symbolSize=350, symbolStrokeWidth=2)
    style = {
        "color": alt.Color("bound:N", title=None, legend=legend,
                           scale=alt.Scale(domain=names, range=[colour for colour, _ in styles])),
        "strokeDash": alt.StrokeDash("bound:N", title=None, legend=legend,
                                     scale=alt.Scale(domain=names, range=[dash for _, dash in styles])),
    }  # fmt: skip
    notes = [f"{panel.title}: {note.text}" for panel in panels for note in panel.notes]
    drawn = alt.hconcat(*(_panel(panel, style) for panel in panels)).resolve_scale(color="shared", strokeDash="shared")
    return framed(drawn, "Bounds of the separation rank", notes)


def _panel(panel: Panel, style: dict[str, Any]) -> Any:
    rows: list[dict[str, Any]] = [
        {panel.axis: x, "log3": max(y, _LEAST), "bound": curve.name} for curve in panel.curves for x, y in curve.points
    ]
    xs, ys = [row[panel.axis] for row in rows], [row["log3"] for row in rows]
    wide = panel.axis == "width"
    span = (min(xs) / 1.15, max(xs) * 1.15) if wide else (min(xs) - 0.5, max(xs) + 0.5)
    reach = (min(ys) / 1.3, max(ys) * 1.3)
    kind: dict[str, Any] = {"type": "log", "base": 2} if wide else {}
    depths = sorted(set(xs))
    ticks: dict[str, Any] = (
        {"labelOverlap": True} if wide else {"values": depths[:: 1 + len(depths) // 12], "labelOverlap": False}
    )
    base = alt.Chart(inline(rows)).encode(
        x=alt.X(f"{panel.axis}:Q", title="width" if wide else "depth (layers)", axis=alt.Axis(format="d", **ticks),
                scale=alt.Scale(**kind, domain=span, nice=False)),
        y=alt.Y("log3:Q", title="log of the separation rank, base 3",
                scale=alt.Scale(type="log", domain=reach, nice=False),
                axis=alt.Axis(values=log_ticks(*reach), labelExpr=f"datum.value < 1e5 ? datum.label : {POWER_LABEL}")),
        tooltip=["bound:N", f"{panel.axis}:Q", alt.Tooltip("log3:Q", format=".5g")],
    )  # fmt: skip
    is_line, is_rank = (f"datum.bound {sign} '{_MEASURED}'" for sign in ("!=", "=="))
    lines = base.transform_filter(is_line).mark_line(strokeWidth=2).encode(**style)
    dots = base.transform_filter(is_line).mark_point(filled=True, size=14, opacity=1).encode(color=style["color"])
    ranks = base.transform_filter(is_rank).mark_point(filled=True, size=80, opacity=1, stroke="white", strokeWidth=1)
    shape = alt.Shape("bound:N", title=None, scale=alt.Scale(domain=[_MEASURED], range=["diamond"]),
                      legend=alt.Legend(symbolFillColor=GREEN, symbolStrokeColor=GREEN))  # fmt: skip
    layers = [lines, dots]
    if any(row["bound"] == _MEASURED for row in rows):
        layers.append(ranks.encode(shape=shape, color=alt.value(GREEN)))
    if span[0] <= panel.threshold <= span[1]:
        layers = [*_threshold(panel), *layers]
    return alt.layer(*layers).properties(title=panel_title(panel.title), width=_WIDTH, height=_HEIGHT)


def _threshold(panel: Panel) -> list[Any]:
    """Where Theorem 1 ends and Theorem 2 begins: the paper's message. Its word stands below, where no line is."""
    label = (
        f"threshold log_3 d = {panel.threshold:.3g}"
        if panel.axis == "depth"
        else f"threshold 3^L = {panel.threshold:.4g}"
    )
    data = inline([{panel.axis: panel.threshold, "label": label}])
    rule = alt.Chart(data).mark_rule(strokeDash=[5, 4], color=GREY).encode(x=f"{panel.axis}:Q")
    text = alt.Chart(data).mark_text(align="left", dx=4, color=INK, fontSize=10)
    return [rule, text.encode(x=f"{panel.axis}:Q", y=alt.value(_HEIGHT - 8), text="label:N")]


def ranks_figure(certificates: Sequence[Certificate]) -> Any:
    """Measured ranks of a range against width, one colour per depth, with the upper bounds as lines."""
    rows: list[dict[str, Any]] = [
        {
            "width": certificate.case.width,
            "depth": str(certificate.case.depth),
            "heads": certificate.case.heads,
            "rank": certificate.rank,
            "bound": certificate.bound,
        }
        for certificate in certificates
    ]
    widths = sorted({certificate.case.width for certificate in certificates})
    heads = sorted({certificate.case.heads for certificate in certificates})
    depths = [str(depth) for depth in sorted({certificate.case.depth for certificate in certificates})]
    numbers = [row[name] for row in rows for name in ("rank", "bound") if row[name]]
    reach = (min(numbers) / 1.3, max(numbers) * 1.3)
    base = alt.Chart(inline(rows)).encode(
        # Ticks where there are points: between them the format would round 2.5 to 3, a second time.
        x=alt.X("width:Q", scale=alt.Scale(zero=False, padding=15),
                axis=alt.Axis(values=widths, format="d", grid=False, labelOverlap=True)),
        color=depth_colour(depths),
        tooltip=["depth:O", "width:Q", "heads:O", "rank:Q", "bound:Q"],
    )  # fmt: skip
    log = alt.Scale(type="log", domain=reach, nice=False)
    y_axis = alt.Axis(values=log_ticks(*reach), format=",d")
    lines = base.mark_line().encode(
        y=alt.Y("bound:Q", scale=log, axis=y_axis, title="separation rank"), detail="heads:O"
    )
    points = base.mark_point(size=70, strokeWidth=2).encode(y=alt.Y("rank:Q", scale=log, axis=y_axis))
    if len(heads) > 1:
        points = points.encode(shape=alt.Shape("heads:O", title="heads"))
    return framed(
        alt.layer(lines, points), "Measured ranks and their upper bounds", "points: ranks; lines: bounds", 420, 320
    )


def spectrum_figure(answers: Sequence[SoftmaxRank]) -> Any:
    """Singular values, largest first, relative to the largest, for each shape."""
    rows = [
        {
            "index": row["index"],
            "value": row["value"],
            "shape": f"depth {answer.depth}, width {answer.width}, heads {answer.heads}",
        }
        for answer in answers
        for row in answer.rows()
        if row["value"] > 1e-16
    ]
    last = max(row["index"] for row in rows)
    chart = (
        alt.Chart(inline(rows))
        .mark_line()
        .encode(
            x=alt.X("index:Q", title="index of the singular value", axis=alt.Axis(grid=False),
                    scale=alt.Scale(domain=[1, max(2, last)], nice=False)),
            y=alt.Y("value:Q", title="singular value / largest", scale=alt.Scale(type="log"),
                    axis=alt.Axis(labelExpr=POWER_LABEL, tickCount=6)),
            **line_style("shape", list(dict.fromkeys(row["shape"] for row in rows))),
        )
    )  # fmt: skip
    return framed(chart, "Singular values of a softmax network", "numerical, no proof", 420, 320)
