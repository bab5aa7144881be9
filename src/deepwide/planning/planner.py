"""Plan: the shape to build for a budget, what surrounds it, what rival laws say, and why."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import computed_field

from deepwide.answers import Answer, Interval, Note
from deepwide.catalogue import nearest_models
from deepwide.errors import DeepwideError, from_one_to, quoted
from deepwide.laws import (
    DepthLaw,
    Law,
    Opinion,
    compute_law,
    depth_law,
    measured_optimum,
    rival_laws,
)
from deepwide.planning.budget import Budget, BudgetKind, Split
from deepwide.planning.candidates import BANDWIDTH, LAYER_US, Candidate, Decoding, other_depths, preset_of
from deepwide.planning.optimum import find_optimum, width_of_blocks
from deepwide.planning.reasons import Mixture, Speed, fewer_layers, plan_notes, plan_reason, zero_notes
from deepwide.planning.rounding import CLOSE, WideSearch, round_optimum, search_widely, usual_depths
from deepwide.planning.style import Style
from deepwide.quantities import plural, show_bytes, show_count, show_time
from deepwide.settings import LARGEST
from deepwide.shape import Params, Shape, flops, inference_memory, training_memory

if TYPE_CHECKING:
    from deepwide.planning.speed import Search, SpeedLimit
    from deepwide.timing import MachineProfile

IN_BRIEF = {"depth-pushed", "zero-without-copies"}  # notes that `brief` has too


@dataclass(frozen=True)
class NearModel:
    """A public model of about the same size."""

    name: str
    depth: int
    width: int
    block_params: int  # with experts, those that a token passes through
    depth_over_law: float


class Plan(Answer):
    """The recommended shape and everything one should know before building it."""

    budget_kind: BudgetKind
    budget: int
    budget_words: str
    reached: int
    law: str
    law_status: str
    law_params: (
        float  # (active) block parameters at which laws were asked: a budget of them, or else those of the shape
    )
    # "depth" or "width", if the user fixed it; if something else kept the plan from the law's depth, "latency" (a limit
    # on time) or "budget" (where fewer layers leave room for more parameters)
    fixed: str | None
    law_depth: Interval  # its interval is the error of the law's own coefficients
    law_width: Interval
    measured_depth: Interval | None  # where all public loss data put the best depth; None: the law has its own data
    shape: Shape
    family: str
    params: Params
    tokens: int
    tokens_from: str
    train_flops_per_token: float
    train_flops: float
    training_bytes_per_sequence: int  # activations, with recomputation if that was asked for, and logits
    training_state_bytes: int
    inference_bytes: int
    cache_bytes_per_token: int
    decode_from: str  # where the decode times come from,
    decode_weights: str  # and the precision of the weights that are read
    candidates: list[Candidate]
    opinions: list[Opinion]
    nearest: list[NearModel]
    reason: str
    notes: list[Note]
    mixture: Mixture | None = None  # with experts
    speed: Speed | None = None  # with a machine or a limit on time
    split: Split | None = None  # over devices, if it is
    recompute: bool = False  # whether training memory is that with activations computed again

    @computed_field  # type: ignore[prop-decorator]
    @property
    def miss(self) -> float:
        """How far the integer shape is from the budget, as a fraction."""
        return self.reached / self.budget - 1

    @property
    def asked(self) -> str:
        """The budget and the limit on time in words: 7B block parameters within 8 ms per token."""
        limit = "" if self.speed is None else self.speed.limit_words
        return f"{self.budget_words} {limit}".rstrip()

    @property
    def used(self) -> str:
        """`asked`; where the shape is more than 3% off the budget, with what it takes of it: 2.9B of 7B block …."""
        if abs(self.miss) <= CLOSE:
            return self.asked
        amount = show_bytes(self.reached) if self.budget_kind in ("memory", "device") else show_count(self.reached)
        return f"{amount} {'of' if self.miss < 0 else 'instead of'} {self.asked}"

    def __str__(self) -> str:
        return f"Plan for {self.asked}: {self.shape.depth} × {self.shape.width}, {self.params.total:,} parameters"

    __repr__ = __str__

    def brief(self) -> str:
        """The plan in five lines that fit a chat message; in four where only one other depth divides as asked, or none.

        What makes the plan doubtful is one line more.

        >>> plan("1.3B").brief().splitlines()[0]
        '1.3B block parameters: 42 layers × 1,536 wide, 24 heads of 64, feed-forward 4,672 (llama)'
        """
        s, shown = self.shape, self.measured_depth
        kv = "" if s.kv_heads == s.heads else f" ({s.kv_heads} key/value)"
        quick = ""
        if self.speed is not None:
            quick = f", {show_time(self.speed.decode_seconds.value)} per token on {self.speed.machine}"
            data = {note.code: note.data for note in self.notes}
            if other := data.get("other-devices"):
                quick += f" ({plural(self.speed.devices, 'device')}, not {other['tensor_parallel']})"
            if "precision-of-times" in data:
                quick += f" in {self.speed.weights}"
            if not self.speed.fits:
                quick += f", whose {show_bytes(self.speed.memory_bytes or 0)} per device are too few"
        inner = f"feed-forward {s.ff_width:,}"
        size = f"{show_count(self.params.total)} parameters in total"
        if (moe := s.experts) is not None:
            shared = f" + {moe.shared} shared" if moe.shared else ""
            inner = f"{moe.active}{shared} of {moe.experts} experts of {moe.width:,}"
            size = f"{size}, {show_count(self.params.active)} active"
        heads = f"{plural(s.heads, 'head')}{kv} of {s.head_dim}"
        lines = [
            f"{self.used}: {plural(s.depth, 'layer')} × {s.width:,} wide, {heads}, {inner} ({self.family})",
            f"{size}; {show_count(self.tokens)} tokens take "
            f"{self.train_flops:.2g} FLOPs; {show_bytes(self.inference_bytes)} to serve{quick}{self._per_device}",
            f"best depth {_layers(self.law_depth)} by the {self.law} law{self._beyond}"
            + (f", {_layers(shown)} by all public loss data" if shown else "")
            + (" (dense models at the active size: no data on experts)" if moe else "")
            + ("; within this budget fewer layers lose less" if self.fixed == "budget" else ""),
        ]
        others = [self._instead(c) for c in (self.candidates[0], self.candidates[-1]) if c.depth != s.depth]
        lines += others or ["no other depth that was tried divides as asked at this size"]
        lines += [f"note: {note.text}" for note in self.notes if note.code in IN_BRIEF]
        return "\n".join(lines)

    @property
    def _beyond(self) -> str:
        factors = [note.data["factor"] for note in self.notes if note.code == "law-extrapolated"]
        if not factors:
            return ""
        return f" (extrapolated by a factor {factors[0]:{',.0f' if factors[0] >= 10 else '.2g'}})"

    @property
    def _per_device(self) -> str:
        own = next((c.device for c in self.candidates if c.depth == self.shape.depth), None)
        if own is None:
            return ""
        return f"; per device {show_bytes(own.training_bytes)} to train, {show_bytes(own.serving_bytes)} to serve"

    def _instead(self, c: Candidate) -> str:
        loss = "no loss data"
        if c.loss_percent is not None:
            loss = f"loss {c.loss_percent.value:+.2f}% ({c.loss_percent.low:+.2f} to {c.loss_percent.high:+.2f})"
        text = f"{c.depth} × {c.width:,} instead: {loss}, step {c.step_time.value:.2f}×, decode {c.decode_time:.2f}×"
        if not c.is_equal:
            text += f", {c.size_percent:+.1f}% of size"
        if c.budget_share > 1 + CLOSE:
            text += f", takes {c.budget_share:.2f} times the budget"
        if self.speed is not None and self.speed.limit_seconds is not None:
            slow = c.decode_time * self.speed.decode_seconds.value > self.speed.limit_seconds
            text += ", too slow for the limit" if slow else ""
        return text

    def rows(self) -> list[dict[str, Any]]:
        """The same budget at several depths, one row per shape; `recommended` marks the plan's own."""
        return [
            {
                "depth": c.depth,
                "width": c.width,
                "heads": c.heads,
                "head_dim": c.head_dim,
                "ff_width": c.ff_width,
                "block_params": c.block_params,
                "size_percent": c.size_percent,
                "total_params": c.total_params,
                "depth_over_law": c.depth_over_law,
                "loss_percent": c.loss_percent.value if c.loss_percent else None,
                "loss_percent_low": c.loss_percent.low if c.loss_percent else None,
                "loss_percent_high": c.loss_percent.high if c.loss_percent else None,
                "extrapolated": c.extrapolated,
                "step_time": c.step_time.value,
                "decode_time": c.decode_time,
                "device_training_bytes": c.device.training_bytes if c.device else None,
                "device_serving_bytes": c.device.serving_bytes if c.device else None,
                "recommended": c.depth == self.shape.depth,
            }
            for c in self.candidates
        ]


