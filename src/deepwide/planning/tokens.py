"""The shape and the training tokens that a FLOPs budget is best spent on, where no tokens are given.

A compute law, E + A/N^α + B/D^β, has its optimum in closed form where a token takes 6·N FLOPs. Attention adds
6·depth·context·width to that, most of it at long contexts, so that fewer tokens of a larger model, and fewer layers,
lose less. Here N are block parameters and D all tokens that the budget buys, attention and output layer counted, so
every shape takes the whole budget and shapes are compared by expected loss alone:

    ln(E + A/N^α + B/D^β) + what the depth costs at N if the law is right

Loss is flat about its least. Of shapes within 0.04% of it the plan is the one nearest to the law's depth whose heads
divide best.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.laws import ComputeLaw, DepthLaw, compute_law, own_costs
from deepwide.planning.budget import MOST, Budget
from deepwide.planning.rounding import (
    BETWEEN,
    DEEPEST,
    HEAD_DIMS,
    LEAST_HEADS,
    LEAVING_THE_LAW,
    MOST_DEPTHS,
    NARROW_HEADS,
    SMALL_WIDTH,
    check_fixed,
    check_stages,
    depths_on_the_law,
    head_prices,
    odd_heads,
    usual_depths,
    why_nothing_fits,
    width_of_blocks,
    width_step,
    widths_near,
)
from deepwide.planning.style import Style, ideal_head_dim
from deepwide.quantities import Floats, Integers
from deepwide.settings import LARGEST
from deepwide.shape import causal_training_flops

GOLDEN = (math.sqrt(5) - 1) / 2
SECTIONS = 42  # of ln width, depth or N
WIDEST = 25.0  # ln of the widest that is tried
DEEPER = 2.0  # times the law's depth: the deepest that is tried, for widths that divide as asked
NEAR = 0.0004  # ln of the expected loss: shapes no further from the least are equal, and others decide
MORE_ODD = 3  # times the price of odd heads, beside it: loss does not speak against another number
DEARER = 0.003  # where the usual heads cost as much, others are tried
MOST_LOSS = 0.02  # more than the same without dividing is refused


class Spending(NamedTuple):
    """What a FLOPs budget is spent on."""

    shape: tuple[int, int, int, int]  # depth, width, head_dim, ff_width
    tokens: int
    left: bool  # fewer layers than the law's, because attention takes FLOPs in every layer
    law_params: float  # block parameters on the law itself, with its own best tokens,
    gain: float  # and in ln of the expected loss what leaving it gains


def best_spending(style: Style, law: DepthLaw, budget: Budget, depth: int | None, width: int | None) -> Spending:
    """The shape and tokens of least expected loss; with a fixed depth or width, which takes the law's place."""
    budget.check_range(style, np.array([budget.amount]))
    check_fixed(style, depth, width)
    rule = compute_law(budget.compute)
    fixed = depth is not None or width is not None
    # The usual heads jump at some widths, and with a number of key/value heads so do parameters.
    even = style if style.kv_heads is None or style.head_dim else style.model_copy(update={"head_dim": NARROW_HEADS})

    def loss(L: Any, d: Any) -> Floats:
        return _loss(rule, law, budget, even.grid(L, d), fixed)

    def on_the_law(x: Floats) -> Floats:
        L = np.maximum(1.0, depths_on_the_law(law, np.exp(x)).value)
        return loss(L, width_of_blocks(even, L, np.exp(x)))

    log_size, on_law = _least(on_the_law, math.log(12), math.log(MOST * 16.0), 1)
    law_params = float(np.exp(log_size[0]))
    usual = int(usual_depths(style, np.maximum(1.0, depths_on_the_law(law, np.exp(log_size)).value))[0])
    if width is not None:
        at = np.array([float(width)])
        log_depth, best = _least(lambda x: loss(np.exp(x), at), 0.0, math.log(DEEPEST), 1)
        units = np.maximum(1, np.floor(np.exp(log_depth) / style.pipeline_stages)) + np.arange(2)
        depths, centres = units.astype(np.int64) * style.pipeline_stages, np.full(2, float(width))
        least = float(best[0])
    else:
        if depth is None:
            check_stages(style, law, float(depths_on_the_law(law, np.exp(log_size)).value[0]))
        depths = _depths(style, usual) if depth is None else np.array([depth])
        L = depths.astype(float)
        log_width, losses = _least(lambda x: loss(L, np.exp(x)), 0.0, WIDEST, len(depths))
        centres, least = np.exp(log_width), float(losses.min())
    left = not fixed and usual > depths[0] and float(losses[depths == usual][0]) > least + NEAR
    tried = _try(style, rule, law, budget, depths, centres, usual, fixed, width is not None, least)
    if tried is None:
        raise DeepwideError(why_nothing_fits(style, width is not None, False, int(np.rint(centres[0]))))
    shape, own_loss = tried
    if own_loss > least + MOST_LOSS:
        raise DeepwideError(
            f"the best shape that divides as asked, {shape[0]} × {shape[1]}, is expected to have "
            f"{math.expm1(own_loss - least):.0%} more loss than one that need not: loosen kv_heads, tensor_parallel, "
            "pipeline_stages, width_multiple or head_dim."
        )
    tokens = int(budget.amount / causal_training_flops(style.shape(*shape)))
    return Spending(shape, max(1, tokens), left, law_params, float(on_law[0]) - own_loss if left else 0.0)


