"""Pictures of the separation rank: bounds and measured ranks; ranks of a range; spectra. They draw answers, only."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from deepwide.separation import BoundsCurves, Certificate, Panel, SoftmaxRank

_COLOURS = {
    "Theorem 1, at most": "#b2182b",
    "Theorem 1, at least": "#2166ac",
    "Theorem 2, at most": "#ef8a62",
    "Theorem 2, at least": "#67a9cf",
    "dimension count": "#444444",
    "measured": "#1b7837",
}
_WITH_HEADS = "#8073ac"


def bounds_figure(curves: BoundsCurves) -> Any:
    """Theorems, dimension count and measured ranks against depth at one width and against width at one depth."""
    panels = (curves.by_depth, curves.by_width)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    names.sort(key=lambda name: [*_COLOURS].index(name) if name in _COLOURS else 4.5)
    colours = alt.Scale(domain=names, range=[_COLOURS.get(name, _WITH_HEADS) for name in names])
    drawn = [
        _panel(panel, colours, alt.Scale(type="log", base=2) if panel.axis == "width" else alt.Scale())
        for panel in panels
    ]
    return alt.hconcat(*drawn).resolve_scale(color="shared")


def _panel(panel: Panel, colours: alt.Scale, scale: alt.Scale) -> Any:
    rows: list[dict[str, Any]] = [
        {panel.axis: x, "log3": y, "bound": curve.name} for curve in panel.curves for x, y in curve.points
    ]
    # Two lines each, empty or not, so that the panels stay level.
    subtitle = [note.text for note in panel.notes] + [" "] * (2 - len(panel.notes))
    values = sorted({row[panel.axis] for row in rows}) if panel.axis == "depth" else alt.Undefined
    base = alt.Chart(
        alt.InlineData(values=rows), title=alt.TitleParams(panel.title, subtitle=subtitle), width=320, height=280
    ).encode(
        x=alt.X(f"{panel.axis}:Q", title=panel.axis, scale=scale, axis=alt.Axis(values=values, format="d")),
        y=alt.Y("log3:Q", title="log_3 of the separation rank", scale=alt.Scale(type="symlog")),
        color=alt.Color("bound:N", title=None, scale=colours),
        tooltip=["bound:N", f"{panel.axis}:Q", alt.Tooltip("log3:Q", format=".5g")],
    )
    points = base.transform_filter("datum.bound == 'measured'").mark_point(filled=True, size=70, opacity=1)
    lines = base.transform_filter("datum.bound != 'measured'").mark_line(point=alt.OverlayMarkDef(size=15))
    xs = [row[panel.axis] for row in rows]
    layers = [lines, points]
    if min(xs) <= panel.threshold <= max(xs):
        layers = [*_threshold(panel), *layers]
    return alt.layer(*layers)


def _threshold(panel: Panel) -> list[Any]:
    """Where Theorem 1 ends and Theorem 2 begins: the paper's message."""
    label = (
        f"threshold log_3 d = {panel.threshold:.3g}"
        if panel.axis == "depth"
        else f"threshold 3^L = {panel.threshold:.4g}"
    )
    data = alt.InlineData(values=[{panel.axis: panel.threshold, "label": label}])
    rule = alt.Chart(data).mark_rule(strokeDash=[5, 4], color="#888888").encode(x=f"{panel.axis}:Q")
    text = alt.Chart(data).mark_text(align="left", dx=4, color="#666666", fontSize=10)
    return [rule, text.encode(x=f"{panel.axis}:Q", y=alt.value(8), text="label:N")]


def ranks_figure(certificates: Sequence[Certificate]) -> Any:
    """Measured ranks of a range against width, one colour per depth, with the upper bounds as lines."""
    rows = [
        {
            "width": certificate.case.width,
            "depth": certificate.case.depth,
            "heads": certificate.case.heads,
            "rank": certificate.rank,
            "bound": certificate.bound,
        }
        for certificate in certificates
    ]
    widths = sorted({certificate.case.width for certificate in certificates})
    several_heads = len({certificate.case.heads for certificate in certificates}) > 1
    base = alt.Chart(
        alt.InlineData(values=rows), title="measured ranks (points) and their upper bounds (lines)"
    ).encode(
        # Ticks where there are points: between them the format would round 2.5 to 3, a second time.
        x=alt.X("width:Q", scale=alt.Scale(zero=False, padding=15), axis=alt.Axis(values=widths, format="d")),
        color=alt.Color("depth:O", scale=alt.Scale(scheme="viridis")),
        tooltip=["depth:O", "width:Q", "heads:O", "rank:Q", "bound:Q"],
    )
    log = alt.Scale(type="log", padding=15, nice=False)
    lines = base.mark_line().encode(y=alt.Y("bound:Q", scale=log, title="separation rank"), detail="heads:O")
    points = base.mark_point(size=70).encode(y=alt.Y("rank:Q", scale=log))
    if several_heads:
        lines = lines.encode(strokeDash=alt.StrokeDash("heads:O"))
        points = points.encode(shape=alt.Shape("heads:O"))
    return (lines + points).properties(width=420, height=320)


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
    return (
        alt.Chart(alt.InlineData(values=rows), title="numerical: singular values of a softmax network, no proof")
        .mark_line()
        .encode(
            x=alt.X("index:Q", title="index"),
            y=alt.Y(
                "value:Q",
                title="singular value / largest",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~e"),
            ),
            color=alt.Color("shape:N", title=None),
        )
        .properties(width=420, height=320)
    )
