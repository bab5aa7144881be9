"""The depth–width map: laws as curves, the chosen one with its bands, models and plans as points.

Legend: N block parameters, L depth, d width on the map: √(N / matrices·L), where matrices = N / (L·d²) of a layer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepwide.answers import Interval
from deepwide.catalogue import find_model
from deepwide.figures.labels import Spot, corners, label_layers, outlined
from deepwide.figures.style import (
    BLUE,
    BROWN,
    FAINT,
    GREY,
    HEIGHT,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SLATE,
    TEAL,
    WIDTH,
    framed,
    inline,
    log_ticks,
    share,
)
from deepwide.laws import DepthLaw, Law, depth_law, measured_optimum, rival_laws
from deepwide.planning import Audit, Plan
from deepwide.quantities import Floats, show_count
from deepwide.shape import Shape

SIZES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13)
INSTEAD = "the same size at the law's depth"
COLOURS = {
    "too deep": RED,
    "within": TEAL,
    "too shallow": BLUE,
    INSTEAD: INK,
    "plan": INK,
    "other depths": SLATE,
    "best within √2 of its size": INK,
    "run": SLATE,
    "public": GREY,
}
SHAPES = {"too deep": "triangle-up", "too shallow": "triangle-down", INSTEAD: "diamond", "plan": "diamond",
          "best within √2 of its size": "diamond", "public": "square"}  # fmt: skip
LAW_COLOURS = {
    "levine": ORANGE,
    "pooled": RED,
    "gemstones": PURPLE,
    "nanochat": TEAL,
    "liu": SLATE,
    "depth-delusion": BROWN,
}
OWN_LAW_COLOUR = BLUE
# A law has a dash of its own beside its colour; the chosen one is solid.
LAW_DASHES = {
    "levine": (5, 3),
    "pooled": (12, 3),
    "gemstones": (7, 3),
    "nanochat": (2, 3),
    "liu": (6, 2, 2, 2, 2, 2),
    "depth-delusion": (9, 3, 2, 3),
}
OWN_LAW_DASH = (4, 2)
MOST_LABELS = 30
SIZE_LABEL = 34  # pixels of a label such as 100M


@dataclass(frozen=True)
class Point:
    """A shape on the map."""

    name: str
    depth: int
    width: int
    block_params: int
    kind: str  # a key of COLOURS
    detail: str = ""

    @classmethod
    def of(cls, name: str, shape: Shape, kind: str, detail: str = "") -> "Point":
        """A point at a shape, by its block parameters, with experts by the active ones."""
        return cls(name, shape.depth, shape.width, shape.params.active_block, kind, detail)

    def map_width(self, layer_matrices: float = 12) -> float:
        """The width at which this many block parameters stand on the map."""
        return math.sqrt(self.block_params / (layer_matrices * self.depth))


def plan_map(plan: Plan, law: str | Law | None = None) -> Any:
    """The plan, its neighbours in depth, its budget's curve of equal size, and the public models of its size."""
    points = [Point.of(f"plan: {plan.shape.depth} × {plan.shape.width}", plan.shape, "plan", plan.reason)]
    points += [
        Point(f"{c.depth} × {c.width}", c.depth, c.width, c.block_params, "other depths", _percent(c.loss_percent))
        for c in plan.candidates
        if c.depth != plan.shape.depth
    ]
    for near in plan.nearest:
        detail = f"{near.depth_over_law:.2f} times the law's depth"
        points.append(Point.of(near.name, find_model(near.name).shape, "public", detail))
    matrices = plan.params.active_block / (plan.shape.depth * plan.shape.width**2)
    return depth_width_map(points, law, f"A shape for {plan.asked}", matrices, size=plan.law_params)


