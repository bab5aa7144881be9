"""Real sweeps that are finished, run again in another order: what share of their FLOPs would have done?

A run of the pool costs its FLOPs and gives the loss that it gave. The target is the best depth at ten times the pool's
largest size, the aim an interval whose logarithm is a fifth wider than that of the whole pool. Also: did the interval
then hold what the whole pool says?

Pools of several lengths: the target is at the longest, the aim is by the longest runs alone, and a design may also take
shorter ones. Gemstones' are checkpoints of the same runs, each taken to cost what a run of that length would.

`python -m benchmarks.design_replay --data ../shared/data --out results/design/replay.json`
"""

import argparse
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.prediction import gemstones, gemstones_file
from benchmarks.prediction import held_out as pools
from deepwide.designing import Goalpost, Pool, decide
from deepwide.errors import DeepwideError
from deepwide.fitting import Places, Runs, fit_joint, read_runs
from deepwide.quantities import Floats

OWN = {"ours, 1M tokens, chosen by design": Path("results/design/small/pool.csv")}
COMMAND = "python -m benchmarks.design_replay --data ../shared/data --out results/design/replay.json"
WIDER = 1.2
CHECKPOINTS = (2e10, 1e11, 3.5e11)
STEPS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # of the whole pool's cost: budgets to try
ORDERS = 5  # random ones
MOST_DEPTHS = 8  # of a grid's choices


def cost_of(runs: Runs) -> Floats:
    """6·parameters·tokens."""
    size = np.where(np.isnan(runs.total_params), runs.block_params, runs.total_params)
    return np.asarray(6 * size * np.where(np.isnan(runs.tokens), 1.0, runs.tokens))


def pool_of(runs: Runs) -> tuple[Pool, list[list[int]]]:
    """A place per cell, and the rows that each has."""
    groups = runs.groups
    rows = [np.flatnonzero(groups == group).tolist() for group in np.unique(groups)]
    first = [each[0] for each in rows]
    size, total = runs.block_params[first], runs.total_params[first]
    places = Places(runs.depth[first], size, total, runs.tokens[first], np.ones(len(first)))
    return Pool(places, cost_of(runs)[first], np.array([len(each) for each in rows])), rows


def designed(runs: Runs, goal: Goalpost, budget: float) -> list[int]:
    """The rows that a designed sweep would have run."""
    pool, rows = pool_of(runs)
    chosen: list[int] = []
    while True:
        times = np.array([sum(row in chosen for row in each) for each in rows])
        left = Pool(pool.places, pool.cost, pool.repeats - times)
        spent = float(cost_of(runs)[chosen].sum())
        decision = decide(runs.select(chosen) if chosen else None, left, goal, budget - spent, draws=400)
        if not decision.batches:
            return chosen
        for cell in decision.batches[0]:
            chosen.append(next(row for row in rows[cell] if row not in chosen))


def in_order(runs: Runs, order: Sequence[int], budget: float) -> list[int]:
    chosen: list[int] = []
    spent = 0.0
    cost = cost_of(runs)
    for row in order:
        if spent + cost[row] <= budget:
            chosen.append(row)
            spent += float(cost[row])
    return chosen


def ways(runs: Runs, goal: Goalpost, budget: float) -> Iterator[tuple[str, list[int]]]:
    yield "designed", designed(runs, goal, budget)
    yield "cheapest first", in_order(runs, np.argsort(cost_of(runs), kind="stable").tolist(), budget)
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(runs)).tolist()
        yield f"random {seed}", in_order(runs, order, budget)


def width(
    runs: Runs, chosen: Sequence[int], params: float, tokens: float | None = None
) -> tuple[float, float, float] | None:
    """ln(high/low), low and high; None where nothing can be stated."""
    if not chosen:
        return None
    try:
        law = fit_joint(runs.select(list(chosen)), length=tokens, bootstrap=400, examine=False).law()
    except DeepwideError:
        return None
    if law is None:
        return None
    _, low, high = (float(v[0]) for v in law.depth(params))
    return math.log(high / low), low, high


def best_grid(runs: Runs, params: float, widest: float, best: float, tokens: float | None = None) -> float | None:
    """FLOPs of the cheapest uniform grid of the pool whose interval is as narrow and holds the whole pool's estimate.

    A grid is some depths at some sizes, one run of each cell that the pool has. Sizes within a factor √2 count as one,
    and so do depths where there are many (Gemstones). Nobody could have known beforehand which grid this is.
    """
    _, first = np.unique(runs.groups, return_index=True)
    one = first.tolist()
    sizes = np.round(np.log2(runs.block_params / runs.block_params.max())).astype(int)
    depth = runs.depth if len(np.unique(runs.depth)) <= MOST_DEPTHS else np.round(np.log2(runs.depth))
    cost = cost_of(runs)
    grids = {
        tuple(row for row in one if sizes[row] in some and depth[row] in depths)
        for some in _subsets(np.unique(sizes[one]).tolist(), 2)
        for depths in _subsets(np.unique(depth[one]).tolist(), 3)
    }
    for rows in sorted(grids, key=lambda rows: float(cost[list(rows)].sum())):
        stated = width(runs, rows, params, tokens)
        if stated and stated[0] <= widest and stated[1] <= best <= stated[2]:
            return float(cost[list(rows)].sum())
    return None


