"""Which runs shrink the target's interval most for a budget: many greedy ways through the pool, and the best of them.

A way keeps to sizes up to one of the pool's, begins with two or three depths of it that lie far enough apart (a fit
takes growth to be known only up to a size at which runs show the best depth), and then takes the run with the greatest
fall of the log of the target's interval per cost^power, again and again. Which size, how many depths there and which
power are best depends on the budget: all are tried. The chosen runs are then run cheapest first, in batches: what the
cheap ones find decides again about the dear ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from deepwide.fitting import Covariances, Places, spread_near
from deepwide.quantities import Floats, Integers, Numbers

POWERS = (0.4, 1.0)
AT_THE_END = (2, 3)  # depths of the largest size
NEAR = 1.25  # sizes within this factor are one
MOST_RUNS = 100  # of one way
MOST_TRIED = 12  # depths of the largest size
TINY = 5e-4  # a fall of the log of the interval that is none
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

    def at(self, rows: Integers) -> "Pool":
        """Some of them."""
        return Pool(self.places.at(rows), self.cost[rows], self.repeats[rows])


@dataclass(frozen=True)
class Way:
    """Runs in the order in which they were chosen, with the cost so far and ln ln(high/low) after each."""

    runs: tuple[int, ...]
    costs: tuple[float, ...]
    log_width: tuple[float, ...]


def ends_of(pool: Pool, largest: float) -> Floats:
    """The sizes up to which growth may be known: the largest so far, and those of the pool that are larger.

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
    """Every way through the pool that can be paid for, one per end of the sizes, depths there and power of the cost."""
    result = []
    for end, size in enumerate(ends):
        allowed = pool.places.block_params <= size * 1.001
        known = end == 0 and len(before) > 0
        shown = known or spread_near(size, cov.worth, before) >= enough_spread(cov, pool, size)
        starts = [((), cov)] if shown else _beginnings(cov, pool, end, allowed, budget, before)
        for (begun, after), power in product(starts, POWERS):
            way = _way(after.copy(), pool, end, allowed, budget, power, begun, SHAPES - len(before))
            result.append(_without_fit(way, len(before)))
    return [way for way in result if way.runs and np.isfinite(way.log_width[-1])]


def enough_spread(cov: Covariances, pool: Pool, size: float) -> float:
    """How far apart depths near a size must lie for a fit to know it; no more than any two of the pool do."""
    near = (pool.places.block_params > size / NEAR) & (pool.places.block_params < size * NEAR)
    here = pool.places.at(np.flatnonzero(near))
    if not len(here):
        return cov.spread
    return min(cov.spread, 0.99 * float(np.ptp(np.log(here.depth))) ** 2 / 2 * float(cov.worth(here).max()))


def _without_fit(way: Way, before: int) -> Way:
    """The way with nothing known while there are fewer shapes than a fit needs."""
    shapes = [before + len(set(way.runs[: i + 1])) for i in range(len(way.runs))]
    log_width = (sd if number >= SHAPES else np.inf for number, sd in zip(shapes, way.log_width, strict=True))
    return Way(way.runs, way.costs, tuple(log_width))


Beginning = tuple[tuple[int, ...], Covariances]


def _beginnings(
    cov: Covariances, pool: Pool, end: int, allowed: Numbers, budget: float, before: Places
) -> list[Beginning]:
    """Two or three depths of the largest size, at each of the lengths that it may be run for."""
    top = pool.places.block_params[allowed].max()
    near = np.flatnonzero(allowed & (pool.places.block_params > top / NEAR) & (pool.repeats > 0))
    longer = _longer_of_its_shape(pool.places.at(near.tolist()))
    starts = [
        _beginning(cov, pool, end, near[longer == rank], top, budget, number, before)
        for rank in sorted(set(longer.tolist()))
        for number in AT_THE_END
    ]
    return [start for start in starts if start is not None]


