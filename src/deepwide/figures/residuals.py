"""What a fit misses, against size and, where the fit knows it, against leverage: structure left, dependence right."""

from typing import TYPE_CHECKING, Any

from deepwide.errors import DeepwideError
from deepwide.figures.runs import UNKNOWN, run_points, run_shape, size_title
from deepwide.figures.style import BLUE, GREY, WIDTH, depth_colour, framed, inline, size_axis

if TYPE_CHECKING:
    from deepwide.fitting import Fit


def residual_plot(fit: "Fit", title: str = "") -> Any:
    """Each run's loss above the fit in percent, against size and against leverage."""
    import altair as alt

    rows = run_points(fit)
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
    if not any(row["leverage"] for row in rows):  # a joint fit has none
        return framed(left, title, about, WIDTH, 280)
    # Where seeds or depths are weighted, an estimated leverage may pass 1.
    most = 1.02 * max(1.0, *(row["leverage"] for row in rows))
    ticks = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f", labelFlush=False)
    words = "leverage (1: the group determines its own fit)"
    lever = alt.X("leverage:Q", scale=alt.Scale(domain=[0, most], nice=False), title=words, axis=ticks)
    right = alt.layer(zero, base.encode(x=lever)).properties(width=260, height=280)
    return framed(alt.hconcat(left, right), title, about)
