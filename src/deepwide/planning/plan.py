"""Plan: the shape to build for a budget, what surrounds it, what rival laws say, and why."""

import math
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.answers import Interval
from deepwide.catalogue import nearest_models
from deepwide.errors import DeepwideError
from deepwide.laws import (
    Law,
    Opinion,
    depth_cost,
    depth_law,
    measured_optimum,
    outside_the_data,
    published_laws,
    step_time_ratio,
)
from deepwide.planning.budget import (
    Budget,
    BudgetKind,
    find_optimum,
    make_style,
    refuse_far_misses,
    width_of_blocks,
)
from deepwide.quantities import show_count
from deepwide.shape import Params, Shape, flops, inference_memory, training_memory
from deepwide.shape.rounding import round_shapes
from deepwide.shape.style import Style

SAME_SIZE = 0.05  # candidates further than this from the plan's size are left out
DEPTH_FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)
BANDWIDTH_BYTES = 3.35e12  # of one H100, per second
LAYER_SECONDS = 1e-5  # launches and synchronisation of one layer while decoding; an assumption, stated in the output
COST_SOURCE = "the loss bowl measured on Gemstones' 22 shapes (23M to 1.8B block parameters, 100B tokens)"


class Candidate(BaseModel):
    """A shape of the same budget and another depth, compared with the recommended one."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    depth: int
    width: int
    heads: int
    ff_width: int
    block_params: int
    depth_over_law: float
    loss_percent: Interval | None  # None: far beyond the data
    extrapolated: str | None
    step_time: Interval
    decode_time: float


class NearModel(BaseModel):
    """A public model of about the same size."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    depth: int
    width: int
    block_params: int
    depth_over_law: float


