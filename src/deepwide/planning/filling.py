"""The shape that a budget of memory, or of FLOPs for given tokens, is best filled with. Vectorised over budgets.

Every layer takes some of such a budget beside its parameters, whatever its width: cache, or attention. So fewer layers
than the law's leave room for more parameters, and shapes are compared by expected loss at the tokens of the plan,

    ln(E + A/P^α + B/D^β) + what the depth costs at N if the law is right,

with P the parameters of the best shape times the ratio of block parameters N. All depths up to twice the law's are
tried with widths whose feed-forward, as narrow or wide as is usual, fills the budget; choosing.py says which shape is
taken. With a fixed depth the budget is filled: there the larger model is the better one.

A depth has a least loss, that of real-valued sizes with the widest feed-forward and the heads that leave most room.
Depths that cannot come near the least are not tried, unless what was found at the others shows that they might.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepwide.errors import DeepwideError
from deepwide.laws import ComputeLaw, DepthLaw, compute_law, own_costs
from deepwide.planning.budget import Budget
from deepwide.planning.choosing import KINDS, NEAR, Tried, choose, heads_kind, loss_apart
from deepwide.planning.optimum import NARROW_HEADS, find_optimum
from deepwide.planning.rounding import (
    AT_ONCE,
    FF_STRETCH,
    STRETCHING,
    Rounded,
    depths_up_to,
    exceeds,
    fitting_feed_forward,
    head_widths,
    miss_prices,
    refuse_what_is_far,
    usual_depths,
    why_nothing_fits,
    width_step,
    widths_near,
)
from deepwide.planning.style import Style
from deepwide.quantities import Floats, Integers, Numbers
from deepwide.settings import LARGEST

ROUNDS = 3  # so often the tokens are taken from the best size so far
LIKELY = 0.001  # ln of the expected loss: depths no further from the least are tried first


class Filled(NamedTuple):
    """Integer shapes, one per budget, and where they leave the law."""

    shapes: Rounded
    usual_depth: Integers  # the law's, or the fixed one, in whole stages
    left: NDArray[np.bool_]  # where the budget is spent better below the law's depth,
    law_depth: Floats  # the law's, of a shape on it that takes the budget,
    law_params: Floats  # the most block parameters there,
    gain: Floats  # and in ln of the expected loss what leaving it gains


class _Depths(NamedTuple):
    """Depths of some budgets, one after the other, each with the most that real-valued sizes can be there."""

    row: Integers  # which budget
    depth: Integers | Floats
    block_params: Floats
    params: Floats  # all that are active


class _Compared(NamedTuple):
    """What the sizes of each budget are compared by."""

    per_block: Floats  # parameters per block parameter, of the best real-valued shape
    tokens: Floats


def fill_budgets(
    style: Style, law: DepthLaw, budget: Budget, amounts: Floats, depth: int | None = None, at_most: bool = False
) -> Filled:
    """The shapes of least expected loss that fill budgets of memory or, for given tokens, of FLOPs."""
    optimum = find_optimum(style, law, budget, amounts, depth)
    usual = usual_depths(style, optimum.depth.value)
    shapes = np.zeros((4, len(amounts)), np.int64)
    left, gain = np.zeros(len(amounts), bool), np.zeros(len(amounts))
    on_law = _most(style, budget, amounts, np.arange(len(amounts)), optimum.depth.value)
    never_over = at_most or budget.is_memory
    for start in range(0, len(amounts), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        search = _Search(style, law, budget, amounts[some], usual[some], depth, never_over)
        rows = np.arange(len(search.amounts))
        law_loss = search.loss(search.compared, rows, on_law.depth[some], on_law.block_params[some])
        for row, (shape, loss) in enumerate(search.best()):
            shapes[:, start + row] = shape
            fewer = depth is None and shape[0] < on_law.depth[start + row]
            if fewer and law_loss[row] > search.least[row] + NEAR:
                left[start + row], gain[start + row] = True, law_loss[row] - loss
    rounded = Rounded(*shapes)
    refuse_what_is_far(style, budget, amounts, rounded)
    return Filled(rounded, usual, left, on_law.depth.astype(float), on_law.block_params, gain)


class _Search:
    """The shapes that are tried for some budgets."""

    def __init__(
        self,
        style: Style,
        law: DepthLaw,
        budget: Budget,
        amounts: Floats,
        usual: Integers,
        fixed_depth: int | None,
        never_over: bool,
    ) -> None:
        self.style, self.law, self.budget, self.amounts, self.usual = style, law, budget, amounts, usual
        self.fixed, self.never_over, self.rule = fixed_depth is not None, never_over, compute_law(budget.surface)
        each = [depths_up_to(style, L) if fixed_depth is None else np.array([L]) for L in usual.tolist()]
        self.ends = np.cumsum([len(depths) for depths in each])
        row = np.repeat(np.arange(len(each)), [len(depths) for depths in each])
        self.real = _most(style, budget, amounts[row], row, np.concatenate(each))
        self.compared, self.losses = self._compare()
        self.least = np.array([float(self.losses[self.own(row)].min()) for row in range(len(amounts))])

    def own(self, row: int) -> slice:
        """Where the depths of a budget are."""
        return slice(int(self.ends[row - 1]) if row else 0, int(self.ends[row]))

    def best(self) -> list[tuple[tuple[int, int, int, int], float]]:
        """The shape to take for each budget, and its loss."""
        likely = self.losses <= self.least[self.real.row] + LIKELY
        tried = self._try(np.flatnonzero(likely), 1)
        shapes = []
        for row, own in enumerate(tried):
            floor = float(own.loss[own.kind == 0].min(initial=np.inf))
            if floor + NEAR > self.least[row] + LIKELY:  # others may be as good
                own = self._try(np.arange(len(self.losses))[self.own(row)], KINDS)[row]
            place = choose(own, float(self.least[row]))
            if place is None:
                raise DeepwideError(why_nothing_fits(self.style, False, self.never_over, 0))
            shapes.append((own.shape(place), float(own.loss[place])))
        return shapes

    def _compare(self) -> tuple[_Compared, Floats]:
        """What sizes are compared by, and the least loss of every depth: the tokens depend on the best size."""
        rows, real = range(len(self.amounts)), self.real
        best = np.array([self.own(row).start for row in rows]) + [
            int(np.argmax(real.depth[self.own(row)] == self.usual[row])) for row in rows
        ]
        for _ in range(ROUNDS):
            tokens = 20 * real.params[best]
            if self.budget.tokens is not None:
                tokens = np.full(len(best), float(self.budget.tokens))
            compared = _Compared(real.params[best] / real.block_params[best], tokens)
            losses = self.loss(compared, real.row, real.depth, real.block_params)
            best = np.array([self.own(row).start + int(np.argmin(losses[self.own(row)])) for row in rows])
        return compared, losses

    def loss(self, compared: _Compared, row: Integers, depth: Numbers, block_params: Floats) -> Floats:
        """ln of the expected loss."""
        c: ComputeLaw = self.rule
        size, tokens = compared.per_block[row] * block_params, compared.tokens[row]
        with np.errstate(over="ignore"):
            loss = np.log(c.E + c.A * size**-c.alpha + c.B * tokens**-c.beta)
        return np.asarray(loss if self.fixed else loss + own_costs(depth, block_params, self.law))

    def _try(self, places: Integers, kinds: int) -> list[Tried]:
        """The integer shapes of these depths, for each budget; heads of the usual widths, or of all kinds."""
        style, measure = self.style, self.budget.measure
        row, depths = self.real.row[places, None], self.real.depth[places, None].astype(np.int64)
        target = self.amounts[row]
        heads = head_widths(style)[0 if kinds == 1 else 1]
        heads = tuple(head_dim for head_dim in heads if width_step(style, head_dim) is not None)
        stretches = tuple({1.0: None, _widest(style, self.budget): None})
        columns: list[tuple[NDArray[np.generic], ...]] = []
        if not heads:
            none, nothing = np.zeros(0, np.int64), np.zeros(0)
            return [Tried(none, none, none, none, nothing, nothing, none)] * len(self.amounts)
        # With as many keys as heads their width changes no count: one is enough.
        counted = np.array(heads if style.kv_heads else heads[:1], dtype=float)
        L, each = depths[..., None].astype(float), np.array(stretches)[:, None]
        real = style.width_for(L, target[..., None], measure, each, counted)
        real = np.broadcast_to(real, (*real.shape[:-1], len(heads)))
        for place, head_dim in enumerate(heads):
            step = width_step(style, head_dim)
            assert step is not None
            centres = real[..., place]
            W = np.concatenate([widths_near(centres[:, i], step, False) for i in range(len(stretches))], axis=1)
            D = np.broadcast_to(depths, W.shape)
            F, usual_ff, reached = fitting_feed_forward(style, D, W, head_dim, target, measure, self.never_over)
            grid = style.grid(D.astype(float), W.astype(float), head_dim, F.astype(float))
            sizes = np.asarray(grid.params.active_block, dtype=float)
            if self.budget.kind == "flops":  # may be exceeded a little, which must not pay
                sizes = np.minimum(sizes * np.minimum(1, target / reached), self.real.block_params[places, None])
            loss = self.loss(self.compared, row, D, sizes)
            over = exceeds(reached, target) if self.never_over else np.zeros(W.shape, bool)
            loss = np.where(over | (W % step != 0) | (W > LARGEST), np.inf, loss)
            price = loss_apart(style, D, W, head_dim, self.usual[row]) + miss_prices(reached, target)
            price = price + STRETCHING * np.abs(np.log(F / usual_ff))
            columns.append((D, W, np.full_like(W, head_dim), F, loss, price, heads_kind(style, W, head_dim)))
        arrays = [np.concatenate(values, axis=1) for values in zip(*columns, strict=True)]
        return [Tried(*(values[row[:, 0] == one].ravel() for values in arrays)) for one in range(len(self.amounts))]


def _widest(style: Style, budget: Budget) -> float:
    """How much wider than usual a feed-forward may be to lose less.

    It has no cache, and so is the cheaper part of a layer. Of FLOPs compute-optimal plans have the usual one: there it
    only fills up.
    """
    return FF_STRETCH[1] if style.ff_is_free and budget.is_memory else 1.0


def _most(style: Style, budget: Budget, amounts: Floats, row: Integers, depth: Integers | Floats) -> _Depths:
    """The most parameters at each depth: with the widest feed-forward, and with narrow heads if they leave more."""
    L, stretch = depth.astype(float), _widest(style, budget)

    def sized(head_dim: int | None) -> tuple[Floats, Floats, Floats]:
        width = style.width_for(L, amounts, budget.measure, stretch, head_dim)
        params = style.grid(L, width, head_dim, stretch * style.usual_ff_width(width)).params
        return width, np.asarray(params.active_block, dtype=float), np.asarray(params.active, dtype=float)

    _, N, P = sized(None)
    if style.head_dim is None and style.kv_heads is not None:
        width, narrow, all_narrow = sized(NARROW_HEADS)
        fuller = (narrow > N) & (width >= 512)
        N, P = np.where(fuller, narrow, N), np.where(fuller, all_narrow, P)
    return _Depths(row, depth, N, P)
