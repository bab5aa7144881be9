"""From a real-valued optimum to the integer, hardware-friendly shape nearest to a budget; vectorised over budgets."""

import math
from typing import NamedTuple

import numpy as np

from deepwide.arrays import Integers, Numbers
from deepwide.errors import DeepwideError
from deepwide.settings import LARGEST
from deepwide.shape.style import Measure, Style

HEAD_DIMS = (128, 64, 32, 24, 16, 8)
IDEAL_HEAD_DIM = ((2048, 128), (512, 64), (0, 32))  # from this width on
FF_STRETCH = (0.8, 1.35)  # how much narrower or wider than usual a gated feed-forward may be; Llama 3's is 1.31

# What is given up for a closer budget, in the currency of ln(budget):
LEAVING_THE_LAW = 0.03  # another depth than the optimum, rounded
NARROWER_HEADS = 0.03  # per halving of the head width
ODD_HEADS = 0.02  # heads not divisible by 2; half of it not by 4, a quarter not by 8
STRETCHING = 0.1  # times ln(feed-forward / usual)


class Rounded(NamedTuple):
    """Integer shapes, one per budget."""

    depth: Integers
    width: Integers
    head_dim: Integers
    ff_width: Integers


def round_shapes(
    style: Style,
    amount: Numbers,
    depth: Numbers,
    width: Numbers,
    measure: Measure,
    *,
    fixed_depth: bool = False,
    fixed_width: bool = False,
    never_over: bool = False,
) -> Rounded:
    """Integer shapes near (depth, width) whose measure is nearest to the amount.

    For each head width that suits the width, allowed widths around the optimum are tried with the optimal depth,
    rounded, and a gated feed-forward is stretched to meet the budget. Where that leaves too much of the budget, the
    two depths that bracket it are tried as well. The score is the miss in ln budget plus the prices above.
    """
    wanted = np.asarray(amount, dtype=float)
    stages = style.pipeline_stages
    nearest = np.maximum(1, np.rint(depth / stages)).astype(np.int64) * stages
    ideal = np.select([width >= least for least, _ in IDEAL_HEAD_DIM], [head for _, head in IDEAL_HEAD_DIM])
    best_score = np.full(len(wanted), np.inf)
    best = np.zeros((4, len(wanted)), np.int64)
    for other_depths in (False,) if fixed_depth else (False, True):
        for head_dim in (style.head_dim,) if style.head_dim else HEAD_DIMS:
            suits = (head_dim <= ideal) & (head_dim >= np.where(ideal >= 64, ideal / 2, 8))
            suits |= fixed_width or style.head_dim is not None
            rows = np.flatnonzero(suits & (best_score > LEAVING_THE_LAW if other_depths else True))
            if not len(rows):
                continue
            step = math.lcm(head_dim * style.heads_share, style.width_multiple or 1)
            if step > LARGEST:
                continue
            W = _widths(width[rows], step, fixed_width)[..., None]
            target, usual_depth = wanted[rows, None, None], nearest[rows, None, None]
            D = np.broadcast_to(usual_depth, W.shape)
            if other_depths:
                real = style.depth_for(W, target, measure, head_dim)
                below = np.maximum(1, np.floor(real / stages)).astype(np.int64) * stages
                D = np.concatenate([below, below + stages], axis=-1)
            D, W = np.broadcast_arrays(D, W)
            F, usual_ff, reached = _feed_forward(style, D, W, head_dim, target, measure, never_over)
            score = np.abs(np.log(reached / target))
            score += np.where(usual_depth == D, 0, LEAVING_THE_LAW + 0.5 * np.abs(np.log(D / usual_depth)))
            score += NARROWER_HEADS * np.abs(np.log2(head_dim / ideal[rows]))[:, None, None]
            score += STRETCHING * np.abs(np.log(F / usual_ff))
            heads = W // head_dim
            odd = (heads % 2 > 0) * 0.5 + (heads % 4 > 0) * 0.25 + (heads % 8 > 0) * 0.25
            score += np.where(W >= 512, ODD_HEADS * odd, 0)
            score[W % step != 0] = np.inf
            if never_over:
                # Floats count to 2^53 exactly; beyond, stay clear of their rounding.
                score[reached > np.where(target < 2.0**53, target, target * (1 - 1e-15))] = np.inf
            flat = score.reshape(len(rows), -1)
            pick = (np.arange(len(rows)), np.argmin(flat, axis=1))
            better = flat[pick] < best_score[rows]
            best_score[rows[better]] = flat[pick][better]
            chosen = [array.reshape(len(rows), -1)[pick] for array in (D, W, np.full_like(W, head_dim), F)]
            best[:, rows[better]] = np.array(chosen)[:, better]
    if not np.all(np.isfinite(best_score)):
        raise DeepwideError(_why_nothing_fits(style, fixed_width, never_over, int(np.rint(width[0]))))
    return Rounded(*best)


def _feed_forward(
    style: Style, D: Integers, W: Integers, head_dim: int, target: Numbers, measure: Measure, never_over: bool
) -> tuple[Integers, Integers, Numbers]:
    """The feed-forward width that meets the target, the usual one, and what is reached; the measure is affine in it."""

    def measured(F: Integers) -> Numbers:
        # In floats: FLOPs of large shapes, and sizes of those that huge multiples force, pass 64-bit integers.
        return np.asarray(measure(style.grid(D.astype(float), W.astype(float), head_dim, F.astype(float))))

    usual = np.asarray(style.usual_ff_width(W))
    reached = measured(usual)
    if not style.ff_is_free:
        return usual, usual, reached
    unit = style.ff_multiple(W)
    each = measured(usual + unit) - reached
    more = (target - reached) / each
    narrow, wide = (np.rint(usual * factor / unit) for factor in FF_STRETCH)
    F = np.clip(usual / unit + (np.floor(more) if never_over else np.rint(more)), np.maximum(1, narrow), wide)
    F = F.astype(np.int64) * unit
    return F, usual, measured(F)


def _widths(width: Numbers, step: int, fixed: bool) -> Integers:
    """Allowed widths around each wanted one: five neighbours, and those that give 2, 4 or 8 times a number of heads."""
    if fixed:
        return np.rint(width).astype(np.int64)[:, None]
    units = np.rint(width / step).astype(np.int64)[:, None] + np.arange(-2, 3)
    even = [np.rint(width / (step * m)).astype(np.int64)[:, None] * m for m in (2, 4, 8)]
    return np.asarray(np.maximum(1, np.concatenate([units, *even], axis=1)) * step)


def _why_nothing_fits(style: Style, fixed_width: bool, never_over: bool, width: int) -> str:
    heads = f"heads of {style.head_dim}" if style.head_dim else f"heads of {', '.join(map(str, HEAD_DIMS))}"
    if fixed_width:
        return (
            f"width {width} cannot be split into {heads}, in multiples of tensor_parallel {style.tensor_parallel} "
            f"and kv_heads {style.kv_heads or 1}, and of {style.width_multiple or 1}: change one of them."
        )
    reason = "no shape of this style stays below the budget" if never_over else "nothing fits"
    return f"{reason}: allow more, or loosen vocabulary, context, head_dim or the divisibility asked for."