def _layers(depth: Interval) -> str:
    return f"{depth.value:.0f}" + ("" if depth.low is None else f" ({depth.low:.0f} to {depth.high:.0f})")


def plan(
    budget: int | float | str,
    *,
    kind: BudgetKind = "block",
    law: str | Law | None = None,
    compute: str = "epoch",
    tokens: int | str | None = None,
    depth: int | None = None,
    width: int | None = None,
    at_most: bool = False,
    inference_precision: str = "bf16",
    batch: int = 1,
    bandwidth: float | str = BANDWIDTH,
    layer_us: float = LAYER_US,
    machine: "str | Path | MachineProfile | None" = None,
    latency: float | str | None = None,
    throughput: float | str | None = None,
    data_parallel: int = 1,
    zero: int = 0,
    recompute: bool = False,
    **style: Any,
) -> Plan:
    """The shape for a budget: block parameters, total parameters, training FLOPs, or bytes at inference.

    Bytes are of all devices together (memory), or of each of those that the model is split over (device).

    `depth` or `width` fixes one of the two; `at_most` never exceeds the budget (memory never does). `style` takes
    vocab, context, tied, head_dim, kv_heads, feed_forward, ff_ratio, family, width_multiple, tensor_parallel,
    pipeline_stages, and for a mixture experts, active, shared and granularity. `bandwidth` (bytes per second) and
    `layer_us` (microseconds per layer) give the decode time.

    `machine` gives it instead: a preset's name, a measured profile or its file; heads and feed-forward divide over its
    devices. With `latency` ("8ms" per token) or `throughput` (tokens per second of the whole `batch`) the plan has the
    least expected loss among shapes within the budget that decode as quickly at the end of the context.

    With tensor or pipeline parallelism, or `data_parallel` ranks and `zero` (1 to 3), every shape has the memory of its
    fullest device. `recompute` keeps each layer's input only when training and computes the rest again: less memory,
    and a third more FLOPs, which are not in `train_flops`.

    >>> print(plan("1.3B"))
    Plan for 1.3B block parameters: 42 × 1536, 1,455,226,368 parameters
    """
    wanted, chosen = Style.of(style), depth_law(law)
    limit = Budget.of(
        budget,
        kind,
        compute=compute,
        tokens=tokens,
        inference_precision=inference_precision,
        batch=batch,
        context=wanted.context,
        experts=wanted.experts is not None,
    )
    if limit.tokens and limit.tokens_from == "given":
        chosen = chosen.at_length(limit.tokens)
    if depth is not None and width is not None:
        raise DeepwideError("depth and width together are the size: fix one of them and the budget gives the other.")
    decode: Decoding | SpeedLimit = Decoding.of(
        bandwidth, layer_us, limit.batch, inference_precision, wanted.tensor_parallel
    )
    limited, given_ranks = None, wanted.tensor_parallel
    if (machine, latency, throughput) != (None, None, None):
        limited = decode = _speed_limit(machine, latency, throughput, limit, wanted, bandwidth, layer_us, width)
        ranks = math.lcm(given_ranks, limited.machine.devices)
        if ranks != wanted.tensor_parallel:
            wanted = Style.of(style | {"tensor_parallel": ranks})
    limit = limit.per_device(wanted)
    fixed = "depth" if depth is not None else "width" if width is not None else None
    optimal_depth = None  # of a budget that a shape may miss
    left, leaves = False, (0.0, 0.0, 0.0)  # the law's depth, what it would have there, and what leaving it gains
    if limit.compute:
        from deepwide.planning.tokens import best_spending  # most plans do not wait for it

        spent = best_spending(wanted, chosen, limit, depth, width)
        limit = limit._replace(tokens=spent.tokens)
        size, left, leaves = spent.shape, spent.left, (spent.law_depth, spent.law_params, spent.gain)
    elif (limit.is_memory or kind == "flops") and width is None:
        from deepwide.planning.filling import fill_budgets

        filled = fill_budgets(wanted, chosen, limit, np.array([limit.amount]), depth, at_most)
        L, d, head_dim, ff_width = (int(values[0]) for values in filled.shapes)
        size, left = (L, d, head_dim, ff_width), bool(filled.left[0])
        leaves = float(filled.law_depth[0]), float(filled.law_params[0]), float(filled.gain[0])
        optimal_depth = Interval(float(filled.usual_depth[0]))
    else:
        amounts = np.array([limit.amount])
        optimum = find_optimum(wanted, chosen, limit, amounts, depth, width)
        rounded = round_optimum(wanted, limit, amounts, optimum, fixed=fixed, at_most=at_most)
        L, d, head_dim, ff_width = (int(values[0]) for values in rounded)
        size, optimal_depth = (L, d, head_dim, ff_width), optimum.depth.at()
    unlimited = shape = wanted.shape(*size)
    tokens_from, speed = limit.tokens_from, None
    if limited is not None:
        trials = _search(wanted, chosen, compute, limit, unlimited, at_most)
        shape, speed = trials.within(limited, depth)
        if shape != unlimited:
            fixed = fixed or "latency"
            if limit.compute:  # a smaller model is trained for longer
                limit = limit._replace(tokens=max(1, int(trials.tokens_of(shape))))
                tokens_from = "all that the budget buys"
            elif not limit.tokens:
                tokens_from += ", for the plan without a limit on time"
    reached, params = float(limit.measure(shape)), shape.params
    left = fixed is None and left
    fixed = "budget" if left else fixed
    # The law is asked about the size that came out; only where the budget is a size, and nothing fixed, about that.
    if fixed is None and kind == "block" and optimal_depth is not None:
        law_params, law_depth = limit.amount, optimal_depth
    else:
        law_params, law_depth = float(params.active_block), chosen.depth(params.active_block).at()
        if fixed in (None, "budget"):  # a law may ask for less than a layer
            law_depth = law_depth.map(lambda layers: max(1.0, layers))
    training = training_memory(shape, recompute=recompute)
    inference = inference_memory(shape, precision=inference_precision, batch=batch)
    per_token = flops(shape, convention="causal").training_per_token
    train_tokens = limit.tokens or 20 * unlimited.active_params  # a limit on time is priced at equal tokens
    split = _split(wanted, limit, data_parallel, zero, recompute)
    candidates = other_depths(wanted, shape, chosen, law_params, decode, split, limit)
    search = None
    if optimal_depth is not None and shape == unlimited and abs(reached / limit.amount - 1) > CLOSE:
        search = _nearer(wanted, limit, optimal_depth.value, fixed, width, at_most)
    mixture = None if wanted.experts is None else Mixture.of(shape, wanted.dense_ratio)
    # Our own numbers need no validation, and its schema would cost a plan 20 ms.
    return Plan.model_construct(
        budget_kind=kind,
        budget=round(limit.amount),
        budget_words=limit.words,
        reached=round(reached),
        law=chosen.name,
        law_status=chosen.status,
        law_params=law_params,
        fixed=fixed,
        law_depth=law_depth,
        law_width=_law_width(wanted, law_depth, law_params),
        measured_depth=None if chosen.bowl else measured_optimum(law_params).map(lambda layers: max(1.0, layers)),
        shape=shape,
        family=wanted.family,
        params=params,
        tokens=train_tokens,
        tokens_from=tokens_from,
        train_flops_per_token=per_token,
        train_flops=per_token * train_tokens,
        training_bytes_per_sequence=training.activations + training.logits,
        training_state_bytes=training.weights + training.gradients + training.optimiser,
        inference_bytes=inference.total,
        cache_bytes_per_token=inference.cache_bytes_per_token,
        decode_from=decode.source,
        decode_weights=decode.weights,
        candidates=candidates,
        opinions=[other.opinion(law_params, shape.vocab) for other in rival_laws(chosen)],
        nearest=_nearest(chosen, shape),
        reason=plan_reason(chosen, shape, law_params, law_depth, candidates, fixed),
        notes=([fewer_layers(limit, chosen, shape, *leaves)] if left else [])
        + plan_notes(wanted, limit, chosen, shape, law_depth, fixed, reached, search, candidates)
        + ([] if mixture is None else mixture.notes(chosen.name, params.active_block, wanted.granularity))
        + ([] if speed is None else speed.notes(chosen.name, inference_precision, given_ranks))
        + zero_notes(data_parallel, zero),
        mixture=mixture,
        speed=speed,
        split=split,
        recompute=recompute,
    )