def audit_map(audits: Sequence[Audit], law: str | Law | None = None) -> Any:
    """The judged models on the law's map; a single one with the shape of its size at the law's depth."""
    points = [Point.of(a.name, a.shape, a.verdict.outcome, a.sentence) for a in audits]
    if len(audits) != 1:
        return depth_width_map(points, law)
    (single,) = audits
    if single.instead is not None:
        points.append(Point.of(f"{single.instead.depth} × {single.instead.width}", single.instead, INSTEAD))
    return depth_width_map(points, law, f"{single.name}: {single.words}", size=single.params.active_block)


def depth_width_map(
    points: Sequence[Point],
    law: str | Law | None = None,
    title: str = "",
    layer_matrices: float = 12,
    *,
    size: float | None = None,
) -> Any:
    """An Altair chart of `points` over the law's curve and bands, rival laws dashed, equal sizes dotted.

    Laws speak of block parameters N; `layer_matrices` (N / depth·width²) turns them into widths, and a point stands at
    the width its own N has by the same rule, so that it lies on the side of the curve where its verdict puts it.
    `size` is drawn as a curve of its own.
    """
    import altair as alt

    chosen = depth_law(law)
    colour = LAW_COLOURS.get(chosen.name, OWN_LAW_COLOUR)
    widths = [point.map_width(layer_matrices) for point in points] or [768]
    depths = [point.depth for point in points] or [12]
    x_low, x_high = min(widths) / 2.2, max(widths) * 2.2
    x_low, x_high = min(x_low, x_high / 8), max(x_high, x_low * 8)
    law_high = 1.05 * _law_depth_at(chosen, x_high, layer_matrices)
    y_low, y_high = 0.0, max(1.3 * max(depths), min(law_high, 2.5 * max(depths)), 12)  # a law must not dwarf the points
    x = alt.X("width:Q", title=f"equivalent width: √(N / ({layer_matrices:.3g}·depth)), N block parameters",
              scale=alt.Scale(type="log", domain=[x_low, x_high], nice=False),
              axis=alt.Axis(grid=False, format=",d", labelOverlap=True, values=log_ticks(x_low, x_high)))  # fmt: skip
    y = alt.Y("depth:Q", title="depth (layers)", scale=alt.Scale(domain=[y_low, y_high], nice=False),
              axis=alt.Axis(grid=False))  # fmt: skip
    layers = []
    for limits, opacity in ((_loss_limits(chosen), 0.08), (_law_limits(chosen), 0.2)):
        if limits is not None and (outline := _band(limits, x_low, x_high, layer_matrices)):
            layers.append(
                alt.Chart(inline(outline)).mark_line(fill=colour, fillOpacity=opacity, strokeWidth=0, clip=True)
                .encode(x=x, y=y, order="order:Q")
            )  # fmt: skip
    curves, order = _curves(chosen, x_low, x_high, y_high, layer_matrices)
    sizes, size_labels = _sizes(x_low, x_high, y_high, layer_matrices, curves)
    layers.append(
        alt.Chart(inline(sizes)).mark_line(strokeDash=[1, 3], color=GREY, strokeWidth=1, clip=True)
        .encode(x=x, y=y, detail="size:N")
    )  # fmt: skip
    if size is not None:
        line = _equal_size(size, x_low, x_high, y_high, layer_matrices)
        layers.append(
            alt.Chart(inline(line)).mark_line(color=INK, strokeWidth=1.2, clip=True)
            .encode(x=x, y=y)
        )  # fmt: skip
    keys = alt.Legend(symbolType="stroke", symbolSize=350, symbolStrokeWidth=2)
    layers.append(
        alt.Chart(inline(curves)).mark_line(strokeWidth=2, clip=True).encode(
            x=x, y=y,
            order="order:Q",
            color=alt.Color("law:N", title="law", sort=order, legend=keys, scale=alt.Scale(
                domain=order, range=[LAW_COLOURS.get(name, OWN_LAW_COLOUR) for name in order])),
            strokeDash=alt.StrokeDash("law:N", title="law", sort=order, legend=keys, scale=alt.Scale(
                domain=order,
                range=[[1, 0] if name == chosen.name else LAW_DASHES.get(name, OWN_LAW_DASH) for name in order])),
        )
    )  # fmt: skip
    numbers = alt.Chart(inline(size_labels)).encode(x=x, y=y)
    layers += outlined(numbers, "size", color=FAINT, fontSize=10, align="left", dx=5, dy=-2)
    lines = [*curves, *(line if size is not None else [])]
    rows = _rows(points, lines, x_low, x_high, y_high, layer_matrices)
    kinds = [kind for kind in COLOURS if any(row["kind"] == kind for row in rows)]
    places = alt.Chart(inline(rows)).encode(x=x, y=y)
    dots = places.encode(
        fill=alt.Fill("kind:N", title=None, sort=kinds,
                      scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds])),
        shape=alt.Shape("kind:N", title=None, sort=kinds,
                        scale=alt.Scale(domain=kinds, range=[SHAPES.get(kind, "circle") for kind in kinds])),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("name", "shape", "blocks", "detail")],
    )  # fmt: skip
    layers.append(dots.mark_point(size=70, strokeWidth=0.5, stroke="white", opacity=1))
    if sum(bool(row["name"]) for row in rows) <= MOST_LABELS:
        layers += label_layers(places, "name", fontSize=10, color=INK)
    bands = "bands: 95% from the law's coefficients" + ("" if chosen.bowl else " and, wider, from the loss data")
    equal = "dotted: equal N" + ("" if size is None else f", solid: N = {show_count(size)}")
    words = title or f"Depth and width according to the {chosen.name} law"
    drawn = alt.layer(*layers).resolve_scale(color="independent", strokeDash="independent")
    return framed(drawn, words, f"{bands}; {equal}", WIDTH, HEIGHT)


