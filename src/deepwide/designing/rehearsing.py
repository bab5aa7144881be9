"""What runs may lead to, before any has been run: the plan carried out on made-up losses, and fitted.

The promise of `deciding` is the width that the model expects of its own posterior. It takes for granted that the runs
show a best depth at all, and that a fit finds the noise that was assumed; here neither is.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deepwide.designing.answer import Rehearsal
from deepwide.designing.choosing import Pool
from deepwide.designing.deciding import Goalpost, fit_of, interval_of
from deepwide.fitting import Outlook, Places, Runs, outlook_of
from deepwide.laws import without_limit

NOISE_SPREAD = 0.5  # sd of ln(noise), where it is not given: our own sweeps differ by a factor 3
DRAWS = 300  # of each fit


def rehearsed(
    pool: Pool, chosen: Sequence[int], goal: Goalpost, *, noise: float | None, number: int, seed: int = 0
) -> Rehearsal:
    """Each time a truth is drawn from what is assumed of any sweep, losses from it, and fitted as real ones would be.

    `noise` is what one run has, where the caller knows.
    """
    view = outlook_of(None, Places.none(), pool.places, length=goal.tokens, noise=noise, draws=number, seed=seed)
    random = np.random.default_rng(seed)
    widths = []
    for i in range(number):
        one = replace(view, draws=view.draws[i : i + 1])
        if noise is None:
            one = one.noisier(math.exp(NOISE_SPREAD * random.normal()))
        runs = _runs(one, pool, chosen, random)
        interval = interval_of(fit_of(runs, goal, DRAWS, examine=False), goal)
        widths.append(math.inf)
        if interval is not None and interval.low and interval.high and not without_limit(interval):
            widths[-1] = interval.high / interval.low
    ends = np.quantile(widths, (0.1, 0.5, 0.9), method="nearest").tolist()
    low, middle, high = (end if math.isfinite(end) else None for end in ends)
    return Rehearsal(sweeps=number, stated=int(np.isfinite(widths).sum()), ratio=middle, low=low, high=high)


def _runs(view: Outlook, pool: Pool, chosen: Sequence[int], random: np.random.Generator) -> Runs:
    """The chosen runs as they would be by this draw; a shape's second has the next seed."""
    seeds = [list(chosen[:i]).count(run) for i, run in enumerate(chosen)]
    places = pool.places.at(chosen)
    return Runs.of(
        depth=places.depth,
        block_params=places.block_params,
        total_params=places.total_params,
        loss=view.made_up(places, random),
        tokens=places.tokens,
        seed=seeds,
        source="a rehearsal",
    )
