"""Would shorter lengths of the same run, by cooldown branches, narrow the best depth's interval?

By what the model expects, before any run: a pool of one length, the same with shorter lengths at their full cost, and
with these at a fifth of it, which is less than a branch costs. The target is at the full length.

`python -m benchmarks.design_branches --out results/design/branches.json`
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.design import ROWS, world
from deepwide.designing import Pool
from deepwide.designing.choosing import best_way, ends_of, ways
from deepwide.fitting import Places, outlook_of

COMMAND = "python -m benchmarks.design_branches --out results/design/branches.json"
POOLS = {
    "one length": {1.0: 1.0},
    "a half and a quarter too": {1.0: 1.0, 0.5: 1.0, 0.25: 1.0},
    "a quarter and a sixteenth too": {1.0: 1.0, 0.25: 1.0, 0.0625: 1.0},
    "these at a fifth of their cost": {1.0: 1.0, 0.25: 0.2, 0.0625: 0.2},
}
BUDGETS = (0.5, 1.0, 2.0, 4.0)


def expected(lengths: dict[float, float], budget: float) -> float:
    """high/low that the budget should buy."""
    here = world(ROWS["power"], 0)
    one = here.pool.places
    columns = [(one.depth, one.block_params, one.total_params, one.tokens * share) for share in lengths]
    depth, block, total, tokens = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    cost = np.concatenate([here.pool.cost * share * price for share, price in lengths.items()])
    pool = Pool(Places(depth, block, total, tokens, np.ones(len(depth))), cost, np.full(len(depth), 8))
    nothing = Places.none()
    view = outlook_of(None, nothing, pool.places, length=float(one.tokens[0]))
    ends = ends_of(pool, 0.0)
    cov = view.covariances(nothing, pool.places, "depth", here.target, ends, 0.0)
    way = best_way(ways(cov, pool, ends, budget * here.largest_cost, nothing))
    assert way
    return math.exp(math.exp(way.log_width[-1]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "expected high/low": {}}
    for name, lengths in POOLS.items():
        result["expected high/low"][name] = {f"{budget:g}": round(expected(lengths, budget), 3) for budget in BUDGETS}
        print(name, result["expected high/low"][name], flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