class Plan(BaseModel):
    """The recommended shape and everything one should know before building it."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    budget_kind: BudgetKind
    budget: int
    budget_words: str
    reached: int
    law: str
    law_status: str
    fixed: str | None  # "depth" or "width", if the user fixed it
    law_depth: Interval  # at the budget; its interval is the law's own error
    law_width: Interval
    measured_depth: Interval | None  # where Gemstones' loss data put the best depth; None: the law has its own data
    shape: Shape
    family: str
    params: Params
    tokens: int
    tokens_from: str
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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def miss(self) -> float:
        """How far the integer shape is from the budget, as a fraction."""
        return self.reached / self.budget - 1

    def __str__(self) -> str:
        return (
            f"Plan for {self.budget_words}: {self.shape.depth} × {self.shape.width}, {self.params.total:,} parameters"
        )


def plan(
    budget: int | float | str,
    *,
    kind: BudgetKind = "block",
    law: str | Law | None = None,
    compute: str = "epoch",
    tokens: int | None = None,
    depth: int | None = None,
    width: int | None = None,
    at_most: bool = False,
    precision: str = "bf16",
    batch: int = 1,
    bandwidth_bytes: float = BANDWIDTH_BYTES,
    layer_seconds: float = LAYER_SECONDS,
    **style: Any,
) -> Plan:
    """The shape for a budget: block parameters, total parameters, training FLOPs, or bytes at inference.

    `depth` or `width` fixes one of the two; `at_most` never exceeds the budget (memory never does); `style` takes the
    fields of `deepwide.shape.Style`. The latency constants are those of decoding.

    >>> print(plan("1.3B"))
    Plan for 1.3B block parameters: 42 × 1536, 1,455,226,368 parameters
    """
    look, chosen = make_style(style), depth_law(law)
    limit = Budget.of(
        budget, kind, compute=compute, tokens=tokens, precision=precision, batch=batch, context=look.context
    )
    if depth is not None and width is not None:
        raise DeepwideError("depth and width together are the size: fix one of them and the budget gives the other.")
    if not (0 < bandwidth_bytes < math.inf and 0 <= layer_seconds < math.inf):
        raise DeepwideError("the bandwidth must be above 0 bytes a second, and a layer's time not below 0 seconds.")
    amounts = np.array([limit.amount])
    optimum = find_optimum(look, chosen, limit, amounts, depth, width)
    rounded = round_shapes(
        look,
        amounts,
        optimum.depth.value,
        optimum.width,
        limit.measure,
        fixed_depth=depth is not None,
        fixed_width=width is not None,
        never_over=at_most or kind == "memory",
    )
    shape = look.shape(*(int(values[0]) for values in rounded))
    reached = float(limit.measure(shape))
    refuse_far_misses(rounded, [reached], amounts)
    params = shape.params
    fixed = "depth" if depth is not None else "width" if width is not None else None
    # At a fixed depth or width the law speaks about the size that came out; otherwise about the optimum.
    law_depth = optimum.depth.at() if fixed is None else chosen.depth(params.block).at()
    training = training_memory(shape)
    inference = inference_memory(shape, precision=precision, batch=batch)
    per_token = flops(shape, convention="causal").training_per_token
    train_tokens = limit.tokens or 20 * params.total
    candidates = _candidates(look, shape, chosen, bandwidth_bytes, layer_seconds)
    # Our own numbers need no validation, and its schema would cost a plan 20 ms.
    return Plan.model_construct(
        budget_kind=kind,
        budget=round(limit.amount),
        budget_words=limit.words,
        reached=round(reached),
        law=chosen.name,
        law_status=chosen.status,
        fixed=fixed,
        law_depth=law_depth,
        law_width=_law_width(look, law_depth, params.block),
        measured_depth=None if chosen.bowl else measured_optimum(params.block),
        shape=shape,
        family=look.family,
        params=params,
        tokens=train_tokens,
        tokens_from=limit.tokens_from,
        train_flops_per_token=per_token,
        train_flops=per_token * train_tokens,
        training_bytes_per_sequence=training.activations + training.logits,
        training_state_bytes=training.weights + training.gradients + training.optimiser,
        inference_bytes=inference.total,
        cache_bytes_per_token=inference.cache_bytes_per_token,
        candidates=candidates,
        opinions=[
            # A fitted law may bear the name of a published one.
            other.opinion(params.block, shape.vocab)
            for other in (chosen, *(law for law in published_laws().values() if law != chosen))
        ],
        nearest=_nearest(chosen, shape),
        reason=_reason(chosen, shape, law_depth, candidates, fixed),
        notes=_notes(look, limit, chosen, shape, law_depth, fixed),
    )


def _law_width(style: Style, depth: Interval, block_params: int) -> Interval:
    """The widths that go with the law's depth and its limits at the same block parameters."""
    at = [None if L is None else float(width_of_blocks(style, L, block_params)) for L in (depth.high, depth.low)]
    return Interval(float(width_of_blocks(style, depth.value, block_params)), *at)


def _candidates(style: Style, best: Shape, law: Law, bandwidth_bytes: float, layer_seconds: float) -> list[Candidate]:
    """About the same block parameters at other depths; those that constraints push off the size are left out."""
    stages, size = style.pipeline_stages, Budget.of(best.block_params)
    law_depth = float(law.depth(best.block_params).value[0])
    depths = sorted({max(1, round(best.depth * factor / stages)) * stages for factor in DEPTH_FACTORS})
    amounts, L = np.full(len(depths), size.amount), np.array(depths, dtype=float)
    widths = style.width_for(L, amounts, size.measure)
    rounded = round_shapes(style, amounts, L, widths, size.measure, fixed_depth=True)
    shapes = [style.shape(*row) for row in zip(*(values.tolist() for values in rounded), strict=True)]

    def decode(shape: Shape) -> float:  # one token: every weight is read once, the layers come one after another
        return 2 * shape.total_params / bandwidth_bytes + shape.depth * layer_seconds

    rows = []
    for shape in (best if other.depth == best.depth else other for other in shapes):
        if abs(shape.block_params / best.block_params - 1) > SAME_SIZE:
            continue
        rows.append(
            Candidate.model_construct(
                depth=shape.depth,
                width=shape.width,
                heads=shape.heads,
                ff_width=shape.ff_width,
                block_params=shape.block_params,
                depth_over_law=shape.depth / law_depth,
                loss_percent=depth_cost(shape.depth, best.depth, best.block_params, law),
                extrapolated=outside_the_data(shape.depth, best.block_params, law),
                step_time=step_time_ratio(shape.depth, best.depth),
                decode_time=decode(shape) / decode(best),
            )
        )
    return rows


