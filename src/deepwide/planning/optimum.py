"""The real-valued optimum that a law finds for a budget, and the integer shape nearest to it."""

import math
from typing import Any, NamedTuple

import numpy as np

from deepwide.arrays import Floats
from deepwide.errors import DeepwideError, at_least_one, quoted
from deepwide.laws import DepthCurve, DepthLaw
from deepwide.planning.budget import MOST, Budget
from deepwide.planning.rounding import FAR, Rounded, round_shapes
from deepwide.planning.style import Style

TOO_FAR = 1.5  # a shape further than this from its budget is refused, not recommended
DEEPEST = 100_000  # layers that may be asked for
DEPTHS = (1e-3, 1e6)  # beyond the sizes it was checked at, a law's depth is cut off here


class Optimum(NamedTuple):
    """Real-valued depth, with its interval, and width; and the block parameters at which the law was asked."""

    depth: DepthCurve
    width: Floats
    block_params: Floats


def find_optimum(
    style: Style, law: DepthLaw, budget: Budget, amounts: Floats, depth: int | None = None, width: int | None = None
) -> Optimum:
    """The depth and width that meet the budget on the law, or at the fixed depth or width."""
    budget.check_range(style, amounts)
    if depth is not None:
        at_least_one(depth=depth)
        if depth > DEEPEST:
            raise DeepwideError(f"depth must be at most {DEEPEST:,}, not {quoted(depth)}.")
        if depth % style.pipeline_stages:
            raise DeepwideError(f"depth {depth} is not a multiple of the {style.pipeline_stages} pipeline stages.")
        L = np.full_like(amounts, depth)
        return _at(style, L, style.width_for(L, amounts, budget.measure))
    if width is not None:
        at_least_one(width=width)
        d = np.full_like(amounts, width)
        L = style.depth_for(d, amounts, budget.measure)
        if L.min() < 1:
            raise DeepwideError(f"width {width} leaves no room for one layer in this budget: make it narrower.")
        return _at(style, L, d)
    N = amounts if budget.kind == "block" else _size_on_the_law(style, law, budget, amounts)
    predicted = _depths(law, N)
    curve = DepthCurve(*(np.maximum(1.0, values) for values in predicted))  # a law may ask for less than a layer
    d = width_of_blocks(style, curve.value, N)
    stages = style.pipeline_stages
    shallowest = float(curve.value.min())
    if stages > FAR * shallowest:
        raise DeepwideError(
            f"{stages:,} pipeline stages need at least {stages:,} layers, more than {FAR:g} times the "
            f"{shallowest:.1f} of the {law.name} law: use fewer stages."
        )
    below = predicted.value < 1
    if np.any(below):
        d = np.where(below, style.width_for(curve.value, amounts, budget.measure), d)
    return Optimum(curve, d, N)


def _size_on_the_law(style: Style, law: DepthLaw, budget: Budget, amounts: Floats) -> Floats:
    """The block parameters at which a shape of the law's depth takes the budget; the measure grows with them."""
    low, high = np.full_like(amounts, math.log(12)), np.full_like(amounts, math.log(MOST * 16.0))
    for _ in range(42):
        middle = (low + high) / 2
        L = _depths(law, np.exp(middle)).value
        over = budget.measure(style.grid(L, width_of_blocks(style, L, np.exp(middle)))) > amounts
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.asarray(np.exp((low + high) / 2))


def round_optimum(
    style: Style,
    budget: Budget,
    amounts: Floats,
    optimum: Optimum,
    *,
    fixed: str | None = None,
    at_most: bool = False,
) -> Rounded:
    """The integer shapes to build; one that misses its budget by a factor 1.5 is refused."""
    rounded = round_shapes(
        style,
        amounts,
        optimum.depth.value,
        optimum.width,
        budget.measure,
        fixed_depth=fixed == "depth",
        fixed_width=fixed == "width",
        never_over=at_most or budget.kind == "memory",
    )
    # In floats: sizes of shapes that huge multiples force pass 64-bit integers.
    reached = budget.measure(style.grid(*(np.asarray(values, dtype=float) for values in rounded)))
    far = np.flatnonzero(np.abs(np.log(np.asarray(reached, dtype=float) / amounts)) > math.log(TOO_FAR))
    if far.size:
        depth, width = rounded.depth[far[0]], rounded.width[far[0]]
        raise DeepwideError(
            f"the nearest shape that divides as asked, {depth} × {width}, misses the budget by more than a factor "
            f"{TOO_FAR}: loosen kv_heads, tensor_parallel, pipeline_stages, width_multiple or head_dim."
        )
    return rounded


def width_of_blocks(style: Style, depth: Any, block_params: Any) -> Floats:
    """Real-valued width at which the blocks have this size: they are nearly quadratic in it."""
    width = np.sqrt(block_params / (12 * depth))
    for _ in range(3):
        width = width * np.sqrt(block_params / style.grid(depth, width).params.block)
    return np.asarray(width)


def _at(style: Style, depth: Floats, width: Floats) -> Optimum:
    return Optimum(DepthCurve.exact(depth), width, np.asarray(style.grid(depth, width).params.block, dtype=float))


def _depths(law: DepthLaw, block_params: Floats) -> DepthCurve:
    with np.errstate(over="ignore", under="ignore"):
        return DepthCurve(*(np.clip(values, *DEPTHS) for values in law.depth(block_params)))
