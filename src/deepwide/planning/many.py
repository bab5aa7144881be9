"""Plans of many budgets at once."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from pydantic import field_serializer

from deepwide.answers import Answer
from deepwide.errors import DeepwideError, quoted
from deepwide.laws import DepthCurve, Law, depth_law
from deepwide.planning.budget import Budget, BudgetKind, parse_budget
from deepwide.planning.filling import fill_budgets
from deepwide.planning.optimum import find_optimum, width_of_blocks
from deepwide.planning.rounding import round_optimum
from deepwide.planning.style import Style
from deepwide.quantities import ArrayLike, Floats, Integers


class PlanTable(Answer):
    """Plans of many budgets: arrays of equal length."""

    budget: Floats
    optimal_depth: Floats  # the law's at the size of the shape, or at the budget if that is a size
    optimal_depth_low: Floats
    optimal_depth_high: Floats
    optimal_width: Floats
    depth: Integers
    width: Integers
    head_dim: Integers
    ff_width: Integers
    block_params: Integers  # with experts, those that a token passes through
    total_params: Integers

    @field_serializer("*", when_used="json")
    def _plain(self, values: Any) -> list[Any]:
        return [None if value != value else value for value in values.tolist()]  # NaN is no JSON

    def rows(self) -> list[dict[str, Any]]:
        """One row per budget."""
        columns = {name: getattr(self, name).tolist() for name in type(self).model_fields}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plan_many(
    budgets: ArrayLike | str | Sequence[str | float],
    *,
    kind: BudgetKind = "block",
    law: str | Law | None = None,
    at_most: bool = False,
    **style: Any,
) -> PlanTable:
    """Shapes for many budgets at once; the same rules as `plan`, without what surrounds each.

    >>> table = plan_many([85e6, 1.3e9, 175e9])
    >>> table.depth.tolist(), table.width.tolist()
    ([23, 42, 81], [512, 1536, 13312])
    """
    if kind in ("flops", "device"):
        what = "FLOPs" if kind == "flops" else "the memory of a device"
        raise DeepwideError(f"plan_many takes sizes (block, total) or memory; for {what}, use plan.")
    amounts = _amounts(budgets, kind)
    wanted = Style.of(style)
    budget = Budget.of(1, kind, context=wanted.context)
    chosen = depth_law(law)
    if kind == "memory":
        rounded = fill_budgets(wanted, chosen, budget, amounts).shapes
    else:
        optimum = find_optimum(wanted, chosen, budget, amounts)
        rounded = round_optimum(wanted, budget, amounts, optimum, at_most=at_most)
        law_depth, law_width = optimum.depth, optimum.width
    params = wanted.grid(*rounded).params
    if kind != "block":  # the law is asked about the size that came out, as in a plan
        size = np.asarray(params.active_block, dtype=float)
        law_depth = DepthCurve(*(np.maximum(1.0, values) for values in chosen.depth(size)))
        law_width = width_of_blocks(wanted, law_depth.value, size)
    return PlanTable.model_construct(
        budget=amounts,
        optimal_depth=law_depth.value,
        optimal_depth_low=law_depth.low,
        optimal_depth_high=law_depth.high,
        optimal_width=law_width,
        **rounded._asdict(),
        block_params=np.asarray(params.active_block),
        total_params=np.asarray(params.total),
    )


def _amounts(budgets: Any, kind: BudgetKind) -> Floats:
    """Budgets as numbers; those that are written, such as 1.3B, are parsed one by one, so that a bad one is named."""
    if isinstance(budgets, str):
        budgets = [budgets]
    if isinstance(budgets, list | tuple):
        budgets = [parse_budget(budget, kind) if isinstance(budget, str) else budget for budget in budgets]
        for budget in budgets:
            if not isinstance(budget, Real):
                raise DeepwideError(f"budgets must be numbers, and {quoted(budget)} is none.")
    try:
        return np.atleast_1d(np.asarray(budgets, dtype=float))
    except (TypeError, ValueError):
        raise DeepwideError("budgets must be numbers.") from None
