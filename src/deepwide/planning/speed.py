"""Plans that must be quick: the shapes of least expected loss that decode within a limit on a given machine.

Expected loss of a shape, relative to the plan without a limit: a compute law's loss at its total parameters (with
experts, the active ones) and the plan's tokens, times what its depth costs at its size (laws/cost.py). Shapes are those
that the planner would round to, at depths up to the law's and at shares of the budget; what is compared is exact.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.laws import ComputeLaw, DepthLaw, depth_cost
from deepwide.planning.budget import Budget
from deepwide.planning.reasons import Speed, SpeedRow
from deepwide.planning.rounding import round_shapes
from deepwide.planning.style import Style
from deepwide.quantities import Floats, parse_count, parse_seconds, show_time
from deepwide.shape import Shape
from deepwide.timing import MachineProfile, find_machine, with_rates

DEFAULT = "captured"
SHARES = np.geomspace(1.0, 1 / 64, 37)  # of the budget
FINER = 6  # shares tried between two of these, around the best
DEPTHS = 24  # tried between the plan's depth and a twelfth of it
SHALLOWEST = 12
ROWS, QUICKEST = 8, 4  # of the frontier that is shown, down to a quarter of the plan's time


@dataclass(frozen=True)
class SpeedLimit:
    """A machine, and the seconds per token that decoding may take on it, if there is a limit."""

    machine: MachineProfile
    batch: int
    cached: int
    limit: float | None
    words: str

    @classmethod
    def of(
        cls,
        machine: str | Path | MachineProfile | None,
        latency: float | str | None,
        throughput: float | str | None,
        batch: int,
        cached: int,
        rates: tuple[float, float] | None = None,
    ) -> "SpeedLimit":
        """From what a person gave; without a machine, `rates` are bytes per second and seconds per layer."""
        limits = {}
        if latency is not None:
            seconds = parse_seconds(latency)
            limits[f"{show_time(seconds)} per token"] = seconds
        if throughput is not None:
            rate = parse_count(throughput, "a number of tokens per second")
            limits[f"{rate:,} tokens per second"] = batch / rate
        profile = find_machine(DEFAULT if machine is None else machine)
        if rates is not None:
            profile = with_rates(profile, *rates)
        return cls(profile, batch, cached, min(limits.values(), default=None), " and ".join(limits))

    @property
    def source(self) -> str:
        """Where the times come from."""
        return f"{self.machine.name}: {self.machine.source}"

    def decode(self, shape: Shape) -> Interval:
        """Seconds per token at the end of the context."""
        return self.machine.seconds("decode", shape, batch=self.batch, tokens=self.cached)

    def seconds(self, shape: Shape) -> float:
        """`decode` without its interval."""
        return self.decode(shape).value

    def step_time(self, shape: Shape, instead_of: Shape) -> Interval | None:
        """Training step time of one shape over another; None where the machine was not measured."""
        if "train" not in self.machine.phases:
            return None
        return Interval(self.machine.seconds("train", shape).value / self.machine.seconds("train", instead_of).value)


@dataclass(frozen=True)
class _Option:
    shape: Shape
    seconds: float
    loss: float


class Search:
    """The shapes that are tried around a plan without a limit, each with its time and expected loss."""

    def __init__(
        self, style: Style, law: DepthLaw, compute: ComputeLaw, budget: Budget, plan: Shape, tokens: int, at_most: bool
    ) -> None:
        self.style, self.law, self.compute, self.budget, self.plan = style, law, compute, budget, plan
        self.tokens, self.never_over = tokens, at_most or budget.kind == "memory"
        self.base = self._loss(plan)
        self.most = 1.001 * max(budget.amount, float(budget.measure(plan)))  # no shape may be larger than the plan

    def options(self, speed: SpeedLimit, depths: list[int], shares: Floats) -> list[_Option]:
        """Everything that divides as asked at these depths and shares of the budget."""
        tried: dict[tuple[int, int, int, int], _Option] = {}
        D = np.array(depths, dtype=float)
        for share in shares.tolist():
            amounts = np.full(len(D), share * self.budget.amount)
            try:
                widths = self.style.width_for(D, amounts, self.budget.measure)
                rounded = round_shapes(
                    self.style, amounts, D, widths, self.budget.measure, fixed_depth=True, never_over=self.never_over
                )
            except DeepwideError:
                continue  # so little that nothing divides as asked
            for row in zip(*(values.tolist() for values in rounded), strict=True):
                if row in tried:
                    continue
                shape = self.style.shape(*row)
                loss = self._loss(shape)
                if loss is not None and float(self.budget.measure(shape)) <= self.most:
                    tried[row] = _Option(shape, speed.seconds(shape), loss)
        return list(tried.values())

    def within(self, speed: SpeedLimit, fixed_depth: int | None) -> tuple[Shape, Speed]:
        """The shape to build, the plan's own if it is quick enough, and the frontier around it."""
        if self.base is None:
            raise DeepwideError(
                "no loss data reach this far from the law's depth, so shapes cannot be compared by their loss: "
                "ask without a limit on time, or for another size."
            )
        depths = self.depths(fixed_depth)
        tried = self.options(speed, depths, SHARES)
        plan = _Option(self.plan, speed.seconds(self.plan), self.base)
        chosen = plan
        if speed.limit is not None and plan.seconds > speed.limit:
            quick = [option for option in tried if option.seconds <= speed.limit]
            if not quick:
                fastest = min([plan, *tried], key=lambda option: option.seconds)
                quickest = f"{fastest.shape.depth} × {fastest.shape.width:,}, takes {show_time(fastest.seconds)}"
                raise DeepwideError(
                    f"nothing decodes within {speed.words} on '{speed.machine.name}': of {len(tried):,} shapes tried "
                    f"the quickest, {quickest}: allow more time, or take a quicker machine or a smaller budget."
                )
            chosen = min(quick, key=lambda option: option.loss)
            share = float(self.budget.measure(chosen.shape)) / self.budget.amount
            near = [depth for depth in depths if 0.7 <= depth / chosen.shape.depth <= 1.4]
            finer = np.geomspace(share, min(1.0, share * SHARES[0] / SHARES[1]), FINER)
            tried += (more := self.options(speed, near, finer))
            chosen = min([chosen, *(o for o in more if o.seconds <= speed.limit)], key=lambda option: option.loss)
        return chosen.shape, _summary(self, speed, chosen, _frontier([plan, *tried]))

    def depths(self, fixed: int | None) -> list[int]:
        """The plan's depth and shallower ones, in whole stages."""
        stages = self.style.pipeline_stages
        if fixed is not None:
            return [fixed]
        units = self.plan.depth // stages
        few = np.geomspace(max(1, units / SHALLOWEST), units, DEPTHS)
        return sorted({max(1, round(float(value))) * stages for value in few})

    def loss_percent(self, shape: Shape) -> Interval:
        """Expected loss against the plan without a limit."""
        loss, cost = self._loss(shape), self._depth_cost(shape)
        if loss is None or cost is None or self.base is None:
            raise DeepwideError(f"no loss data reach {shape.depth} × {shape.width:,}.")
        value = 100 * (loss / self.base - 1)
        if shape == self.plan or cost.low is None or cost.high is None:
            return Interval(value)
        return Interval(value, value + cost.low - cost.value, value + cost.high - cost.value)

    def _depth_cost(self, shape: Shape) -> Interval | None:
        size = shape.params.active_block
        return depth_cost(shape.depth, max(1.0, self.law.depth_at(size)), size, self.law)

    def _loss(self, shape: Shape) -> float | None:
        cost = self._depth_cost(shape)
        if cost is None:
            return None
        c = self.compute
        smooth = c.E + c.A * shape.active_params**-c.alpha + c.B * self.tokens**-c.beta
        return float(smooth * (1 + cost.value / 100))


