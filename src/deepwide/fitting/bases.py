"""Which law of growth do the runs prefer? Bowls about several, compared by AIC.

Each is a parabola in u = ln(depth / law's depth), with the loss against size and tokens a parabola too. The numbers are
what an information criterion is worth on so few runs: differences below 2 say nothing, and noise is taken to be
independent. The joint model, not the winner, gives the intervals.
"""

import math

import numpy as np

from deepwide.fitting.model import Design
from deepwide.laws import transition_law
from deepwide.quantities import Floats

FEWEST_SPARE = 6  # cells beyond the parameters: with fewer the correction decides, not the runs
POWERS = (-0.2, 0.8)


def compare_bases(y: Floats, design: Design, log_size: Floats) -> dict[str, float]:
    """AICc of each law of growth above the least; empty where there are too few cells for them.

    The bowl about each law may be skewed: a cubic in ln depth over the law's depth.
    """
    from scipy.optimize import minimize_scalar

    s, x = design.s, design.x
    columns = [np.ones_like(s), s, s**2]
    columns += [] if design.t is None else [design.t, design.t**2]
    places = {
        "constant ratio of width to depth": x - s / 3,
        "the levine law's shape": x - np.log(transition_law().depth(np.exp(log_size)).value),
        "one depth at all sizes": x,
    }

    def table(u: Floats) -> Floats:
        return np.column_stack([*columns, u, u**2, u**3])

    def left(u: Floats) -> float:
        X = table(u)
        return float(np.sum((y - X @ np.linalg.lstsq(X, y)[0]) ** 2))

    power = float(minimize_scalar(lambda p: left(x - p * s), bounds=POWERS, method="bounded").x)
    values = {}
    for name, u in (("a power of the size", x - power * s), *places.items()):
        k = int(np.linalg.matrix_rank(table(u))) + 1 + name.startswith("a power")
        spare = len(y) - k - 1
        if spare < FEWEST_SPARE:
            return {}
        squares = left(u)
        values[name] = len(y) * math.log(max(squares, 1e-300) / len(y)) + 2 * k + 2 * k * (k + 1) / spare
    least = min(values.values())
    return {name: value - least for name, value in sorted(values.items(), key=lambda item: item[1])}
