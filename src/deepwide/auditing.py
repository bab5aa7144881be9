"""Audit: a shape judged by a law, with the interval and the rule of the verdict."""

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from deepwide.answers import Interval
from deepwide.catalogue import find_model
from deepwide.errors import DeepwideError, quoted
from deepwide.laws import Law, Opinion, depth_cost, depth_law, outside_the_data, published_laws
from deepwide.quantities import plural
from deepwide.shape import Params, Shape

WITHIN = 0.10  # for a law that publishes no errors
RULE = "too deep (shallow) if the whole 95% interval of depth / law's depth is above (below) 1, else within"
RULE_WITHOUT_ERRORS = f"the law has no errors: within means {WITHIN:.0%} of its depth"


class Verdict(BaseModel):
    """What a law thinks of a shape."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    shape: Shape
    params: Params
    law: str
    law_status: str
    law_depth: Interval
    depth_over_law: Interval
    verdict: Literal["too deep", "within", "too shallow"]
    rule: str
    loss_percent: Interval | None  # against the law's own depth at equal size; None far beyond the data
    extrapolated: str | None
    instead_depth: int
    instead_width: int
    theory_threshold: float  # log_3 width: below it depth is worth doubly exponentially more (Levine et al. 2020)
    past_threshold: bool
    vocabulary_wastes_width: bool
    opinions: list[Opinion]
    notes: list[str]

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        ratio = (
            f"{self.name} is {self.verdict}: {plural(self.shape.depth, 'layer')}, "
            f"{self.depth_over_law.value:.2f} times the {self.law_depth.value:.1f} of the {self.law} law"
        )
        cost, instead = self.loss_percent, f"{self.instead_depth} × {self.instead_width}"
        if cost is None:
            return f"{ratio}; no loss data reach this far."
        assert cost.low is not None
        assert cost.high is not None
        interval = f"{cost.value:+.2f}% of loss against {instead} ({cost.low:+.2f} to {cost.high:+.2f})"
        if cost.low > 0:
            return f"{ratio}; expect {interval}."
        if cost.high < 0:
            return f"{ratio}, but the loss data disagree: {interval}."
        return f"{ratio}; no cost that the loss data can tell from zero: {interval}."


def audit(model: Shape | str, *, name: str = "", law: str | Law | None = None, notes: tuple[str, ...] = ()) -> Verdict:
    """Judge a shape, or a model of the catalogue, by a law (Levine et al.'s transition unless told otherwise).

    >>> verdict = audit("gpt3-175b")
    >>> verdict.verdict, round(verdict.depth_over_law.value, 2)
    ('too deep', 1.19)
    """
    chosen = depth_law(law)
    if not isinstance(model, Shape | str):
        raise DeepwideError(f"audit takes a Shape or a model's name, not {quoted(model)}.")
    shape = find_model(model).shape if isinstance(model, str) else model
    name = name or (model if isinstance(model, str) else f"{shape.depth} × {shape.width}")
    params = shape.params
    N = params.block
    law_depth = chosen.depth(N).at()
    ratio = _ratio(shape.depth, law_depth)
    instead_depth = max(1, round(law_depth.value))
    unit = 64 if shape.width >= 512 else 8
    instead_width = max(unit, unit * round(shape.width * math.sqrt(shape.depth / instead_depth) / unit))
    threshold = math.log(shape.width, 3)
    remarks = list(notes)
    if shape.experts is not None:
        active = params.block - params.inactive
        other = _ratio(shape.depth, chosen.depth(active).at())
        remarks.append(
            f"laws were fitted on dense models: judged by all {N:,} block parameters; by the {active:,} active ones "
            f"the ratio would be {other.value:.2f}"
        )
    remarks += [f"the {chosen.name} law: {caution}" for caution in chosen.cautions]
    if chosen.is_extrapolated(N):
        remarks.append(f"the {chosen.name} law is extrapolated: {chosen.fitted_words}")
    if chosen.name != "levine" and not chosen.bowl:
        remarks.append("the loss bowl is centred on the levine law's depth, whatever law judges")
    if extra := outside_the_data(shape.depth, N, chosen):
        remarks.append(f"the loss difference is extrapolated: {extra}")
    wasted = shape.width > min(shape.vocab, shape.embedding_width or shape.width)
    if wasted:
        remarks.append(
            f"width {shape.width:,} is beyond min(vocabulary, embedding width) = "
            f"{min(shape.vocab, shape.embedding_width or shape.width):,}: the rest is wasted, by Wies et al. 2021"
        )
    return Verdict.model_construct(
        name=name,
        shape=shape,
        params=params,
        law=chosen.name,
        law_status=chosen.status,
        law_depth=law_depth,
        depth_over_law=ratio,
        verdict=_judge(ratio),
        rule=RULE if ratio.low is not None else RULE_WITHOUT_ERRORS,
        loss_percent=depth_cost(shape.depth, law_depth.value, N, chosen),
        extrapolated=extra,
        instead_depth=instead_depth,
        instead_width=instead_width,
        theory_threshold=threshold,
        past_threshold=shape.depth > threshold,
        vocabulary_wastes_width=wasted,
        opinions=[other.opinion(N, shape.vocab) for other in {chosen.name: chosen, **published_laws()}.values()],
        notes=remarks,
    )


def _ratio(depth: int, law_depth: Interval) -> Interval:
    value = depth / law_depth.value
    if law_depth.low is None or law_depth.high is None:
        return Interval(value)
    return Interval(value, depth / law_depth.high, depth / law_depth.low if law_depth.low > 0 else math.inf)


def _judge(ratio: Interval) -> Literal["too deep", "within", "too shallow"]:
    low, high = (ratio.value - WITHIN, ratio.value + WITHIN) if ratio.low is None else (ratio.low, ratio.high)
    assert low is not None
    assert high is not None
    if low > 1:
        return "too deep"
    return "too shallow" if high < 1 else "within"
