"""Bounds of a shape and of its neighbours as curves, with measured ranks where they are given: what a picture draws."""

from collections.abc import Sequence
from typing import Any

from flint import arb

from deepwide.answers import Answer, Note
from deepwide.separation.certificates import Certificate
from deepwide.separation.dimensions import dimension_count
from deepwide.separation.theorems import DEEPEST_LISTED, log3, log3_dimension_count, passes_theorem_2, published, regime


class Curve(Answer):
    """One bound, or measured ranks, along an axis: (depth or width, log_3 of the rank)."""

    name: str
    theorem: int | None = None
    points: tuple[tuple[int, float], ...]


class Panel(Answer):
    """Curves against depth at one width, or against width at one depth, and where the threshold lies."""

    axis: str
    title: str
    threshold: float
    curves: tuple[Curve, ...]
    notes: tuple[Note, ...] = ()


class BoundsCurves(Answer):
    """The bounds of a shape and of its neighbours, for a picture."""

    depth: int
    width: int
    heads: int
    by_depth: Panel
    by_width: Panel

    def rows(self) -> list[dict[str, Any]]:
        """One row per point of a curve."""
        return [
            {"axis": panel.axis, panel.axis: x, "bound": curve.name, "log3": y}
            for panel in (self.by_depth, self.by_width)
            for curve in panel.curves
            for x, y in curve.points
        ]


def bounds_curves(depth: int, width: int, heads: int = 1, measured: Sequence[Certificate] = ()) -> BoundsCurves:
    """Bounds against depth at this width and against width at this depth, with the measured ranks that are given.

    >>> [curve.name for curve in bounds_curves(2, 3).by_depth.curves]
    ['Theorem 2, at most', 'dimension count']
    """
    published(depth, width, heads)  # refuses what is no shape
    ranks = {
        (case.depth, case.width): certificate.rank
        for certificate in measured
        if (case := certificate.case).standard and case.heads == heads and case.positions[0] == case.width
    }
    depths = sorted({*range(1, max(8, depth + depth // 2) + 1), *(n for n, w in ranks if w == width)})
    near = {w for power in range(7) for w in (width >> power, width << power) if w >= heads}
    widths = sorted({*near, *(w for n, w in ranks if n == depth)})
    head_word = "1 head" if heads == 1 else f"{heads} heads"
    threshold = float(log3(width))
    return BoundsCurves(
        depth=depth,
        width=width,
        heads=heads,
        by_depth=_panel(
            "depth", f"width {width}, {head_word}", threshold, {n: (n, width) for n in depths}, heads, ranks
        ),
        by_width=_panel(
            "width", f"depth {depth}, {head_word}", 3.0**depth, {w: (depth, w) for w in widths}, heads, ranks
        ),
    )


def _panel(
    axis: str, title: str, threshold: float, shapes: dict[int, tuple[int, int]], heads: int,
    ranks: dict[tuple[int, int], int],
) -> Panel:  # fmt: skip
    curves: dict[tuple[str, int | None], list[tuple[int, float]]] = {}
    trivial, passing = [], []
    for x, (depth, width) in shapes.items():
        sides, where = published(depth, width, heads), regime(depth, width)
        theorem = {"below": 1, "above": 2}.get(where)
        values: dict[tuple[str, int | None], arb | None] = {
            (f"Theorem {theorem}, at most", theorem): sides.upper,
            (f"Theorem {theorem}, at least", theorem): sides.lower,
            ("dimension count", None): log3_dimension_count(depth, width),
        }
        if theorem and (sides.lower is None or not sides.lower > 0):
            trivial.append(x)
            values[f"Theorem {theorem}, at least", theorem] = None
        if where == "above" and passes_theorem_2(depth, width):
            passing.append(x)
        if heads > 1 and width % heads == 0 and depth <= DEEPEST_LISTED and width <= 64:
            values[f"dimension count, {heads} heads", None] = log3(dimension_count(depth, width, heads).total)
        if (depth, width) in ranks:
            values["measured", None] = log3(ranks[depth, width])
        for key, value in values.items():
            if value is not None:
                curves.setdefault(key, []).append((x, float(value)))
    notes = []
    if trivial:
        shown = _ranges(trivial, list(shapes))
        notes.append(Note.of("no-lower-bound", f"no lower bound above 1 at {axis} {shown}", at=trivial))
    if passing:
        text = f"the dimension count passes Theorem 2's bound from {axis} {passing[0]} on (open question)"
        notes.append(Note.of("open-question", text, at=passing))
    order = sorted(curves, key=lambda key: (key[1] is None, key[1] or 0, key[0] == "measured"))
    return Panel(
        axis=axis,
        title=title,
        threshold=threshold,
        curves=tuple(Curve(name=key[0], theorem=key[1], points=tuple(curves[key])) for key in order),
        notes=tuple(notes),
    )


def _ranges(chosen: list[int], among: list[int]) -> str:
    """1 to 4, 9: neighbours in `among` are joined."""
    groups: list[list[int]] = []
    for x in among:
        if x in chosen:
            joined = groups and among.index(groups[-1][-1]) == among.index(x) - 1
            groups[-1].append(x) if joined else groups.append([x])
    return ", ".join(str(group[0]) if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups)
