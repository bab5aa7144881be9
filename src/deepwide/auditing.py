"""Audit: a shape judged by a law, with the interval and the rule of the verdict."""

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict

from deepwide.laws import Interval, Law, Opinion, depth_cost, depth_law, outside_the_data, published_laws
from deepwide.shape import Params, Shape

WITHIN = 0.10  # for a law that publishes no errors
RULE = "too deep (shallow) if the whole 95% interval of depth / law's depth is above (below) 1, else within"
RULE_WITHOUT_ERRORS = f"the law has no errors: within means {WITHIN:.0%} of its depth"


class Verdict(BaseModel):
    """What a law thinks of a shape."""

    model_config = ConfigDict(frozen=True)

    name: str
    shape: Shape
    params: Params
    law: str
    law_status: str
    law_depth: Interval
    depth_over_law: Interval
    verdict: Literal["too deep", "within", "too shallow"]
    rule: str
    loss_percent: Interval  # against the law's own depth at equal size
    extrapolated: str | None
    better_depth: int
    better_width: int
    theory_threshold: float  # log_3 width: below it depth is worth doubly exponentially more (Levine et al. 2020)
    past_threshold: bool
    vocabulary_wastes_width: bool
    opinions: list[Opinion]
    notes: list[str]

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        cost = self.loss_percent
        size = "about the same loss as" if abs(cost.value) < 0.05 else f"{cost.value:+.2f}% of loss against"
        return (
            f"{self.name} is {self.verdict}: {self.shape.depth} layers are {self.depth_over_law.value:.2f} times the "
            f"{self.law_depth.value:.1f} of {self.law}'s law; expect {size} {self.better_depth} × {self.better_width}"
            f" ({cost.low:+.2f} to {cost.high:+.2f})."
        )


def audit(
    shape: Shape, *, name: str = "this shape", law: str | Law | None = None, notes: tuple[str, ...] = ()
) -> Verdict:
    """Judge a shape by a law (Levine et al.'s transition unless told otherwise).

    >>> from deepwide.catalogue import find_model
    >>> verdict = audit(find_model("gpt3-175b").shape)
    >>> verdict.verdict, round(verdict.depth_over_law.value, 2)
    ('too deep', 1.19)
    """
    chosen = depth_law(law)
    params = shape.params
    N = params.block
    law_depth = chosen.depth(N).at()
    ratio = _ratio(shape.depth, law_depth)
    better_depth = max(1, round(law_depth.value))
    unit = 64 if shape.width >= 512 else 8
    better_width = max(unit, unit * round(shape.width * math.sqrt(shape.depth / better_depth) / unit))
    threshold = math.log(shape.width, 3)
    remarks = list(notes)
    if shape.experts is not None:
        active = params.block - params.inactive
        other = _ratio(shape.depth, chosen.depth(active).at())
        remarks.append(
            f"laws were fitted on dense models: judged by all {N:,} block parameters; by the {active:,} active ones "
            f"the ratio would be {other.value:.2f}"
        )
    if extra := outside_the_data(shape.depth, N):
        remarks.append(f"the loss difference is extrapolated: {extra}")
    wasted = shape.width > min(shape.vocab, shape.embedding_width or shape.width)
    if wasted:
        remarks.append(
            f"width {shape.width:,} is beyond min(vocabulary, embedding width) = "
            f"{min(shape.vocab, shape.embedding_width or shape.width):,}: the rest is wasted, by Wies et al. 2021"
        )
    return Verdict(
        name=name,
        shape=shape,
        params=params,
        law=chosen.name,
        law_status=chosen.status,
        law_depth=law_depth,
        depth_over_law=ratio,
        verdict=_judge(ratio),
        rule=RULE if ratio.low is not None else RULE_WITHOUT_ERRORS,
        loss_percent=depth_cost(shape.depth, law_depth.value, N),
        extrapolated=extra,
        better_depth=better_depth,
        better_width=better_width,
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
