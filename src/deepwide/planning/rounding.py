"""The integer, hardware-friendly shape nearest to an optimum, by prices for what is given up.

Vectorised over budgets.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepwide.errors import DeepwideError
from deepwide.planning.budget import Budget
from deepwide.planning.optimum import FAR, NARROW_HEADS, Optimum
from deepwide.planning.style import Measure, Style, ideal_head_dim
from deepwide.quantities import Floats, Integers, Numbers
from deepwide.settings import LARGEST

HEAD_DIMS = (128, 64, 32, 24, 16, 8)
BETWEEN = (112, 96, 80, 56, 48, 40)  # head widths that are built too, tried where those would cost more than these
FF_STRETCH = (0.8, 1.35)  # how much narrower or wider than usual a gated feed-forward may be; Llama 3's is 1.31
DEEPER = 2.0  # times the law's depth: the deepest that is tried, for widths that divide as asked
MOST_DEPTHS = 600
AT_ONCE = 32  # budgets that are searched widely together: more would take memory and save nothing

# What is given up for a closer budget, in the currency of ln(budget):
CLOSE = 0.03  # a miss up to this counts once,
MISSING = 20.0  # and what is beyond it so many times more
LEAVING_THE_LAW = 0.03  # another depth than the optimum, rounded; and half of ln(depth / it)
NARROWER_HEADS = 0.03  # per halving of the head width,
BETWEEN_HEADS = 0.05  # for a width between powers of two,
UNUSUAL_HEADS = 0.1  # for heads narrower than that there,
LEAST_HEADS = 32  # the narrowest that anyone builds
SMALL_WIDTH = 384  # from this width on,
TINY_HEADS = 0.15  # times log2(64 / head width), for heads narrower than that there
ODD_HEADS = 0.02  # heads not divisible by 2; half of it not by 4, a quarter not by 8
STRETCHING = 0.1  # times ln(feed-forward / usual)
TOO_FAR = 1.5  # a shape further than this from its budget is refused, not recommended
DEAR = 0.3  # a shape of this price, such as 1.7 times the law's depth, is worth a wide search for a cheaper one


class Rounded(NamedTuple):
    """Integer shapes, one per budget."""

    depth: Integers
    width: Integers
    head_dim: Integers
    ff_width: Integers


class _Tried(NamedTuple):
    """Integer shapes that were tried for some budgets, with their price and what of the budget they take."""

    shapes: Rounded  # arrays of one row per budget
    score: Numbers
    reached: Numbers


class WideSearch(NamedTuple):
    """The outcome of trying all shapes within a factor 8 of the law's depth that divide as asked, for one budget."""

    best: tuple[int, int, int, int]  # by price: depth, width, head_dim, ff_width
    nearest: tuple[int, int, int, int]  # to the budget, at any price
    nearest_reached: float
    tried: int
    score: float


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
    close: float = CLOSE,
) -> Rounded:
    """Integer shapes near (depth, width) whose measure is nearest to the amount, at the least price.

    For each head width that suits the width, allowed widths around the optimum are tried with the optimal depth,
    rounded, and a gated feed-forward is stretched to meet the budget. Where that costs more than leaving the law's
    depth, the depths that bracket the budget at each width are tried as well; and where the budget is still missed
    by more than `close`, 3%, or only a depth far from the law's meets it, all depths and widths that divide as asked
    (`search_widely`).
    """
    near = _round_near(style, amount, depth, width, measure, fixed_depth, fixed_width, never_over, close=close)
    best, best_score, reached, usual = near.best, near.score, near.reached, near.usual_depth
    wanted = np.asarray(amount, dtype=float)
    with np.errstate(invalid="ignore"):
        missed = ~(best_score <= DEAR) | (np.abs(np.log(reached / wanted)) > close)
    rows = np.flatnonzero(missed)
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        searches = _search_rows(
            style, wanted[some], usual[some], measure, np.rint(width[some]).astype(np.int64) if fixed_width else None,
            fixed_depth, never_over, close,
        )  # fmt: skip
        for row, search in zip(some, searches, strict=True):
            if search is not None and search.score < best_score[row]:
                best_score[row], best[:, row] = search.score, search.best
    if not np.all(np.isfinite(best_score)):
        raise DeepwideError(why_nothing_fits(style, fixed_width, never_over, int(np.rint(width[0]))))
    return Rounded(*best)


