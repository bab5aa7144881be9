"""The real-valued optimum that a law finds for a budget: the depth and width that take all of it, on the law.

Vectorised over budgets.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from deepwide.errors import DeepwideError, at_least_one, from_one_to
from deepwide.laws import DepthCurve, DepthLaw
from deepwide.planning.budget import MOST, Budget
from deepwide.planning.style import Style
from deepwide.quantities import Floats

FAR = 8.0  # depths further than this factor from the law's are not looked at
NARROW_HEADS = 64  # the narrowest that are usual from width 512 on
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
    check_fixed(style, depth, width)
    if depth is not None:
        L = np.full_like(amounts, depth)
        return _at(style, L, style.width_for(L, amounts, budget.measure))
    if width is not None:
        d = np.full_like(amounts, width)
        L = style.depth_for(d, amounts, budget.measure)
        if L.min() < 1:
            raise DeepwideError(f"width {width} leaves no room for one layer in this budget: make it narrower.")
        return _at(style, L, d)
    N = amounts if budget.kind == "block" else _size_on_the_law(style, law, budget, amounts)
    predicted = depths_on_the_law(law, N)
    curve = DepthCurve(*(np.maximum(1.0, values) for values in predicted))  # a law may ask for less than a layer
    d = width_of_blocks(style, curve.value, N)
    check_stages(style, law, float(curve.value.min()))
    below = predicted.value < 1
    if np.any(below):
        d = np.where(below, style.width_for(curve.value, amounts, budget.measure), d)
    return Optimum(curve, d, N)


def check_fixed(style: Style, depth: int | None, width: int | None) -> None:
    """Refuse a depth or width that cannot be fixed."""
    if depth is not None:
        from_one_to(DEEPEST, depth=depth)
        if depth % style.pipeline_stages:
            raise DeepwideError(f"depth {depth} is not a multiple of the {style.pipeline_stages} pipeline stages.")
    at_least_one(width=width)


def check_stages(style: Style, law: DepthLaw, shallowest: float) -> None:
    """Refuse many more pipeline stages than the law's layers."""
    stages = style.pipeline_stages
    if stages > FAR * max(1.0, shallowest):
        raise DeepwideError(
            f"{stages:,} pipeline stages need at least {stages:,} layers, more than {FAR:g} times the "
            f"{max(1.0, shallowest):.1f} of the {law.name} law: use fewer stages."
        )


def _size_on_the_law(style: Style, law: DepthLaw, budget: Budget, amounts: Floats) -> Floats:
    """The block parameters at which a shape of the law's depth takes the budget, with the heads that allow most."""
    N = _size_with_heads(style, law, budget, amounts, None)
    if budget.kind == "total" or style.head_dim is not None or style.kv_heads is None:
        return N
    narrow = _size_with_heads(style, law, budget, amounts, NARROW_HEADS)
    fuller = (narrow > N) & (width_of_blocks(style, depths_on_the_law(law, narrow).value, narrow) >= 512)
    return np.where(fuller, narrow, N)


def _size_with_heads(style: Style, law: DepthLaw, budget: Budget, amounts: Floats, head_dim: int | None) -> Floats:
    """The same with heads of one width, or of the usual ones; the measure grows with the size."""
    low, high = np.full_like(amounts, math.log(12)), np.full_like(amounts, math.log(MOST * 16.0))
    for _ in range(42):
        middle = (low + high) / 2
        L = depths_on_the_law(law, np.exp(middle)).value
        over = budget.measure(style.grid(L, width_of_blocks(style, L, np.exp(middle)), head_dim)) > amounts
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.asarray(np.exp((low + high) / 2))


def width_of_blocks(style: Style, depth: Any, block_params: Any) -> Floats:
    """Real-valued width at which the blocks have this size: they are nearly quadratic in it."""
    width = np.sqrt(block_params / (12 * depth))
    for _ in range(3):
        width = width * np.sqrt(block_params / style.grid(depth, width).params.active_block)
    return np.asarray(width)


def _at(style: Style, depth: Floats, width: Floats) -> Optimum:
    N = np.asarray(style.grid(depth, width).params.active_block, dtype=float)
    return Optimum(DepthCurve.exact(depth), width, N)


def depths_on_the_law(law: DepthLaw, block_params: Floats) -> DepthCurve:
    """A law's depths, cut off where no model is: along a search it is asked about sizes from 12 to 1e17."""
    with np.errstate(over="ignore", under="ignore"):
        return DepthCurve(*(np.clip(values, *DEPTHS) for values in law.depth(block_params)))
