"""Runs as points: what pictures of fits share, and a picture of runs that gave no fit."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deepwide.figures.style import HEIGHT, WIDTH, depth_colour, framed, inline, size_axis

if TYPE_CHECKING:
    from deepwide.fitting import Fit

UNKNOWN = "unknown"
LOSS = "loss (unit of the runs)"  # a table of runs does not say
ENDINGS = ("finished", "diverged (at least)")


def run_points(fit: "Fit") -> list[dict[str, Any]]:
    """One row per run."""
    return [
        {
            "size": run.params,
            "depth": UNKNOWN if run.depth is None else f"{run.depth:g}",
            "loss": run.loss,
            "residual": 100 * math.expm1(run.residual),
            "leverage": run.leverage,
            "seed": run.seed,
            "run": ENDINGS[run.diverged],
        }
        for run in fit.residuals
    ]


def run_shape(diverged: bool) -> Any:
    """Circles, and triangles for runs that diverged; explained where some have."""
    import altair as alt

    scale = alt.Scale(domain=list(ENDINGS), range=["circle", "triangle-up"])
    return alt.Shape("run:N", title="run", scale=scale, legend=alt.Legend() if diverged else None)


def size_title(fit: "Fit") -> str:
    """What the fit calls size."""
    return "block parameters" if fit.counting == "block" else "parameters"


def run_chart(rows: Sequence[Mapping[str, Any]], title: str = "") -> Any:
    """An Altair chart of rows with `depth`, `block_params` and `loss`: every run a point, and nothing fitted."""
    import altair as alt

    points = [{"depth": str(row["depth"]), "size": row["block_params"], "loss": row["loss"]} for row in rows]
    sizes, losses = [row["size"] for row in points], [row["loss"] for row in points]
    depths = sorted({row["depth"] for row in points}, key=float)
    reach = (min(losses) / 1.02, max(losses) * 1.02)
    dots = alt.Chart(inline(points)).mark_point(filled=True, size=50, opacity=0.9).encode(
        x=size_axis("size", (min(sizes) / 1.15, max(sizes) * 1.15)),
        y=alt.Y("loss:Q", title=LOSS, scale=alt.Scale(type="log", domain=reach, nice=False),
                axis=alt.Axis(tickCount=8, format=".3~f")),
        color=depth_colour(depths),
        tooltip=["depth:N", "size:Q", "loss:Q"],
    )  # fmt: skip
    return framed(dots, title or "Loss against size", "points: runs", WIDTH, HEIGHT)
