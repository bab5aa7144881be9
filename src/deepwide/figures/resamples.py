"""What a reader asks about over the bootstrap's resamples, with the estimate: each pair of quantities in a panel."""

import itertools
from typing import TYPE_CHECKING, Any

from deepwide.errors import DeepwideError
from deepwide.figures.style import BLUE, ORANGE, framed, inline
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from deepwide.fitting import Fit

FEWEST = 20
MOST = 1000  # points in a panel
MOST_QUANTITIES = 4


def resample_plot(fit: "Fit", title: str = "") -> Any:
    """A histogram of one quantity, or a cloud for each pair of several."""
    if not fit.names:
        raise DeepwideError("these runs give no law, so there is none to resample: draw the curves or the residuals.")
    if len(fit.resamples) < FEWEST:
        raise DeepwideError(f"this fit has fewer than {FEWEST} resamples to draw: fit with a bootstrap of 1000.")
    quantities = dict(itertools.islice(fit.resampled().items(), MOST_QUANTITIES))
    columns = {_title(fit, name): values.tolist() for name, values in quantities.items()}
    usable = len(next(iter(columns.values()))) - 1
    note = "" if usable == len(fit.resamples) else f"; {len(fit.resamples) - usable} have no best depth"
    note += "; ln width = a + b·depth" if "a" in quantities else ""
    what = "draws of the posterior" if fit.kind == "joint" else "resamples of the runs"
    return _histogram(columns, title, what, note) if len(columns) == 1 else _clouds(columns, title, what, note)


def _title(fit: "Fit", name: str) -> str:
    """A quantity as an axis names it."""
    base = getattr(fit, "base", None)
    if name == "best_depth":
        unit = f"best depth / depth of {base.name}" if base else "best depth (layers)"
        return unit + (f" at {show_count(round(fit.centre))}" if "drift" in fit.names else "")  # type: ignore[attr-defined]
    if name == "growth":
        return f"growth, power of size above {base.name}" if base else "growth of best depth (power of size)"
    if name == "cost_of_factor_2":
        return "cost of factor 2 in depth (% of loss)"
    if name == "best_depth_at_10x":
        return "best depth, size × 10 (layers)"
    return f"exponent of {name.removesuffix('_exponent')}" if name.endswith("_exponent") else name


def _histogram(columns: dict[str, list[float]], title: str, what: str, note: str) -> Any:
    import altair as alt

    ((name, values),) = columns.items()
    bars = alt.Chart(inline([{"value": value} for value in values[1:]])).mark_bar(color=BLUE, opacity=0.7)
    mark = alt.Chart(inline([{"value": values[0]}])).mark_rule(color=ORANGE, strokeWidth=2)
    x = alt.X("value:Q", bin=alt.Bin(maxbins=40), title=name)
    chart = alt.layer(bars.encode(x=x, y=alt.Y("count()", title=what.split()[0])), mark.encode(x="value:Q"))
    words = f"{len(values) - 1} {what}; orange: the estimate{note}"
    return framed(chart, title or "Bootstrap", words, 420, 280)


def _clouds(columns: dict[str, list[float]], title: str, what: str, note: str) -> Any:
    import altair as alt

    drawn = min(len(next(iter(columns.values()))) - 1, MOST)
    axis: dict[str, Any] = {
        "scale": alt.Scale(zero=False),
        "axis": alt.Axis(tickCount=5, labelFlush=False, labelOverlap=True),
    }
    panels = []
    for (first, u), (second, v) in itertools.combinations(columns.items(), 2):
        x, y = alt.X("x:Q", title=first, **axis), alt.Y("y:Q", title=second, **axis)
        points = [{"x": a, "y": b} for a, b in zip(u, v, strict=True)]
        cloud = alt.Chart(inline(points[1 : drawn + 1])).mark_point(filled=True, size=12, opacity=0.4, color=BLUE)
        centre = alt.Chart(inline(points[:1])).mark_point(
            shape="cross", size=160, filled=True, stroke="white", strokeWidth=1, color=ORANGE, opacity=1
        )
        panels.append(alt.layer(cloud, centre).encode(x=x, y=y).properties(width=260, height=220))
    words = f"points: {drawn} {what}; orange cross: the estimate{note}"
    return framed(alt.concat(*panels, columns=3), title or f"The fit over {what}", words)