def _loss(rule: ComputeLaw, law: DepthLaw, budget: Budget, grid: Any, fixed: bool) -> Floats:
    """ln of the expected loss of shapes that are trained on all tokens that the budget buys."""
    N, D = np.asarray(grid.params.active_block, dtype=float), budget.amount / causal_training_flops(grid.as_shape)
    with np.errstate(over="ignore"):
        own = np.log(rule.E + rule.A * N**-rule.alpha + rule.B * D**-rule.beta)
    return np.asarray(own if fixed else own + own_costs(grid.depth, N, law))


def _least(loss: Callable[[Floats], Floats], start: float, end: float, count: int) -> tuple[Floats, Floats]:
    """Where each of some losses is least, and how much that is, by golden section."""
    low, high = np.full(count, start), np.full(count, end)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(SECTIONS):
        down = (at_left <= at_right) | np.isinf(at_left)
        low, high = np.where(down, low, left), np.where(down, right, high)
        new = np.where(down, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = loss(new)
        left, right = np.where(down, new, right), np.where(down, left, new)
        at_left, at_right = np.where(down, at_new, at_right), np.where(down, at_left, at_new)
    return np.where(at_left <= at_right, left, right), np.minimum(at_left, at_right)


def _depths(style: Style, usual: int) -> Integers:
    """Whole stages up to twice the law's depth, that depth among them; thinned where there are very many."""
    stages = style.pipeline_stages
    most = max(1, math.floor(usual * DEEPER / stages))
    units = np.arange(1, most + 1)
    if most > MOST_DEPTHS:
        units = np.unique(np.append(np.rint(np.geomspace(1, most, MOST_DEPTHS)), usual // stages)).astype(np.int64)
    return np.asarray(units * stages)


def _try(
    style: Style,
    rule: ComputeLaw,
    law: DepthLaw,
    budget: Budget,
    depths: Integers,
    widths: Floats,
    usual_depth: int,
    fixed: bool,
    fixed_width: bool,
    least: float,
) -> tuple[tuple[int, int, int, int], float] | None:
    """The integer shape to take of those of these depths about these widths, and its loss; None: nothing divides."""
    columns = []  # depth, width, head_dim, ff_width, loss, price, how unusual the heads are
    for head_dim in HEAD_DIMS + BETWEEN if style.head_dim is None else (style.head_dim,):
        step = width_step(style, head_dim)
        if step is None:
            continue
        D, W = np.broadcast_arrays(depths[:, None], widths_near(widths, step, fixed_width))
        fits = (W % step == 0) & (W <= LARGEST)
        D, W = D[fits], W[fits]
        F = np.asarray(style.usual_ff_width(W))
        grid = style.grid(D.astype(float), W.astype(float), head_dim, F.astype(float))
        price = np.where(usual_depth == D, 0, LEAVING_THE_LAW + 0.5 * np.abs(np.log(D / usual_depth)))
        price = price + head_prices(style, W, head_dim) + MORE_ODD * odd_heads(W, head_dim)
        narrowest = np.where(W >= 512, NARROW_HEADS, np.where(W >= SMALL_WIDTH, LEAST_HEADS, 1))
        suits = (head_dim >= narrowest) & (head_dim <= 2 * ideal_head_dim(W)) | (style.head_dim is not None)
        unusual = np.where(suits, head_dim in BETWEEN, 2)
        columns.append((D, W, np.full_like(W, head_dim), F, _loss(rule, law, budget, grid, fixed), price, unusual))
    if not columns or not sum(len(each[0]) for each in columns):
        return None
    D, W, H, F, loss, price, unusual = (np.concatenate(values) for values in zip(*columns, strict=True))
    for tier in range(3):
        floor = float(np.min(loss, where=unusual <= tier, initial=np.inf))
        if floor <= least + DEARER:
            break
    best = int(np.argmin(np.where((unusual <= tier) & (loss <= floor + NEAR), price, np.inf)))
    return (int(D[best]), int(W[best]), int(H[best]), int(F[best])), float(loss[best])
