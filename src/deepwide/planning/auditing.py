"""Audit: a shape judged by a law, with the interval and the rule of the verdict."""

import math
import os
from typing import Any, Literal

import numpy as np
from pydantic import computed_field

from deepwide.answers import Answer, Interval, Note, Verdict
from deepwide.catalogue import find_shape
from deepwide.errors import DeepwideError, from_one_to, quoted
from deepwide.laws import (
    DepthLaw,
    Law,
    Opinion,
    Worth,
    depth_cost,
    depth_law,
    outside_the_data,
    rival_laws,
    step_time_ratio,
    worth_of,
)
from deepwide.planning.budget import MOST_TOKENS, Budget
from deepwide.planning.reasons import law_notes
from deepwide.planning.rounding import round_shapes
from deepwide.planning.style import Style
from deepwide.quantities import parse_count, plural, show_count
from deepwide.shape import Params, Shape, flops

Outcome = Literal["too deep", "within", "too shallow"]
Cost = Literal["measurable", "not measurable", "not determined", "negative", "no data"]
TOKENS_PER_PARAM = 20  # of training, where nobody says
GPU_FLOPS = 4e14  # per second, as used: an H100 at 40% of its bf16 peak
LONG = 1.2  # times 6 FLOPs per parameter and token: a context whose attention takes more is noted beside a price
WITHIN = 0.10  # for a law that publishes no errors
SMALL = 1.0  # percent of loss: an interval that includes 0 and reaches further does not say that there is no cost
RULE = "too deep (shallow) if the whole 95% interval of depth / law's depth is above (below) 1, else within"
RULE_WITHOUT_ERRORS = f"the law has no errors: within means {WITHIN:.0%} of its depth"
RULE_OF_COST = (
    "a cost is measurable if its 95% interval excludes 0, and not determined if the interval includes 0 but reaches "
    f"beyond {SMALL:g}% of loss"
)
COST_WORDS: dict[Cost, str] = {
    "measurable": "measurable cost",
    "not measurable": "no measurable cost",
    "not determined": "cost not determined",
    "negative": "the loss data disagree",
    "no data": "no loss data",
}


class Audit(Answer):
    """What a law says about a shape that exists."""

    name: str
    shape: Shape
    family: str | None
    exact: bool  # False: read from a config of an unknown family, so every count is a guess
    params: Params
    law: str
    law_status: str
    law_depth: Interval
    depth_over_law: Interval
    verdict: Verdict  # too deep, within, too shallow; with experts, by the active parameters, as a plan counts
    verdict_total: Verdict | None  # with experts, the same by all parameters
    loss_percent: Interval | None  # against the law's own depth at equal size; None far beyond the data
    worth: Worth | None  # what would make that loss up, with experts in active parameters; None without loss data
    price: float | None  # of a GPU-hour, if it was given,
    gpu_flops: float  # and FLOPs per second of such a GPU, as used
    step_time: Interval  # node-time of a training step over that of the law's depth, at equal FLOPs
    instead: Shape | None  # the planner's shape of this size, with the model's own head width and key/value heads
    theory_threshold: float  # log_3 width: below it depth is worth doubly exponentially more (Levine et al. 2020)
    past_threshold: bool
    vocabulary_wastes_width: bool
    opinions: list[Opinion]
    notes: list[Note]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cost(self) -> Cost:
        """Whether the loss data show that the depth costs anything; see `RULE_OF_COST`."""
        interval = self.loss_percent
        if interval is None or interval.low is None or interval.high is None:
            return "no data"
        if interval.low > 0:
            return "measurable"
        if interval.high < 0:
            return "negative"
        return "not determined" if max(-interval.low, interval.high) > SMALL else "not measurable"

    @property
    def words(self) -> str:
        """The verdict and its cost in a few words."""
        outcome = self.verdict.outcome
        if self.verdict_total is not None:
            other = self.verdict_total.outcome
            both = f"{outcome} by active and total parameters"
            outcome = both if other == outcome else f"{outcome} by active, {other} by total parameters"
        return f"{outcome}, {COST_WORDS[self.cost]}"

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        compared = {"too deep": "deeper than", "too shallow": "shallower than", "within": "within the error of what"}
        ratio = (
            f"{self.name} is {compared[self.verdict.outcome]} the {self.law} law recommends: "
            f"{plural(self.shape.depth, 'layer')}, {self.depth_over_law.value:.2f} times its {self.law_depth.value:.1f}"
        )
        interval = self.loss_percent
        if interval is None or interval.low is None or interval.high is None:
            return f"{ratio}; no loss data reach this far."
        estimate = (
            f"{interval.value:+.2f}% of loss against the law's depth ({interval.low:+.2f} to {interval.high:+.2f})"
        )
        if self.cost == "measurable":
            return f"{ratio}; expect {estimate}."
        if self.cost == "negative":
            return f"{ratio}, but the loss data disagree: {estimate}."
        return f"{ratio}; {COST_WORDS[self.cost]}: {estimate}."

    def rows(self) -> list[dict[str, Any]]:
        """The audit in one row."""
        ratio, loss, instead = self.depth_over_law, self.loss_percent, self.instead
        return [
            {
                "name": self.name,
                "depth": self.shape.depth,
                "width": self.shape.width,
                "block_params": self.params.active_block,
                "total_params": self.params.total,
                "law": self.law,
                "law_depth": self.law_depth.value,
                "depth_over_law": ratio.value,
                "depth_over_law_low": ratio.low,
                "depth_over_law_high": ratio.high,
                "outcome": self.verdict.outcome,
                "cost": self.cost,
                "loss_percent": loss.value if loss else None,
                "loss_percent_low": loss.low if loss else None,
                "loss_percent_high": loss.high if loss else None,
                "made_up_by_flops_percent": self.worth.flops_percent.value if self.worth else None,
                "money": self.worth.money.value if self.worth and self.worth.money else None,
                "cheapest_repair": next(iter(self.worth.repairs), None) if self.worth else None,
                "instead_depth": instead.depth if instead else None,
                "instead_width": instead.width if instead else None,
            }
        ]