def _split(style: Style, budget: Budget, data_parallel: int, zero: int, recompute: bool) -> Split | None:
    from_one_to(LARGEST, data_parallel=data_parallel)
    if zero not in (0, 1, 2, 3) or isinstance(zero, bool):
        raise DeepwideError(f"zero must be 0, 1, 2 or 3, not {quoted(zero)}.")
    ranks = (style.tensor_parallel, style.pipeline_stages, data_parallel, zero)
    return None if ranks == (1, 1, 1, 0) else Split(*ranks, budget.batch, budget.inference_precision, recompute)


def _speed_limit(
    machine: "str | Path | MachineProfile | None",
    latency: float | str | None,
    throughput: float | str | None,
    budget: Budget,
    style: Style,
    bandwidth: float | str,
    layer_us: float,
    width: int | None,
) -> "SpeedLimit":
    """The machine and the limit, loaded only when they are asked for: most plans do not wait for them."""
    from deepwide.planning.speed import SpeedLimit

    if machine is not None and (bandwidth, layer_us) != (BANDWIDTH, LAYER_US):
        raise DeepwideError("a machine has its own bandwidth and overhead per layer: leave bandwidth and layer_us out.")
    if width is not None and (latency, throughput) != (None, None):
        raise DeepwideError("a limit on time chooses the width: fix the depth or nothing.")
    rates = None
    if machine is None:
        if (bandwidth, layer_us) == (BANDWIDTH, LAYER_US):
            machine = preset_of(style.tensor_parallel)
        own = Decoding.of(bandwidth, layer_us)
        rates = None if machine else (own.bytes_per_second, own.layer_seconds)
    return SpeedLimit.of(machine, latency, throughput, budget.batch, style.context, rates, budget.inference_precision)


