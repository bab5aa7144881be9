"""A budget: an amount, what it limits, and how much of it a shape takes.

With experts, block parameters are those that a token passes through; total parameters and memory are of all experts,
and FLOPs of the active ones.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from deepwide.errors import DeepwideError, did_you_mean, from_one_to, quoted
from deepwide.laws import compute_law
from deepwide.planning.style import Sizes, Style
from deepwide.quantities import Floats, parse_bytes, parse_count, plural, show_bytes, show_count
from deepwide.settings import LARGEST
from deepwide.shape import INFERENCE_BYTES, Shape, cache_elements, causal_training_flops

BudgetKind = Literal["block", "total", "flops", "memory", "device"]
LEAST, MOST = 1_000, 10**16  # parameters a plan is made for
MOST_TOKENS = 10**18  # that may be given: a hundred per parameter of the largest plan


def parse_budget(amount: int | float | str, kind: str) -> int:
    """The amount that a person gave: bytes of memory, or a count; a memory size is not taken for a count.

    >>> parse_budget("24GB", "memory"), parse_budget("1.3B", "block")
    (24000000000, 1300000000)
    """
    if kind in ("memory", "device"):
        return parse_bytes(amount)
    try:
        return parse_count(amount, "a budget")
    except DeepwideError:
        try:
            parse_bytes(amount)
        except DeepwideError:
            pass
        else:
            if str(amount).lower().endswith("b"):
                text = f"{quoted(amount)} is a memory size: say that the budget is memory."
                raise DeepwideError(text, remedies=("memory",)) from None
        raise


@dataclass(frozen=True)
class DeviceShare:
    """What the fullest device holds of a shape that is split (shape/devices.py)."""

    state_bytes: int  # weights, gradients and the optimiser's state
    activation_bytes: int  # and logits, of micro-batches of one sequence
    training_bytes: int  # of the stage that needs most: both
    cache_bytes: int  # of all sequences of the batch
    serving_bytes: int  # weights in the inference precision, and the cache


@dataclass(frozen=True)
class Split:
    """Over how many devices a plan is split, and how."""

    tensor_parallel: int
    pipeline_stages: int
    data_parallel: int
    zero: int
    batch: int  # sequences in the cache
    precision: str  # of the weights when serving
    recompute: bool = False  # every layer keeps its input only and is computed again

    def share(self, shape: Shape) -> DeviceShare | None:
        """What the fullest device holds; None where key/value heads neither divide over the ranks nor the reverse."""
        from deepwide.shape import device_memory

        t = self.tensor_parallel
        if shape.kv_heads % t and t % shape.kv_heads:
            return None
        device = device_memory(
            shape,
            tensor_parallel=t,
            pipeline_stages=self.pipeline_stages,
            data_parallel=self.data_parallel,
            zero=self.zero,
            recompute=self.recompute,
        )
        cache = self.batch * device.cache
        return DeviceShare(
            state_bytes=device.weights + device.gradients + device.optimiser,
            activation_bytes=device.activations + device.logits,
            training_bytes=device.training,
            cache_bytes=cache,
            serving_bytes=round(INFERENCE_BYTES[self.precision] * max(device.stage_params)) + cache,
        )

    def serving_bytes(self, sizes: Sizes) -> Any:
        """Weights and cache of the fullest device: of one shape exactly, of a Grid as an array of floats."""
        from deepwide.shape import serving_share

        if isinstance(sizes, Shape):
            share = self.share(sizes)
            assert share is not None  # Budget.per_device refuses what cannot be counted
            return share.serving_bytes
        params, cached = serving_share(sizes.as_shape, self.tensor_parallel, self.pipeline_stages)
        return INFERENCE_BYTES[self.precision] * params + 2 * self.batch * sizes.context * cached

    @property
    def words(self) -> str:
        """tensor 8 × pipeline 4 × data 1, ZeRO 0."""
        ranks = f"tensor {self.tensor_parallel} × pipeline {self.pipeline_stages} × data {self.data_parallel}"
        return f"{ranks}, ZeRO {self.zero}"


class Budget(NamedTuple):
    """An amount, and what it limits."""

    kind: BudgetKind
    amount: float
    words: str
    tokens: int | None = None  # training tokens, where they are fixed
    tokens_from: str = "20 per parameter, Chinchilla's rule of thumb"
    inference_precision: str = "bf16"
    batch: int = 1
    compute: str = ""  # the compute law that chose the tokens, if one did
    surface: str = "epoch"  # the compute law that says what parameters are worth
    split: Split | None = None  # of a budget that each device has

    @classmethod
    def of(
        cls,
        amount: int | float | str,
        kind: str = "block",
        *,
        compute: str = "epoch",
        tokens: int | str | None = None,
        inference_precision: str = "bf16",
        batch: int = 1,
        context: int = 0,
        experts: bool = False,
    ) -> "Budget":
        """A budget from what a person gave, checked."""
        if kind not in get_args(BudgetKind):
            raise DeepwideError(f"no kind of budget '{kind}': {did_you_mean(str(kind), get_args(BudgetKind))}")
        if inference_precision not in INFERENCE_BYTES:
            near = did_you_mean(inference_precision, INFERENCE_BYTES)
            raise DeepwideError(f"no inference precision '{inference_precision}': {near}")
        tokens = parse_count(tokens, "a number of tokens") if isinstance(tokens, str | float) else tokens
        from_one_to(LARGEST, batch=batch)
        from_one_to(MOST_TOKENS, tokens=tokens)
        rule = compute_law(compute)
        value = parse_budget(amount, kind)
        tokens_from, chosen_by = "given" if tokens else cls._field_defaults["tokens_from"], ""
        if kind == "flops" and tokens is None:  # of 6·N FLOPs each; a plan's shape reckons with attention (tokens.py)
            tokens = max(1, round(rule.optimum(value)[1]))
            tokens_from, chosen_by = f"compute-optimal by {rule.citation}", compute
        if experts:
            tokens_from = tokens_from.replace("per parameter", "per active parameter")
        words = {
            "block": f"{show_count(value)} {'active ' if experts else ''}block parameters",
            "total": f"{show_count(value)} total parameters{' with all experts' if experts else ''}",
            "flops": f"{value:.3g} training FLOPs",
            "memory": f"{show_bytes(value)} at inference ({inference_precision}, "
            f"{batch} × {context:,} tokens of bf16 cache)",
            "device": f"{show_bytes(value)} per device at inference ({inference_precision}, "
            f"{batch} × {context:,} tokens of bf16 cache",
        }[kind]
        return cls(kind, float(value), words, tokens, tokens_from, inference_precision, batch, chosen_by, compute)  # type: ignore[arg-type]

    @property
    def is_memory(self) -> bool:
        """Whether it is bytes, which are never exceeded."""
        return self.kind in ("memory", "device")

    def per_device(self, style: Style) -> "Budget":
        """A budget of one device, with what the model is split over; others are as they were."""
        if self.kind != "device":
            return self
        t, p, kv = style.tensor_parallel, style.pipeline_stages, style.kv_heads
        if kv is not None and kv % t and t % kv:
            raise DeepwideError(
                f"memory per device is not counted where {kv} key/value heads neither divide over {t} tensor parallel "
                f"ranks nor the reverse: change one of them, or give the memory of all devices together."
            )
        split = Split(t, p, 1, 0, self.batch, self.inference_precision)
        return self._replace(split=split, words=f"{self.words}; tensor {t} × pipeline {p})")

    def measure(self, sizes: Sizes) -> Any:
        """How much of the budget a shape takes; of a Grid, an array."""
        if self.kind == "block":
            return sizes.params.active_block
        if self.kind == "total":
            return sizes.params.total
        shape = sizes if isinstance(sizes, Shape) else sizes.as_shape
        if self.kind == "flops":
            return causal_training_flops(shape) * float(self.tokens or 0)
        if self.split is not None:
            return self.split.serving_bytes(sizes)
        cached = 2 * self.batch * sizes.context * cache_elements(shape)
        return INFERENCE_BYTES[self.inference_precision] * sizes.params.total + cached

    def check_range(self, style: Style, amounts: Floats) -> None:
        """Refuse amounts that no plan is made for."""
        if not amounts.size:
            raise DeepwideError("give at least one budget.")
        least = float(self.measure(style.grid(1, 1.0)))  # one layer of width 1
        if self.compute:
            low, high, least = self._least_flops(style), compute_law(self.compute).flops_for(MOST), 0.0
        else:
            unit = 6.0 * (self.tokens or 1) if self.kind == "flops" else 1.0
            unit = INFERENCE_BYTES[self.inference_precision] if self.is_memory else unit
            low, high = max(LEAST * unit, math.ceil(least)), MOST * unit
        if np.all(np.isfinite(amounts)) and amounts.min() >= low and amounts.max() <= high:
            return
        read = because = ""
        remedies: tuple[str, ...] = ()
        if self.is_memory and 0 < amounts.min() < low:
            read = f", and this was read as {plural(round(amounts.min()), 'byte')} (gigabytes are written 24GB)"
        if least >= low and not np.all(amounts >= low):
            because = f"; one layer of width 1 with vocabulary {style.vocab:,} takes {self._show(least)}"
        elif self.kind == "block" and np.any(amounts > high):
            because, remedies = "; if this is a number of training FLOPs or of bytes, say so", ("kind",)
        elif self.kind == "flops" and not self.compute:
            because = f"; the training tokens given are {self.tokens:,}"
        text = f"the budget must be between {self._show(low)} and {self._show(high)} here{read}{because}."
        raise DeepwideError(text, remedies=remedies)

    def _least_flops(self, style: Style) -> float:
        """The budget that is best spent on the smallest model, one layer, with the tokens that suit it.

        There αA/N^α = βB/D^β times the share of a token's FLOPs that grows with N: attention takes them as well.
        """
        rule = compute_law(self.compute)
        width = float(style.width_for(1.0, LEAST, lambda sizes: sizes.params.active_block))
        N, cost = zip(*((g.params.active_block, causal_training_flops(g.as_shape)) for g in
                        (style.grid(1.0, width), style.grid(1.0, 1.001 * width))), strict=True)  # fmt: skip
        share = math.log(cost[1] / cost[0]) / math.log(N[1] / N[0])
        log_D = math.log(rule.beta * rule.B * share / (rule.alpha * rule.A)) + rule.alpha * math.log(N[0])
        return float(cost[0] * math.exp(min(log_D / rule.beta, 600)))

    def _show(self, amount: float) -> str:
        if self.is_memory:
            return show_bytes(amount)
        noun = "FLOPs" if self.kind == "flops" else "parameters"
        return f"{amount:.3g} {noun}" if amount >= 1e15 else f"{show_count(amount)} {noun}"
