"""How much could choosing runs save at all? Grids, the design and the best sets of runs that a search finds.

By what the model expects before any run (noise, bowl and misfit as assumed then), for the pools of `benchmarks.design`:
the interval that a budget buys by design, by the best set of runs that a local search finds (drop a run, spend what is
left anew, keep what is narrower), and by every uniform grid. No luck in it, and no hindsight but the grids'.

`python -m benchmarks.design_limit --out results/design/limit.json`
"""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.design import BUDGETS, ROWS, World, cost_for, grids, world
from deepwide.designing.choosing import Way, best_way, ends_of, ways
from deepwide.fitting import Covariances, Places, outlook_of
from deepwide.quantities import Floats, Numbers

COMMAND = "python -m benchmarks.design_limit --out results/design/limit.json"
WORLDS = ("power", "ladder, tokens = 20·total")
STARTS, ROUNDS = 3, 20  # ways that are improved, and how often
POWERS = (0.0, 0.4, 1.0)  # of the cost, by which what is left is spent
LEAST = 1e-3  # of ln ln(high/low): a gain


def after(cov: Covariances, runs: Sequence[int]) -> Covariances:
    """As if these had been run."""
    known = cov.copy()
    for run in runs:
        known.take(run)
    return known


def spent_anew(cov: Covariances, here: World, allowed: Numbers, left: float, power: float, end: int) -> list[int]:
    """Runs that what is left pays for, by the fall of the interval per cost^power."""
    runs: list[int] = []
    while len(runs) < 20:
        gains = np.where(allowed & (here.pool.cost <= left), cov.gains(end) / here.pool.cost**power, -1.0)
        run = int(np.argmax(gains))
        if gains[run] <= 0:
            break
        cov.take(run)
        runs.append(run)
        left -= float(here.pool.cost[run])
    return runs


def _neighbours(
    runs: list[int], width: float, cov: Covariances, here: World, allowed: Numbers, budget: float, end: int
) -> Iterator[tuple[list[int], float]]:
    """Sets of runs that are narrower by more than a little: without one run, what that leaves spent anew."""
    for i in range(len(runs)):
        others = runs[:i] + runs[i + 1 :]
        left = budget - float(here.pool.cost[others].sum())
        without = after(cov, others)
        for power in POWERS:
            known = without.copy()
            new = others + spent_anew(known, here, allowed, left, power, end)
            if known.log_width(end) < width - LEAST:
                yield new, known.log_width(end)


def improved(way: Way, cov: Covariances, here: World, ends: Floats, budget: float) -> float:
    """ln ln(high/low) of the best set of runs near a way."""
    runs, width = list(way.runs), way.log_width[-1]
    end = min(range(len(ends)), key=lambda end: abs(after(cov, runs).log_width(end) - width))
    allowed = here.pool.places.block_params <= ends[end] * 1.001
    for _ in range(ROUNDS):
        better = next(_neighbours(runs, width, cov, here, allowed, budget, end), None)
        if better is None:
            break
        runs, width = better
    return width


def measure(name: str) -> dict[str, Any]:
    """high/low for each budget, and what the best grid pays for the same."""
    here, nothing = world(ROWS[name], 0), Places.none()
    ends = ends_of(here.pool, 0.0)
    view = outlook_of(None, nothing, here.pool.places)
    cov = view.covariances(nothing, here.pool.places, "depth", here.target, ends, here.goal().share)
    points = []
    for _, picks in grids(here):
        end = int(np.argmin(np.abs(np.log(ends / here.pool.places.block_params[picks].max()))))
        width = math.exp(after(cov, picks).log_width(end))
        points.append({"cost": float(here.pool.cost[picks].sum()), "high/low": math.exp(width)})
    best = [p for p in points if not any(q["cost"] <= p["cost"] and q["high/low"] < p["high/low"] for q in points)]
    result: dict[str, Any] = {}
    for budget in BUDGETS:
        amount = budget * here.largest_cost
        tried = sorted(ways(cov, here.pool, ends, amount, nothing), key=lambda way: way.log_width[-1])
        way = best_way(tried)
        assert way
        widths = {
            "designed": way.log_width[-1],
            "searched": min(improved(start, cov, here, ends, amount) for start in tried[:STARTS]),
        }
        result[f"{budget:g}"] = {}
        for kind, width in widths.items():
            ratio = math.exp(math.exp(width))
            grid = cost_for(best, ratio)
            row = {"high/low": round(ratio, 2), "best grid, times as dear": round(grid / amount, 2) if grid else None}
            result[f"{budget:g}"][kind] = row
        print(name, budget, result[f"{budget:g}"], flush=True)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "rows": {name: measure(name) for name in WORLDS}}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