def _nearest(law: Law, shape: Shape) -> list[NearModel]:
    return [
        NearModel.model_construct(
            name=model.name,
            depth=model.shape.depth,
            width=model.shape.width,
            block_params=model.shape.block_params,
            depth_over_law=model.shape.depth / float(law.depth(model.shape.block_params).value[0]),
        )
        for model in nearest_models(shape)
    ]


def _reason(law: Law, shape: Shape, law_depth: Interval, candidates: list[Candidate], fixed: str | None) -> str:
    """Two sentences: where the law points, and what the loss data make of leaving it."""
    size = show_count(shape.block_params)
    first = f"At {size} block parameters the {law.name} law puts the best depth at {law_depth.value:.1f} layers"
    if fixed:
        first += f"; with the {fixed} you fixed, the shape has {shape.depth / law_depth.value:.2f} times that."
    else:
        first += f", and {shape.depth} × {shape.width} is the nearest shape that divides well."
    others = [c for c in candidates if c.depth != shape.depth and c.loss_percent is not None]
    if not others:
        return f"{first} No loss data reach this far, so nothing measured says what another depth would cost."
    better = [c for c in others if c.loss_percent and c.loss_percent.high is not None and c.loss_percent.high < 0]
    if better:
        best = min(better, key=lambda c: c.loss_percent.value if c.loss_percent else 0.0)
        assert best.loss_percent is not None
        return (
            f"{first} The loss data disagree: {best.depth} layers are expected to have {best.loss_percent.value:+.1f}% "
            f"of its loss ({best.loss_percent.low:+.1f} to {best.loss_percent.high:+.1f})."
        )
    worst = max(abs(c.loss_percent.value) for c in others if c.loss_percent)
    span = f"{min(c.depth for c in candidates)} to {max(c.depth for c in candidates)}"
    second = f"By the loss data it stays within {worst:.1f}% from {span} layers, while every layer adds latency"
    return f"{first} {second}" + ("." if fixed else ": where that matters, lean to the shallow side.")


def _notes(style: Style, limit: Budget, law: Law, shape: Shape, law_depth: Interval, fixed: str | None) -> list[str]:
    notes = [f"loss differences come from {COST_SOURCE}, centred on the levine law whatever law plans"]
    if law.bowl:
        notes = [f"loss differences come from the runs that the {law.name} law was fitted on"]
    if beyond := outside_the_data(shape.depth, shape.block_params, law):
        notes[0] += f"; {beyond}, so here they are extrapolated"
    notes += [f"the {law.name} law: {caution}" for caution in law.cautions]
    if law.is_extrapolated(shape.block_params):
        notes.append(f"the {law.name} law is extrapolated: {law.fitted_words}")
    outside = law_depth.low is not None and not law_depth.low <= shape.depth <= (law_depth.high or math.inf)
    if fixed is None and outside and round(law_depth.value) != shape.depth:
        notes.append(f"the constraints push the depth to {shape.depth}, outside the {law.name} law's interval")
    split = style.tensor_parallel
    if style.kv_heads and style.kv_heads % split:
        notes.append(f"{style.kv_heads} key/value heads do not divide over {split} devices: they will be replicated")
    if split > 1 and shape.vocab % split:
        notes.append(f"the vocabulary {shape.vocab:,} does not divide over {split} devices: pad it")
    if abs(miss := float(limit.measure(shape)) / limit.amount - 1) > SAME_SIZE:
        notes.append(
            f"no shape of this style is nearer to the budget than {miss:+.0%}: one step of width is too coarse"
        )
    if limit.kind == "memory":
        notes.append("the memory holds weights and cache only: leave room for activations and the runtime")
    if shape.width > shape.vocab:
        notes.append(f"width {shape.width:,} is beyond the vocabulary {shape.vocab:,}: wasted, by Wies et al. 2021")
    return notes