def _longer_of_its_shape(places: Places) -> Integers:
    """Of each place, how many of the same shape have more tokens: 0 for the longest (on a ladder for all)."""
    same = np.equal.outer(places.depth, places.depth) & np.equal.outer(places.block_params, places.block_params)
    return np.asarray((same & (places.tokens[None, :] > places.tokens[:, None])).sum(axis=1))


def _beginning(
    cov: Covariances, pool: Pool, end: int, near: Integers, top: float, budget: float, number: int, before: Places
) -> Beginning | None:
    """So many depths among these runs, those that narrow the interval most; None if they cannot be paid or would not
    show the best depth there."""
    first = {depth: run for run in near[::-1].tolist() for depth in [float(pool.places.depth[run])]}
    best: tuple[float, tuple[int, ...], Covariances] | None = None
    enough = enough_spread(cov, pool, top)
    for pair in combinations(_spaced(sorted(first.values(), key=lambda run: float(pool.places.depth[run]))), 2):
        if pool.cost[list(pair)].sum() > budget or spread_near(top, cov.worth, before, pool.places.at(pair)) < enough:
            continue
        after = cov.copy()
        for run in pair:
            after.take(run)
        width = round(after.log_width(end), 6)
        if best is None or width < best[0]:
            best = width, pair, after
    if best is None:
        return None
    runs, cov = best[1], best[2]
    for _ in range(number - len(runs)):
        free = [run for run in first.values() if run not in runs and pool.cost[[*runs, run]].sum() <= budget]
        if not free:
            return None
        gains = cov.gains(end)
        runs = (*runs, free[_greatest(gains[free] / pool.cost[free] ** 0.25)])
        cov.take(runs[-1])
    return runs, cov


def _spaced(runs: Sequence[int]) -> list[int]:
    """At most twelve of them, evenly."""
    if len(runs) <= MOST_TRIED:
        return list(runs)
    return [runs[i] for i in np.unique(np.linspace(0, len(runs) - 1, MOST_TRIED).astype(int))]


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
    runs, costs, log_width = list(begun), [], []
    if runs:
        spent = np.cumsum(pool.cost[runs])
        costs, log_width = spent.tolist(), [np.inf] * (len(runs) - 1) + [cov.log_width(end)]
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
        log_width.append(cov.log_width(end))
    return Way(tuple(runs), tuple(costs), tuple(log_width))


def _greatest(score: Floats) -> int:
    """The greatest, the first of those that differ by rounding only: the same on every machine."""
    return int(np.flatnonzero(score >= score.max() - 1e-7 * abs(score.max()))[0])


def best_way(candidates: Sequence[Way]) -> Way | None:
    """The way that ends with the least standard deviation."""
    return min(candidates, key=lambda way: (round(way.log_width[-1], 6), way.costs[-1]), default=None)


def cheapest_way(candidates: Sequence[Way], enough: Callable[[float], bool]) -> Way | None:
    """The way that is narrow enough for the least cost, up to where it is; None if no way is."""
    ends = [
        (way.costs[i], Way(way.runs[: i + 1], way.costs[: i + 1], way.log_width[: i + 1]))
        for way in candidates
        for i, width in enumerate(way.log_width)
        if enough(width)
    ]
    return min(ends, key=lambda end: end[0], default=(0.0, None))[1]


def frontier(candidates: Sequence[Way]) -> list[tuple[float, float]]:
    """(cost, ln sd) of the best that each budget can buy: points that no cheaper one beats."""
    points = sorted((cost, sd) for way in candidates for cost, sd in zip(way.costs, way.log_width, strict=True))
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
    budget = min(budget, 2 * way.costs[-1])  # of a budget far above the plan, too, a batch is a part
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


def cheapest_fit(pool: Pool, before: Places) -> list[int]:
    """The cheapest different runs to which something can be fitted, one after the other; all, if that is too few."""
    chosen: list[int] = []
    for run in np.argsort(pool.cost, kind="stable").tolist():
        if pool.repeats[run] > 0:
            chosen.append(run)
        if _can_be_fitted(chosen, pool, before):
            break
    return chosen


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