def _frontier(options: list[_Option]) -> list[_Option]:
    """The options that no other beats in both time and loss, the quickest first."""
    best, least = list[_Option](), math.inf
    for option in sorted(options, key=lambda o: (o.seconds, o.loss)):
        if option.loss < least:
            best, least = [*best, option], option.loss
    return best


def _summary(search: Search, speed: SpeedLimit, chosen: _Option, frontier: list[_Option]) -> Speed:
    frontier = [o for o in frontier if o.seconds >= chosen.seconds / QUICKEST] or frontier[-1:]
    targets = np.geomspace(frontier[0].seconds, frontier[-1].seconds, ROWS)
    shown = {id(min(frontier, key=lambda o: abs(math.log(o.seconds / target)))) for target in targets}
    rows = [option for option in frontier if id(option) in shown and option.shape != chosen.shape] + [chosen]
    train = speed.machine.seconds("train", chosen.shape) if "train" in speed.machine.phases else None
    return Speed(
        machine=speed.machine.name,
        source=speed.machine.source,
        batch=speed.batch,
        cached=speed.cached,
        limit_seconds=speed.limit,
        decode_seconds=speed.decode(chosen.shape),
        tokens_per_second=speed.batch / chosen.seconds,
        train_step_seconds=train,
        loss_percent=search.loss_percent(chosen.shape),
        frontier=[
            SpeedRow(
                depth=option.shape.depth,
                width=option.shape.width,
                block_params=option.shape.params.active_block,
                total_params=option.shape.total_params,
                loss_percent=search.loss_percent(option.shape),
                decode_seconds=speed.decode(option.shape),
                tokens_per_second=speed.batch / option.seconds,
                chosen=option.shape == chosen.shape,
            )
            for option in sorted(rows, key=lambda o: o.seconds)
        ],
    )
