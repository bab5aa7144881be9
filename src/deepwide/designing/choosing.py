"""Which runs shrink the target's interval most for a budget: many greedy ways through the pool, and the best of them.

A way keeps to sizes up to one of the pool's, begins with three depths of it (a law may state growth only up to a size
at which it has seen more than one depth), and then takes the run with the greatest fall of ln of the target's standard
deviation per cost^power, again and again. Which size and which power are best depends on the budget: all are tried.
The chosen runs are then run cheapest first, in batches: what the cheap ones find decides again about the dear ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepwide.fitting import Covariances, Places
from deepwide.quantities import Floats, Integers, Numbers

POWERS = (0.4, 1.0)
AT_THE_END = 3  # depths of the largest size
NEAR = 1.25  # sizes within this factor are one
MOST_RUNS = 150  # of one way
TINY = 1e-4  # a fall of ln sd that is none
SHARE = 0.25  # of the budget that a batch may cost
SHAPES, DEPTHS = 8, 3  # without which nothing can be fitted


@dataclass(frozen=True, eq=False)
class Pool:
    """What may be run: places, what each costs, and how often it may be repeated."""

    places: Places
    cost: Floats
    repeats: Integers

    def __len__(self) -> int:
        return len(self.cost)


@dataclass(frozen=True)
class Way:
    """Runs in the order in which they were chosen, with the cost so far and ln sd after each."""

    runs: tuple[int, ...]
    costs: tuple[float, ...]
    log_sd: tuple[float, ...]


def ends_of(pool: Pool, largest: float) -> Floats:
    """The sizes at which the runs may end: those of the pool that are larger than any before, and the largest before.

    Sizes that differ less than a factor 1.25 count as one.
    """
    ends = [largest] if largest > 0 else []
    for size in sorted(pool.places.block_params):
        if ends and size < ends[-1] * (NEAR if len(ends) > 1 or not largest else 1.02):
            if len(ends) > 1 or not largest:
                ends[-1] = max(ends[-1], size)
            continue
        ends.append(float(size))
    return np.array(ends)


def ways(cov: Covariances, pool: Pool, ends: Floats, budget: float, before: Places) -> list[Way]:
    """Every way through the pool that can be paid for, one per end of the sizes and power of the cost."""
    largest = float(before.block_params.max()) if len(before) else 0.0
    result = []
    for end, size in enumerate(ends):
        allowed = pool.places.block_params <= size * 1.001
        start = _beginning(cov, pool, end, allowed, budget) if size > largest * 1.02 else ((), cov)
        if start is None:
            continue
        for power in POWERS:
            way = _way(start[1].copy(), pool, end, allowed, budget, power, start[0], SHAPES - len(before))
            result.append(_without_fit(way, len(before)))
    return [way for way in result if way.runs and np.isfinite(way.log_sd[-1])]


def _without_fit(way: Way, before: int) -> Way:
    """The way with nothing known while there are fewer shapes than a fit needs."""
    shapes = [before + len(set(way.runs[: i + 1])) for i in range(len(way.runs))]
    log_sd = (sd if number >= SHAPES else np.inf for number, sd in zip(shapes, way.log_sd, strict=True))
    return Way(way.runs, way.costs, tuple(log_sd))


def _beginning(
    cov: Covariances, pool: Pool, end: int, allowed: Numbers, budget: float
) -> tuple[tuple[int, ...], Covariances] | None:
    """Three depths of the largest size: those that say most; None if the budget is too small."""
    cov = cov.copy()
    top = pool.places.block_params[allowed].max()
    near = allowed & (pool.places.block_params > top / NEAR) & (pool.repeats > 0)
    runs: list[int] = []
    spent = 0.0
    for _ in range(min(AT_THE_END, len(np.unique(pool.places.depth[near])))):
        free = near & ~np.isin(pool.places.depth, pool.places.depth[runs]) & (spent + pool.cost <= budget)
        if not free.any():
            return None
        score = np.where(free, cov.gains(end) / pool.cost**0.25, -1.0)
        runs.append(_greatest(score))
        spent += float(pool.cost[runs[-1]])
        cov.take(runs[-1])
    return tuple(runs), cov


def _way(
    cov: Covariances,
    pool: Pool,
    end: int,
    allowed: Numbers,
    budget: float,
    power: float,
    begun: Sequence[int],
    new: int,
) -> Way:
    """Run after run while the budget lasts; no shape is repeated before there are `new` of them."""
    runs, costs, log_sd = list(begun), [], []
    if runs:
        spent = np.cumsum(pool.cost[runs])
        costs, log_sd = spent.tolist(), [np.inf] * (len(runs) - 1) + [cov.log_sd(end)]
    left = budget - (costs[-1] if costs else 0.0)
    times = np.bincount(runs, minlength=len(pool))
    while len(runs) < MOST_RUNS:
        most = pool.repeats if (times > 0).sum() >= new else np.minimum(pool.repeats, 1)
        free = allowed & (pool.cost <= left) & (times < most)
        if not free.any():
            break
        gains = cov.gains(end)
        run = _greatest(np.where(free & (gains > TINY), gains / pool.cost**power, -1.0))
        if gains[run] <= TINY or not free[run]:
            break
        cov.take(run)
        runs.append(run)
        times[run] += 1
        left -= float(pool.cost[run])
        costs.append(budget - left)
        log_sd.append(cov.log_sd(end))
    return Way(tuple(runs), tuple(costs), tuple(log_sd))


def _greatest(score: Floats) -> int:
    """The greatest, the first of those that differ by rounding only: the same on every machine."""
    return int(np.flatnonzero(score >= score.max() - 1e-7 * abs(score.max()))[0])


def best_way(candidates: Sequence[Way]) -> Way | None:
    """The way that ends with the least standard deviation."""
    return min(candidates, key=lambda way: (round(way.log_sd[-1], 6), way.costs[-1]), default=None)


def frontier(candidates: Sequence[Way]) -> list[tuple[float, float]]:
    """(cost, ln sd) of the best that each budget can buy: points that no cheaper one beats."""
    points = sorted((cost, sd) for way in candidates for cost, sd in zip(way.costs, way.log_sd, strict=True))
    best: list[tuple[float, float]] = []
    for cost, sd in points:
        if sd < (best[-1][1] if best else np.inf) - 1e-3:
            best.append((float(cost), float(sd)))
    return best


def batches(way: Way, pool: Pool, before: Places, budget: float, least: int, fitted: bool) -> list[tuple[int, ...]]:
    """The runs of a way cheapest first, in batches of at least so many and of about a quarter of what is left.

    Before anything can be fitted, the first batch has eight shapes and three depths.
    """
    order = sorted(way.runs, key=lambda run: (pool.cost[run], run))
    if not fitted:
        order = _new_first(order)
    result: list[tuple[int, ...]] = []
    left = budget
    while order:
        batch: list[int] = []
        spent = 0.0
        while order and (len(batch) < least or spent + pool.cost[order[0]] <= SHARE * left):
            batch.append(order.pop(0))
            spent += float(pool.cost[batch[-1]])
        if not fitted and not result:
            while order and not _can_be_fitted(batch, pool, before):
                batch.append(order.pop(0))
                spent += float(pool.cost[batch[-1]])
        if len(order) < least:
            while order and spent + pool.cost[order[0]] <= 2 * SHARE * left:
                batch.append(order.pop(0))
                spent += float(pool.cost[batch[-1]])
        left -= spent
        result.append(tuple(batch))
    return result


def _new_first(order: Sequence[int]) -> list[int]:
    """Different shapes before repeats."""
    first = list(dict.fromkeys(order))
    rest = list(order)
    for run in first:
        rest.remove(run)
    return first + rest


def _can_be_fitted(batch: Sequence[int], pool: Pool, before: Places) -> bool:
    runs = sorted(set(batch))
    depths = {*np.round(pool.places.depth[runs], 6), *np.round(before.depth, 6)}
    return len(runs) + len(before) >= SHAPES and len(depths) >= DEPTHS
