"""What a wrong depth costs, in loss and in time, as measured on Gemstones' 22 shapes.

`gemstones.json` is made by `benchmarks/derive_gemstones.py`: ln loss has a bowl b1·x + b2·x² in
x = ln(depth / transition law's depth at the same block parameters), and node-seconds per step grow like depth^c.
"""

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

from deepwide.laws.book import transition_law
from deepwide.laws.law import Z95, Interval

SOURCE = "Gemstones' 22 shapes at 100B tokens"


@cache
def measured() -> dict[str, Any]:
    """The derived numbers, with their source and how they were made."""
    text = files(__package__).joinpath("gemstones.json").read_text(encoding="utf-8")
    result: dict[str, Any] = json.loads(text)
    return result


def depth_cost(depth: float, instead_of: float, block_params: float) -> Interval:
    """Extra loss, in percent, of one depth instead of another at equal block parameters.

    The bowl is linear in its two coefficients, so its covariance carries over exactly.
    """
    ridge = measured()["ridge"]
    law = float(transition_law().depth(block_params).value[0])
    x, y = math.log(depth / law), math.log(instead_of / law)
    slope, curve = x - y, x * x - y * y
    (v11, v12), (_, v22) = ridge["covariance"]
    value = ridge["b1"] * slope + ridge["b2"] * curve
    error = Z95 * math.sqrt(max(0.0, slope * slope * v11 + 2 * slope * curve * v12 + curve * curve * v22))
    return Interval(*(100 * math.expm1(v) for v in (value, value - error, value + error)))


def outside_the_data(depth: float, block_params: float) -> str | None:
    """Why `depth_cost` is an extrapolation here, or None when it is not."""
    ridge = measured()["ridge"]
    small, large = ridge["block_params_range"]
    x = math.log(depth / float(transition_law().depth(block_params).value[0]))
    low, high = ridge["x_range"]
    if not small <= block_params <= large:
        return f"measured from {small / 1e6:.0f}M to {large / 1e9:.1f}B block parameters only"
    if not low <= x <= high:
        return f"measured from {math.exp(low):.2f} to {math.exp(high):.1f} times the law's depth only"
    return None


def step_time_ratio(depth: float, instead_of: float) -> Interval:
    """Node-time per training step of one depth over another at equal FLOPs."""
    time = measured()["step_time"]
    x = math.log(depth / instead_of)
    value, error = time["c2"] * x, Z95 * time["c2_se_with_choices"] * abs(x)
    return Interval(math.exp(value), math.exp(value - error), math.exp(value + error))
