"""The shape and the training tokens that a FLOPs budget is best spent on, where no tokens are given.

A compute law, E + A/N^α + B/D^β, has its optimum in closed form where a token takes 6·N FLOPs. Attention adds
6·depth·context·width to that, most of it at long contexts, so that fewer tokens of a larger model, and fewer layers,
lose less. Here N are block parameters and D all tokens that the budget buys, attention and output layer counted, so
every shape takes the whole budget and shapes are compared by expected loss alone:

    ln(E + A/N^α + B/D^β) + what the depth costs at N if the law is right

Loss is flat about its least: choosing.py says which shape is taken. Of a fixed depth or width the same loss is the
least: what a depth costs depends on the size.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.laws import ComputeLaw, DepthLaw, compute_law, own_costs
from deepwide.planning.budget import MOST, Budget
from deepwide.planning.choosing import NEAR, Tried, choose, heads_kind, loss_apart
from deepwide.planning.optimum import (
    DEEPEST,
    NARROW_HEADS,
    check_fixed,
    check_stages,
    depths_on_the_law,
    width_of_blocks,
)
from deepwide.planning.rounding import (
    depths_up_to,
    head_widths,
    usual_depths,
    why_nothing_fits,
    width_step,
    widths_near,
)
from deepwide.planning.style import Style
from deepwide.quantities import Floats, Integers
from deepwide.settings import LARGEST
from deepwide.shape import causal_training_flops

GOLDEN = (math.sqrt(5) - 1) / 2
SECTIONS = 42  # of ln width, depth or N
WIDEST = 25.0  # ln of the widest that is tried
MOST_LOSS = 0.02  # more than the same without dividing is refused


class Spending(NamedTuple):
    """What a FLOPs budget is spent on."""

    shape: tuple[int, int, int, int]  # depth, width, head_dim, ff_width
    tokens: int
    left: bool  # fewer layers than the law's, because attention takes FLOPs in every layer
    law_depth: float  # the law's, of the best shape on it,
    law_params: float  # the block parameters that are best there, with their own tokens,
    gain: float  # and in ln of the expected loss what leaving it gains


def best_spending(style: Style, law: DepthLaw, budget: Budget, depth: int | None, width: int | None) -> Spending:
    """The shape and tokens of least expected loss, of all depths or with one that is fixed, or a width."""
    budget.check_range(style, np.array([budget.amount]))
    check_fixed(style, depth, width)
    rule = compute_law(budget.compute)
    # The usual heads jump at some widths, and with a number of key/value heads so do parameters.
    even = style if style.kv_heads is None or style.head_dim else style.model_copy(update={"head_dim": NARROW_HEADS})

    def loss(L: Any, d: Any) -> Floats:
        return _loss(rule, law, budget, even.grid(L, d))

    def on_the_law(x: Floats) -> Floats:
        L = np.maximum(1.0, depths_on_the_law(law, np.exp(x)).value)
        return loss(L, width_of_blocks(even, L, np.exp(x)))

    log_size, _ = _least(on_the_law, math.log(12), math.log(MOST * 16.0), 1)
    usual = int(usual_depths(style, np.maximum(1.0, depths_on_the_law(law, np.exp(log_size)).value))[0])
    if width is not None:
        at = np.array([float(width)])
        log_depth, best = _least(lambda x: loss(np.exp(x), at), 0.0, math.log(DEEPEST), 1)
        units = np.maximum(1, np.floor(np.exp(log_depth) / style.pipeline_stages)) + np.arange(2)
        depths, centres = units.astype(np.int64) * style.pipeline_stages, np.full(2, float(width))
        least, law_params, left = float(best[0]), float(np.exp(log_size[0])), False
    else:
        if depth is None:
            check_stages(style, law, float(depths_on_the_law(law, np.exp(log_size)).value[0]))
        depths = depths_up_to(style, usual) if depth is None else np.array([depth])
        L = depths.astype(float)
        log_width, losses = _least(lambda x: loss(L, np.exp(x)), 0.0, WIDEST, len(depths))
        centres, least = np.exp(log_width), float(losses.min())
        at_usual = int(np.argmax(depths == usual))
        law_params = float(even.grid(L[at_usual], centres[at_usual]).params.active_block)
        left = depth is None and usual > depths[0] and float(losses[at_usual]) > least + NEAR
    tried = _try(style, rule, law, budget, depths, centres, usual, width is not None, least)
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
    gain = float(losses[at_usual]) - own_loss if left else 0.0
    return Spending(shape, max(1, tokens), left, float(usual), law_params, gain)


def _loss(rule: ComputeLaw, law: DepthLaw, budget: Budget, grid: Any) -> Floats:
    """ln of the expected loss of shapes that are trained on all tokens that the budget buys."""
    N, D = np.asarray(grid.params.active_block, dtype=float), budget.amount / causal_training_flops(grid.as_shape)
    with np.errstate(over="ignore"):
        own = np.log(rule.E + rule.A * N**-rule.alpha + rule.B * D**-rule.beta)
    return np.asarray(own + own_costs(grid.depth, N, law))


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


def _try(
    style: Style,
    rule: ComputeLaw,
    law: DepthLaw,
    budget: Budget,
    depths: Integers,
    widths: Floats,
    usual_depth: int,
    fixed_width: bool,
    least: float,
) -> tuple[tuple[int, int, int, int], float] | None:
    """The integer shape to take of those of these depths about these widths, and its loss; None: nothing divides."""
    columns = []
    for head_dim in head_widths(style)[1]:
        step = width_step(style, head_dim)
        if step is None:
            continue
        D, W = np.broadcast_arrays(depths[:, None], widths_near(widths, step, fixed_width))
        fits = (W % step == 0) & (W <= LARGEST)
        D, W = D[fits], W[fits]
        F = np.asarray(style.usual_ff_width(W))
        loss = _loss(rule, law, budget, style.grid(D.astype(float), W.astype(float), head_dim, F.astype(float)))
        price, kind = loss_apart(style, D, W, head_dim, usual_depth), heads_kind(style, W, head_dim)
        columns.append((D, W, np.full_like(W, head_dim), F, loss, price, kind))
    if not columns or not sum(len(each[0]) for each in columns):
        return None
    tried = Tried(*(np.concatenate(values) for values in zip(*columns, strict=True)))
    best = choose(tried, least)
    return None if best is None else (tried.shape(best), float(tried.loss[best]))
