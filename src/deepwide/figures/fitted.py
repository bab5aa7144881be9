"""Pictures of fits: loss against size with crossings, the ridge on the depth–width map, residuals, resamples."""

import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.catalogue import all_models
from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.figures.depth_width import HEIGHT, WIDTH, Point, depth_width_map, ticks
from deepwide.figures.labels import Spot, corners, label_layers
from deepwide.figures.save import save_chart
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from deepwide.fitting import Fit, Pair, TransitionFit

DEPTH_COLOURS = ("#2471a3", "#1e8449", "#d35400", "#c0392b", "#7d3c98", "#1c1c1c", "#b7950b", "#117a65")
BLUE, RED = "#2471a3", "#c0392b"
UNKNOWN = "unknown"
RUNS = ("finished", "diverged (at least)")
POINTS = 80
PUBLIC = 6  # models on the map
MOST_RESAMPLES = 1000


def loss_curves(fit: "TransitionFit", title: str = "") -> Any:
    """Levine et al.'s figure 2: a curve a depth with its 95% band, the runs, and where neighbours cross."""
    import altair as alt

    bands = [
        {"depth": str(depth), "size": n, "loss": i.value, "low": i.low or i.value, "high": i.high or i.value}
        for depth, ends in zip(fit.curves.depths, fit.curves.ranges, strict=True)
        for n, i in _along(fit, depth, *ends)
    ]
    found = [pair for pair in fit.pairs if pair.size is not None and pair.deep in fit.curves.depths]
    beyond = [
        {"depth": str(depth), "size": n, "loss": i.value, "pair": str((pair.shallow, pair.deep))}
        for pair in found
        for depth in (pair.shallow, pair.deep)
        for n, i in _to_the_crossing(fit, depth, pair.size or math.nan)
    ]
    dots = _runs(fit)
    sizes = [row["size"] for row in dots] + [row["size"] for row in beyond]
    sizes += [end for pair in found for end in (pair.low, pair.high) if end and min(sizes) / 2 < end < 2 * max(sizes)]
    losses = [row["loss"] for row in (*dots, *bands, *beyond)]
    span = (min(sizes) / 1.15, max(sizes) * 1.15)
    reach = (min(losses) * 0.99, max(losses) * 1.01)
    x = _size_axis(fit, "size", span)
    scale = alt.Scale(type="log", domain=reach, nice=False)
    y = alt.Y("loss:Q", scale=scale, title="loss", axis=alt.Axis(tickCount=8, format=".3~f"))
    colour = _depth_colour([str(depth) for depth in fit.curves.depths])
    layers: list[Any] = [
        alt.Chart(_data(bands)).mark_area(fillOpacity=0.15, clip=True)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, title="loss"), y2="high:Q", color=colour),
        alt.Chart(_data(bands)).mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour),
        alt.Chart(_data(beyond)).mark_line(strokeWidth=1.4, strokeDash=[4, 3])
        .encode(x=x, y=y, color=colour, detail="pair:N"),
        alt.Chart(_data(dots)).mark_point(filled=True, size=45, opacity=0.9)
        .encode(x=x, y=y, color=colour, shape=_run_shape(fit),
                tooltip=["depth:N", "size:Q", "loss:Q", "seed:N", "run:N"]),
    ]  # fmt: skip
    if found:
        base = alt.Chart(_data(_crossings(fit, found, span, reach))).encode(x=x, y=y)
        style: dict[str, Any] = {"color": "#404040", "opacity": 1}
        layers += label_layers(base, "pair", fontSize=11, color="#1c1c1c")
        layers.append(base.mark_rule(strokeWidth=1.5, **style).encode(x=_size_axis(fit, "from", span), x2="to:Q"))
        for end, shape in (("from", "triangle-left"), ("to", "triangle-right")):
            limit, open_ = (base.transform_filter(f"datum.{end}_open == {word}") for word in ("false", "true"))
            at = _size_axis(fit, end, span)
            layers.append(limit.mark_tick(orient="vertical", thickness=2, size=12, **style).encode(x=at))
            layers.append(open_.mark_point(shape=shape, size=70, filled=True, **style).encode(x=at))
        layers.append(
            base.mark_point(shape="diamond", size=90, filled=True, color="#1c1c1c", opacity=1)
            .encode(tooltip=["pair:N", "crossing:N", "limits:N"])
        )  # fmt: skip
    words = [
        "points: runs; bands: 95%; diamonds: where the deeper starts to win; ticks: its 95% limits,",
        "an arrow where there is none in the picture" + ("; dashed: beyond the runs" if beyond else ""),
    ]
    return _framed(alt.layer(*layers), title or "Loss against size, one curve a depth", words, WIDTH, HEIGHT)