def _percent(interval: Interval | None) -> str:
    return "no loss data" if interval is None else f"{interval.value:+.2f}% of loss"


def _rows(
    points: Sequence[Point],
    lines: Sequence[dict[str, Any]],
    x_low: float,
    x_high: float,
    y_high: float,
    matrices: float,
) -> list[dict[str, Any]]:
    """The points as data, with the corner that each one's label stands at, beside other points and lines."""
    widths = [point.map_width(matrices) for point in points]
    spots = [
        _spot({"width": w, "depth": point.depth}, x_low, x_high, y_high)._replace(text=point.name)
        for point, w in zip(points, widths, strict=True)
    ]
    along = [_spot(row, x_low, x_high, y_high) for row in lines]
    return [
        {
            "name": point.name,
            "depth": point.depth,
            "width": width,
            "shape": f"{point.depth} × {point.width:,}",
            "kind": point.kind,
            "blocks": show_count(point.block_params),
            "detail": point.detail,
            "corner": corner,
        }
        for point, width, corner in zip(points, widths, corners(spots, WIDTH, HEIGHT, along), strict=True)
    ]


def _spot(row: dict[str, Any], x_low: float, x_high: float, y_high: float) -> Spot:
    """Where a row with `width` and `depth` stands in the picture."""
    return Spot(WIDTH * share(row["width"], x_low, x_high), HEIGHT * (1 - row["depth"] / y_high))


def _depths(law: DepthLaw, N: Floats) -> tuple[Floats, Floats, Floats]:
    with np.errstate(over="ignore", under="ignore"):
        value, low, high = law.depth(N)
    return value, low, high


def _along(law: DepthLaw, x_low: float, x_high: float, matrices: float) -> tuple[Floats, Floats]:
    """A law's curve as widths and depths, in order of growing size."""
    N = np.logspace(1, 18, 1700)
    L = _depths(law, N)[0]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        d = np.sqrt(N / (matrices * L))
    inside = np.isfinite(d) & np.isfinite(L) & (L >= 1) & (d > x_low / 1.1) & (d < x_high * 1.1)
    return d[inside], L[inside]


def _law_depth_at(law: DepthLaw, width: float, matrices: float) -> float:
    d, L = _along(law, 1.0, width, matrices)
    return float(L[np.argmin(np.abs(d - width))]) if len(d) else 0.0