def shapes_near(
    style: Style,
    amount: Numbers,
    depth: Numbers,
    width: Numbers,
    measure: Measure,
    *,
    never_over: bool = False,
    any_heads: bool = False,
) -> set[tuple[int, int, int, int]]:
    """The different shapes of these depths that come near the amounts: depth, width, head_dim, ff_width.

    Unlike `round_shapes` it neither searches widely where an amount is missed nor refuses what does not fit. Heads are
    of the usual widths, or of `any_heads` that divide.
    """
    near = _round_near(style, amount, depth, width, measure, True, False, never_over, any_heads=any_heads)
    if not any_heads and style.head_dim is None:
        unusual = (near.best[2] < 64) & (near.best[1] >= 512)
        near = near._replace(score=np.where(unusual, np.inf, near.score))
    fits = near.best[:, np.isfinite(near.score)]
    return {(int(L), int(d), int(h), int(f)) for L, d, h, f in fits.T.tolist()}


class _Near(NamedTuple):
    """The best of the shapes that were tried for each budget; their price is infinite where none fits."""

    best: Integers  # depth, width, head_dim, ff_width: one row each
    score: Floats
    reached: Floats
    usual_depth: Integers


def _round_near(
    style: Style,
    amount: Numbers,
    depth: Numbers,
    width: Numbers,
    measure: Measure,
    fixed_depth: bool,
    fixed_width: bool,
    never_over: bool,
    any_heads: bool = False,
    close: float = CLOSE,
) -> _Near:
    wanted = np.asarray(amount, dtype=float)
    usual = usual_depths(style, depth)
    centre = np.asarray(width, dtype=float)
    if not fixed_width and np.any(moved := np.abs(np.log(usual / depth)) > 0.1):  # pipeline stages may force the depth
        centre = np.where(moved, style.width_for(usual.astype(float), wanted, measure), centre)
    ideal = ideal_head_dim(centre)
    best_score = np.full(len(wanted), np.inf)
    best = np.zeros((4, len(wanted)), np.int64)
    reached = np.full(len(wanted), np.nan)
    usual_heads, all_heads = head_widths(style)
    passes = [(False, usual_heads), (False, all_heads[len(usual_heads) :])]
    for other_depths, head_dims in passes if fixed_depth else [*passes, (True, all_heads)]:
        unsettled = best_score > LEAVING_THE_LAW  # of the first pass all
        for head_dim in head_dims:
            suits = (head_dim <= 2 * ideal) & (head_dim >= np.where(ideal >= 64, ideal / 2, 8))
            suits |= any_heads or fixed_width or style.head_dim is not None
            rows = np.flatnonzero(suits & unsettled)
            step = width_step(style, head_dim)
            if not len(rows) or step is None:
                continue
            W = widths_near(centre[rows], step, fixed_width)[..., None]
            target, usual_depth = wanted[rows, None, None], usual[rows, None, None]
            D = np.broadcast_to(usual_depth, W.shape)
            if other_depths:
                D = _depths_at(style, W, target, measure, head_dim)
            D, W = np.broadcast_arrays(D, W)
            tried = _try(style, D, W, head_dim, target, usual_depth, measure, never_over, close)
            flat = tried.score.reshape(len(rows), -1)
            pick = (np.arange(len(rows)), np.argmin(flat, axis=1))
            better = flat[pick] < best_score[rows]
            best_score[rows[better]] = flat[pick][better]
            reached[rows[better]] = tried.reached.reshape(len(rows), -1)[pick][better]
            chosen = [array.reshape(len(rows), -1)[pick] for array in tried.shapes]
            best[:, rows[better]] = np.array(chosen)[:, better]
    return _Near(best, best_score, reached, usual)


