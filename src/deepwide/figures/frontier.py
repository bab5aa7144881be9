"""Loss against decode time: the shapes within a budget that nothing beats in both, the plan, and the limit."""

from typing import Any

from deepwide.errors import DeepwideError
from deepwide.figures.labels import Spot, corners, label_layers
from deepwide.figures.style import BLUE, HEIGHT, INK, ORANGE, RED, WIDTH, framed, inline, log_ticks, share
from deepwide.planning import Plan
from deepwide.quantities import show_count, show_time

PLANNED, OTHER = "this plan", "on the frontier"


def frontier_chart(plan: Plan) -> Any:
    """An Altair chart of a plan's frontier: time per decoded token, expected loss against the plan without a limit."""
    import altair as alt

    speed = plan.speed
    if speed is None or len(speed.frontier) < 2:
        raise DeepwideError("a frontier needs a plan with a machine or a limit on time, and more than one shape on it.")
    rows: list[dict[str, Any]] = [
        {
            "name": f"{row.depth} × {row.width:,}",
            "ms": 1000 * row.decode_seconds.value,
            "percent": row.loss_percent.value,
            "low": row.loss_percent.low if row.loss_percent.low is not None else row.loss_percent.value,
            "high": row.loss_percent.high if row.loss_percent.high is not None else row.loss_percent.value,
            "blocks": show_count(row.block_params),
            "kind": PLANNED if row.chosen else OTHER,
        }
        for row in speed.frontier
    ]
    limit = None if speed.limit_seconds is None else 1000 * speed.limit_seconds
    times = [row["ms"] for row in rows] + ([limit] if limit is not None else [])
    span = (min(times) / 1.15, max(times) * 1.15)
    values = [row["percent"] for row in rows]
    room = max(0.1, 0.12 * (max(values) - min(values)))
    reach = (min(values) - room, max(values) + room)  # of the estimates: their intervals are cut off at the frame
    spots = [
        Spot(WIDTH * share(row["ms"], *span), HEIGHT * (reach[1] - row["percent"]) / (reach[1] - reach[0]), row["name"])
        for row in rows
    ]
    placed = [
        {**row, "low": max(row["low"], reach[0]), "high": min(row["high"], reach[1]), "corner": corner}
        for row, corner in zip(rows, corners(spots, WIDTH, HEIGHT), strict=True)
    ]
    ticks = _ticks(*span)
    x = alt.X("ms:Q", title="time per decoded token (ms)", axis=alt.Axis(values=ticks, format="~g", grid=False),
              scale=alt.Scale(type="log", domain=span, nice=False))  # fmt: skip
    y_title = "expected loss against the plan without a limit (%)"
    y = alt.Y("percent:Q", title=y_title, axis=alt.Axis(format="+~g"), scale=alt.Scale(domain=reach, nice=False))
    base = alt.Chart(inline(placed)).encode(x=x, y=y)
    layers = [
        base.mark_area(color=BLUE, fillOpacity=0.1).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q"),
        base.mark_line(color=BLUE, strokeWidth=1.6),
        base.mark_point(filled=True, opacity=1).encode(
            size=alt.condition(f"datum.kind == '{PLANNED}'", alt.value(160), alt.value(70)),
            color=alt.Color("kind:N", title=None, legend=alt.Legend(symbolOpacity=1),
                            scale=alt.Scale(domain=[PLANNED, OTHER], range=[ORANGE, BLUE])),
            shape=alt.Shape("kind:N", title=None,
                            scale=alt.Scale(domain=[PLANNED, OTHER], range=["diamond", "circle"])),
            tooltip=["name:N", "blocks:N", alt.Tooltip("ms:Q", title="ms per token"), alt.Tooltip("percent:Q")]),
        *label_layers(base, "name", fontSize=10, color=INK),
    ]  # fmt: skip
    if limit is not None:
        rule = alt.Chart(inline([{"ms": limit}])).encode(x=x)
        layers.insert(0, rule.mark_rule(color=RED, strokeDash=[5, 3], strokeWidth=1.4))
    return framed(alt.layer(*layers), f"Loss against decode time for {plan.budget_words}", _below(plan), WIDTH, HEIGHT)


def _below(plan: Plan) -> list[str]:
    speed = plan.speed
    assert speed is not None
    what = f"on {speed.machine}, batch {speed.batch}, at the end of {speed.cached:,} tokens"
    limit = "" if speed.limit_seconds is None else f"; dashed: the limit, {show_time(speed.limit_seconds)}"
    if plan.mixture is not None:
        limit += "; no data on experts: dense models at the active size"
    law = f"if the {plan.law} law is right about the best depth; shaded: 95% of what leaving it costs"
    return [f"{what}{limit}", f"{law}; the loss of a smaller size is the compute law's"]


def _ticks(low: float, high: float) -> list[float]:
    """Ticks of a log axis in milliseconds, below 1 too."""
    scale = 1.0
    while low * scale < 10:
        scale *= 10
    return [tick / scale for tick in log_ticks(low * scale, high * scale)]
