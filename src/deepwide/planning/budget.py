"""A budget, what it measures in a shape, and the real-valued optimum that a law finds for it."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ValidationError

from deepwide.arrays import ArrayLike, Floats, Integers
from deepwide.errors import DeepwideError, at_least_one, did_you_mean
from deepwide.laws import DepthCurve, Law, compute_law, depth_law
from deepwide.quantities import parse_bytes, parse_count, show_bytes, show_count
from deepwide.settings import explain
from deepwide.shape import Shape
from deepwide.shape.flops import causal_training_flops
from deepwide.shape.memory import INFERENCE_BYTES, cache_elements
from deepwide.shape.params import count
from deepwide.shape.rounding import Rounded, round_shapes
from deepwide.shape.style import Style

BudgetKind = Literal["block", "total", "flops", "memory"]
KINDS = ("block", "total", "flops", "memory")
LEAST, MOST = 1_000, 10**16  # parameters a plan is made for
TOO_FAR = 1.5  # a shape further than this from its budget is refused, not recommended


class Budget(NamedTuple):
    """An amount, and what it limits. `measure` also takes shapes held as arrays."""

    kind: BudgetKind
    amount: float
    words: str
    tokens: int | None = None  # training tokens, where they are fixed
    tokens_from: str = "20 per parameter, Chinchilla's rule of thumb"
    precision: str = "bf16"
    batch: int = 1

    @classmethod
    def of(
        cls,
        amount: int | float | str,
        kind: str = "block",
        *,
        compute: str = "epoch",
        tokens: int | None = None,
        precision: str = "bf16",
        batch: int = 1,
        context: int = 0,
    ) -> "Budget":
        """A budget from what a person gave, checked."""
        if kind not in KINDS:
            raise DeepwideError(f"no kind of budget '{kind}': {did_you_mean(str(kind), KINDS)}")
        if precision not in INFERENCE_BYTES:
            raise DeepwideError(f"no inference precision '{precision}': {did_you_mean(precision, INFERENCE_BYTES)}")
        at_least_one(batch=batch, tokens=tokens)
        rule = compute_law(compute)
        value = parse_bytes(amount) if kind == "memory" else parse_count(amount, "a budget")
        where = "given" if tokens else cls._field_defaults["tokens_from"]
        if kind == "flops" and tokens is None:
            tokens = max(1, round(rule.optimum(value)[1]))
            where = f"compute-optimal by {rule.citation}"
        words = {
            "block": f"{show_count(value)} block parameters",
            "total": f"{show_count(value)} parameters in all",
            "flops": f"{value:.3g} training FLOPs",
            "memory": f"{show_bytes(value)} at inference ({precision}, {batch} × {context:,} tokens of bf16 cache)",
        }[kind]
        return cls(kind, float(value), words, tokens, where, precision, batch)  # type: ignore[arg-type]

    def measure(self, shape: Shape) -> Any:
        """What of the budget a shape takes."""
        if self.kind == "block":
            return count(shape).block
        if self.kind == "total":
            return count(shape).total
        if self.kind == "flops":
            return causal_training_flops(shape) * float(self.tokens or 0)
        cached = 2 * self.batch * shape.context * shape.depth * cache_elements(shape)
        return INFERENCE_BYTES[self.precision] * count(shape).total + cached


class Optimum(NamedTuple):
    """Real-valued depth, with its interval, and width."""

    depth: DepthCurve
    width: Floats


class PlanTable(NamedTuple):
    """Plans of many budgets: arrays of equal length."""

    budget: Floats
    optimal_depth: Floats
    optimal_depth_low: Floats
    optimal_depth_high: Floats
    optimal_width: Floats
    depth: Integers
    width: Integers
    head_dim: Integers
    ff_width: Integers
    block_params: Integers
    total_params: Integers


def plan_many(
    budgets: ArrayLike, *, kind: BudgetKind = "block", law: str | Law | None = None, at_most: bool = False, **style: Any
) -> PlanTable:
    """Shapes for many budgets at once; the same rules as `plan`, without what surrounds each.

    >>> table = plan_many([85e6, 1.3e9, 175e9])
    >>> table.depth.tolist(), table.width.tolist()
    ([23, 42, 81], [512, 1536, 13312])
    """
    if kind == "flops":
        raise DeepwideError("plan_many takes sizes (block, total) or memory; for FLOPs, use plan.")
    try:
        amounts = np.atleast_1d(np.asarray(budgets, dtype=float))
    except (TypeError, ValueError):
        raise DeepwideError("budgets must be numbers.") from None
    look = make_style(style)
    budget = Budget.of(1, kind, context=look.context)
    optimum = find_optimum(look, depth_law(law), budget, amounts)
    over = at_most or kind == "memory"
    rounded = round_shapes(look, amounts, optimum.depth.value, optimum.width, budget.measure, never_over=over)
    grid = as_grid(look, rounded)
    refuse_far_misses(rounded, budget.measure(grid), amounts)
    params = count(grid)
    sizes = (np.asarray(params.block), np.asarray(params.total))
    return PlanTable(amounts, *optimum.depth, optimum.width, *rounded, *sizes)


def make_style(fields: dict[str, Any]) -> Style:
    """A Style from what a person gave; None means not given."""
    try:
        return Style(**{name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise DeepwideError(explain(error, Style)) from None


def as_grid(style: Style, rounded: Rounded) -> Shape:
    """Rounded shapes as arrays, for counting."""
    return style.grid(rounded.depth, rounded.width, rounded.head_dim, rounded.ff_width)


def refuse_far_misses(rounded: Rounded, reached: ArrayLike, amounts: Floats) -> None:
    """Where constraints leave no shape near the budget, say so instead of recommending one."""
    far = np.flatnonzero(np.abs(np.log(np.asarray(reached, dtype=float) / amounts)) > math.log(TOO_FAR))
    if far.size:
        depth, width = rounded.depth[far[0]], rounded.width[far[0]]
        raise DeepwideError(
            f"the nearest shape that divides as asked, {depth} × {width}, misses the budget by more than a factor "
            f"{TOO_FAR}: loosen kv_heads, tensor_parallel, pipeline_stages, width_multiple or head_dim."
        )


def find_optimum(
    style: Style, law: Law, budget: Budget, amounts: Floats, depth: int | None = None, width: int | None = None
) -> Optimum:
    """The depth and width that meet the budget on the law, or at the fixed depth or width."""
    _check_range(style, budget, amounts)
    if depth is not None:
        if not 1 <= depth <= 100_000 or depth % style.pipeline_stages:
            stages = style.pipeline_stages
            raise DeepwideError(f"depth {depth} must be a multiple of the {stages} pipeline stages, from 1 to 100000.")
        L = np.full_like(amounts, depth)
        return Optimum(DepthCurve.exact(L), style.width_for(L, amounts, budget.measure))
    if width is not None:
        at_least_one(width=width)
        d = np.full_like(amounts, width)
        L = style.depth_for(d, amounts, budget.measure)
        if L.min() < 1:
            raise DeepwideError(f"width {width} leaves no room for one layer in this budget: make it narrower.")
        return Optimum(DepthCurve.exact(L), d)
    # The measure grows with block parameters along the law, so bisect in ln N.
    low, high = np.full_like(amounts, math.log(12)), np.full_like(amounts, math.log(MOST * 16.0))
    for _ in range(42):
        middle = (low + high) / 2
        L = law.depth(np.exp(middle)).value
        over = budget.measure(style.grid(L, width_of_blocks(style, L, np.exp(middle)))) > amounts
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    N = np.exp((low + high) / 2)
    curve = DepthCurve(*(np.maximum(1.0, values) for values in law.depth(N)))  # a law may ask for less than a layer
    d = width_of_blocks(style, curve.value, N)
    below = law.depth(N).value < 1
    if np.any(below):
        d = np.where(below, style.width_for(curve.value, amounts, budget.measure), d)
    return Optimum(curve, d)


def width_of_blocks(style: Style, depth: Any, block_params: Any) -> Floats:
    """Real-valued width at which the blocks have this size: they are nearly quadratic in it."""
    width = np.sqrt(block_params / (12 * depth))
    for _ in range(3):
        width = width * np.sqrt(block_params / count(style.grid(depth, width)).block)
    return np.asarray(width)


def _check_range(style: Style, budget: Budget, amounts: Floats) -> None:
    if not amounts.size:
        raise DeepwideError("give at least one budget.")
    least = float(budget.measure(style.grid(1, 1.0)))
    per_param = {"flops": 6.0 * (budget.tokens or 1), "memory": INFERENCE_BYTES[budget.precision]}.get(budget.kind, 1.0)
    low, high = max(LEAST * per_param, math.ceil(least)), MOST * per_param
    if not np.all(np.isfinite(amounts)) or amounts.min() < low or amounts.max() > high:
        because = f"; one layer of width 1 with vocabulary {style.vocab:,} takes {least:.3g}" if least >= low else ""
        raise DeepwideError(f"the budget must be between {show_count(low)} and {show_count(high)} here{because}.")