def _along(fit: "TransitionFit", depth: int, low: float, high: float, number: int = POINTS) -> list[tuple[float, Any]]:
    sizes = np.geomspace(low, high, number)
    return list(zip(sizes.tolist(), fit.curves.loss(depth, sizes), strict=True))


def _to_the_crossing(fit: "TransitionFit", depth: int, size: float) -> list[tuple[float, Any]]:
    """A depth's curve from its last run to a crossing outside them."""
    low, high = fit.curves.ranges[fit.curves.depths.index(depth)]
    return [] if low <= size <= high else _along(fit, depth, size, low if size < low else high, POINTS // 4)


def _crossings(
    fit: "TransitionFit", pairs: "list[Pair]", span: tuple[float, float], reach: tuple[float, float]
) -> list[dict[str, Any]]:
    """Each crossing with its limits; a side without one, or with one outside the picture, is open to the edge."""
    rows: list[dict[str, Any]] = []
    for pair in pairs:
        assert pair.size is not None
        low, high = pair.low or 0.0, pair.high or math.inf
        limits = " to ".join(show_count(round(end)) if end else "no limit" for end in (pair.low, pair.high))
        rows.append(
            {
                "pair": f"{pair.shallow} → {pair.deep}" + ("" if pair.status == "bracketed" else " (extrapolated)"),
                "size": pair.size,
                "loss": fit.curves.loss(pair.shallow, pair.size)[0].value,
                "from": max(low, span[0]),
                "to": min(high, span[1]),
                "from_open": low < span[0],
                "to_open": high > span[1],
                "crossing": show_count(round(pair.size)),
                "limits": limits,
            }
        )
    ends = [{"size": row[end], "loss": row["loss"]} for row in rows for end in ("from", "to")]
    spots = [
        Spot(WIDTH * _share(row["size"], *span), HEIGHT * (1 - _share(row["loss"], *reach)), row["pair"])
        for row in (*rows, *({"pair": ""} | dot for dot in (*_runs(fit), *ends)))
    ]
    return [row | {"corner": at} for row, at in zip(rows, corners(spots, WIDTH, HEIGHT), strict=False)]


def _share(value: float, low: float, high: float) -> float:
    """How far along a logarithmic axis."""
    return math.log(value / low) / math.log(high / low)


def fitted_map(fit: "Fit", title: str = "") -> Any:
    """The fitted law on the depth–width map, with the runs and public models of their sizes."""
    law = fit.law()
    if law is None:
        raise DeepwideError("these runs give no law, so there is no map of it: draw the curves or the residuals.")
    matrices = getattr(fit, "layer_matrices", None) or 12
    cells: dict[tuple[float, float, float], list[float]] = {}
    for r in fit.residuals:
        if r.depth is None or (r.width is None and fit.counting == "total"):
            raise DeepwideError("the map needs the depth of every run, and its width where embeddings are counted.")
        block = r.params if fit.counting == "block" else matrices * r.depth * (r.width or 1) ** 2
        cells.setdefault((r.depth, r.width or 1, block), []).append(math.inf if r.diverged else r.loss)
    means = {cell: sum(losses) / len(losses) for cell, losses in cells.items()}
    lengths = [r.tokens for r in fit.residuals if r.tokens]
    comparable = not lengths or max(lengths) < 1.05 * min(lengths)
    points = []
    for (depth, width, block), mean in means.items():
        rivals = [other for cell, other in means.items() if _alike(cell[2], block)]
        best = comparable and len(rivals) > 1 and mean == min(rivals)
        kind, name = ("best within √2 of its size", show_count(round(block))) if best else ("run", "")
        points.append(Point(name, int(depth), int(width), int(block), kind, f"{mean:.4g}"))
    return depth_width_map([*points, *_public(points)], law, title or "The fitted law on the map")


def _public(runs: list[Point]) -> list[Point]:
    """A few public models of the runs' sizes, spread as these are, that the map of the runs has room for."""
    widths = [point.map_width() for point in runs]
    deepest = max(12.0, 1.3 * max(point.depth for point in runs))
    models = {(m.shape.depth, m.shape.width): Point.of(m.name, m.shape, "public") for m in reversed(all_models())}
    room = [
        point
        for point in models.values()
        if point.depth <= deepest and min(widths) / 1.5 < point.map_width() < 1.5 * max(widths)
    ]
    chosen: list[Point] = []
    for size in np.quantile([point.block_params for point in runs], np.linspace(1, 0, PUBLIC)):
        free = [p for p in room if not any(_alike(p.block_params, other.block_params) for other in chosen)]
        near = [p for p in free if size / 2 < p.block_params < 2 * size]
        chosen += sorted(near, key=lambda p: abs(math.log(p.block_params / size)))[:1]
    return chosen


def _alike(one: float, other: float) -> bool:
    """Whether two sizes are within a factor √2."""
    return abs(math.log(one / other)) <= math.log(2) / 2


def residual_plot(fit: "Fit", title: str = "") -> Any:
    """What the fit misses, against size and against leverage: structure on the left, dependence on the right."""
    import altair as alt

    rows = _runs(fit)
    if not rows:
        raise DeepwideError("this fit keeps no residuals.")
    depths = sorted({row["depth"] for row in rows}, key=lambda d: (len(d), d))
    colour = alt.value(BLUE) if depths == [UNKNOWN] else _depth_colour(depths)
    tip = ["depth:N", "size:Q", "residual:Q", "leverage:Q", "seed:N", "run:N"]
    y = alt.Y("residual:Q", title="loss above the fit (%)")
    base = (
        alt.Chart(_data(rows)).mark_point(filled=True, size=45, opacity=0.85)
        .encode(y=y, color=colour, shape=_run_shape(fit), tooltip=tip)
    )  # fmt: skip
    span = (min(row["size"] for row in rows) / 1.15, max(row["size"] for row in rows) * 1.15)
    x = _size_axis(fit, "size", span)
    zero = alt.Chart(_data([{"residual": 0}])).mark_rule(color="#909090").encode(y=y)
    left = alt.layer(zero, base.encode(x=x)).properties(width=360, height=280)
    # Where seeds or depths are weighed, an estimated leverage may pass 1.
    most = 1.02 * max(1.0, *(row["leverage"] for row in rows))
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", labelFlush=False)
    words = "leverage (1: the cell decides its own fit)"
    lever = alt.X("leverage:Q", scale=alt.Scale(domain=[0, most], nice=False), title=words, axis=ticks)
    right = alt.layer(zero, base.encode(x=lever)).properties(width=260, height=280)
    noises = [100 * noise for noise in (fit.noise_by_depth or {0: fit.noise}).values()]
    noise = " to ".join(dict.fromkeys(f"{noise:.2g}" for noise in (min(noises), max(noises))))
    depth = ", by depth" if fit.noise_by_depth else ""
    return _framed(alt.hconcat(left, right), title or "What the fit misses", f"noise {noise}% of loss{depth}")


def resample_plot(fit: "Fit", title: str = "") -> Any:
    """Each pair of what a reader asks about over the bootstrap's resamples, with the estimate."""
    import altair as alt

    if not fit.names:
        raise DeepwideError("these runs give no law, so there is none to resample: draw the curves or the residuals.")
    if len(fit.resamples) < 20:
        raise DeepwideError("this fit has no resamples to draw: fit with --bootstrap 1000.")
    shown, note = _worth_showing(fit)
    drawn = min(len(fit.resamples), MOST_RESAMPLES)
    axis: dict[str, Any] = {
        "scale": alt.Scale(zero=False),
        "axis": alt.Axis(tickCount=5, labelFlush=False, labelOverlap=True),
    }
    if len(shown) == 1:
        ((name, values),) = shown.items()
        bars = alt.Chart(_data([{"value": value} for value in values[1:]])).mark_bar(color=BLUE, opacity=0.7)
        mark = alt.Chart(_data([{"value": values[0]}])).mark_rule(color=RED, strokeWidth=2)
        x = alt.X("value:Q", bin=alt.Bin(maxbins=40), title=name)
        chart = alt.layer(bars.encode(x=x, y=alt.Y("count()", title="resamples")), mark.encode(x="value:Q"))
        words = f"{len(values) - 1} resamples of the runs; red: the estimate{note}"
        return _framed(chart, title or "Bootstrap", words, 420, 280)
    panels = []
    for (first, u), (second, v) in itertools.combinations(shown.items(), 2):
        x, y = alt.X("x:Q", title=first, **axis), alt.Y("y:Q", title=second, **axis)
        points = [{"x": a, "y": b} for a, b in zip(u, v, strict=True)]
        cloud = alt.Chart(_data(points[1 : drawn + 1])).mark_point(filled=True, size=12, opacity=0.4, color=BLUE)
        centre = alt.Chart(_data(points[:1])).mark_point(shape="cross", size=120, color=RED, opacity=1)
        panels.append(alt.layer(cloud, centre).encode(x=x, y=y).properties(width=260, height=220))
    words = f"points: {drawn} resamples of the runs; red cross: the estimate{note}"
    return _framed(alt.concat(*panels, columns=3), title or "The fit over resamples of its runs", words)


def _worth_showing(fit: "Fit") -> tuple[dict[str, list[float]], str]:
    """What a reader asks about, the estimate before its resamples, and a word on it: at most four."""
    from deepwide.fitting import RidgeFit

    values = np.array([fit.values, *fit.resamples])
    column = dict(zip(fit.names, values.T, strict=True))
    if isinstance(fit, RidgeFit) and fit.minimum is not None:
        b1, b2 = column["b1"], column["b2"]
        with np.errstate(divide="ignore", invalid="ignore"):
            best, drift = -b1 / (2 * b2), -column.get("drift", 0 * b1) / (2 * b2)
        bowl = (b2 > 0) & (np.abs(best - best[0]) < math.log(1000))
        unit = f"best depth / depth of {fit.base.name}" if fit.base else "best depth (layers)"
        where = f" at {show_count(round(fit.centre))}" if "drift" in column else ""
        shown = {
            unit + where: np.exp(best[bowl]),
            "cost of a factor 2 (%)": 100 * np.expm1(b2[bowl] * math.log(2) ** 2),
        }
        if "drift" in column:
            shown["its power of the size" + (f" above that of {fit.base.name}" if fit.base else "")] = drift[bowl]
        note = "" if bowl.all() else f"; {np.sum(~bowl)} have no best depth"
        return {name: each.tolist() for name, each in shown.items()}, note
    asked = [name for name in fit.names if name in {"a", "b", "b1", "b2", "alpha", "beta", "E"}]
    asked = asked or [name for name in fit.names if name.endswith("_exponent")] or list(fit.names)
    titles = {name: f"exponent of {name.removesuffix('_exponent')}" for name in asked if name.endswith("_exponent")}
    note = "; ln width = a + b·depth" if "a" in asked else ""
    return {titles.get(name, name): column[name].tolist() for name in asked[:4]}, note


PICTURES: Mapping[str, Callable[..., Any]] = {
    "curves": loss_curves,
    "map": fitted_map,
    "residuals": residual_plot,
    "resamples": resample_plot,
}


def draw_fit(fit: "Fit", path: str | Path, picture: str | None = None) -> Path:
    """Save a picture of a fit as .svg, .png or .html; without a name, curves of a transition or else residuals."""
    from deepwide.fitting import TransitionFit

    transition = isinstance(fit, TransitionFit)
    picture = picture or ("curves" if transition else "residuals")
    if picture not in PICTURES:
        raise DeepwideError(f"no picture {quoted(picture)}: {did_you_mean(picture, PICTURES)}")
    if picture == "curves" and not transition:
        raise DeepwideError("curves are drawn of a transition fit: draw map, residuals or resamples.")
    return save_chart(PICTURES[picture](fit), path)


def _runs(fit: "Fit") -> list[dict[str, Any]]:
    """One row a run."""
    return [
        {
            "size": r.params,
            "depth": UNKNOWN if r.depth is None else f"{r.depth:g}",
            "loss": r.loss,
            "residual": 100 * math.expm1(r.residual),
            "leverage": r.leverage,
            "seed": r.seed,
            "run": RUNS[r.diverged],
        }
        for r in fit.residuals
    ]


def _run_shape(fit: "Fit") -> Any:
    """Circles, and triangles for runs that diverged; explained where there are any."""
    import altair as alt

    scale = alt.Scale(domain=list(RUNS), range=["circle", "triangle-up"])
    return alt.Shape("run:N", title="run", scale=scale, legend=alt.Legend() if fit.diverged else None)


def _depth_colour(depths: list[str]) -> Any:
    """A colour of its own for each of a few depths, a scale from dark to light for many."""
    import altair as alt

    few = len(depths) <= len(DEPTH_COLOURS)
    how = {"range": DEPTH_COLOURS[: len(depths)]} if few else {"scheme": {"name": "viridis", "extent": [0, 0.92]}}
    legend = alt.Legend(symbolOpacity=1, symbolLimit=60, symbolType="circle")
    return alt.Color("depth:O", title="depth", sort=depths, legend=legend, scale=alt.Scale(domain=depths, **how))


def _size_axis(fit: "Fit", field: str, span: tuple[float, float]) -> Any:
    """A logarithmic axis of sizes: 20K, 3M, 1B."""
    import altair as alt

    words = "replace(replace(format(datum.value, '~s'), 'G', 'B'), 'k', 'K')"
    return alt.X(
        f"{field}:Q",
        title="block parameters" if fit.counting == "block" else "parameters",
        scale=alt.Scale(type="log", domain=span, nice=False),
        axis=alt.Axis(values=ticks(*span), labelExpr=words, grid=False, labelFlush=False, labelOverlap=True),
    )


def _framed(
    chart: Any, title: str, subtitle: str | list[str], width: int | None = None, height: int | None = None
) -> Any:
    import altair as alt

    size = {} if width is None else {"width": width, "height": height}
    return (
        chart.properties(
            background="white",
            title=alt.TitleParams(title, subtitle=subtitle, subtitleColor="#707070", anchor="start"),
            **size,
        )
        .configure_view(stroke="#d0d0d0")
        .configure_axis(labelFontSize=11, titleFontSize=12)
    )


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.InlineData(values=rows)
