"""The depth–width map: laws as curves, the chosen one with its band, models and plans as points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepwide.figures.labels import Spot, corners, label_layers
from deepwide.laws import Law, find_law, published_laws
from deepwide.quantities import show_count
from deepwide.shape import Shape

Floats = NDArray[np.float64]
SIZES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13)
COLOURS = {
    "too deep": "#c0392b",
    "within": "#1e8449",
    "too shallow": "#2471a3",
    "plan": "#1c1c1c",
    "other depths": "#b9770e",
    "best within √2 of its size": "#1c1c1c",
    "run": "#d5a55b",
    "public": "#8e8e8e",
}
LAW_COLOURS = {"levine": "#d35400", "gemstones": "#7d3c98", "nanochat": "#117a65", "depth-delusion": "#b7950b"}
OWN_LAW_COLOUR = "#1a5276"
MOST_LABELS = 30
WIDTH, HEIGHT = 640, 420


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
        """A point at a shape."""
        return cls(name, shape.depth, shape.width, shape.block_params, kind, detail)

    def map_width(self, layer_matrices: float = 12) -> float:
        """The width at which this many block parameters stand on the map."""
        return math.sqrt(self.block_params / (layer_matrices * self.depth))


def depth_width_map(
    points: Sequence[Point], law: str | Law | None = None, title: str = "", layer_matrices: float = 12
) -> Any:
    """An Altair chart of `points` over the law's curve and band, rival laws dashed, equal sizes dotted.

    Laws speak of block parameters N; `layer_matrices` (N / depth·width²) turns them into widths, and a point stands at
    the width its own N has by the same rule, so that it lies on the side of the curve where its verdict puts it.
    """
    import altair as alt

    chosen = find_law(law)
    widths = [point.map_width(layer_matrices) for point in points] or [768]
    depths = [point.depth for point in points] or [12]
    x_low, x_high = min(widths) / 2.2, max(widths) * 2.2
    x_low, x_high = min(x_low, x_high / 8), max(x_high, x_low * 8)
    law_high = 1.05 * _law_depth_at(chosen, x_high, layer_matrices)
    y_low, y_high = 0.0, max(1.3 * max(depths), min(law_high, 2.5 * max(depths)), 12)  # a law must not dwarf the points

    x = alt.X("width:Q", title="width (of the same N)", scale=alt.Scale(type="log", domain=[x_low, x_high], nice=False),
              axis=alt.Axis(grid=False, format=",d", labelOverlap=True, values=ticks(x_low, x_high)))  # fmt: skip
    y = alt.Y("depth:Q", title="depth (layers)", scale=alt.Scale(domain=[y_low, y_high], nice=False),
              axis=alt.Axis(grid=False))  # fmt: skip
    layers = []
    band = _band(chosen, x_low, x_high, layer_matrices)
    if band:
        layers.append(
            alt.Chart(_data(band)).mark_line(fill="#e59866", fillOpacity=0.25, strokeWidth=0, clip=True)
            .encode(x=x, y=y, order="order:Q")
        )  # fmt: skip
    sizes, size_labels = _sizes(x_low, x_high, y_high, layer_matrices)
    layers.append(
        alt.Chart(_data(sizes)).mark_line(strokeDash=[1, 3], color="#b0b0b0", strokeWidth=1, clip=True)
        .encode(x=x, y=y, detail="size:N")
    )  # fmt: skip
    layers.append(
        alt.Chart(_data(size_labels)).mark_text(color="#909090", fontSize=10, dy=-4, align="left")
        .encode(x=x, y=y, text="size:N")
    )  # fmt: skip
    curves, order = _curves(chosen, x_low, x_high, y_high, layer_matrices)
    layers.append(
        alt.Chart(_data(curves)).mark_line(strokeWidth=2, clip=True).encode(
            x=x, y=y,
            order="order:Q",
            color=alt.Color("law:N", title="law", sort=order, scale=alt.Scale(
                domain=order, range=[LAW_COLOURS.get(law, OWN_LAW_COLOUR) for law in order])),
            strokeDash=alt.condition(alt.datum.law == chosen.name, alt.value([1, 0]), alt.value([6, 3])),
        )
    )  # fmt: skip
    rows = _rows(points, x_low, x_high, y_high, layer_matrices)
    kinds = [kind for kind in COLOURS if any(row["kind"] == kind for row in rows)]
    dots = alt.Chart(_data(rows)).encode(
        x=x, y=y,
        fill=alt.Fill("kind:N", title=None, sort=kinds,
                      scale=alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds])),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("name", "shape", "blocks", "detail")],
    )  # fmt: skip
    layers.append(dots.mark_point(size=70, strokeWidth=0.5, stroke="white", opacity=1))
    if sum(bool(row["name"]) for row in rows) <= MOST_LABELS:
        layers += label_layers(dots, "name", fontSize=10)
    return (
        alt.layer(*layers)
        .resolve_scale(color="independent")
        .properties(
            width=WIDTH,
            height=HEIGHT,
            background="white",
            title=alt.TitleParams(
                title or f"Depth and width by the {chosen.name} law",
                subtitle=f"curves: laws at N = {layer_matrices:.3g}·depth·width² (band: 95%); dotted: equal N",
                subtitleColor="#707070",
            ),
        )
        .configure_view(stroke="#d0d0d0")
        .configure_axis(labelFontSize=11, titleFontSize=12)
    )


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.InlineData(values=rows)


def _rows(points: Sequence[Point], x_low: float, x_high: float, y_high: float, matrices: float) -> list[dict[str, Any]]:
    """The points as data, with the corner that each one's label stands at."""
    widths = [point.map_width(matrices) for point in points]
    spots = [
        Spot(WIDTH * np.log(w / x_low) / np.log(x_high / x_low), HEIGHT * (1 - point.depth / y_high), point.name)
        for point, w in zip(points, widths, strict=True)
    ]
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
        for point, width, corner in zip(points, widths, corners(spots, WIDTH, HEIGHT), strict=True)
    ]


