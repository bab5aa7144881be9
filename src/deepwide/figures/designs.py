"""The expected interval of a target against what is spent, with the batches that were chosen."""

from typing import TYPE_CHECKING, Any

from deepwide.figures.style import (
    BLUE,
    FAINT,
    HEIGHT,
    INK,
    ORANGE,
    POWER_LABEL,
    WIDTH,
    depth_colour,
    framed,
    inline,
    panel_title,
    size_axis,
)
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from deepwide.designing import Design

WIDEST = 100.0  # high/low above which nothing is known
BELOW = 170  # height of the panel of runs


def design_chart(design: "Design") -> Any:
    """An Altair chart: high/low against the budget, and below it where the chosen runs are."""
    import altair as alt

    per = "train_flops" if design.unit == "FLOPs" else "expected_seconds"
    points: list[dict[str, Any]] = [{"spent": x, "ratio": min(y, WIDEST)} for x, y in design.frontier]
    stages: list[dict[str, Any]] = [
        {"spent": float(getattr(stage, per)), "ratio": min(stage.ratio, WIDEST), "batch": stage.batch,
         "what": "expected" if stage.expected else "measured"}
        for stage in design.stages if stage.expected or stage.interval
    ]  # fmt: skip
    shown = [row for row in (*points, *stages) if row["spent"] > 0]
    least = min((row["spent"] for row in shown), default=1.0)
    for row in stages:
        row["spent"] = max(row["spent"], least / 2)
    spans = [row["spent"] for row in (*points, *stages)] or [1.0]
    x = alt.X("spent:Q", title=f"spent ({design.unit})",
              scale=alt.Scale(type="log", domain=[min(spans) / 1.3, max(*spans, design.budget) * 1.3], nice=False),
              axis=alt.Axis(labelExpr=POWER_LABEL, grid=False, labelOverlap=True, tickCount=6))  # fmt: skip
    ratios = [row["ratio"] for row in (*points, *stages)] + [design.floor]
    y = alt.Y("ratio:Q", title="high/low of the 95% interval",
              scale=alt.Scale(type="log", domain=[min(ratios) / 1.15, max(ratios) * 1.15], nice=False),
              axis=alt.Axis(values=[1.1, 1.2, 1.5, 2, 3, 4, 5, 7, 10, 20, 50, 100], format="~g"))  # fmt: skip
    known = [each for each in ("measured", "expected") if any(row["what"] == each for row in stages)]
    what = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=known, range=[{"measured": BLUE, "expected": ORANGE}[each] for each in known]),
    )
    floor = alt.Chart(inline([{"ratio": design.floor}])).mark_rule(strokeDash=[4, 3], color=FAINT).encode(y=y)
    line = alt.Chart(inline(points)).mark_line(color=INK, interpolate="step-after", strokeWidth=1.5).encode(x=x, y=y)
    dots = alt.Chart(inline(stages)).mark_point(filled=True, size=70, opacity=1).encode(
        x=x, y=y, color=what, tooltip=["batch:Q", "spent:Q", "ratio:Q"])  # fmt: skip
    curve = alt.layer(floor, line, dots).properties(width=WIDTH, height=HEIGHT * 2 // 3)
    panels: list[Any] = [curve]
    if design.runs:
        panels.append(_runs(design))
    at = "Best depth" if design.goal == "depth" else "Loss"
    return framed(
        alt.vconcat(*panels).resolve_scale(color="independent"),
        f"{at} at {show_count(design.target_params)}: what to expect for how much",
        [
            "line: the best for each budget; points: now (at the left edge) and after each batch;",
            "dashed: what no number of such runs is expected to pass",
        ],
    )


def _runs(design: "Design") -> Any:
    """The chosen runs by size and depth; a larger circle for more seeds."""
    import altair as alt

    counts: dict[tuple[int, int, int], int] = {}
    for run in design.runs:
        key = (run.block_params, run.depth, run.batch)
        counts[key] = counts.get(key, 0) + 1
    rows: list[dict[str, Any]] = [{"size": size, "layers": depth, "depth": str(batch), "seeds": number}
            for (size, depth, batch), number in sorted(counts.items())]  # fmt: skip
    span = (min(row["size"] for row in rows) / 1.3, max(row["size"] for row in rows) * 1.3)
    layers = sorted({row["layers"] for row in rows})
    colour = depth_colour([str(batch) for batch in sorted({batch for _, _, batch in counts})])
    colour.title = "batch"
    y = alt.Y("layers:Q", title="depth (layers)", axis=alt.Axis(values=layers, format="d", grid=False),
              scale=alt.Scale(type="log", domain=[layers[0] / 1.3, layers[-1] * 1.3], nice=False))  # fmt: skip
    size = alt.Size("seeds:Q", legend=None, scale=alt.Scale(domain=[1, 8], range=[50, 300]))
    chart = alt.Chart(inline(rows)).mark_point(filled=True, opacity=1).encode(
        x=size_axis("size", span), y=y, color=colour, size=size)  # fmt: skip
    return chart.properties(width=WIDTH, height=BELOW, title=panel_title("the runs; a larger circle for more seeds"))
