"""What a fit misses, against size, against leverage with Cook's distance, and against the normal's quantiles."""

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from deepwide.errors import DeepwideError
from deepwide.figures.runs import UNKNOWN, run_points, run_shape, size_title
from deepwide.figures.style import BLUE, GREY, WIDTH, depth_colour, framed, inline, size_axis

if TYPE_CHECKING:
    from deepwide.fitting import Fit


def residual_plot(fit: "Fit", title: str = "") -> Any:
    """Each run's loss above the fit in percent, three times: structure, influence, tails."""
    import altair as alt

    rows = _with_quantiles(run_points(fit))
    if not rows:
        raise DeepwideError("this fit has no residuals.")
    depths = sorted({row["depth"] for row in rows}, key=lambda depth: (len(depth), depth))
    colour = alt.value(BLUE) if depths == [UNKNOWN] else depth_colour(depths)
    tip = ["depth:N", "size:Q", "residual:Q", "leverage:Q", "seed:N", "run:N"]
    y = alt.Y("residual:Q", title="loss above the fit (%)")
    base = (
        alt.Chart(inline(rows)).mark_point(filled=True, size=45, opacity=0.85)
        .encode(y=y, color=colour, shape=run_shape(bool(fit.diverged)), tooltip=tip)
    )  # fmt: skip
    span = (min(row["size"] for row in rows) / 1.15, max(row["size"] for row in rows) * 1.15)
    zero = alt.Chart(inline([{"residual": 0}])).mark_rule(color=GREY).encode(y=y)
    left = alt.layer(zero, base.encode(x=size_axis("size", span, size_title(fit)))).properties(width=360, height=280)
    noises = [100 * noise for noise in (fit.noise_by_depth or {0: fit.noise}).values()]
    noise = " to ".join(dict.fromkeys(f"{noise:.2g}" for noise in (min(noises), max(noises))))
    title, about = title or "What the fit misses", f"noise {noise}% of loss{', by depth' if fit.noise_by_depth else ''}"
    if not any(row["leverage"] for row in rows):  # fits saved by earlier versions have none
        return framed(left, title, about, WIDTH, 280)
    # Where seeds or depths are weighted, an estimated leverage may pass 1.
    most = 1.02 * max(1.0, *(row["leverage"] for row in rows))
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", labelFlush=False)
    words = "leverage (1: the group determines its own fit)"
    lever = alt.X("leverage:Q", scale=alt.Scale(domain=[0, most], nice=False), title=words, axis=ticks)
    reach = max(abs(row["residual"]) for row in rows)
    cook = alt.Chart(inline(_cook(fit, reach))).mark_line(color=GREY, strokeDash=[4, 3], clip=True)
    lines = cook.encode(x=lever, y=y, detail="line:N")
    right = alt.layer(zero, lines, base.encode(x=lever)).properties(width=260, height=280)
    quantile = alt.X("quantile:Q", title="normal quantile", axis=alt.Axis(grid=False, tickCount=5))
    straight = [{"quantile": z, "residual": 100 * z * fit.noise} for z in (-3, 3)]
    normal = alt.Chart(inline(straight)).mark_line(color=GREY, clip=True).encode(x=quantile, y=y)
    tails = alt.layer(normal, base.encode(x=quantile)).properties(width=220, height=280)
    about += "; dashed: Cook's distance 0.5; right: on the line if normal"
    return framed(alt.hconcat(left, right, tails), title, about)


def _with_quantiles(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row with the quantile of the normal that its rank among residuals has."""
    normal = NormalDist()
    order = sorted(range(len(rows)), key=lambda i: rows[i]["residual"])
    ranks = {i: (rank + 0.5) / len(rows) for rank, i in enumerate(order)}
    return [row | {"quantile": normal.inv_cdf(ranks[i])} for i, row in enumerate(rows)]


def _cook(fit: "Fit", reach: float) -> list[dict[str, float]]:
    """The residuals, in percent, at which Cook's distance (1977) is a half: e² = ½·k·σ²·(1 − h)²/h."""
    k = max(1, len(fit.names))
    curve = [(h / 50, 100 * fit.noise * math.sqrt(k / 2 * (1 - h / 50) ** 2 / (h / 50))) for h in range(1, 50)]
    return [
        {"leverage": h, "residual": sign * e, "line": sign} for sign in (-1, 1) for h, e in curve if e <= 1.2 * reach
    ]
