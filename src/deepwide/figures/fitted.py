"""Pictures of fits: loss against size with crossings, the ridge on the depth–width map, residuals, resamples."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.catalogue import all_models
from deepwide.errors import DeepwideError
from deepwide.figures.depth_width import Point, depth_width_map
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from deepwide.fit import Fit, TransitionFit

DEPTH_COLOURS = ("#2471a3", "#1e8449", "#d35400", "#c0392b", "#7d3c98", "#1c1c1c", "#b7950b", "#117a65")
POINTS = 80


def loss_curves(fit: "TransitionFit", title: str = "") -> Any:
    """Levine et al.'s figure 2: a curve a depth with its 95% band, the runs, and where neighbours cross."""
    import altair as alt

    depths = [str(depth) for depth in fit.curves.depths]
    colour = alt.Color(
        "depth:N",
        sort=depths,
        title="depth",
        legend=alt.Legend(symbolOpacity=1),
        scale=alt.Scale(domain=depths, range=_colours(len(depths))),
    )
    bands: list[dict[str, Any]] = []
    for depth, (low, high) in zip(fit.curves.depths, fit.curves.ranges, strict=True):
        sizes = np.geomspace(low, high, POINTS)
        bands += [
            {"depth": str(depth), "size": float(n), "loss": i.value, "low": i.low or i.value, "high": i.high or i.value}
            for n, i in zip(sizes, fit.curves.loss(depth, sizes), strict=True)
        ]
    dots: list[dict[str, Any]] = [
        {"depth": f"{r.depth:g}", "size": r.params, "loss": r.loss, "seed": r.seed, "diverged": r.diverged}
        for r in fit.residuals
    ]
    losses = [row["loss"] for row in dots] + [row["loss"] for row in bands]
    y = alt.Scale(type="log", domain=[min(losses) * 0.99, max(losses) * 1.01], nice=False)
    words = f"{'block' if fit.counting == 'block' else 'all'} parameters"
    shown = [row["size"] for row in dots] + [pair.size for pair in fit.pairs if pair.size]
    span = alt.Scale(type="log", domain=[min(shown) / 1.1, max(shown) * 1.1], nice=False)
    x = alt.X("size:Q", scale=span, axis=alt.Axis(format="~s", grid=False, tickCount=8), title=words)
    loss = alt.Y("loss:Q", scale=y, title="loss (nats)", axis=alt.Axis(tickCount=8, format=".3~f"))
    layers: list[Any] = [
        alt.Chart(_data(bands)).mark_area(fillOpacity=0.15, clip=True)
        .encode(x=x, y=alt.Y("low:Q", scale=y, title="loss (nats)"), y2="high:Q", color=colour),
        alt.Chart(_data(bands)).mark_line(strokeWidth=1.8).encode(x=x, y=loss, color=colour),
    ]  # fmt: skip
    for diverged, shape in ((False, "circle"), (True, "triangle-up")):
        rows = [row for row in dots if row["diverged"] == diverged]
        if rows:
            layers.append(
                alt.Chart(_data(rows)).mark_point(filled=True, size=45, shape=shape, opacity=0.9)
                .encode(x=x, y=loss, color=colour, tooltip=["depth:N", "size:Q", "loss:Q", "seed:N", "diverged:N"])
            )  # fmt: skip
    crossings: list[dict[str, Any]] = []
    for pair in fit.pairs:
        if pair.size is None or pair.deep not in fit.curves.depths:
            continue
        value = fit.curves.loss(pair.shallow, pair.size)[0].value
        low, high = fit.curves.common(pair.shallow, pair.deep)
        crossings.append(
            {
                "size": pair.size,
                "low": max(pair.low or low, low / 4),
                "high": min(pair.high or high, high * 4),
                "loss": value,
                "ends": [each for each in (pair.low, pair.high) if each is not None],
                "pair": f"{pair.shallow} → {pair.deep}" + ("" if pair.status == "bracketed" else " (extrapolated)"),
            }
        )
    if crossings:
        base = alt.Chart(_data(crossings))
        layers += [
            base.mark_rule(color="#404040", strokeWidth=1.5).encode(x=alt.X("low:Q", title=words), x2="high:Q", y=loss),
            alt.Chart(_data([{"size": end, "loss": row["loss"]} for row in crossings for end in row.pop("ends")]))
            .mark_tick(orient="vertical", thickness=2, size=12, color="#404040", clip=True)
            .encode(x=x, y=loss),
            base.mark_point(shape="diamond", size=90, filled=True, color="#1c1c1c").encode(
                x=x, y=loss, tooltip=["pair:N", "size:Q", "low:Q", "high:Q"]
            ),
            base.mark_text(dy=-11, fontSize=11, color="#1c1c1c").encode(x=x, y=loss, text="pair:N"),
        ]
    subtitle = "points: runs; bands: 95%; diamonds: where the deeper starts to win; a tick where the data limit it"
    return _framed(alt.layer(*layers), title or "Loss against size, one curve a depth", subtitle, 640, 420)