def head_widths(style: Style) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The head widths that are tried first, and all: first the same ones, then those between them."""
    given = () if style.head_dim is None else (style.head_dim,)
    return given or HEAD_DIMS, given or HEAD_DIMS + BETWEEN


def usual_depths(style: Style, depth: Numbers) -> Integers:
    """The optimal depths, rounded to whole pipeline stages."""
    stages = style.pipeline_stages
    return np.asarray(np.maximum(1, np.rint(np.asarray(depth) / stages)).astype(np.int64) * stages)


def depths_up_to(style: Style, usual: int) -> Integers:
    """Whole stages up to twice the law's depth, that depth among them; thinned where there are very many."""
    stages = style.pipeline_stages
    most = max(1, math.floor(usual * DEEPER / stages))
    units = np.arange(1, most + 1)
    if most > MOST_DEPTHS:
        units = np.unique(np.append(np.rint(np.geomspace(1, most, MOST_DEPTHS)), usual // stages)).astype(np.int64)
    return np.asarray(units * stages)


def search_widely(
    style: Style,
    target: float,
    usual_depth: int,
    measure: Measure,
    *,
    width: int | None = None,
    fixed_depth: bool = False,
    never_over: bool = False,
) -> WideSearch | None:
    """Try every depth that divides within a factor 8 of the usual one, with the widths that bracket the budget there.

    The measure grows with the width and with the feed-forward, so no other width can be nearer to the budget.
    None: nothing divides as asked.
    """
    widths = None if width is None else np.array([width])
    usual = np.array([usual_depth])
    return _search_rows(style, np.array([target]), usual, measure, widths, fixed_depth, never_over, CLOSE)[0]


def _search_rows(
    style: Style,
    targets: Floats,
    usual_depths: Integers,
    measure: Measure,
    widths: Integers | None,
    fixed_depth: bool,
    never_over: bool,
    close: float,
) -> list[WideSearch | None]:
    """`search_widely` for many budgets, the depths of all of them in one array: numpy's calls take most of the time."""
    each = [np.array([usual]) if fixed_depth else _all_depths(style, usual) for usual in usual_depths.tolist()]
    depths, row = np.concatenate(each), np.repeat(np.arange(len(each)), [len(own) for own in each])
    ends = np.cumsum([len(own) for own in each])
    stretches = (FF_STRETCH[0], 1.0, FF_STRETCH[1]) if style.ff_is_free else (1.0,)
    head_dims = [head_dim for head_dim in head_widths(style)[1] if width_step(style, head_dim) is not None]
    target, usual = targets[row, None], usual_depths[row, None]
    if widths is None:  # of every head width at once: most of the time of a search goes into finding widths
        # With as many keys as heads their width changes no count: one is enough.
        heads = np.array(head_dims if style.kv_heads else head_dims[:1], dtype=float)
        floats = depths[:, None, None].astype(float)
        real = style.width_for(floats, target[..., None], measure, np.array(stretches)[:, None], heads)
        real = np.broadcast_to(real, (*real.shape[:-1], len(head_dims)))
    best: list[tuple[float, tuple[int, ...]]] = [(math.inf, ())] * len(each)
    nearest: list[tuple[float, tuple[int, ...], float]] = [(math.inf, (), math.nan)] * len(each)
    counts = [0] * len(each)
    for place, head_dim in enumerate(head_dims):
        if widths is None:
            step = _step(style, head_dim)
            units = (np.floor(real[..., place] / step)[..., None] + np.arange(2)).reshape(len(depths), -1)
            W = np.maximum(1, units).astype(np.int64) * step
        else:
            W = widths[row, None]
        D, W = np.broadcast_arrays(depths[:, None], W)
        tried = _try(style, D, W, head_dim, target, usual, measure, never_over, close)
        fits = np.isfinite(tried.score)
        misses = np.where(fits, np.abs(np.log(tried.reached / target)), np.inf)
        for one, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if not (own_fits := int(fits[start:end].sum())):
                continue
            counts[one] += own_fits
            at, closest = (
                np.unravel_index(np.argmin(own), own.shape) for own in (tried.score[start:end], misses[start:end])
            )
            (score, shape), (miss, near) = (
                (float(values[start:end][where]), tuple(int(array[start:end][where]) for array in tried.shapes))
                for values, where in ((tried.score, at), (misses, closest))
            )
            if score < best[one][0]:
                best[one] = score, shape
            if miss < nearest[one][0]:
                nearest[one] = miss, near, float(tried.reached[start:end][closest])
    return [
        WideSearch(own[1], near[1], near[2], count, own[0]) if count else None  # type: ignore[arg-type]
        for own, near, count in zip(best, nearest, counts, strict=True)
    ]


def _all_depths(style: Style, usual_depth: int) -> Integers:
    """Whole stages from an eighth of the usual depth to eight times it; thinned where there are very many."""
    stages = style.pipeline_stages
    low, high = max(1, math.ceil(usual_depth / FAR / stages)), max(1, math.floor(usual_depth * FAR / stages))
    if high - low < MOST_DEPTHS:
        return np.arange(low, high + 1) * stages
    return np.unique(np.rint(np.geomspace(low, high, MOST_DEPTHS)).astype(np.int64)) * stages


def _try(
    style: Style,
    D: Integers,
    W: Integers,
    head_dim: int,
    target: Numbers,
    usual_depth: Integers,
    measure: Measure,
    never_over: bool,
    close: float,
) -> _Tried:
    """Shapes of these depths and widths with the feed-forward that meets the target best, and their prices."""
    F, usual_ff, reached = fitting_feed_forward(style, D, W, head_dim, target, measure, never_over)
    score = miss_prices(reached, target, close) + depth_prices(D, usual_depth) + head_prices(style, W, head_dim)
    score += STRETCHING * np.abs(np.log(F / usual_ff))
    score[(W % _step(style, head_dim) != 0) | (W > LARGEST)] = np.inf
    if never_over:
        score[exceeds(reached, target)] = np.inf
    return _Tried(Rounded(D, W, np.full_like(W, head_dim), F), score, reached)


def exceeds(reached: Numbers, target: Numbers) -> NDArray[np.bool_]:
    """Where more than the target is taken: floats count to 2^53 exactly, and beyond one stays clear of rounding."""
    return np.asarray(reached > np.where(target < 2.0**53, target, target * (1 - 1e-15)))


def miss_prices(reached: Numbers, target: Numbers, close: float = CLOSE) -> Floats:
    """The price of missing the budget."""
    miss = np.abs(np.log(reached / target))
    return np.asarray(miss + MISSING * np.maximum(0, miss - close))


def depth_prices(D: Integers, usual_depth: Numbers | int) -> Floats:
    """The price of another depth than the optimum, rounded."""
    return np.asarray(np.where(usual_depth == D, 0, LEAVING_THE_LAW + 0.5 * np.abs(np.log(D / usual_depth))))


def head_prices(style: Style, W: Integers, head_dim: int) -> Floats:
    """The price of heads of this width at each width: of their width, and of their number."""
    price = NARROWER_HEADS * np.abs(np.log2(head_dim / ideal_head_dim(W)))
    if style.head_dim is None:
        price += BETWEEN_HEADS if head_dim in BETWEEN else 0
        price += np.where((W >= 512) & (head_dim < NARROW_HEADS), UNUSUAL_HEADS, 0)
        price += np.where((W >= SMALL_WIDTH) & (head_dim < LEAST_HEADS), TINY_HEADS * np.log2(64 / head_dim), 0)
    return np.asarray(price + odd_heads(W, head_dim))


def odd_heads(W: Integers, head_dim: int) -> Floats:
    """The price of a number of heads that kernels and parallel ranks do not like."""
    heads = W // head_dim
    odd = (heads % 2 > 0) * 0.5 + (heads % 4 > 0) * 0.25 + (heads % 8 > 0) * 0.25
    return np.asarray(np.where(W >= 512, ODD_HEADS * odd, 0))


def fitting_feed_forward(
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
    per_unit = measured(usual + unit) - reached
    more = (target - reached) / per_unit
    narrow, wide = (np.rint(usual * factor / unit) for factor in FF_STRETCH)
    if not never_over:  # where attention takes nearly all, narrowing costs more than the small miss that it saves
        saves_little = per_unit * (usual / unit) < STRETCHING * reached
        more = np.where((more < 0) & saves_little & (reached < target * math.exp(CLOSE)), 0, more)
    F = np.clip(usual / unit + (np.floor(more) if never_over else np.rint(more)), np.maximum(1, narrow), wide)
    F = F.astype(np.int64) * unit
    return F, usual, measured(F)


def _depths_at(style: Style, W: Integers, target: Numbers, measure: Measure, head_dim: int) -> Integers:
    """The depths that bracket the target at each width, with the usual feed-forward and with it stretched."""
    stages = style.pipeline_stages
    brackets = []
    for stretch in (1.0, *FF_STRETCH) if style.ff_is_free else (1.0,):
        real = style.depth_for(W, target, measure, head_dim, stretch)
        below = np.maximum(1, np.floor(real / stages)).astype(np.int64) * stages
        brackets += [below, below + stages]
    return np.concatenate(brackets, axis=-1)


def _step(style: Style, head_dim: int) -> int:
    return math.lcm(head_dim * style.heads_share, style.width_multiple or 1)


def width_step(style: Style, head_dim: int) -> int | None:
    """What widths must be multiples of with heads of this width; None if no width is."""
    step = _step(style, head_dim)
    return step if step <= LARGEST else None


def widths_near(width: Numbers, step: int, fixed: bool) -> Integers:
    """Allowed widths around each wanted one: five neighbours, and those that give 2, 4 or 8 times a number of heads."""
    if fixed:
        return np.rint(width).astype(np.int64)[:, None]
    units = np.rint(width / step).astype(np.int64)[:, None] + np.arange(-2, 3)
    even = [np.rint(width / (step * m)).astype(np.int64)[:, None] * m for m in (2, 4, 8)]
    return np.asarray(np.maximum(1, np.concatenate([units, *even], axis=1)) * step)


def why_nothing_fits(style: Style, fixed_width: bool, never_over: bool, width: int) -> str:
    """Why no shape divides as asked, and what to change."""
    heads = f"heads of {style.head_dim}" if style.head_dim else f"heads of {', '.join(map(str, HEAD_DIMS))}"
    if fixed_width:
        return (
            f"width {width} cannot be split into {heads}, in multiples of tensor_parallel {style.tensor_parallel} "
            f"and kv_heads {style.kv_heads or 1}, and of {style.width_multiple or 1}: change one of them."
        )
    reason = "no shape of this style stays below the budget" if never_over else "nothing fits"
    return f"{reason}: allow more, or loosen vocabulary, context, head_dim or the divisibility asked for."


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
        never_over=at_most or budget.is_memory,
    )
    refuse_what_is_far(style, budget, amounts, rounded)
    return rounded


def refuse_what_is_far(style: Style, budget: Budget, amounts: Floats, rounded: Rounded) -> None:
    """Refuse shapes that miss their budget by a factor 1.5."""
    # In floats: sizes of shapes that huge multiples force pass 64-bit integers.
    reached = budget.measure(style.grid(*(np.asarray(values, dtype=float) for values in rounded)))
    far = np.flatnonzero(np.abs(np.log(np.asarray(reached, dtype=float) / amounts)) > math.log(TOO_FAR))
    if far.size:
        depth, width = rounded.depth[far[0]], rounded.width[far[0]]
        raise DeepwideError(
            f"the nearest shape that divides as asked, {depth} × {width}, misses the budget by more than a factor "
            f"{TOO_FAR}: loosen kv_heads, tensor_parallel, pipeline_stages, width_multiple or head_dim."
        )
