"""Why a plan is what it is, and what its reader should know: the planner's English, from the planner's numbers.

Speed is what a plan with a machine or a limit on time says of it: how quick it is, and loss against time around it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepwide.answers import Interval, Note
from deepwide.laws import DepthLaw, JointLaw, outside_the_data, pooled_law
from deepwide.planning.budget import Budget
from deepwide.planning.rounding import CLOSE, LEAST_HEADS, SMALL_WIDTH, WideSearch, width_step
from deepwide.planning.style import GRANULARITY_MISS, Style, ideal_head_dim
from deepwide.quantities import plural, show_bytes, show_count, show_time
from deepwide.shape import Shape, cache_elements

if TYPE_CHECKING:
    from deepwide.planning.candidates import Candidate

TELLING = 10.0  # percent of loss: limits beyond it say nothing about a depth
COST_SOURCE = (
    f"loss differences come from all public depth × width sets pooled ({pooled_law().tested}), centred on their best "
    "depth whichever law plans"
)


@dataclass(frozen=True)
class SpeedRow:
    """A shape on the frontier: nothing tried is both quicker and expected to have less loss."""

    depth: int
    width: int
    heads: int
    head_dim: int
    block_params: int  # with experts, those that a token passes through
    total_params: int
    loss_percent: Interval  # against the plan without a limit, if the law is right; the interval is that of the depth
    data_percent: Interval | None  # the same by the loss data, wherever the law puts the best depth; None: no data
    decode_seconds: Interval
    tokens_per_second: float  # of all sequences of the batch together
    chosen: bool


@dataclass(frozen=True)
class Speed:
    """How quick the plan is on a machine, what the limit was, and what more or less time would buy."""

    machine: str
    source: str
    devices: int  # that share every layer
    batch: int
    cached: int  # tokens of each sequence that a decoded token looks at
    limit_seconds: float | None
    limit_words: str  # within 8 ms per token; empty without a limit
    decode_seconds: Interval
    tokens_per_second: float
    train_step_seconds: Interval | None  # of one sequence of the whole context; None: the machine was not measured
    loss_percent: Interval  # against the plan without a limit, if the law is right; the interval is that of the depth
    data_percent: Interval | None  # the same by the loss data, wherever the law puts the best depth; None: no data
    own_data: bool  # whether the law was fitted on losses, so that both are one
    frontier: list[SpeedRow]
    without_limit: SpeedRow  # the plan without a limit, with the law's depth or the one that was fixed
    quicker_and_better: SpeedRow | None  # a shape that is quicker than the plan and better by the loss data
    weights: str  # precision of the weights that the times are of
    device_bytes: int | None  # weights and cache on each device when serving; None: not counted
    memory_bytes: int | None  # that each device has, where it is known

    @property
    def fits(self) -> bool:
        """Whether weights and cache fit into the memory of each device, as far as both are known."""
        return None in (self.device_bytes, self.memory_bytes) or (self.device_bytes or 0) <= (self.memory_bytes or 0)

    def notes(self, law: str, precision: str, tensor_parallel: int = 1) -> list[Note]:
        """What the limit did to the plan, which machine it is about, and whether it is the one asked for and fits."""
        notes = [] if self.limit_seconds is None else [self._against_the_plan(law)]
        if (other := self.quicker_and_better) is not None:
            than = self.data_percent.value if self.data_percent else 0.0
            gain = other.data_percent.value - than if other.data_percent else 0.0
            text = (
                f"by the loss data alone {other.depth} × {other.width:,} would be quicker "
                f"({show_time(other.decode_seconds.value)} per token) and have {gain:+.2f}% of loss: "
            )
            if other.loss_percent.value < self.loss_percent.value:
                text += f"the {law} law prefers it too, so look for a plan near it by fixing depth or head width"
            else:
                text += f"a plan trusts the {law} law for the best depth of every size; plan by the law pooled to "
                text += "trust the data"
            notes.append(Note.of("quicker-and-better", text, depth=other.depth, width=other.width))
        at = f"the last token of {self.cached:,}, batch {self.batch}, weights in {self.weights}"
        devices = f"; heads and feed-forward divide over its {self.devices} devices" if self.devices > 1 else ""
        text = f"decode time is that of {at}, on {self.machine}: {self.source}{devices}"
        notes.append(Note.of("machine", text, devices=self.devices))
        if precision != self.weights:
            text = f"times are those of weights in {self.weights}, memory is that of weights in {precision}"
            notes.append(Note.of("precision-of-times", text, times=self.weights, memory=precision))
        if tensor_parallel not in (1, self.devices):
            text = (
                f"every layer is to be shared by {tensor_parallel} devices, and times are those of "
                f"{plural(self.devices, 'device')}: plan for a machine of {tensor_parallel}, or expect other times"
            )
            notes.append(Note.of("other-devices", text, times=self.devices, tensor_parallel=tensor_parallel))
        needed, room = self.device_bytes, self.memory_bytes
        if needed is not None and room is not None and not self.fits:
            each = "each of its devices" if self.devices > 1 else "it"
            text = (
                f"the model does not fit on {self.machine}: weights ({precision}) and cache ({self.batch} × "
                f"{self.cached:,} tokens) take {show_bytes(needed)}, and {each} has {show_bytes(room)}, so its times "
                "are those of a machine with more memory"
            )
            notes.append(Note.of("exceeds-memory", text, device_bytes=needed, memory_bytes=room))
        return notes

    def _against_the_plan(self, law: str) -> Note:
        percent, free = self.loss_percent.value, self.without_limit
        other = f"{free.depth} × {free.width:,} at {show_time(free.decode_seconds.value)} per token"
        if free.chosen:
            text = "the plan without a limit is quick enough: the limit changes nothing"
        else:
            text = f"being {self.limit_words} costs {percent:+.2f}% of loss against the plan without a limit, {other}"
            if self.data_percent is not None and not self.own_data:
                by_data = f"{self.data_percent.value:+.2f}% by the loss data"
                text += f", if the {law} law is right about the best depth; {by_data}"
        slowest = self.decode_seconds.high
        if slowest is not None and slowest > (self.limit_seconds or math.inf):
            text += f"; the time is an estimate, and its interval reaches {show_time(slowest)}"
        return Note.of("speed-limit", text, limit_seconds=self.limit_seconds, loss_percent=percent)


# What is published about experts, with how much of it was confirmed. None of it has runs that vary depth and width.
PUBLISHED_ON_EXPERTS = (
    ("2502.05172", "L = a·Ê^δ·N^(α + γ ln Ê) + b·Ê^ω·D^(β + ζ ln Ê) + c", "form read, constants not"),
    ("Krajewski et al. 2024", "L = c + (g/G^γ + a)/N^α + b/D^β: finer experts help, less and less", "recalled"),
    ("2507.17702", "granularity of 8 to 12 is best", "read in a summary; its definition of granularity not"),
    ("2603.21862", "the band of near-optimal settings widens with scale", "abstract read"),
    ("2605.11689", "the best expert size depends on active parameters only", "abstract read"),
)


@dataclass(frozen=True)
class Mixture:
    """The experts of a plan, counted exactly."""

    experts: int
    active: int
    shared: int
    width: int  # of one expert
    granularity: float  # width of a dense feed-forward (8/3 × width if gated) over an expert's
    sparsity: float  # experts over active ones
    expert_params: int  # of one expert
    routed_params: int  # of all routed experts
    shared_params: int
    router_params: int
    active_params: int
    total_params: int
    published: tuple[tuple[str, str, str], ...] = PUBLISHED_ON_EXPERTS  # source, what it says, how far confirmed

    @classmethod
    def of(cls, shape: Shape, dense_ratio: float) -> "Mixture":
        """The mixture of a planned shape, all layers alike; a dense feed-forward would be `dense_ratio` × width."""
        moe, params = shape.experts, shape.params
        assert moe is not None
        routers = shape.depth * shape.width * moe.experts
        idle = moe.experts - moe.active
        every = (params.feed_forward - routers) // (shape.depth * (moe.experts + moe.shared))
        expert = params.inactive // (shape.depth * idle) if idle else every
        routed = shape.depth * moe.experts * expert
        return cls(
            experts=moe.experts,
            active=moe.active,
            shared=moe.shared,
            width=moe.width,
            granularity=dense_ratio * shape.width / moe.width,
            sparsity=moe.experts / moe.active,
            expert_params=expert,
            routed_params=routed,
            shared_params=params.feed_forward - routed - routers,
            router_params=routers,
            active_params=params.active,
            total_params=params.total,
        )

    def notes(self, law: str, active_block: int, asked: float | None) -> list[Note]:
        """That no data stand behind the depth, what is published, and whether the granularity is the one asked for."""
        text = (
            f"no public runs vary depth and width with experts: the {law} law is asked about the "
            f"{show_count(active_block)} active block parameters as if they were dense, so depths, loss differences "
            "and step times here are extrapolated without data"
        )
        published = "; ".join(f"{says} ({source}; {status})" for source, says, status in self.published)
        coarser = []
        if asked is not None and abs(self.granularity / asked - 1) > GRANULARITY_MISS:
            words = (
                f"experts of {self.width:,} have a granularity of {self.granularity:.3g}, "
                f"{self.granularity / asked - 1:+.1%} from the {asked:g} asked for"
            )
            data = {"granularity": self.granularity, "asked": asked}
            coarser = [Note("granularity-missed", f"{words}: expert widths come in whole steps", data)]
        return [
            *coarser,
            Note.of("experts-without-data", text, law=law, active_block_params=active_block),
            Note.of(
                "experts-published",
                f"published on experts, none of it on depth: {published}",
                granularity=self.granularity,
                sparsity=self.sparsity,
            ),
        ]


def plan_reason(
    law: DepthLaw,
    shape: Shape,
    law_params: float,
    law_depth: Interval,
    candidates: "Sequence[Candidate]",
    fixed: str | None,
) -> str:
    """Two sentences: where the law points, and what the loss data say about leaving it."""
    size = show_count(law_params)
    active = "active " if shape.experts else ""
    first = f"At {size} {active}block parameters the {law.name} law puts the best depth at {law_depth.value:.1f} layers"
    if fixed:
        why = {"latency": "as quick as asked", "budget": "with the depth that suits the budget"}.get(
            fixed, f"with the {fixed} you fixed"
        )
        first += f"; {why}, the shape has {shape.depth / law_depth.value:.2f} times that."
    else:
        first += f", and {shape.depth} × {shape.width} is the nearest shape that divides well."
    others = [c for c in candidates if c.depth != shape.depth and c.loss_percent is not None]
    if len(candidates) == 1:
        return f"{first} No other depth that was tried divides as asked at this size."
    if not others:
        return f"{first} No loss data reach this far, so nothing measured says what another depth would cost."
    better = [c for c in others if c.loss_percent and c.loss_percent.high is not None and c.loss_percent.high < 0]
    if better:
        best = min(better, key=lambda c: c.loss_percent.value if c.loss_percent else 0.0)
        assert best.loss_percent is not None
        but = {"latency": "Only the time speaks against more", "budget": "Only the budget speaks against more"}.get(
            fixed or "", "The loss data disagree"
        )
        return (
            f"{first} {but}: {best.depth} layers are expected to have {best.loss_percent.value:+.1f}% "
            f"of its loss ({best.loss_percent.low:+.1f} to {best.loss_percent.high:+.1f})."
        )
    costs = [c.loss_percent for c in others if c.loss_percent]
    worst = max(abs(cost.value) for cost in costs)
    surely = max(abs(end) for cost in costs for end in (cost.value, cost.low, cost.high) if end is not None)
    span = f"{min(c.depth for c in candidates)} to {max(c.depth for c in candidates)} layers"
    second = (
        f"By the loss data, loss from {span} is expected within {worst:.1f}% of this plan's (95%: within {surely:.1f}%)"
    )
    if surely > TELLING:
        second = f"The loss data do not tell {span} apart (95%: up to {surely:.1f}% of loss)"
    second += ", while every layer adds latency"
    return f"{first} {second}" + ("." if fixed else ": where that matters, prefer the shallow side.")


def plan_notes(
    style: Style,
    budget: Budget,
    law: DepthLaw,
    shape: Shape,
    law_depth: Interval,
    fixed: str | None,
    reached: float,
    search: WideSearch | None,
    candidates: "Sequence[Candidate]",
) -> list[Note]:
    """What the reader should know, the most important first."""
    notes = []
    if search is not None:
        notes.append(_missed(budget, law_depth, reached, search))
    notes.append(_cost_source(law, shape))
    notes += law_notes(law, shape.params.active_block)
    outside = law_depth.low is not None and not law_depth.low <= shape.depth <= (law_depth.high or math.inf)
    if fixed is None and outside and round(law_depth.value) != shape.depth:
        text = f"the constraints push the depth to {shape.depth}, outside the {law.name} law's interval"
        notes.append(Note.of("depth-pushed", text, depth=shape.depth, low=law_depth.low, high=law_depth.high))
    usual = int(ideal_head_dim(shape.width))
    if style.head_dim is None and shape.head_dim != usual:
        why = _why_heads(style, budget, shape, usual, reached)
        if shape.head_dim < LEAST_HEADS and shape.width >= SMALL_WIDTH and fixed is None:
            why += _why_tiny_heads(style, budget, shape, law_depth.value)
        text = f"heads are {shape.head_dim} wide instead of the usual {usual} at this width: {why}"
        notes.append(Note.of("head-width", text, head_dim=shape.head_dim, usual=usual))
    others = [c for c in candidates if c.depth != shape.depth]
    tiny = [c.depth for c in others if c.head_dim < LEAST_HEADS and c.width >= SMALL_WIDTH]
    if style.head_dim is None and tiny:
        at = ", ".join(map(str, tiny))
        text = (
            f"at other depths ({at}) heads are narrower than {LEAST_HEADS} because no wider ones that divide as asked "
            "come as near to the size"
        )
        notes.append(Note.of("narrow-heads-at-other-depths", text, depths=tiny))
    over = [c for c in others if c.budget_share > 1 + CLOSE]
    if (budget.is_memory or budget.kind == "flops") and over:
        each = ", ".join(f"{plural(c.depth, 'layer')} {c.budget_share:.2f} times" for c in over)
        text = f"at this size other depths take more than the budget: {each}"
        notes.append(Note.of("depths-over-budget", text, depths=[c.depth for c in over]))
    split = style.tensor_parallel
    if style.kv_heads and style.kv_heads % split:
        text = f"{style.kv_heads} key/value heads do not divide over {split} devices: they will be replicated"
        if split % style.kv_heads:
            text += ", unevenly, and memory per device is not counted"
        notes.append(Note.of("kv-heads-replicated", text, kv_heads=style.kv_heads, tensor_parallel=split))
    if split > 1 and shape.vocab % split:
        text = f"the vocabulary {shape.vocab:,} does not divide over {split} devices: pad it"
        notes.append(Note.of("vocabulary-indivisible", text, vocab=shape.vocab, tensor_parallel=split))
    if budget.is_memory:
        whose = "of each device" if budget.split else "of all devices together"
        text = (
            f"the memory is that {whose} and holds weights and cache only: leave room for activations and the runtime"
        )
        notes.append(Note.of("memory-without-activations", text))
    if shape.width > shape.vocab:
        text = f"width {shape.width:,} is beyond the vocabulary {shape.vocab:,}: wasted, according to Wies et al. 2021"
        notes.append(Note.of("wasted-width", text, width=shape.width, limit=shape.vocab))
    return notes


def _why_heads(style: Style, budget: Budget, shape: Shape, usual: int, reached: float) -> str:
    share = style.heads_share
    if shape.width % (usual * share):
        times = f" in multiples of {share}" if share > 1 else ""
        return f"heads of {usual}{times} do not divide a width of {shape.width:,}"
    with_usual = float(budget.measure(style.shape(shape.depth, shape.width, usual, shape.ff_width)))
    if with_usual == reached:
        return "so that their number divides well"
    if with_usual < budget.amount and reached < budget.amount / (1 + CLOSE):  # another limit decides, not the budget
        return f"heads of {usual} have more keys and values to read within the limit on time"
    return f"with heads of {usual} the same shape would take {with_usual / budget.amount:.2f} times the budget"


def _why_tiny_heads(style: Style, budget: Budget, shape: Shape, law_depth: float) -> str:
    """What heads of 32 would ask for instead."""
    step = width_step(style, LEAST_HEADS)
    if step is None:
        return f"; no width has heads of {LEAST_HEADS} as asked"
    if shape.width % step == 0:
        wider = float(budget.measure(style.shape(shape.depth, shape.width, LEAST_HEADS, shape.ff_width)))
        return f"; with heads of {LEAST_HEADS} it would take {wider / budget.amount:.2f} times the budget"
    units = shape.width // step
    depths = {
        width: float(style.depth_for(np.asarray(width), budget.amount, budget.measure, LEAST_HEADS))
        for width in (units * step, (units + 1) * step)
        if width
    }
    width = min(depths, key=lambda width: abs(math.log(max(depths[width], 1e-3) / law_depth)))
    layers = f"{depths[width] / law_depth:.1f} times the law's depth" if depths[width] >= 1 else "less than one layer"
    return f"; heads of {LEAST_HEADS} would need a width of {width:,}, and at this budget {layers}"


def fewer_layers(budget: Budget, law: DepthLaw, shape: Shape, law_depth: float, law_params: float, gain: float) -> Note:
    """Why a plan has fewer layers than its law asks for: what else a layer takes of the budget.

    At the law's depth the budget would give `law_params`; `gain` is in ln of the expected loss.
    """
    takes = f"attention over {shape.context:,} tokens takes FLOPs"
    if budget.is_memory:
        each = 2 * budget.batch * shape.context * cache_elements(shape) // shape.depth
        takes = f"the cache takes {show_bytes(each)}"
        if shape.kv_heads == shape.heads > 1:
            takes += ", and less with fewer key/value heads"
    text = (
        f"in every layer {takes}, so fewer layers lose less: with the {law_depth:.3g} layers of the {law.name} law "
        f"this budget gives {show_count(law_params)} block parameters and {math.expm1(gain):+.1%} of expected loss"
    )
    data = {"law_depth": law_depth, "law_params": law_params, "loss_percent": 100 * math.expm1(gain)}
    return Note("fewer-layers", text, data)


def zero_notes(data_parallel: int, zero: int) -> list[Note]:
    """That ZeRO has nothing to share among one copy."""
    if not zero or data_parallel > 1:
        return []
    text = (
        f"ZeRO {zero} shares what data-parallel copies would each hold, and there is one copy, so it changes nothing: "
        "say how many data-parallel copies there are"
    )
    return [Note.of("zero-without-copies", text, zero=zero)]


def law_notes(law: DepthLaw, block_params: float) -> list[Note]:
    """What its fit warned about, and whether the law is asked beyond its data."""
    notes = [Note.of("law-caution", f"the {law.name} law: {caution}", law=law.name) for caution in law.cautions]
    if isinstance(law, JointLaw) and law.far_length:
        notes.append(Note.of("law-far-length", f"the {law.name} law: {law.far_length}", law=law.name))
    if law.is_extrapolated(block_params):
        low, high = law.fitted_block_params or (block_params, block_params)
        factor = block_params / high if block_params > high else low / block_params
        shown = f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"
        text = f"the {law.name} law is extrapolated by a factor {shown}: {law.fitted_words} block parameters"
        notes.append(Note.of("law-extrapolated", text, law=law.name, smallest=low, largest=high, factor=factor))
        if isinstance(law, JointLaw) and law.may_end:
            ended = law.depth_at(min(max(block_params, law.sizes[0]), law.sizes[1]))
            text = f"its depth is for growth that goes on beyond its runs; if it ends, {ended:.3g} layers are best"
            notes.append(Note.of("growth-may-end", text, law=law.name, depth=ended))
    return notes


def _cost_source(law: DepthLaw, shape: Shape) -> Note:
    text = COST_SOURCE
    if law.bowl:
        text = f"loss differences come from the runs that the {law.name} law was fitted on"
    beyond = outside_the_data(shape.depth, shape.params.active_block, law)
    if beyond is None:
        return Note.of("cost-source", text, extrapolated=False)
    return Note.of("cost-source", f"{text}; {beyond}, so here they are extrapolated", extrapolated=True, **beyond.data)


def _missed(budget: Budget, law_depth: Interval, reached: float, search: WideSearch) -> Note:
    """Why the plan is not nearer to its budget: the result of a search over all shapes that divide as asked."""
    miss, nearest_miss = reached / budget.amount - 1, search.nearest_reached / budget.amount - 1
    depth, width, _, _ = search.nearest
    data = {"miss": miss, "tried": search.tried, "nearest_miss": nearest_miss, "depth": depth, "width": width}
    if abs(nearest_miss) > max(CLOSE, 0.9 * abs(miss)):
        text = f"of {search.tried:,} shapes that divide as asked, none is nearer to the budget than {nearest_miss:+.1%}"
    else:
        text = (
            f"the plan misses the budget by {miss:+.1%}; the nearest of {search.tried:,} shapes that divide as asked, "
            f"{depth} × {width} ({nearest_miss:+.1%}), has {depth / law_depth.value:.1f} times the law's depth"
        )
    return Note("budget-missed", text, data)
