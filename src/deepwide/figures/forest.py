"""The forest plot: every set's best depth and cost with intervals, its lengths below it, and the pooled answer."""

from typing import TYPE_CHECKING, Any

from deepwide.answers import Interval
from deepwide.figures.intervals import interval_chart

if TYPE_CHECKING:
    from deepwide.pooling import Evidence

RATIOS = (0.25, 2.5)  # what the axis of best depths shows; an interval beyond ends in an arrow
COSTS = (0.0, 2.5)
PLACE, COST = "best depth / the levine law's", "loss at twice or half the best depth, +%"


def forest_chart(evidence: "Evidence") -> Any:
    """An Altair chart of the sets that are pooled, and of what they say together."""
    rows: list[dict[str, Any]] = []
    for row in evidence.sets:
        if row.scope != "pooled" or row.ratio is None:
            continue
        label = f"  {row.name}, {row.length}" if row.length else f"{row.name}: all lengths"
        rows += _both(label, "length" if row.length else "set", row.ratio, row.factor_2)
    rows += _both("mean over sets", "pooled", evidence.ratio_mean, evidence.factor_2_mean)
    rows += _both("a set not seen yet", "pooled", evidence.ratio_new, evidence.factor_2_new)
    return interval_chart(
        rows,
        "Every public depth × width set",
        ["estimates with 95% intervals; lengths of one set are not independent", "and are pooled as one set"],
        lines="kind",
        panels="panel",
        width=560,
    )


def _both(label: str, kind: str, place: Interval, cost: Interval | None) -> list[dict[str, Any]]:
    rows = [_clipped(place, RATIOS) | {"panel": PLACE}]
    rows += [] if cost is None else [_clipped(cost, COSTS) | {"panel": COST}]
    return [row | {"label": label, "kind": kind} for row in rows]


def _clipped(interval: Interval, shown: tuple[float, float]) -> dict[str, Any]:
    low, high = interval.low, interval.high
    return {
        "value": min(max(interval.value, shown[0]), shown[1]),
        "low": None if low is None or low < shown[0] else low,
        "high": None if high is None or high > shown[1] else high,
    }
