"""Sweeps that never ran: losses from a known law with noise, to see what a fit would make of them.

For calibrating the fits, and for asking how many sizes and seeds an ablation needs before it is run.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.fitting.runs import Runs
from deepwide.laws import TransitionLaw
from deepwide.quantities import Floats

FLOOR, SCALE, EXPONENT = 0.9, 8.0, 0.2  # loss at the best depth: FLOOR + SCALE·N^−EXPONENT, about that of bytes


def simulate(
    law: TransitionLaw,
    *,
    depths: Sequence[int],
    sizes: Sequence[float] | Floats,
    seeds: int = 2,
    curvature: float = 0.02,
    noise: float | Mapping[int, float] = 0.004,
    seed_effect: float = 0.003,
    off_size: float = 0.03,
    seed: int = 0,
) -> Runs:
    """ln loss = ln(FLOOR + SCALE·N^−EXPONENT) + curvature·ln²(depth / law's) + what a seed shares + noise.

    The noise is the same for all runs, or given for each depth. Sizes miss their mark by `off_size` (relative, standard
    deviation), as widths in whole steps do.
    """
    if not (depths and len(sizes) and seeds >= 1):
        raise DeepwideError("a simulated sweep needs depths, sizes and at least one seed.")
    scatter = noise if isinstance(noise, Mapping) else dict.fromkeys(depths, noise)
    if missing := set(depths) - set(scatter):
        raise DeepwideError(f"the noise of depth {min(missing)} is not given.")
    draw = np.random.default_rng(seed)
    shared = draw.normal(0, seed_effect, seeds)
    rows = []
    for depth in depths:
        for size in sizes:
            N = size * math.exp(draw.normal(0, off_size))
            off = math.log(depth / float(law.depth(N).value[0]))
            middle = math.log(FLOOR + SCALE * N**-EXPONENT) + curvature * off**2
            losses = np.exp(
                middle + shared + draw.normal(0, noise if isinstance(noise, float) else noise[depth], seeds)
            )
            rows += [(depth, math.sqrt(N / (12 * depth)), N, loss, s) for s, loss in enumerate(losses)]
    L, d, N_all, loss, number = np.array(rows).T
    return Runs.of(depth=L, width=d, block_params=N_all, loss=loss, seed=number, source="a simulated sweep")
