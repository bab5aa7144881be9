"""Plans that must be quick: the shapes of least expected loss that decode within a limit on a given machine.

Expected loss of a shape, relative to the plan without a limit: a compute law's loss at the plan's tokens, times what
its depth costs at its size if the law that plans is right about the best depth of every size (laws/cost.py). Sizes
are compared by (active) block parameters, as laws and costs were fitted: the compute law is asked about the parameters
of the plan without a limit, times the ratio of block parameters. Beside it stands what the loss data say of the depth.

Shapes are those that the planner would round to, at depths up to the law's and at shares of the budget; what is
compared is exact. Which shapes are tried does not depend on the limit, so of limits that bind a looser one never gives
a plan of more expected loss. A limit that the plan without one meets changes nothing: it stays even where a shape that
was tried is a little better, as rounding and a law's own depth leave room for in small models.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.laws import ComputeLaw, DepthLaw, own_cost, own_shape_costs, shape_cost, shape_costs
from deepwide.planning.budget import Budget
from deepwide.planning.optimum import NARROW_HEADS
from deepwide.planning.reasons import Speed, SpeedRow
from deepwide.planning.rounding import shapes_near
from deepwide.planning.style import Style
from deepwide.quantities import parse_count, parse_seconds, show_time
from deepwide.shape import INFERENCE_BYTES, Shape, causal_training_flops, device_memory
from deepwide.timing import MachineProfile, find_machine, with_rates

DEFAULT = "captured"
SMALLEST = 64  # shares of the budget are tried down to 1 / this,
SHARES, FINER = 24, 8  # in so many steps, and in finer ones about what no other shape beats
DEPTHS = 40  # tried at most, down to a twelfth of the deepest
SHALLOWEST = 12
QUICKER = 0.99  # times the plan's time: a shape is named that takes less,
WORTH_NAMING = 0.0005  # and that the loss data put so much of the loss below the plan's
ROWS, QUICKEST = 8, 4  # of the frontier that is shown, down to a quarter of the plan's time


@dataclass(frozen=True)
class SpeedLimit:
    """A machine, and the seconds per token that decoding may take on it, if there is a limit."""

    machine: MachineProfile
    batch: int
    cached: int
    limit: float | None
    words: str
    precision: str = "bf16"  # of the weights in memory

    @classmethod
    def of(
        cls,
        machine: str | Path | MachineProfile | None,
        latency: float | str | None,
        throughput: float | str | None,
        batch: int,
        cached: int,
        rates: tuple[float, float] | None = None,
        precision: str = "bf16",
    ) -> "SpeedLimit":
        """From what a person gave; without a machine, `rates` are bytes per second and seconds per layer."""
        limits = {}
        if latency is not None:
            seconds = parse_seconds(latency)
            limits[f"within {show_time(seconds)} per token"] = seconds
        if throughput is not None:
            rate = _tokens_per_second(throughput)
            limits[f"at {rate:,.10g} tokens per second or more"] = batch / rate
        profile = find_machine(DEFAULT if machine is None else machine)
        if rates is not None:
            profile = with_rates(profile, *rates)
        if limits and profile.rounds and INFERENCE_BYTES[precision] < min(2, profile.weight_bytes):
            raise DeepwideError(
                f"'{profile.name}' was measured with weights in {profile.precision} and cannot say how quick "
                f"{precision} is: plan in bf16, or with a preset machine, whose times count the bytes moved."
            )
        return cls(profile, batch, cached, min(limits.values(), default=None), " and ".join(limits), precision)

    @property
    def weights(self) -> str:
        """The precision of the weights that times are of: a measured machine knows its own only."""
        return self.machine.precision if self.machine.rounds else self.precision

    @property
    def source(self) -> str:
        """Where the times come from."""
        return f"{self.machine.name}: {self.machine.source}"

    def decode(self, shape: Shape) -> Interval:
        """Seconds per token at the end of the context."""
        stored = INFERENCE_BYTES[self.weights]
        return self.machine.seconds("decode", shape, batch=self.batch, tokens=self.cached, stored_bytes=stored)

    def seconds(self, shape: Shape) -> float:
        """`decode` without its interval."""
        return self.decode(shape).value

    def device_bytes(self, shape: Shape) -> int | None:
        """What serving takes on each device, its share of the weights and of the cache; None: not counted so."""
        try:
            device = device_memory(shape, tensor_parallel=self.machine.devices, batch=self.batch, sequence=self.cached)
        except DeepwideError:
            return None
        return round(INFERENCE_BYTES[self.precision] * max(device.stage_params)) + device.cache

    def step_time(self, shape: Shape, instead_of: Shape) -> Interval | None:
        """Training step time of one shape over another; None where the machine was not measured."""
        if "train" not in self.machine.phases:
            return None
        return Interval(self.machine.seconds("train", shape).value / self.machine.seconds("train", instead_of).value)


def _tokens_per_second(given: float | str) -> float:
    """A count such as 1.5k, or less than 1: a large model on a small machine."""
    try:
        if 1e-6 <= float(given) < 1:
            return float(given)
    except (TypeError, ValueError):
        pass
    return float(parse_count(given, "a number of tokens per second"))


@dataclass(frozen=True)
class _Option:
    shape: Shape
    seconds: float
    loss: float  # over that of the plan without a limit, if the law is right
    by_data: float  # the same by the loss data, wherever the law puts the best depth; NaN: none


class Search:
    """The shapes that are tried around a plan without a limit, each with its time and expected loss."""

    def __init__(
        self, style: Style, law: DepthLaw, compute: ComputeLaw, budget: Budget, plan: Shape, tokens: int, at_most: bool
    ) -> None:
        self.style, self.law, self.compute, self.budget, self.plan = style, law, compute, budget, plan
        self.tokens, self.never_over = tokens, at_most or budget.is_memory
        self.compared_with = (float(plan.depth), float(plan.params.active_block))
        self.most = 1.001 * max(budget.amount, float(budget.measure(plan)))  # no shape may be larger than the plan

    def within(self, speed: SpeedLimit, fixed_depth: int | None) -> tuple[Shape, Speed]:
        """The shape to build, without a limit the plan's own, and the frontier around it."""
        plan = _Option(self.plan, speed.seconds(self.plan), 1.0, 1.0)
        if own_cost(*self.compared_with, self.compared_with, self.law) is None:
            if speed.limit is None:
                return self.plan, _summary(self, speed, plan, plan, [plan])
            raise DeepwideError(
                "no loss data reach this far from the best depth, so shapes cannot be compared by their loss: "
                "ask without a limit on time, or for another size."
            )
        tried = self.options(speed, fixed_depth)
        chosen = plan
        binds = speed.limit is not None and plan.seconds > speed.limit
        options = [plan, *(option for option in tried if binds or option.loss >= 1)]
        if binds:
            assert speed.limit is not None
            quick = [option for option in options if option.seconds <= speed.limit]
            if not quick:
                options = [*self.narrow_headed(speed, fixed_depth, options), *options]
                quick = [option for option in options if option.seconds <= speed.limit]
            if not quick:
                fastest = min(options, key=lambda option: option.seconds)
                quickest = f"{fastest.shape.depth} × {fastest.shape.width:,}, takes {show_time(fastest.seconds)}"
                raise DeepwideError(
                    f"nothing decodes {speed.words} on '{speed.machine.name}': of {len(options):,} shapes tried "
                    f"the quickest, {quickest}: allow more time, or take a quicker machine or a smaller budget."
                )
            chosen = min(quick, key=lambda option: (option.loss, option.seconds))
        return chosen.shape, _summary(self, speed, chosen, plan, _frontier(options), tried)

    def narrow_headed(self, speed: SpeedLimit, fixed_depth: int | None, usual: list[_Option]) -> list[_Option]:
        """Shapes with heads narrower than usual that are quicker than all others: for limits that only they meet."""
        if self.style.head_dim is not None:
            return []
        fastest = min(usual, key=lambda option: (option.seconds, option.loss))
        tried = self.options(speed, fixed_depth, any_heads=True)
        return [option for option in tried if option.seconds < fastest.seconds and option.loss >= fastest.loss]

    def options(self, speed: SpeedLimit, fixed_depth: int | None, any_heads: bool = False) -> list[_Option]:
        """Every shape that is tried, whatever the limit: a grid of depths and shares, finer along its frontier."""
        depths = self.depths(fixed_depth)
        steps = [(row, FINER * step) for row in range(len(depths)) for step in range(SHARES + 1)]
        tried = self._options(speed, depths, steps, {}, any_heads)
        place = {depth: row for row, depth in enumerate(depths)}
        finer = set[tuple[int, int]]()
        for option in _frontier(tried.values()):
            share = min(1.0, float(self.budget.measure(option.shape)) / self.budget.amount)
            step, row = round(-math.log(share) / math.log(SMALLEST) * SHARES * FINER), place[option.shape.depth]
            rows = range(max(0, row - 1), min(len(depths), row + 2))
            finer |= {(at, near) for at in rows for near in range(max(0, step - FINER), step + FINER)}
        return list(self._options(speed, depths, sorted(finer - set(steps)), tried, any_heads).values())

    def _options(
        self,
        speed: SpeedLimit,
        depths: list[int],
        steps: list[tuple[int, int]],
        known: dict[Shape, _Option],
        any_heads: bool,
    ) -> dict[Shape, _Option]:
        """What divides as asked at these depths (their places) and shares of the budget, beside what is known."""
        if not steps:
            return known
        D = np.array([depths[row] for row, _ in steps], dtype=float)
        shares = np.exp(-np.array([step for _, step in steps]) * math.log(SMALLEST) / (SHARES * FINER))
        amounts, measure = shares * self.budget.amount, self.budget.measure
        rows = {
            row
            for style in self.styles
            for row in shapes_near(
                style,
                amounts,
                D,
                style.width_for(D, amounts, measure),
                measure,
                never_over=self.never_over,
                any_heads=any_heads,
            )
        }
        shapes = [self.style.shape(*row) for row in sorted(rows)]
        shapes = [shape for shape in shapes if shape not in known and float(measure(shape)) <= self.most]
        sizes = [(shape.depth, shape.params.active_block) for shape in shapes]
        L, N = np.array(sizes, dtype=float).reshape(-1, 2).T
        size = self._size_loss(N, np.array([self.tokens_of(shape) for shape in shapes]))
        losses, by_data = (
            size * (1 + costs(L, N, self.compared_with, self.law) / 100) for costs in (own_shape_costs, shape_costs)
        )
        more = zip(shapes, losses.tolist(), by_data.tolist(), strict=True)
        return known | {
            shape: _Option(shape, speed.seconds(shape), loss, data) for shape, loss, data in more if loss == loss
        }

    @property
    def styles(self) -> list[Style]:
        """Usual heads, and ones of 64: with a given number of key/value heads they halve the cache of ones of 128."""
        narrow = self.style.head_dim is None and self.style.kv_heads is not None
        return [self.style, *([self.style.model_copy(update={"head_dim": NARROW_HEADS})] if narrow else [])]

    def depths(self, fixed: int | None) -> list[int]:
        """Depths in whole stages, from a twelfth of the deepest: the plan's, or the law's if that is deeper."""
        stages = self.style.pipeline_stages
        if fixed is not None:
            return [fixed]
        best = self.law.depth_at(self.compared_with[1])
        units = max(self.plan.depth // stages, round(best / stages))
        low = max(1, units // SHALLOWEST)
        if units - low < DEPTHS:
            return [unit * stages for unit in range(low, units + 1)]
        few = np.geomspace(low, units, DEPTHS)
        return sorted({self.plan.depth, *(max(1, round(float(value))) * stages for value in few)})

    def loss_percent(self, shape: Shape) -> Interval:
        """Expected loss against the plan without a limit, if the law is right."""
        percent = self._percent(shape, own_cost(*self._at(shape), self.compared_with, self.law))
        if percent is None:
            raise DeepwideError(f"no loss data reach {shape.depth} × {shape.width:,}.")
        return percent

    def data_percent(self, shape: Shape) -> Interval | None:
        """The same by the loss data, wherever the law puts the best depth."""
        return self._percent(shape, shape_cost(*self._at(shape), self.compared_with, self.law))

    def _at(self, shape: Shape) -> tuple[float, float]:
        return float(shape.depth), float(shape.params.active_block)

    def _percent(self, shape: Shape, cost: Interval | None) -> Interval | None:
        if shape == self.plan:
            return Interval(0.0)
        if cost is None or cost.low is None or cost.high is None:
            return None
        size = float(self._size_loss(float(shape.params.active_block), self.tokens_of(shape)))
        value, low, high = (100 * (size * (1 + each / 100) - 1) for each in (cost.value, cost.low, cost.high))
        return Interval(value, low, high)

    def tokens_of(self, shape: Shape) -> float:
        """The training tokens of a shape: those of the plan, or all that a FLOPs budget buys."""
        return self.budget.amount / causal_training_flops(shape) if self.budget.compute else float(self.tokens)

    def _size_loss(self, block_params: Any, tokens: Any) -> Any:
        """The compute law's loss over that of the plan without a limit."""
        c, own = self.compute, float(self.plan.active_params)
        at, here = (
            c.E + c.A * P**-c.alpha + c.B * D**-c.beta
            for P, D in ((own * block_params / self._blocks, tokens), (own, self.tokens_of(self.plan)))
        )
        return at / here

    @property
    def _blocks(self) -> float:
        return self.compared_with[1]


def _frontier(options: Iterable[_Option]) -> list[_Option]:
    """The options that no other beats in both time and loss, the quickest first."""
    best, least = list[_Option](), math.inf
    for option in sorted(options, key=lambda o: (o.seconds, o.loss)):
        if option.loss < least:
            best.append(option)
            least = option.loss
    return best


def _summary(
    search: Search,
    speed: SpeedLimit,
    chosen: _Option,
    plan: _Option,
    frontier: list[_Option],
    tried: Iterable[_Option] = (),
) -> Speed:
    better = None
    if search.law.bowl is None:  # its law and the loss data may disagree
        most, least = QUICKER * chosen.seconds, chosen.by_data - WORTH_NAMING
        quicker = [o for o in tried if o.seconds < most and o.by_data < least]
        better = min(quicker, key=lambda o: o.by_data, default=None)
    frontier = [o for o in frontier if o.seconds >= chosen.seconds / QUICKEST] or frontier[-1:]
    targets = np.geomspace(frontier[0].seconds, frontier[-1].seconds, ROWS)
    shown = {id(min(frontier, key=lambda o: abs(math.log(o.seconds / target)))) for target in targets}
    rows = [option for option in frontier if id(option) in shown and option.shape != chosen.shape] + [chosen]
    train = speed.machine.seconds("train", chosen.shape) if "train" in speed.machine.phases else None

    def row(option: _Option) -> SpeedRow:
        return SpeedRow(
            depth=option.shape.depth,
            width=option.shape.width,
            heads=option.shape.heads,
            head_dim=option.shape.head_dim,
            block_params=option.shape.params.active_block,
            total_params=option.shape.total_params,
            loss_percent=search.loss_percent(option.shape),
            data_percent=search.data_percent(option.shape),
            decode_seconds=speed.decode(option.shape),
            tokens_per_second=speed.batch / option.seconds,
            chosen=option.shape == chosen.shape,
        )

    return Speed(
        machine=speed.machine.name,
        source=speed.machine.source,
        devices=speed.machine.devices,
        batch=speed.batch,
        cached=speed.cached,
        limit_seconds=speed.limit,
        limit_words=speed.words,
        decode_seconds=speed.decode(chosen.shape),
        tokens_per_second=speed.batch / chosen.seconds,
        train_step_seconds=train,
        loss_percent=search.loss_percent(chosen.shape),
        data_percent=search.data_percent(chosen.shape),
        own_data=search.law.bowl is not None,
        frontier=[row(option) for option in sorted(rows, key=lambda o: o.seconds)],
        without_limit=row(plan),
        quicker_and_better=None if better is None else row(better),
        weights=speed.weights,
        device_bytes=speed.device_bytes(chosen.shape),
        memory_bytes=speed.machine.memory_bytes,
    )
