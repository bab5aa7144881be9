"""What a difference in loss is worth: how many more parameters, tokens or FLOPs would make it up.

A fitted loss L(N, D) = E + A/N^α + B/D^β (a compute law) says what N and D buy. A loss 1 + δ times that of the best
depth is made up by N′ with L(N′, D) = L(N, D)/(1 + δ), by D′ likewise, or by both grown by one factor k, which takes k²
of the training FLOPs. Limits are the extremes over the limits of δ and over every published fit of the surface. What no
amount makes up is infinite: E and the other term remain.
"""

import math
from dataclasses import dataclass

from deepwide.answers import Interval
from deepwide.laws.book import COMPUTE_LAWS, ComputeLaw, compute_law
from deepwide.laws.law import LARGEST_LOG

MOST = 100.0  # a factor beyond which nobody buys, shown as "over 100×"; a gain is worth at most so many times less


@dataclass(frozen=True)
class Worth:
    """Each in percent more than now; infinite (null in JSON) where no amount would do."""

    surface: str  # the compute law
    tokens: float  # of training
    params_percent: Interval
    tokens_percent: Interval
    flops_percent: Interval
    extra_flops: Interval
    price: float | None = None  # per FLOP
    money: Interval | None = None  # extra_flops · price
    training_flops: float = 0.0  # without what would make it up
    training_money: float | None = None  # training_flops · price

    @property
    def repairs(self) -> dict[str, tuple[float, float]]:
        """What would make the loss up, the cheapest first: percent more of each, and extra FLOPs in percent.

        A token's FLOPs are taken to grow as parameters do. Empty where there is nothing to make up, or no amount would.
        """
        both = 100 * (math.sqrt(1 + self.flops_percent.value / 100) - 1)
        each = {
            "parameters": (self.params_percent.value,) * 2,
            "tokens": (self.tokens_percent.value,) * 2,
            "both": (both, self.flops_percent.value),
        }
        possible = {name: (more, cost) for name, (more, cost) in each.items() if 0 < cost < math.inf}
        return dict(sorted(possible.items(), key=lambda item: item[1][1]))


def worth_of(
    loss_percent: Interval,
    params: float,
    tokens: float,
    surface: str = "epoch",
    price: float | None = None,
    flops_per_token: float | None = None,
) -> Worth:
    """What a difference in loss, in percent with its interval, is worth at this size and length.

    `flops_per_token` are those of training, by default 6 per parameter; `price` is per FLOP.

    >>> half_a_percent = worth_of(Interval(0.5, 0.1, 1.0), 7e9, 140e9)
    >>> round(half_a_percent.params_percent.value), round(half_a_percent.flops_percent.value)
    (19, 19)
    """
    named = compute_law(surface)
    laws = [named, *(law for law in COMPUTE_LAWS.values() if law != named)]
    ends = [end for end in (loss_percent.low, loss_percent.high) if end is not None]
    factors = {}
    for what in ("params", "tokens", "both"):
        value = _factor(named, params, tokens, loss_percent.value, what)
        limits = [_factor(law, params, tokens, end, what) for law in laws for end in ends]
        factors[what] = Interval(value, min(limits), max(limits)) if limits else Interval(value)
    flops = factors["both"].map(lambda k: k * k)
    training = (6 * params if flops_per_token is None else flops_per_token) * tokens
    extra = flops.map(lambda factor: training * (factor - 1))
    return Worth(
        surface=surface,
        tokens=tokens,
        params_percent=factors["params"].map(_percent),
        tokens_percent=factors["tokens"].map(_percent),
        flops_percent=flops.map(_percent),
        extra_flops=extra,
        price=price,
        money=None if price is None else extra.map(lambda more: price * more),
        training_flops=training,
        training_money=None if price is None else price * training,
    )


def _percent(factor: float) -> float:
    return 100 * (factor - 1)


def _factor(law: ComputeLaw, N: float, D: float, loss_percent: float, what: str) -> float:
    """By how much N, D or both must grow, at least by 1/MOST; infinite where no amount would do."""
    of_params, of_tokens = law.A / N**law.alpha, law.B / D**law.beta
    wanted = (law.E + of_params + of_tokens) / (1 + loss_percent / 100) - law.E  # what size and length may still lose
    if what == "params":
        return _power(of_params, wanted - of_tokens, law.alpha)
    if what == "tokens":
        return _power(of_tokens, wanted - of_params, law.beta)
    if wanted <= 0:
        return math.inf
    low, high = -math.log(MOST), LARGEST_LOG
    for _ in range(60):
        middle = (low + high) / 2
        left = of_params * math.exp(-law.alpha * middle) + of_tokens * math.exp(-law.beta * middle)
        low, high = (middle, high) if left > wanted else (low, middle)
    return math.exp((low + high) / 2)


def _power(now: float, wanted: float, exponent: float) -> float:
    return math.inf if wanted <= 0 else float(max((now / wanted) ** (1 / exponent), 1 / MOST))
