"""One decision: fit what has been run, see what is open, choose the next runs, and say what to expect of them."""

import math
from dataclasses import dataclass, replace

import numpy as np

from deepwide.answers import Interval
from deepwide.designing.choosing import (
    Pool,
    Way,
    batches,
    best_way,
    cheapest_fit,
    cheapest_way,
    ends_of,
    enough_spread,
    frontier,
    ways,
)
from deepwide.errors import DeepwideError
from deepwide.fitting import (
    SAME_LENGTH,
    Covariances,
    Goal,
    JointFit,
    Places,
    Runs,
    fit_joint,
    outlook_of,
    spread_near,
)

FIT_DRAWS = 1000
MOST_APART = 1.25  # of ln(high/low): the fit's interval now, over what the Gaussian outlook makes of it


@dataclass(frozen=True)
class Goalpost:
    """What is to be known: the best depth at a size, or the loss there; `share` is ln(total/block) of such a model,
    `tokens` its length where runs may have several (None: as the runs')."""

    goal: Goal
    params: float
    share: float = 0.0
    tokens: float | None = None


@dataclass(frozen=True, eq=False)
class Decision:
    """The runs to do with a budget, in batches, and the high/low of the 95% interval to expect."""

    fit: JointFit | None
    interval: Interval | None  # now; None where nothing can be stated yet
    ratio: float  # high/low now, or what is assumed before any fit
    batches: tuple[tuple[int, ...], ...]
    ratios: tuple[float, ...]  # after each batch
    frontier: tuple[tuple[float, float], ...]  # cost, high/low
    floor: float  # high/low if everything in the pool were run again and again
    floor_share: tuple[float, float]  # of the floor's variance: growth beyond the runs, and the rest
    noise: float | None = None  # before any fit: what a run is assumed to have
    first_cost: float | None = None  # likewise: of the cheapest runs that can be fitted


def decide(
    runs: Runs | None,
    pool: Pool,
    goal: Goalpost,
    budget: float,
    *,
    least: int = 4,
    draws: int = FIT_DRAWS,
    until: float | None = None,
    noise: float | None = None,
    examine: bool = False,
) -> Decision:
    """What to run next of the pool: for the whole budget, or the cheapest that should bring high/low to `until`.

    `noise` is what one run has, where the caller knows, until runs can be fitted; `examine` asks the fit for its
    warnings. Before any run, shorter lengths are left alone if those of the target's promise more.
    """
    asked = _decide(runs, pool, goal, budget, least, draws, until, noise, examine)
    near = np.abs(np.log(pool.places.tokens / (goal.tokens or math.nan))) < math.log(SAME_LENGTH)
    longest = np.flatnonzero(near)
    if runs is not None or not 0 < len(longest) < len(pool):
        return asked
    alone = _decide(None, pool.at(longest), goal, budget, least, draws, until, noise, examine)
    if not alone.batches or (asked.batches and asked.ratios[-1] <= alone.ratios[-1]):
        return asked
    batches = tuple(tuple(longest[list(batch)].tolist()) for batch in alone.batches)
    return replace(alone, batches=batches)


def _decide(
    runs: Runs | None,
    pool: Pool,
    goal: Goalpost,
    budget: float,
    least: int,
    draws: int,
    until: float | None,
    noise: float | None,
    examine: bool,
) -> Decision:
    """With all that is in the pool."""
    fit = fit_of(runs, goal, draws, examine)
    if fit is not None and runs is not None:  # what a fit leaves out tells nothing
        runs = runs.select(np.delete(np.arange(len(runs)), fit.left_out))
    before = Places.of(runs) if runs is not None and len(runs) else Places.none()
    interval = interval_of(fit, goal)
    view = outlook_of(fit, before, pool.places, length=goal.tokens, noise=noise)
    largest = fit.known[1] if fit else float(before.block_params.max()) if len(before) else 0.0
    ends = ends_of(pool, largest)
    cov = view.covariances(before, pool.places, goal.goal, goal.params, ends, goal.share)
    now = cov.log_width(0)
    log_ratio = math.exp(now)
    if interval is not None and interval.low and interval.high:
        log_ratio = math.log(interval.high / interval.low)
    # The fit's interval may have a long tail (a bowl that is hardly seen), which the next runs cut off.
    wider = min(max(log_ratio / math.exp(now), 1 / MOST_APART), MOST_APART)

    def expected(log_width: float) -> float:
        return _exp(wider * math.exp(log_width))

    found_ways = ways(cov, pool, ends, budget, before)
    enough = cheapest_way(found_ways, lambda log_width: expected(log_width) <= until) if until else None
    way, spent = (enough, enough.costs[-1]) if enough else (best_way(found_ways), budget)
    first = cheapest_fit(pool, before) if fit is None else []
    if way is None and first and (cost := float(pool.cost[first].sum())) <= budget:  # no way shows the best depth
        way = Way(tuple(first), (cost,), (math.inf,))
    chosen = batches(way, pool, before, spent, least, not view.assumed) if way else []
    lowest = min(range(len(ends)), key=lambda end: cov.floor(end))
    floor = cov.floor(lowest)
    beyond = math.exp(2 * (cov.beyond(lowest) - floor)) if goal.goal == "depth" else 0.0
    return Decision(
        fit,
        interval,
        _exp(log_ratio),
        tuple(chosen),
        tuple(expected(sd) for sd in _after(chosen, cov, pool, ends, before)),
        tuple((cost, expected(sd)) for cost, sd in frontier(found_ways)),
        expected(floor),
        (min(beyond, 1.0), max(1 - beyond, 0.0)),
        view.noise_at(goal.tokens) if view.assumed else None,
        float(pool.cost[first].sum()) if first else None,
    )


def _exp(value: float) -> float:
    return math.exp(min(value, 50.0))


def fit_of(runs: Runs | None, goal: Goalpost, draws: int, examine: bool) -> JointFit | None:
    """The joint fit, or None where the runs do not allow one yet."""
    if runs is None or not len(runs):
        return None
    length = goal.tokens if runs.several_lengths else None
    try:
        return fit_joint(runs, length=length, bootstrap=draws, examine=examine)
    except DeepwideError:
        return None


def interval_of(fit: JointFit | None, goal: Goalpost) -> Interval | None:
    """The target's interval now; None where the fit declines, or knows another length only."""
    if fit is None or fit.declined or (goal.tokens and not fit.knows_length(goal.tokens)):
        return None
    best = fit.best_depth(goal.params)[0]
    if goal.goal == "depth":
        return best
    total = None if fit.embeddings_mean is None else goal.params * math.exp(goal.share)
    row = fit.predict_rows(best.value, goal.params, total=total)[0]
    return Interval(row["loss"], row["low"], row["high"])


def _after(
    chosen: list[tuple[int, ...]], cov: Covariances, pool: Pool, ends: np.ndarray, before: Places
) -> list[float]:
    """ln ln(high/low) after each batch, with the known sizes ending where they do by then."""
    cov = cov.copy()
    result = []
    runs: list[int] = []
    for batch in chosen:
        for run in batch:
            cov.take(run)
        runs += batch
        taken = pool.places.at(runs)
        known = [
            end
            for end, size in enumerate(ends.tolist())
            if spread_near(size, cov.worth, before, taken) >= enough_spread(cov, pool, size)
        ]
        result.append(cov.log_width(max(known, default=0)))
    return result
