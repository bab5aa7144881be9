"""What a wrong depth costs: in loss by the law's own runs or else by Gemstones' 22 shapes, in time by Gemstones.

`gemstones.json` is made by `benchmarks/derive_gemstones.py`: ln loss has a bowl b1·x + b2·x² in
x = ln(depth / transition law's depth at the same block parameters), and node-seconds per step grow like depth^c.
"""

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

from deepwide.answers import Z95, Interval
from deepwide.laws.book import transition_law
from deepwide.laws.law import Law

SLACK = math.log(2)  # how far beyond the measured range of ln(depth / law) the bowl is still quoted


@cache
def measured() -> dict[str, Any]:
    """The derived numbers, with their source and how they were made."""
    text = files(__package__).joinpath("gemstones.json").read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(text)
    return result


def depth_cost(depth: float, instead_of: float, block_params: float, law: Law | None = None) -> Interval | None:
    """Extra loss, in percent, of one depth instead of another at equal block parameters; None far beyond the data.

    A fitted law has a bowl of its own, centred where the law says, within its error. Gemstones' is centred on the
    transition law's depth, and linear in its two coefficients, so that their covariance carries over exactly.
    """
    if law is not None and law.bowl is not None:
        best = law.depth(block_params).at()
        x, y = math.log(depth / best.value), math.log(instead_of / best.value)
        low, high = law.bowl.x_range
        if not (low - SLACK <= min(x, y) and max(x, y) <= high + SLACK):
            return None
        # Neither how steep the bowl is nor where it has its minimum is known exactly.
        place = max((abs(math.log(limit / best.value)) for limit in (best.low, best.high) if limit), default=0.0)
        value = law.bowl.curvature * (x * x - y * y)
        error = math.hypot(Z95 * law.bowl.error * (x * x - y * y), 2 * law.bowl.curvature * (x - y) * place)
        return Interval(*(100 * math.expm1(v) for v in (value, value - error, value + error)))
    ridge = measured()["ridge"]
    x, y = _off_the_law(depth, block_params), _off_the_law(instead_of, block_params)
    low, high = ridge["x_range"]
    if not (low - SLACK <= min(x, y) and max(x, y) <= high + SLACK):
        return None
    slope, curve = x - y, x * x - y * y
    (v11, v12), (_, v22) = ridge["covariance"]
    value = ridge["b1"] * slope + ridge["b2"] * curve
    error = Z95 * math.sqrt(max(0.0, slope * slope * v11 + 2 * slope * curve * v12 + curve * curve * v22))
    return Interval(*(100 * math.expm1(v) for v in (value, value - error, value + error)))


def measured_optimum(block_params: float) -> Interval:
    """Where Gemstones' bowl has its minimum at this size, in layers: wide, since that is what the data know."""
    minimum = measured()["ridge"]["minimum_depth_over_law"]
    law = float(transition_law().depth(block_params).value[0])
    return Interval(minimum["estimate"] * law, *(limit * law for limit in minimum["interval95"]))


def outside_the_data(depth: float, block_params: float, law: Law | None = None) -> str | None:
    """Why `depth_cost` is an extrapolation here, or None when it is not."""
    if law is not None and law.bowl is not None:
        if law.is_extrapolated(block_params):
            return f"{law.fitted_words} block parameters only"
        low, high = law.bowl.x_range
        if not low <= math.log(depth / float(law.depth(block_params).value[0])) <= high:
            return f"fitted from {math.exp(low):.2f} to {math.exp(high):.1f} times the law's depth only"
        return None
    ridge = measured()["ridge"]
    small, large = ridge["block_params_range"]
    low, high = ridge["x_range"]
    if not small <= block_params <= large:
        return f"measured from {small / 1e6:.0f}M to {large / 1e9:.1f}B block parameters only"
    if not low <= _off_the_law(depth, block_params) <= high:
        return f"measured from {math.exp(low):.2f} to {math.exp(high):.1f} times the law's depth only"
    return None


def _off_the_law(depth: float, block_params: float) -> float:
    return math.log(depth / float(transition_law().depth(block_params).value[0]))


def step_time_ratio(depth: float, instead_of: float) -> Interval:
    """Node-time per training step of one depth over another at equal FLOPs."""
    time = measured()["step_time"]
    x = math.log(depth / instead_of)
    value, error = time["c2"] * x, Z95 * time["c2_se_with_choices"] * abs(x)
    return Interval(math.exp(value), math.exp(value - error), math.exp(value + error))