def _search(style: Style, law: DepthLaw, compute: str, limit: Budget, shape: Shape, at_most: bool) -> "Search":
    from deepwide.planning.speed import Search

    return Search(style, law, compute_law(compute), limit, shape, limit.tokens or 20 * shape.active_params, at_most)


def _law_width(style: Style, depth: Interval, block_params: float) -> Interval:
    """The widths that go with the law's depth and its limits at the same block parameters."""
    at = [None if L is None else float(width_of_blocks(style, L, block_params)) for L in (depth.high, depth.low)]
    return Interval(float(width_of_blocks(style, depth.value, block_params)), *at)


def _nearer(
    style: Style, budget: Budget, depth: float, fixed: str | None, width: int | None, at_most: bool
) -> WideSearch | None:
    """What a wide search finds for a budget that the plan misses."""
    return search_widely(
        style,
        budget.amount,
        int(usual_depths(style, np.array([depth]))[0]),
        budget.measure,
        width=width,
        fixed_depth=fixed == "depth",
        never_over=at_most or budget.is_memory,
    )


def _nearest(law: DepthLaw, shape: Shape) -> list[NearModel]:
    near = ((model.name, model.shape, model.params.active_block) for model in nearest_models(shape))
    return [NearModel(name, s.depth, s.width, params, s.depth / law.depth_at(params)) for name, s, params in near]
