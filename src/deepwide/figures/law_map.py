"""The fitted law on the depth–width map, with the runs and public models of their sizes."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from deepwide.catalogue import all_models
from deepwide.errors import DeepwideError
from deepwide.figures.depth_width import Point, depth_width_map
from deepwide.quantities import show_count

if TYPE_CHECKING:
    from deepwide.fitting import Fit

PUBLIC = 6  # models on the map
BEST, RUN = "best within √2 of its size", "run"


def fitted_map(fit: "Fit", title: str = "") -> Any:
    """The fitted law on the map; of runs of equal length the best within a factor √2 of its size is marked."""
    law = fit.law()
    if law is None:
        raise DeepwideError("these runs give no law, so there is no map of it: draw the curves or the residuals.")
    groups = _block_groups(fit, getattr(law, "layer_matrices", 12))
    lengths = [run.tokens for run in fit.residuals if run.tokens]
    comparable = not lengths or max(lengths) < 1.05 * min(lengths)
    points = []
    for (depth, width, block), mean in groups.items():
        rivals = [other for group, other in groups.items() if _near(group[2], block)]
        best = comparable and len(rivals) > 1 and mean == min(rivals)
        kind, name = (BEST, show_count(round(block))) if best else (RUN, "")
        points.append(Point(name, int(depth), int(width), int(block), kind, f"{mean:.4g}"))
    return depth_width_map([*points, *_public(points)], law, title or "The fitted law on the map")


def can_be_mapped(fit: "Fit") -> bool:
    """Whether the fit gives a law, and its runs say where they stand."""
    known = all(run.depth is not None and (run.width or fit.counting == "block") for run in fit.residuals)
    return known and fit.law() is not None


def _block_groups(fit: "Fit", layer_matrices: float) -> dict[tuple[float, float, float], float]:
    """The mean loss of each group by depth, width and block parameters; infinite where a run diverged."""
    losses: dict[tuple[float, float, float], list[float]] = {}
    for run in fit.residuals:
        if run.depth is None or (run.width is None and fit.counting == "total"):
            raise DeepwideError("the map needs the depth of every run, and its width where embeddings are counted.")
        block = run.params if fit.counting == "block" else layer_matrices * run.depth * (run.width or 1) ** 2
        losses.setdefault((run.depth, run.width or 1, block), []).append(math.inf if run.diverged else run.loss)
    return {group: sum(values) / len(values) for group, values in losses.items()}


def _public(runs: list[Point]) -> list[Point]:
    """A few public models of the runs' sizes, spread as these are, that the map of the runs has room for."""
    widths = [point.map_width() for point in runs]
    deepest = max(12.0, 1.3 * max(point.depth for point in runs))
    models = {(m.shape.depth, m.shape.width): Point.of(m.name, m.shape, "public") for m in reversed(all_models())}
    room = [
        point
        for point in models.values()
        if point.depth <= deepest and min(widths) / 1.5 < point.map_width() < 1.5 * max(widths)
    ]
    chosen: list[Point] = []
    for size in np.quantile([point.block_params for point in runs], np.linspace(1, 0, PUBLIC)):
        free = [p for p in room if not any(_near(p.block_params, other.block_params) for other in chosen)]
        near = [p for p in free if size / 2 < p.block_params < 2 * size]
        chosen += sorted(near, key=lambda p: abs(math.log(p.block_params / size)))[:1]
    return chosen


def _near(one: float, other: float) -> bool:
    """Whether two sizes are within a factor √2."""
    return abs(math.log(one / other)) <= math.log(2) / 2
