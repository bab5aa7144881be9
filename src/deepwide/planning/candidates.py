"""About the same size at other depths, each compared with the recommended shape: loss, training and decode times.

Without a machine profile a decode step takes as long as reading its bytes, and an overhead per layer.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepwide.answers import Interval
from deepwide.errors import DeepwideError, quoted
from deepwide.laws import DepthLaw, depth_cost, outside_the_data, step_time_ratio
from deepwide.planning.budget import Budget, DeviceShare, Split
from deepwide.planning.rounding import round_shapes
from deepwide.planning.style import Style
from deepwide.quantities import parse_bytes
from deepwide.shape import INFERENCE_BYTES, Shape, cache_elements

if TYPE_CHECKING:
    from deepwide.planning.speed import SpeedLimit

# The preset `captured` of timing/presets.py, which a plan does not wait for: bytes per second of one H100, and
# microseconds that a layer adds while decoding.
BANDWIDTH, LAYER_US = "3350GB", 16.0
ERDIL = "Erdil 2025 (arXiv 2506.04645)"
DECODE_FROM = f"the preset captured, {LAYER_US:g} µs per layer by {ERDIL} on one H100"
# Of the presets whose ranks share every layer, by their number: bytes per second together, and µs per layer.
TENSOR_PARALLEL = {8: (8 * 3.35e12, 52.0), 64: (64 * 3.35e12, 110.0)}
EQUAL = 0.005  # sizes differ by no more than this where the constraints allow it: the feed-forward takes up the slack
SAME_SIZE = 0.05  # candidates further than this from the plan's size are left out
DEPTH_FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Candidate:
    """A shape of the same budget and another depth, compared with the recommended one."""

    depth: int
    width: int
    heads: int
    head_dim: int
    ff_width: int  # with experts, of one
    block_params: int  # with experts, those that a token passes through
    total_params: int
    depth_over_law: float
    loss_percent: Interval | None  # None: far beyond the data
    extrapolated: bool  # with experts always: there are no data
    step_time: Interval
    decode_time: float
    size_percent: float = 0.0  # its block parameters against the recommended shape's
    device: DeviceShare | None = None  # of the fullest device, where the model is split
    budget_share: float = 1.0  # what it takes of the budget

    @property
    def is_equal(self) -> bool:
        """Whether its size is that of the recommended shape, to half a percent."""
        return abs(self.size_percent) <= 100 * EQUAL


def other_depths(
    style: Style,
    best: Shape,
    law: DepthLaw,
    law_params: float,
    decode: "Decoding | SpeedLimit",
    split: Split | None,
    budget: Budget,
) -> list[Candidate]:
    """About the same block parameters at other depths; those that constraints push off the size are left out."""
    stages, size = style.pipeline_stages, Budget.of(best.params.active_block)
    law_depth = law.depth_at(law_params)
    depths = sorted({max(1, round(best.depth * factor / stages)) * stages for factor in DEPTH_FACTORS})
    amounts, L = np.full(len(depths), size.amount), np.array(depths, dtype=float)
    widths = style.width_for(L, amounts, size.measure)
    rounded = round_shapes(style, amounts, L, widths, size.measure, fixed_depth=True, close=EQUAL)
    shapes = [style.shape(*row) for row in zip(*(values.tolist() for values in rounded), strict=True)]
    rows, same = [], best.params.active_block
    for shape in (best if other.depth == best.depth else other for other in shapes):
        params = shape.params
        if abs(params.active_block / same - 1) > SAME_SIZE:
            continue
        rows.append(
            Candidate(
                depth=shape.depth,
                width=shape.width,
                heads=shape.heads,
                head_dim=shape.head_dim,
                ff_width=shape.ff_width,
                block_params=params.active_block,
                total_params=params.total,
                depth_over_law=shape.depth / law_depth,
                loss_percent=depth_cost(shape.depth, best.depth, same, law),
                extrapolated=style.experts is not None or outside_the_data(shape.depth, same, law) is not None,
                step_time=decode.step_time(shape, best) or step_time_ratio(shape.depth, best.depth),
                decode_time=decode.seconds(shape) / decode.seconds(best),
                size_percent=100 * (params.active_block / same - 1),
                device=None if split is None else split.share(shape),
                budget_share=float(budget.measure(shape)) / budget.amount,
            )
        )
    return rows


def preset_of(ranks: int) -> str | None:
    """The preset machine of so many tensor parallel ranks, if there is one."""
    return f"tensor-{ranks}" if ranks in TENSOR_PARALLEL else None


@dataclass(frozen=True)
class Decoding:
    """The two constants of the decode time: a step reads every active weight and the cache of a whole batch once.

    It passes layer after layer.
    """

    bytes_per_second: float
    layer_seconds: float
    source: str
    batch: int = 1
    weights: str = "bf16"  # their precision; the cache is in bf16

    @classmethod
    def of(
        cls, bandwidth: float | str, layer_us: float, batch: int = 1, precision: str = "bf16", ranks: int = 1
    ) -> "Decoding":
        """The constants from what a person gave: 3350GB, 3.35TB/s, or a number of bytes per second.

        If nothing was given, those of a preset machine of so many ranks, or else of one H100.
        """
        try:
            rate = float(parse_bytes(bandwidth.strip().removesuffix("/s")) if isinstance(bandwidth, str) else bandwidth)
        except (TypeError, ValueError):  # a DeepwideError too: it would speak of a memory size
            rate = math.nan
        if not 1e6 <= rate < math.inf:
            raise DeepwideError(f"bandwidth must be 1 MB per second or more, such as 3350GB, not {quoted(bandwidth)}.")
        if not isinstance(layer_us, int | float) or not 0 <= layer_us <= 1e6:
            raise DeepwideError(f"layer_us must be from 0 to 1e6 microseconds per layer, not {quoted(layer_us)}.")
        given = f"{rate / 1e9:g} GB/s and {layer_us:g} µs per layer, as given"
        source = given
        if (bandwidth, layer_us) == (BANDWIDTH, LAYER_US):
            source = DECODE_FROM
            if name := preset_of(ranks):
                (rate, per_layer), source = TENSOR_PARALLEL[ranks], f"the preset {name}, {{:g}} µs per layer by {ERDIL}"
                return cls(rate, per_layer / 1e6, source.format(per_layer), batch, precision)
            if ranks > 1:
                source += f", not on {ranks} devices"
        return cls(rate, layer_us / 1e6, source, batch, precision)

    def step_time(self, shape: Shape, instead_of: Shape) -> Interval | None:  # noqa: ARG002
        """These constants say nothing about training."""
        return None

    def seconds(self, shape: Shape) -> float:
        """Seconds of a step at the end of the context: one token of every sequence of the batch."""
        read = INFERENCE_BYTES[self.weights] * shape.active_params
        cached = 2 * self.batch * shape.context * cache_elements(shape)
        return (read + cached) / self.bytes_per_second + shape.depth * self.layer_seconds
