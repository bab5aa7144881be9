"""The best depth against size, in the runs and beyond, with its band: how far the runs carry, and what is assumed."""

from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.figures.runs import UNKNOWN, run_points, size_title
from deepwide.figures.style import BLUE, FAINT, GREY, HEIGHT, ORANGE, WIDTH, framed, inline, log_ticks, size_axis

if TYPE_CHECKING:
    from deepwide.fitting import Fit

BEYOND = 100  # times the largest size
POINTS = 80


def growth_plot(fit: "Fit", title: str = "") -> Any:
    """The law's depth from the smallest run to a hundred times the largest; dashed, what the runs alone would say."""
    import altair as alt

    law = fit.law()
    if law is None:
        raise DeepwideError("these runs give no law, so there is no best depth to draw: draw the residuals.")
    least, most = fit.params_range
    span = (least / 1.3, BEYOND * most)
    sizes = np.geomspace(*span, POINTS).tolist()
    curve = law.depth(sizes)
    band = [
        {"size": n, "depth": v, "low": low, "high": high}
        for n, v, low, high in zip(sizes, curve.value, curve.low, curve.high, strict=True)
    ]
    lines = _going_on(fit, [n for n in sizes if n > most])
    dots = [{"size": row["size"], "depth": float(row["depth"])} for row in run_points(fit) if row["depth"] != UNKNOWN]
    shown = [row[end] for row in band for end in ("low", "high")] + [dot["depth"] for dot in dots]
    reach = (max(min(shown), 0.3) / 1.1, max(shown) * 1.1)
    x = size_axis("size", span, size_title(fit))
    scale = alt.Scale(type="log", domain=reach, nice=False)
    axis = alt.Axis(values=log_ticks(*reach), grid=False)

    def y(field: str) -> Any:
        return alt.Y(f"{field}:Q", title="depth (layers)", scale=scale, axis=axis)

    base = alt.Chart(inline(band)).encode(x=x)
    layers = [
        base.mark_area(color=BLUE, fillOpacity=0.18, clip=True).encode(y=y("low"), y2="high:Q"),
        base.mark_line(color=BLUE, strokeWidth=2).encode(y=y("depth")),
        alt.Chart(inline(dots)).mark_point(filled=True, size=22, color=GREY, opacity=0.8).encode(x=x, y=y("depth")),
        alt.Chart(inline([{"size": most}])).mark_rule(color=FAINT, strokeDash=[2, 3]).encode(x=x),
    ]
    words = ["blue: the best depth and its 95% interval; grey: runs; dotted: the largest of them"]
    if lines:
        rows = [{**row, "end": end, "depth": row[end]} for row in lines for end in ("low", "high")]
        dashed = alt.Chart(inline(rows)).mark_line(color=ORANGE, strokeDash=[6, 3], strokeWidth=1.5, clip=True)
        layers.append(dashed.encode(x=x, y=y("depth"), detail="end:N"))
        words.append(
            "orange: the interval if growth surely went on as in the runs; what is assumed makes the difference"
        )
    return framed(alt.layer(*layers), title or "The best depth, in the runs and beyond", words, WIDTH, HEIGHT)


def _going_on(fit: "Fit", sizes: list[float]) -> list[dict[str, float]]:
    """The interval of the runs' own growth at each size, of fits that know it."""
    going_on = getattr(fit, "going_on", None)
    if going_on is None:
        return []
    intervals = [(n, going_on(n)) for n in sizes]
    return [{"size": n, "low": i.low, "high": i.high} for n, i in intervals]
