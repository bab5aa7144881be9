"""Does half of a real pool's shapes hold what the whole pool says? Calibration on runs that nobody simulated.

Of every pool of `benchmarks.design_replay` random halves of the shapes are fitted, and their 95% intervals of the best
depth in the middle, at the largest size of the whole pool and at ten times it asked for what all its runs say there.
All is for one length, the mean of the pool. The whole pool has the half in it and errs too, so more than 95% are
expected to hold if nothing but noise differs; what the model misses shows here as it is in real runs.

`python -m benchmarks.halves --data ../shared/data --out results/fit/halves.json`
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.design_replay import OWN
from benchmarks.prediction import held_out as pools
from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, fit_joint, read_runs

COMMAND = "python -m benchmarks.halves --data ../shared/data --out results/fit/halves.json"
HALVES = 30
FEWEST = 8  # shapes of a half
PLACES = ("middle", "largest", "10x")


def measure(runs: Runs) -> dict[str, Any]:
    """How many halves state an interval, and how many of these hold, by place."""
    runs = runs.select(~runs.diverged)
    length = float(np.exp(np.log(runs.tokens).mean())) if runs.several_lengths else None
    whole = fit_joint(runs, length=length, examine=False)
    largest = float(runs.block_params.max())
    sizes = [whole.centre, largest, 10 * largest]
    best = [depth.value for depth in whole.best_depth(sizes)]
    shapes = np.unique(runs.groups)
    held = []
    for seed in range(HALVES):
        some = np.random.default_rng(seed).choice(shapes, max(len(shapes) // 2, FEWEST), replace=False)
        try:
            stated = fit_joint(runs.select(np.isin(runs.groups, some)), length=length, examine=False).best_depth(sizes)
        except DeepwideError:
            continue
        held.append([(s.low or 0) <= b <= (s.high or 0) for s, b in zip(stated, best, strict=True)])
    holds = dict(zip(PLACES, np.sum(held, axis=0).tolist(), strict=True))
    return {"shapes": len(shapes), "halves": HALVES, "state an interval": len(held), "hold": holds}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    chosen = {name: runs for name, (runs, _) in pools(args.data).items()} | {n: read_runs(p) for n, p in OWN.items()}
    result: dict[str, Any] = {"command": COMMAND, "pools": {}}
    for name, runs in chosen.items():
        result["pools"][name] = measure(runs)
        print(name, json.dumps(result["pools"][name]), flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
