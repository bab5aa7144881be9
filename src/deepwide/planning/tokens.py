"""The training tokens that a FLOPs budget is best spent on, with attention reckoned with.

A compute law, E + A/N^α + B/D^β, has its optimum in closed form where a token takes 6·N FLOPs. Attention adds
6·depth·context·width to that, most of it at long contexts, so that fewer tokens of a larger model lose less. Here N are
block parameters, and a token takes 6 FLOPs for each and those of attention; the output layer is left out, as in
C = 6·N·D. Without attention this is the closed form.
"""

import math
from typing import Any

import numpy as np

from deepwide.laws import DepthLaw, compute_law, own_costs
from deepwide.planning.budget import MOST, Budget
from deepwide.planning.rounding import NARROW_HEADS, check_fixed, depths_on_the_law, width_of_blocks
from deepwide.planning.style import Style
from deepwide.quantities import Floats
from deepwide.shape import causal_training_flops

GOLDEN = (math.sqrt(5) - 1) / 2
SECTIONS = 32  # of ln N, from 12 parameters to 1e17: to 1e-5, where the losses still differ by more than rounding
DIGITS = 4  # of the tokens: more would say nothing, and the page could not follow
# Times the law's depth: where attention is dear, fewer layers lose less.
SHALLOWER = tuple(math.exp(-step / 20) for step in range(61))


def with_best_tokens(style: Style, law: DepthLaw, budget: Budget, depth: int | None, width: int | None) -> Budget:
    """The budget with the tokens of least expected loss, where a compute law chooses them.

    The least is over sizes N and over depths from the law's at N down to a twentieth, unless depth or width is fixed.
    """
    if not budget.compute:
        return budget
    check_fixed(style, depth, width)
    if style.kv_heads is not None and style.head_dim is None:  # usual heads jump at some widths, and their keys too
        style = style.model_copy(update={"head_dim": NARROW_HEADS})
    low, high = math.log(12), math.log(MOST * 16.0)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = (_best_at(math.exp(x), style, law, budget, depth, width) for x in (left, right))
    for _ in range(SECTIONS):
        if at_left[0] <= at_right[0] or math.isinf(at_left[0]):
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = _best_at(math.exp(left), style, law, budget, depth, width)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = _best_at(math.exp(right), style, law, budget, depth, width)
    return budget._replace(tokens=max(1, round(float(f"{min(at_left, at_right)[1]:.{DIGITS}g}"))))


def _best_at(
    N: float, style: Style, law: DepthLaw, budget: Budget, depth: int | None, width: int | None
) -> tuple[float, float]:
    """The least ln of the expected loss at a size, and the tokens that the budget then buys."""
    rule = compute_law(budget.compute)
    if depth is not None or width is not None:
        L: Any = np.array([float(depth or 1)])
        d: Any = np.array([float(width or 1)])
        if depth is not None:
            d = width_of_blocks(style, L, N)
        else:
            L = N / style.grid(1.0, d).params.active_block
        depth_loss: Any = 0.0
    else:
        L = np.maximum(1.0, np.array(SHALLOWER) * depths_on_the_law(law, np.array([N])).value)
        d = width_of_blocks(style, L, N)
        depth_loss = own_costs(L, N, law)
    tokens = budget.amount / _flops(style, L, d)
    with np.errstate(over="ignore"):
        loss = np.log(rule.E + rule.A * N**-rule.alpha + rule.B * tokens**-rule.beta) + depth_loss
    best = int(np.argmin(loss))
    return float(loss[best]), float(tokens[best])


def _flops(style: Style, depth: Floats, width: Floats) -> Floats:
    """Training FLOPs of a token, without the output layer."""
    grid = style.grid(depth, width)
    narrow = width if grid.embedding_width is None else grid.embedding_width
    return np.asarray(causal_training_flops(grid.as_shape) - 6 * (grid.vocab * narrow))
