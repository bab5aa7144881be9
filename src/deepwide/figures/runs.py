"""Runs of a fit as points: what pictures of fits share."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepwide.fitting import Fit

UNKNOWN = "unknown"
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


def run_shape(fit: "Fit") -> Any:
    """Circles, and triangles for runs that diverged; explained where there are any."""
    import altair as alt

    scale = alt.Scale(domain=list(ENDINGS), range=["circle", "triangle-up"])
    return alt.Shape("run:N", title="run", scale=scale, legend=alt.Legend() if fit.diverged else None)


def size_title(fit: "Fit") -> str:
    """What the fit calls size."""
    return "block parameters" if fit.counting == "block" else "parameters"