def audit(
    model: Shape | str | os.PathLike[str] | None = None,
    *,
    name: str = "",
    law: str | Law | None = None,
    family: str | None = None,
    network: bool = False,
    tokens: int | str | None = None,
    compute: str = "epoch",
    price: float | None = None,
    gpu_flops: float = GPU_FLOPS,
    **fields: Any,
) -> Audit:
    """Judge a model by a law (Levine et al.'s transition by default).

    The model is a Shape, a name of the catalogue, a config.json or its folder, with `network` a hub id; or it is given
    by its sizes (depth, width, …), which otherwise replace those of the model. With experts it is judged by its active
    parameters, as a plan counts. What its depth is worth is computed at `tokens` of training (20 per active parameter
    by default) by the compute law `compute`; a law that knows what length does is asked for these tokens, if given.
    `price` is of an hour of a GPU that does `gpu_flops` FLOPs per second as used, its peak times its utilisation: money
    = FLOPs / gpu_flops / 3600 · price, whatever the depth. FLOPs are those of a plan: causal attention over sequences
    of the whole context is counted.

    >>> result = audit("gpt3-175b")
    >>> result.verdict.outcome, round(result.depth_over_law.value, 2)
    ('too deep', 1.19)
    """
    chosen = depth_law(law)
    named = find_shape(model, family=family, network=network, **fields)
    shape, title = named.shape, name or named.name
    params = shape.params
    size = params.active_block
    length, per_flop = _length(tokens, params.active), _per_flop(price, gpu_flops)
    if tokens is not None:
        chosen = chosen.at_length(length)
    law_depth = chosen.depth(size).at()
    ratio = _ratio(shape.depth, law_depth)
    by_total = None if shape.experts is None else _ratio(shape.depth, chosen.depth(params.block).at())
    narrowest = min(shape.vocab, shape.embedding_width or shape.width)
    threshold = math.log(shape.width, 3)
    loss = depth_cost(shape.depth, law_depth.value, size, chosen)
    per_token = flops(shape, convention="causal").training_per_token
    worth = None if loss is None else worth_of(loss, params.active, length, compute, per_flop, per_token)
    unpriced = []
    if price is not None and worth is None:
        text = "no loss data reach this depth, so what it costs in money is not known"
        unpriced.append(Note.of("no-price", text, price=price))
    elif price is not None and fields.get("context") is None and per_token > LONG * 6 * params.active:
        text = (
            f"the price counts attention over sequences of {shape.context:,} tokens, the model's whole context: if it "
            "is trained on shorter ones, give their length as the context"
        )
        unpriced.append(Note.of("price-of-the-context", text, context=shape.context))
    if price is not None and worth is not None and tokens is None:
        text = (
            f"the price is that of {TOKENS_PER_PARAM} tokens per parameter, {show_count(length)}, which is assumed: "
            "give the tokens of the training"
        )
        unpriced.append(Note.of("price-of-assumed-tokens", text, tokens=length))
    return Audit.model_construct(
        name=title,
        shape=shape,
        family=named.family,
        exact=named.exact,
        params=params,
        law=chosen.name,
        law_status=chosen.status,
        law_depth=law_depth,
        depth_over_law=ratio,
        verdict=_judge(title, chosen, ratio, "active parameters" if by_total else "size"),
        verdict_total=None if by_total is None else _judge(title, chosen, by_total, "total parameters"),
        loss_percent=loss,
        worth=worth,
        price=price,
        gpu_flops=gpu_flops,
        step_time=step_time_ratio(shape.depth, law_depth.value),
        instead=_instead(shape, law_depth.value),
        theory_threshold=threshold,
        past_threshold=shape.depth > threshold,
        vocabulary_wastes_width=shape.width > narrowest,
        opinions=[other.opinion(size, shape.vocab) for other in rival_laws(chosen)],
        notes=[*unpriced, *named.notes, *_notes(chosen, shape, params, by_total, narrowest)],
    )