def fitted_map(fit: "Fit", title: str = "") -> Any:
    """The fitted law on the depth–width map, with the runs and the public models nearest to their sizes."""
    law = fit.law()
    if law is None:
        raise DeepwideError("these runs give no law, so there is no map of it: draw the curves or the residuals.")
    cells: dict[tuple[float, float, float], list[float]] = {}
    for r in fit.residuals:
        if r.depth is None:
            raise DeepwideError("the map needs the depth of every run.")
        cells.setdefault((r.depth, r.width or 1, r.params), []).append(math.inf if r.diverged else r.loss)
    means = {cell: sum(losses) / len(losses) for cell, losses in cells.items()}
    best: dict[int, float] = {}
    for (_, _, params), mean in means.items():
        best[_band(params)] = min(best.get(_band(params), math.inf), mean)
    points = []
    for (depth, width, params), mean in means.items():
        kind = "best of its size" if mean == best[_band(params)] else "run"
        name = show_count(round(params)) if kind == "best of its size" else ""
        points.append(Point(name, int(depth), int(width), int(params), kind, f"{mean:.4g}"))
    high = 20 * max(r.params for r in fit.residuals)
    near = sorted((m for m in all_models() if m.shape.block_params <= high), key=lambda m: m.shape.block_params)[:8]
    public = [Point.of(m.name, m.shape, "public") for m in near]
    return depth_width_map([*points, *public], law, title or "The fitted law on the map")


def residual_plot(fit: "Fit", title: str = "") -> Any:
    """What the fit misses, against size and against leverage: structure on the left, dependence on the right."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {
            "size": r.params,
            "depth": "–" if r.depth is None else f"{r.depth:g}",
            "residual": 100 * math.expm1(r.residual),
            "leverage": r.leverage,
            "seed": r.seed,
            "diverged": r.diverged,
        }
        for r in fit.residuals
    ]
    if not rows:
        raise DeepwideError("this fit keeps no residuals.")
    depths = sorted({row["depth"] for row in rows}, key=lambda d: (len(d), d))
    colour = alt.Color("depth:N", sort=depths, title="depth", scale=alt.Scale(range=list(_colours(len(depths)))))
    tip = ["depth:N", "size:Q", "residual:Q", "leverage:Q", "seed:N", "diverged:N"]
    y = alt.Y("residual:Q", title="loss above the fit (%)")
    base = alt.Chart(_data(rows)).mark_point(filled=True, size=45, opacity=0.85)
    x = alt.X(
        "size:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format="~s", grid=False, tickCount=5),
        title="parameters",
    )
    zero = alt.Chart(_data([{"residual": 0}])).mark_rule(color="#909090").encode(y=y)
    left = alt.layer(zero, base.encode(x=x, y=y, color=colour, tooltip=tip)).properties(width=360, height=280)
    lever = alt.X("leverage:Q", scale=alt.Scale(domain=[0, 1]), title="leverage (1: the cell decides its own fit)")
    right = alt.layer(zero, base.encode(x=lever, y=y, color=colour, tooltip=tip)).properties(width=260, height=280)
    return _framed(alt.hconcat(left, right), title or "What the fit misses", f"noise {100 * fit.noise:.2g}% of loss")


def resample_plot(fit: "Fit", title: str = "") -> Any:
    """Each pair of parameters over the bootstrap's resamples, with the estimate."""
    import altair as alt

    names = _worth_showing(fit)
    if len(fit.resamples) < 20 or not names:
        raise DeepwideError("this fit has no resamples to draw: fit with --bootstrap 1000.")
    if len(names) == 1:
        rows = [{"value": row[fit.names.index(names[0])]} for row in fit.resamples]
        bars = alt.Chart(_data(rows)).mark_bar(color="#2471a3", opacity=0.7)
        chart = bars.encode(x=alt.X("value:Q", bin=alt.Bin(maxbins=40), title=names[0]), y=alt.Y("count()", title=None))
        return _framed(chart, title or "Bootstrap", f"{len(rows)} resamples", 420, 280)
    panels = []
    for first, second in itertools.combinations(names, 2):
        i, j = fit.names.index(first), fit.names.index(second)
        rows = [{"x": row[i], "y": row[j]} for row in fit.resamples[:1000]]
        x, y = (
            alt.X("x:Q", title=first, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
            alt.Y("y:Q", title=second, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        )
        cloud = alt.Chart(_data(rows)).mark_point(filled=True, size=8, opacity=0.35, color="#2471a3").encode(x=x, y=y)
        centre = alt.Chart(_data([{"x": fit.values[i], "y": fit.values[j]}]))
        panels.append(
            alt.layer(cloud, centre.mark_point(shape="cross", size=120, color="#c0392b").encode(x=x, y=y))
            .properties(width=260, height=220)
        )  # fmt: skip
    chart = alt.concat(*panels, columns=3)
    return _framed(chart, title or "The parameters over resamples of the runs", f"{len(fit.resamples)} resamples")


def _band(params: float) -> int:
    """Sizes within a factor of about 1.5 are compared."""
    return round(math.log(params, 1.5))


PICTURES: Mapping[str, Callable[..., Any]] = {
    "curves": loss_curves,
    "map": fitted_map,
    "residuals": residual_plot,
    "resamples": resample_plot,
}


def _worth_showing(fit: "Fit") -> list[str]:
    """The parameters a reader asks about: a bowl's or a line's or the exponents, at most four."""
    asked = {"a", "b", "b1", "b2", "alpha", "beta", "E"}
    return ([name for name in fit.names if name in asked] or list(fit.names))[:4]


def _framed(chart: Any, title: str, subtitle: str, width: int | None = None, height: int | None = None) -> Any:
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


def _colours(number: int) -> list[str]:
    return [DEPTH_COLOURS[i % len(DEPTH_COLOURS)] for i in range(number)]


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.InlineData(values=rows)