Limits = tuple[Floats, Floats, Floats]  # block parameters, and the limits of the depth there


def _law_limits(law: DepthLaw) -> Limits | None:
    """The interval from the law's own coefficients; None if it has none."""
    N = np.logspace(1, 18, 800)
    _, low, high = _depths(law, N)
    return None if np.all(np.isnan(low)) else (N, low, high)


def _loss_limits(law: DepthLaw) -> Limits | None:
    """Where the loss data put the best depth; None for a law with data of its own."""
    if law.bowl is not None:
        return None
    N = np.logspace(1, 18, 800)
    optima = [measured_optimum(float(size)) for size in N]
    return N, np.array([o.low for o in optima], dtype=float), np.array([o.high for o in optima], dtype=float)


def _band(limits: Limits, x_low: float, x_high: float, matrices: float) -> list[dict[str, float]]:
    """A band's outline, up its lower limit and back down the upper: at each size the depths between, at equal N."""
    N, low, high = limits[0], np.clip(limits[1], 1, 1e5), np.clip(limits[2], 1, 1e5)
    keep = (np.sqrt(N / (matrices * low)) > x_low / 1.5) & (np.sqrt(N / (matrices * high)) < x_high * 1.5)
    N, L = (np.concatenate([up[keep], down[keep][::-1]]) for up, down in ((N, N), (low, high)))
    widths = np.sqrt(N / (matrices * L))
    return [
        {"width": float(w), "depth": float(depth), "order": i}
        for i, (w, depth) in enumerate(zip(widths, L, strict=True))
    ]


def _curves(
    chosen: DepthLaw, x_low: float, x_high: float, y_high: float, matrices: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Every law's curve within the picture, the chosen one first, and which laws those are."""
    rows, labels = [], []
    for law in rival_laws(chosen):
        if not isinstance(law, DepthLaw):
            continue
        d, L = _along(law, x_low, x_high, matrices)
        if not np.any(y_high >= L):
            continue
        # A fitted law may have the name of a published one.
        label = f"{law.name} (published)" if law is not chosen and law.name == chosen.name else law.name
        labels.append(label)
        picked = slice(None, None, max(1, len(d) // 150))
        rows += [
            {"law": label, "width": float(w), "depth": float(depth), "order": i}
            for i, (w, depth) in enumerate(zip(d[picked], L[picked], strict=True))
        ]
    return rows, labels


def _equal_size(size: float, x_low: float, x_high: float, y_high: float, matrices: float) -> list[dict[str, Any]]:
    """The curve of one size from edge to edge of the picture; empty where it does not enter it."""
    enters = max(x_low, math.sqrt(size / (matrices * y_high)))
    if enters >= x_high:
        return []
    d = np.geomspace(enters, x_high, 120)
    L = np.minimum(size / (matrices * d**2), y_high)
    return [{"width": w, "depth": depth} for w, depth in zip(d.tolist(), L.tolist(), strict=True)]


def _sizes(
    x_low: float, x_high: float, y_high: float, matrices: float, curves: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Curves of equal block parameters, each labelled where it enters the picture, or further on where a law does."""
    taken = [_spot(row, x_low, x_high, y_high) for row in curves]
    lines: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    for size in SIZES:
        line = _equal_size(size, x_low, x_high, y_high, matrices)
        if not line or line[0]["depth"] < 0.03 * y_high:
            continue  # nothing but a line along the axis
        name = {"size": show_count(size)}
        lines += [row | name for row in line]
        first = min(line[0]["depth"], 0.95 * y_high)
        for depth in (first * 0.94**step for step in range(20)):
            place = {"width": math.sqrt(size / (matrices * depth)), "depth": depth}
            x, y, _ = _spot(place, x_low, x_high, y_high)
            if x > 0.94 * WIDTH or y > 0.95 * HEIGHT:
                break
            if not any(x < spot.x < x + SIZE_LABEL and y - 14 < spot.y < y + 2 for spot in taken):
                labels.append(name | place)
                break
    return lines, labels
