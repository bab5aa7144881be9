"""Loss against size, one curve per depth, and where depths cross: Levine et al.'s figure 2."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.figures.labels import Spot, corners, label_layers
from deepwide.figures.runs import ENDINGS, LOSS, run_points, run_shape, size_title
from deepwide.figures.style import HEIGHT, INK, WIDTH, depth_colour, framed, inline, share, size_axis
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from deepwide.fitting import TransitionFit

POINTS = 80  # along a curve
ENDS = ("low", "high")
Span = tuple[float, float]
Row = Mapping[str, Any]


def loss_curves(fit: "TransitionFit", title: str = "") -> Any:
    """A fit's curve per depth with its 95% band, the runs, and where neighbours cross."""
    bands = [
        {"depth": depth, "size": n, "loss": i.value, "low": i.low, "high": i.high}
        for depth, ends in zip(fit.curves.depths, fit.curves.ranges, strict=True)
        for n, i in _along(fit, depth, *ends)
    ]
    crossings = [
        {
            "pair": f"{crossing.shallow}/{crossing.deep}",
            "size": crossing.size,
            "low": crossing.low,
            "high": crossing.high,
            "status": crossing.status,
            "loss": fit.curves.loss(crossing.shallow, crossing.size)[0].value,
        }
        for crossing in fit.crossings
        if crossing.size is not None
    ]
    beyond = [
        {"depth": depth, "size": n, "loss": i.value, "pair": str((crossing.shallow, crossing.deep))}
        for crossing in fit.crossings
        if crossing.size is not None
        for depth in (crossing.shallow, crossing.deep)
        for n, i in _to_the_crossing(fit, depth, crossing.size)
    ]
    return crossing_chart(bands, run_points(fit), crossings, title, beyond=beyond, sizes=size_title(fit))


def crossing_chart(
    curves: Sequence[Row],
    runs: Sequence[Row],
    crossings: Sequence[Row],
    title: str = "",
    *,
    beyond: Sequence[Row] = (),
    sizes: str = "block parameters",
    losses: str = LOSS,
) -> Any:
    """Curves with bands (depth, size, loss, low, high), runs, and crossings (pair, size, low, high, loss, status).

    `beyond` has curves outside their runs, drawn dashed: one per `pair`. A run may have `diverged` set.
    """
    import altair as alt

    depths = list(dict.fromkeys(str(row["depth"]) for row in curves))
    bands = [
        {**row, "depth": str(row["depth"])} | {end: row["loss"] if row[end] is None else row[end] for end in ENDS}
        for row in curves
    ]
    dots = [{"run": ENDINGS[bool(row.get("diverged"))], **row, "depth": str(row["depth"])} for row in runs]
    dashed = [{**row, "depth": str(row["depth"])} for row in beyond]
    span = _span([row["size"] for row in (*dots, *dashed)], crossings)
    values = [row["loss"] for row in (*dots, *bands, *dashed)]
    reach = (min(values) * 0.99, max(values) * 1.01)
    x = size_axis("size", span, sizes)
    scale = alt.Scale(type="log", domain=reach, nice=False)
    y = alt.Y("loss:Q", scale=scale, title=losses, axis=alt.Axis(tickCount=8, format=".3~f"))
    colour = depth_colour(depths)
    diverged = any(row["run"] != ENDINGS[0] for row in dots)
    layers: list[Any] = [
        alt.Chart(inline(bands)).mark_area(fillOpacity=0.15, clip=True)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, title=losses), y2="high:Q", color=colour),
        alt.Chart(inline(bands)).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour),
        alt.Chart(inline(dashed)).mark_line(strokeWidth=1.4, strokeDash=[4, 3])
        .encode(x=x, y=y, color=colour, detail="pair:N"),
        alt.Chart(inline(dots)).mark_point(filled=True, size=45, opacity=0.9)
        .encode(x=x, y=y, color=colour, shape=run_shape(diverged),
                tooltip=["depth:N", "size:Q", "loss:Q", "seed:N", "run:N"]),
    ]  # fmt: skip
    if crossings:
        layers += _crossing_layers(alt.Chart(inline(_rows(crossings, dots, bands, span, reach))), sizes, span, x, y)
    words = [
        "points: runs; bands: 95%; diamonds: where the deeper starts to win; ticks: its 95% limits,",
        "an arrow where there is none in the picture" + ("; dashed: beyond the runs" if beyond else ""),
    ]
    return framed(alt.layer(*layers), title or "Loss against size, one curve per depth", words, WIDTH, HEIGHT)