def _along(law: Law, which: int, x_low: float, x_high: float, matrices: float) -> tuple[Floats, Floats]:
    """A law's curve (0) or the limits of its band (1, 2) as widths and depths, on the way of growing size."""
    N = np.logspace(1, 18, 1700)
    L = law.depth(N)[which]
    with np.errstate(invalid="ignore", divide="ignore"):
        d = np.sqrt(N / (matrices * L))
    keep = np.isfinite(d) & (L >= 1) & (d > x_low / 1.1) & (d < x_high * 1.1)
    return d[keep], L[keep]


def _law_depth_at(law: Law, width: float, matrices: float) -> float:
    d, L = _along(law, 0, 1.0, width, matrices)
    return float(L[np.argmin(np.abs(d - width))]) if len(d) else 0.0


def _band(law: Law, x_low: float, x_high: float, matrices: float) -> list[dict[str, float]]:
    """The band's outline, up its lower limit and back down the upper: at each size the depths between, at equal N."""
    N = np.logspace(1, 18, 800)
    _, low, high = (np.clip(L, 1, 1e5) for L in law.depth(N))
    keep = (np.sqrt(N / (matrices * low)) > x_low / 1.5) & (np.sqrt(N / (matrices * high)) < x_high * 1.5)
    N, L = (np.concatenate([up[keep], down[keep][::-1]]) for up, down in ((N, N), (low, high)))
    widths = np.sqrt(N / (matrices * L))
    return [
        {"width": float(w), "depth": float(depth), "order": i}
        for i, (w, depth) in enumerate(zip(widths, L, strict=True))
    ]


def _curves(
    chosen: Law, x_low: float, x_high: float, y_high: float, matrices: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Every law's curve within the picture, the chosen one first, and which laws those are."""
    laws = {chosen.name: chosen} | {law.name: law for law in published_laws().values() if law.names_a_depth}
    rows, seen = [], []
    for law in laws.values():
        d, L = _along(law, 0, x_low, x_high, matrices)
        if not np.any(y_high >= L):
            continue
        seen.append(law.name)
        picked = slice(None, None, max(1, len(d) // 150))
        rows += [
            {"law": law.name, "width": float(w), "depth": float(depth), "order": i}
            for i, (w, depth) in enumerate(zip(d[picked], L[picked], strict=True))
        ]
    return rows, seen


def _sizes(
    x_low: float, x_high: float, y_high: float, matrices: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Curves of equal block parameters, each labelled where it enters the picture."""
    lines: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    for size in SIZES:
        d = np.geomspace(x_low, x_high, 160)
        L = size / (matrices * d**2)
        inside = (y_high >= L) & (L >= 0.5)
        points = list(zip(d[inside].tolist(), L[inside].tolist(), strict=True))
        lines += [{"size": show_count(size), "width": width, "depth": depth} for width, depth in points]
        if len(points) > 10:
            labels.append({"size": show_count(size), "width": points[0][0], "depth": min(points[0][1], 0.96 * y_high)})
    return lines, labels


def ticks(low: float, high: float) -> list[int]:
    """Round numbers for a logarithmic axis, the fewer of a decade the more decades there are."""
    decades = np.log10(high / low)
    steps = (1, 2, 5) if decades < 3 else (1, 3) if decades < 5 else (1,)
    return [step * 10**power for power in range(16) for step in steps if low <= step * 10**power <= high]