def _subsets(values: list[Any], least: int) -> list[tuple[Any, ...]]:
    return [some for k in range(least, len(values) + 1) for some in itertools.combinations(values, k)]


def measure(runs: Runs) -> dict[str, Any]:
    """The share of the pool's FLOPs at which each way reaches the aim, and whether the pool's estimate is inside."""
    runs = runs.select(~runs.diverged)
    params = 10 * float(runs.block_params.max())
    share = float(np.nan_to_num(np.log(runs.total_params / runs.block_params)).min())
    # Where lengths differ, for one and the same: that of some runs would be theirs.
    tokens = float(np.exp(np.log(runs.tokens).mean())) if runs.several_lengths else None
    goal = Goalpost("depth", params, share, tokens)
    law = fit_joint(runs, length=tokens, bootstrap=400, examine=False).law()
    whole = width(runs, range(len(runs)), params, tokens)
    if law is None or whole is None:
        return {"refused": "the whole pool shows no best depth"}
    best, total = float(law.depth(params).value[0]), float(cost_of(runs).sum())
    reached: dict[str, float] = {}
    inside: dict[str, bool] = {}
    for step in STEPS:
        for name, chosen in ways(runs, goal, step * total) if len(reached) < ORDERS + 2 else ():
            stated = None if name in reached else width(runs, chosen, params, tokens)
            if stated and stated[0] <= WIDER * whole[0]:
                reached[name] = float(cost_of(runs)[chosen].sum()) / total
                inside[name] = stated[1] <= best <= stated[2]
    grid = best_grid(runs, params, WIDER * whole[0], best, tokens)
    random = [reached.get(f"random {seed}", 1.0) for seed in range(ORDERS)]
    return {
        "runs": len(runs), "high/low of all": math.exp(whole[0]), "best depth by all": best,
        "designed, share of FLOPs": reached.get("designed"), "designed holds it": inside.get("designed"),
        "cheapest first, share of FLOPs": reached.get("cheapest first"),
        "random order, share of FLOPs": float(np.median(random)),
        "best grid, share of FLOPs": grid and grid / total,
    }  # fmt: skip


def several_lengths(data: Path) -> dict[str, Runs]:
    """Pools whose shapes were run for several lengths."""
    name = "Gemstones, 350B tokens"
    whole = gemstones(gemstones_file(data, name), None)
    nearest = [
        row
        for shape in np.unique(whole.shapes)
        for tokens in CHECKPOINTS
        for row in [int(np.argmin(np.where(whole.shapes == shape, np.abs(np.log(whole.tokens / tokens)), np.inf)))]
        if abs(math.log(whole.tokens[row] / tokens)) < 0.02
    ]
    ours = [Path("results/fit") / f"depth-width-{part}.csv" for part in ("cpu", "between", "long")]
    return {"Gemstones, 20B, 100B and 350B tokens": whole.select(nearest), "ours, 2M and 8M tokens": read_runs(ours)}


def measure_lengths(runs: Runs) -> dict[str, Any]:
    """The share of the longest runs' FLOPs at which a design with and without shorter runs reaches the aim."""
    runs = runs.select(~runs.diverged)
    long = runs.select(runs.tokens > runs.tokens.max() / 1.1)
    params, tokens = 10 * float(long.block_params.max()), float(np.median(long.tokens))
    share = float(np.nan_to_num(np.log(long.total_params / long.block_params)).min())
    goal = Goalpost("depth", params, share, tokens)
    whole, total = width(long, range(len(long)), params), float(cost_of(long).sum())
    law = fit_joint(long, bootstrap=400, examine=False).law()
    assert whole is not None
    assert law is not None
    best = float(law.depth(params).value[0])
    result: dict[str, Any] = {
        "runs": len(runs), "of the greatest length": len(long), "high/low of these": math.exp(whole[0]),
        "best depth by these": best,
    }  # fmt: skip
    grid = best_grid(long, params, WIDER * whole[0], best)
    result["best grid, share of FLOPs"] = grid and grid / total
    for name, pool, length in (("designed", long, None), ("designed, shorter too", runs, tokens)):
        for step in STEPS:
            chosen = designed(pool, goal, step * total)
            stated = width(pool, chosen, params, length)
            if stated and stated[0] <= WIDER * whole[0]:
                spent = float(cost_of(pool)[chosen].sum()) / total
                result |= {f"{name}, share of FLOPs": spent, f"{name} holds it": stated[1] <= best <= stated[2]}
                break
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="measure pools whose name contains this; the others stay")
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "pools": {}}
    if args.only and args.out.exists():
        result = json.loads(args.out.read_text())
    chosen = {name: runs for name, (runs, _) in pools(args.data).items()}
    chosen |= {name: read_runs(path) for name, path in OWN.items()}
    lengths = several_lengths(args.data)
    for name, runs in (chosen | lengths).items():
        if args.only not in name:
            continue
        result["pools"][name] = measure_lengths(runs) if name in lengths else measure(runs)
        print(name, json.dumps(result["pools"][name]), flush=True)
        rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
