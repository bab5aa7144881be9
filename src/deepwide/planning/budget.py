"""A budget: an amount, what it limits, and how much of it a shape takes.

With experts, block parameters are those that a token passes through; total parameters and memory are of all experts,
and FLOPs of the active ones.
"""

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from deepwide.errors import DeepwideError, did_you_mean, from_one_to, quoted
from deepwide.laws import compute_law
from deepwide.planning.style import Sizes, Style
from deepwide.quantities import Floats, parse_bytes, parse_count, plural, show_bytes, show_count
from deepwide.settings import LARGEST
from deepwide.shape import INFERENCE_BYTES, Shape, cache_elements, causal_training_flops

BudgetKind = Literal["block", "total", "flops", "memory"]
LEAST, MOST = 1_000, 10**16  # parameters a plan is made for
MOST_TOKENS = 10**18  # that may be given: a hundred per parameter of the largest plan


def parse_budget(amount: int | float | str, kind: str) -> int:
    """The amount that a person gave: bytes of memory, or a count; a memory size is not taken for a count.

    >>> parse_budget("24GB", "memory"), parse_budget("1.3B", "block")
    (24000000000, 1300000000)
    """
    if kind == "memory":
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
        }[kind]
        return cls(kind, float(value), words, tokens, tokens_from, inference_precision, batch, chosen_by, compute)  # type: ignore[arg-type]

    def measure(self, sizes: Sizes) -> Any:
        """How much of the budget a shape takes; of a Grid, an array."""
        if self.kind == "block":
            return sizes.params.active_block
        if self.kind == "total":
            return sizes.params.total
        shape = sizes if isinstance(sizes, Shape) else sizes.as_shape
        if self.kind == "flops":
            return causal_training_flops(shape) * float(self.tokens or 0)
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
            per_param = {"flops": 6.0 * (self.tokens or 1), "memory": INFERENCE_BYTES[self.inference_precision]}
            unit = per_param.get(self.kind, 1.0)
            low, high = max(LEAST * unit, math.ceil(least)), MOST * unit
        if np.all(np.isfinite(amounts)) and amounts.min() >= low and amounts.max() <= high:
            return
        read = because = ""
        remedies: tuple[str, ...] = ()
        if self.kind == "memory" and 0 < amounts.min() < low:
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
        if self.kind == "memory":
            return show_bytes(amount)
        noun = "FLOPs" if self.kind == "flops" else "parameters"
        return f"{amount:.3g} {noun}" if amount >= 1e15 else f"{show_count(amount)} {noun}"