def _crossing_layers(chart: Any, title: str, span: Span, x: Any, y: Any) -> list[Any]:
    base = chart.encode(x=x, y=y)
    style: dict[str, Any] = {"color": INK, "opacity": 1}
    layers = label_layers(base, "pair", fontSize=11, color=INK)
    layers.append(base.mark_rule(strokeWidth=1.5, **style).encode(x=size_axis("from", span, title), x2="to:Q"))
    for end, shape in (("from", "triangle-left"), ("to", "triangle-right")):
        limit, open_end = (base.transform_filter(f"datum.{end}_open == {word}") for word in ("false", "true"))
        at = size_axis(end, span, title)
        layers.append(limit.mark_tick(orient="vertical", thickness=2, size=12, **style).encode(x=at))
        layers.append(open_end.mark_point(shape=shape, size=70, filled=True, **style).encode(x=at))
    diamonds = base.mark_point(shape="diamond", size=90, filled=True, color=INK, opacity=1)
    return [*layers, diamonds.encode(tooltip=["pair:N", "crossing:N", "limits:N"])]


def _span(sizes: list[float], crossings: Sequence[Row]) -> Span:
    """The sizes shown: runs, crossings, and limits that are not far outside."""
    near = (min(sizes) / 2, 2 * max(sizes))
    ends = [row[end] for row in crossings for end in ENDS if row[end] and near[0] < row[end] < near[1]]
    return min(*sizes, *ends) / 1.15, max(*sizes, *ends) * 1.15


def _along(fit: "TransitionFit", depth: int, low: float, high: float, number: int = POINTS) -> list[tuple[float, Any]]:
    sizes = np.geomspace(low, high, number)
    return list(zip(sizes.tolist(), fit.curves.loss(depth, sizes), strict=True))


def _to_the_crossing(fit: "TransitionFit", depth: int, size: float) -> list[tuple[float, Any]]:
    """A depth's curve from its last run to a crossing outside them."""
    low, high = fit.curves.ranges[fit.curves.index(depth)]
    return [] if low <= size <= high else _along(fit, depth, size, low if size < low else high, POINTS // 4)


def _rows(
    crossings: Sequence[Row], runs: Sequence[Row], curves: Sequence[Row], span: Span, reach: Span
) -> list[dict[str, Any]]:
    """Each crossing with its limits; a side without one, or with one outside the picture, is open to the edge."""
    rows: list[dict[str, Any]] = []
    for crossing in crossings:
        low, high = crossing["low"] or 0.0, crossing["high"] or math.inf
        outside = "" if crossing["status"] == "bracketed" else " (extrapolated)"
        rows.append(
            {
                "pair": crossing["pair"].replace("/", " → ") + outside,
                "size": crossing["size"],
                "loss": crossing["loss"],
                "from": max(low, span[0]),
                "to": min(high, span[1]),
                "from_open": low < span[0],
                "to_open": high > span[1],
                "crossing": show_count(round(crossing["size"])),
                "limits": " to ".join(
                    show_count(round(crossing[end])) if crossing[end] else "no limit" for end in ENDS
                ),
            }
        )
    ends = [{"size": row[end], "loss": row["loss"], "pair": ""} for row in rows for end in ("from", "to")]
    dots = [{"size": row["size"], "loss": row["loss"], "pair": ""} for row in runs]
    spots, lines = (
        [
            Spot(WIDTH * share(row["size"], *span), HEIGHT * (1 - share(row["loss"], *reach)), row.get("pair", ""))
            for row in given
        ]
        for given in ((*rows, *dots, *ends), curves)
    )
    placed = corners(spots, WIDTH, HEIGHT, lines)[: len(rows)]
    return [row | {"corner": corner} for row, corner in zip(rows, placed, strict=True)]