def _length(tokens: int | str | None, params: int) -> float:
    if tokens is None:
        return float(TOKENS_PER_PARAM * params)
    length = parse_count(tokens, "a number of tokens")
    from_one_to(MOST_TOKENS, tokens=length)
    return float(length)


def _per_flop(price: float | None, gpu_flops: float) -> float | None:
    for name, value in (("price", price), ("gpu_flops", gpu_flops)):
        if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
            raise DeepwideError(f"{name} must be a number above 0, not {quoted(value)}.")
    return None if price is None else price / (3600 * gpu_flops)


def _notes(law: DepthLaw, shape: Shape, params: Params, by_total: Interval | None, narrowest: int) -> list[Note]:
    notes, size = [], params.active_block
    if by_total is not None:
        text = (
            f"laws and losses were fitted on dense models: the {size:,} active block parameters are judged as if they "
            f"were dense, without data on experts; by all {params.block:,} the ratio would be {by_total.value:.2f}"
        )
        notes.append(Note.of("experts", text, block=params.block, active=size, ratio_total=by_total.value))
    if shape.attention_free or any(extra.part == "mixer" for extra in shape.extras):
        here = shape.depth - len(shape.attention_free)
        text = f"laws and losses were fitted on transformers: {here} of these {shape.depth} layers have attention"
        notes.append(Note.of("hybrid", text, attention_layers=here, depth=shape.depth))
    notes += law_notes(law, size)
    if not law.bowl:
        text = "loss differences are centred on the best depth in all public data, whichever law judges"
        notes.append(Note.of("cost-centre", text))
    if beyond := outside_the_data(shape.depth, size, law):
        notes.append(Note("cost-extrapolated", f"the loss difference is extrapolated: {beyond}", beyond.data))
    if shape.width > narrowest:
        text = (
            f"width {shape.width:,} is beyond min(vocabulary, embedding width) = {narrowest:,}: the rest is wasted, "
            "according to Wies et al. 2021"
        )
        notes.append(Note.of("wasted-width", text, width=shape.width, limit=narrowest))
    return notes


def _instead(shape: Shape, law_depth: float) -> Shape | None:
    """The planner's shape of this size at the law's depth; None where it plans none (experts, latent attention)."""
    if shape.experts is not None or shape.latent is not None or shape.ff_width == 0 or shape.extras:
        return None
    style, size = Style.of_model(shape), Budget.of(shape.block_params)
    amounts, L = np.array([size.amount]), np.array([max(1.0, law_depth)])
    try:
        rounded = round_shapes(style, amounts, L, style.width_for(L, amounts, size.measure), size.measure)
        return style.shape(*(int(values[0]) for values in rounded))
    except DeepwideError:  # nothing divides as this model does
        return None


def _ratio(depth: int, law_depth: Interval) -> Interval:
    value = depth / law_depth.value
    if law_depth.low is None or law_depth.high is None:
        return Interval(value)
    return Interval(value, depth / law_depth.high, depth / law_depth.low if law_depth.low > 0 else math.inf)


def _judge(name: str, law: Law, ratio: Interval, by: str) -> Verdict:
    low, high = (ratio.value - WITHIN, ratio.value + WITHIN) if ratio.low is None else (ratio.low, ratio.high)
    assert low is not None
    assert high is not None
    outcome: Outcome = "too deep" if low > 1 else "too shallow" if high < 1 else "within"
    return Verdict.model_construct(
        claim=f"{name} has the depth that the {law.name} law recommends for its {by}",
        outcome=outcome,
        rule=RULE_WITHOUT_ERRORS if ratio.low is None else RULE,
        measured=ratio,
        notes=(),
    )
