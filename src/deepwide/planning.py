"""Plan: the shape to build for a budget, what surrounds it, what rival laws say, and why."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from deepwide.catalogue import nearest_models
from deepwide.errors import DeepwideError
from deepwide.laws import (
    DepthCurve,
    Interval,
    Law,
    Opinion,
    compute_law,
    depth_cost,
    depth_law,
    outside_the_data,
    published_laws,
    step_time_ratio,
)
from deepwide.quantities import show_bytes, show_count
from deepwide.shape import Params, Shape, flops, inference_memory, training_memory
from deepwide.shape.memory import INFERENCE_BYTES, cache_elements
from deepwide.shape.params import count
from deepwide.shape.shape import explain
from deepwide.shape.style import Measure, Rounded, Style

BudgetKind = Literal["block", "total", "flops", "memory"]
LEAST, MOST = 1_000, 10**16  # parameters a plan is made for
TOO_FAR = 1.5  # a shape further than this from its budget is refused, not recommended
DEPTH_FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)
BANDWIDTH_BYTES = 3.35e12  # of one H100, per second
LAYER_SECONDS = 1e-5  # launches and synchronisation of one layer while decoding; an assumption, stated in the output


class Candidate(BaseModel):
    """A shape of the same budget and another depth, compared with the recommended one."""

    model_config = ConfigDict(frozen=True)

    depth: int
    width: int
    heads: int
    block_params: int
    depth_over_law: float
    loss_percent: Interval
    extrapolated: str | None
    step_time: Interval
    decode_time: float


class NearModel(BaseModel):
    """A public model of about the same size."""

    model_config = ConfigDict(frozen=True)

    name: str
    depth: int
    width: int
    block_params: int
    depth_over_law: float


class Plan(BaseModel):
    """The recommended shape and everything one should know before building it."""

    model_config = ConfigDict(frozen=True)

    budget_kind: BudgetKind
    budget: int
    budget_words: str
    reached: int
    law: str
    law_status: str
    optimal_depth: Interval
    optimal_width: Interval
    shape: Shape
    family: str
    params: Params
    train_tokens: int
    train_tokens_from: str
    train_flops_per_token: float
    train_flops: float
    training_bytes_per_sequence: int
    training_state_bytes: int
    inference_bytes: int
    cache_bytes_per_token: int
    candidates: list[Candidate]
    opinions: list[Opinion]
    nearest: list[NearModel]
    reason: str
    notes: list[str]

    @property
    def miss(self) -> float:
        """How far the integer shape is from the budget, as a fraction."""
        return self.reached / self.budget - 1


class PlanTable(NamedTuple):
    """Plans of many budgets: arrays of equal length."""

    budget: NDArray[np.int64]
    optimal_depth: NDArray[np.float64]
    optimal_depth_low: NDArray[np.float64]
    optimal_depth_high: NDArray[np.float64]
    optimal_width: NDArray[np.float64]
    depth: NDArray[np.int64]
    width: NDArray[np.int64]
    head_dim: NDArray[np.int64]
    block_params: NDArray[np.int64]
    total_params: NDArray[np.int64]


class _Optimum(NamedTuple):
    depth: DepthCurve
    width: NDArray[np.float64]


def plan_many(
    budgets: ArrayLike, *, kind: BudgetKind = "block", law: str | Law | None = None, **style: Any
) -> PlanTable:
    """Shapes for many budgets at once; the same rules as `plan`, without what surrounds each.

    >>> table = plan_many([85e6, 1.3e9, 175e9])
    >>> table.depth.tolist(), table.width.tolist()
    ([23, 42, 80], [576, 1600, 13568])
    """
    amounts = np.atleast_1d(np.asarray(budgets, dtype=float))
    look = _style(style)
    chosen = depth_law(law)
    measure = _measure(kind, "bf16", look.context, 1)
    optimum = _optimum(look, chosen, amounts, measure, None, None)
    rounded = look.round(amounts, optimum.depth.value, optimum.width, measure, never_over=kind == "memory")
    params = count(look.grid(rounded.depth, rounded.width, rounded.head_dim))
    return PlanTable(
        amounts.astype(np.int64), *optimum.depth, optimum.width, *rounded,
        np.asarray(params.block), np.asarray(params.total),
    )  # fmt: skip


def plan(
    budget: int | float,
    *,
    kind: BudgetKind = "block",
    law: str | Law | None = None,
    compute: str = "epoch",
    depth: int | None = None,
    width: int | None = None,
    train_tokens: int | None = None,
    precision: str = "bf16",
    batch: int = 1,
    bandwidth_bytes: float = BANDWIDTH_BYTES,
    layer_seconds: float = LAYER_SECONDS,
    **style: Any,
) -> Plan:
    """The shape for a budget: block parameters, total parameters, training FLOPs, or bytes at inference.

    `depth` or `width` fixes one of the two; `style` takes the fields of `deepwide.shape.Style`.

    >>> best = plan(1_300_000_000)
    >>> best.shape.depth, best.shape.width
    (42, 1600)
    """
    look = _style(style)
    chosen = depth_law(law)
    if depth is not None and width is not None:
        raise DeepwideError("depth and width together are the size: fix one of them and the budget gives the other.")
    amount, size_kind = float(budget), kind
    tokens_from = "20 per parameter, Chinchilla's rule of thumb"
    if kind == "flops":
        amount, tokens = compute_law(compute).optimum(float(budget))
        size_kind, train_tokens = "total", train_tokens or round(tokens)
        tokens_from = f"compute-optimal by {compute_law(compute).citation}"
    elif train_tokens is not None:
        tokens_from = "given"
    if precision not in INFERENCE_BYTES:
        raise DeepwideError(f"no inference precision '{precision}': it must be one of {', '.join(INFERENCE_BYTES)}.")
    measure = _measure(size_kind, precision, look.context, batch)
    amounts = np.array([amount])
    optimum = _optimum(look, chosen, amounts, measure, depth, width)
    fixed = {"fixed_depth": depth is not None, "fixed_width": width is not None}
    rounded = look.round(amounts, optimum.depth.value, optimum.width, measure, never_over=kind == "memory", **fixed)
    shape = _real(look, rounded)
    params = shape.params
    if abs(math.log(float(measure(shape)) / amount)) > math.log(TOO_FAR):
        raise DeepwideError(
            f"the nearest shape that divides as asked, {shape.depth} × {shape.width}, misses the budget by more than "
            f"a factor {TOO_FAR}: loosen kv_heads, tensor_parallel, pipeline_stages, width_multiple or head_dim."
        )
    reached = int(measure(shape)) if kind != "flops" else round(6 * params.total * (train_tokens or 0))
    tokens_wanted = train_tokens or 20 * params.total
    training = training_memory(shape)
    inference = inference_memory(shape, precision=precision, batch=batch)
    per_token = flops(shape, convention="causal").training_per_token
    law_depth = chosen.depth(params.block).at()
    optimal_depth = optimum.depth.at()
    optimal_width = Interval(float(optimum.width[0]))
    if optimal_depth.low and optimal_depth.high:
        limits = (float(look.width_for(limit, amount, measure)) for limit in (optimal_depth.high, optimal_depth.low))
        optimal_width = Interval(optimal_width.value, *limits)
    beyond = outside_the_data(shape.depth, params.block)
    notes = [
        f"loss differences come from {_COST_SOURCE}" + (f"; {beyond}, so here they are extrapolated" if beyond else "")
    ]
    if shape.width > shape.vocab:
        notes.append(f"width {shape.width:,} is beyond the vocabulary {shape.vocab:,}: wasted, by Wies et al. 2021")
    return Plan(
        budget_kind=kind,
        budget=round(budget),
        budget_words=_budget_words(kind, round(budget), precision, look.context, batch),
        reached=reached,
        law=chosen.name,
        law_status=chosen.status,
        optimal_depth=optimal_depth,
        optimal_width=optimal_width,
        shape=shape,
        family=look.family,
        params=params,
        train_tokens=tokens_wanted,
        train_tokens_from=tokens_from,
        train_flops_per_token=per_token,
        train_flops=per_token * tokens_wanted,
        training_bytes_per_sequence=training.activations + training.logits,
        training_state_bytes=training.weights + training.gradients + training.optimiser,
        inference_bytes=inference.total,
        cache_bytes_per_token=inference.cache_bytes_per_token,
        candidates=_candidates(look, shape, law_depth.value, bandwidth_bytes, layer_seconds),
        opinions=_opinions(chosen, shape),
        nearest=[
            NearModel(
                name=model.name,
                depth=model.shape.depth,
                width=model.shape.width,
                block_params=model.shape.block_params,
                depth_over_law=model.shape.depth / float(chosen.depth(model.shape.block_params).value[0]),
            )
            for model in nearest_models(shape)
        ],
        reason=_reason(chosen, shape, law_depth, fixed=depth is not None or width is not None),
        notes=notes,
    )


_COST_SOURCE = "the curvature measured on Gemstones' 22 shapes (0.02 to 1.8B block parameters, 100B tokens)"


def _style(fields: dict[str, Any]) -> Style:
    try:
        return Style(**{name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise DeepwideError(explain(error, Style)) from None


def _measure(kind: BudgetKind, precision: str, context: int, batch: int) -> Measure:
    if kind == "block":
        return lambda shape: count(shape).block
    if kind == "memory":
        bytes_each = INFERENCE_BYTES[precision]
        return lambda s: bytes_each * count(s).total + 2 * batch * context * s.depth * cache_elements(s)
    return lambda shape: count(shape).total


def _optimum(
    look: Style,
    law: Law,
    amounts: NDArray[np.float64],
    measure: Measure,
    depth: int | None,
    width: int | None,
) -> _Optimum:
    """The real-valued depth and width that meet the budget on the law (or at the fixed depth or width)."""
    smallest = float(measure(look.grid(1, 1.0)))
    if not np.all(np.isfinite(amounts)) or amounts.min() < max(LEAST, smallest) or amounts.max() > MOST * 8:
        raise DeepwideError(
            f"the budget must be between {show_count(max(LEAST, math.ceil(smallest)))} and {show_count(MOST)} here"
            + (
                f": one layer of width 1 with vocabulary {look.vocab:,} already takes {smallest:,.0f}."
                if smallest > LEAST
                else "."
            )
        )
    if depth is not None:
        if not 1 <= depth <= 100_000 or depth % look.pipeline_stages:
            raise DeepwideError(
                f"depth {depth} must be a multiple of the {look.pipeline_stages} pipeline stages, at most 100000."
            )
        L = np.full_like(amounts, depth)
        return _Optimum(DepthCurve.exact(L), look.width_for(L, amounts, measure))
    if width is not None:
        if width < 1:
            raise DeepwideError(f"width must be at least 1, not {width}.")
        d = np.full_like(amounts, width)
        L = look.depth_for(d, amounts, measure)
        if L.min() < 1:
            raise DeepwideError(f"width {width} leaves no room for one layer in this budget: make it narrower.")
        return _Optimum(DepthCurve.exact(L), d)
    # The measure grows with block parameters along the law, so bisect in ln N.
    low, high = np.full_like(amounts, math.log(12)), np.full_like(amounts, math.log(MOST * 16.0))
    for _ in range(60):
        N = (low + high) / 2
        curve = law.depth(np.exp(N))
        over = measure(look.grid(curve.value, _width_of(look, curve.value, np.exp(N)))) > amounts
        low, high = np.where(over, low, N), np.where(over, N, high)
    N = np.exp((low + high) / 2)
    curve = law.depth(N)
    L = np.maximum(1.0, curve.value)  # a law may ask for less than one layer
    d = np.where(curve.value < 1, look.width_for(L, amounts, measure), _width_of(look, L, N))
    return _Optimum(DepthCurve(L, np.maximum(1.0, curve.low), np.maximum(1.0, curve.high)), d)


def _width_of(look: Style, depth: NDArray[np.float64], block_params: NDArray[np.float64]) -> NDArray[np.float64]:
    """Real-valued width at which the blocks have this size: they are nearly quadratic in it."""
    width = np.sqrt(block_params / (12 * depth))
    for _ in range(5):
        width = width * np.sqrt(block_params / count(look.grid(depth, width)).block)
    return np.asarray(width)


def _real(look: Style, rounded: Rounded, index: int = 0) -> Shape:
    return look.shape(*(int(values[index]) for values in rounded))


def _candidates(
    look: Style, best: Shape, law_depth: float, bandwidth_bytes: float, layer_seconds: float
) -> list[Candidate]:
    """The same block parameters at other depths."""
    stages = look.pipeline_stages
    depths = sorted({max(1, round(best.depth * factor / stages)) * stages for factor in DEPTH_FACTORS})
    amounts, L = np.full(len(depths), float(best.block_params)), np.array(depths, dtype=float)
    measure = _measure("block", "bf16", look.context, 1)
    rounded = look.round(amounts, L, look.width_for(L, amounts, measure), measure, fixed_depth=True)
    rows = []

    def decode(
        depth: int,
    ) -> float:  # one token: every weight is read once, the layers come one after another
        return 2 * best.total_params / bandwidth_bytes + depth * layer_seconds

    for i, depth in enumerate(depths):
        shape = best if depth == best.depth else _real(look, rounded, i)
        rows.append(
            Candidate(
                depth=shape.depth,
                width=shape.width,
                heads=shape.heads,
                block_params=shape.block_params,
                depth_over_law=shape.depth / law_depth,
                loss_percent=depth_cost(shape.depth, best.depth, best.block_params),
                extrapolated=outside_the_data(shape.depth, best.block_params),
                step_time=step_time_ratio(shape.depth, best.depth),
                decode_time=decode(shape.depth) / decode(best.depth),
            )
        )
    return rows


def _opinions(chosen: Law, shape: Shape) -> list[Opinion]:
    laws = {law.name: law for law in (chosen, *published_laws().values())}
    return [law.opinion(shape.block_params, shape.vocab) for law in laws.values()]


def _reason(law: Law, shape: Shape, law_depth: Interval, *, fixed: bool) -> str:
    size = show_count(shape.block_params)
    within = "" if law_depth.low is None else f" (95%: {law_depth.low:.1f} to {law_depth.high:.1f})"
    half, twice = (depth_cost(law_depth.value * f, law_depth.value, shape.block_params) for f in (0.5, 2))
    ratio = shape.depth / law_depth.value
    first = f"At {size} block parameters {law.name}'s law puts the best depth at {law_depth.value:.1f} layers{within}"
    if fixed:
        first += f"; the shape you fixed has {ratio:.2f} times that."
    else:
        first += f", and {shape.depth} × {shape.width} is the nearest shape that fits the hardware."
    return (
        f"{first} The bowl is shallow: half that depth is expected to cost {half.value:+.1f}% of loss "
        f"({half.low:+.1f} to {half.high:+.1f}), twice {twice.value:+.1f}% ({twice.low:+.1f} to {twice.high:+.1f}), "
        "so lean to the shallow side where latency matters."
    )


def _budget_words(kind: BudgetKind, amount: int, precision: str, context: int, batch: int) -> str:
    return {
        "block": f"{show_count(amount)} block parameters",
        "total": f"{show_count(amount)} parameters in all",
        "flops": f"{amount:.3g} training FLOPs",
        "memory": f"{show_bytes(amount)} at inference ({precision}, {batch} × {context:,} tokens of bf16 cache)",
    }[kind]
