"""Gemstones' story from its raw files, by `deepwide.fitting`: best shapes, the ridge, what a wrong depth costs.

`python -m benchmarks.fit_gemstones --data ../shared/data --out results/fit/gemstones.json`
"""

import argparse
import hashlib
import json
import math
import platform
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.answers import Interval
from deepwide.fitting import Runs, fit_ridge, read_runs
from deepwide.laws import transition_law

VOCAB = 50304
FILES = {"hot": "hot_100b+_477", "cooled": "cool_end", "lower rates": "lr_ablation_hot_477"}
LENGTHS = {"hot": (50e9, 100e9, 200e9, 350e9), "cooled": (110e9,), "lower rates": (100e9,)}
CLASSES = {"0.5B": (0.4e9, 0.7e9), "1B": (0.85e9, 1.3e9), "2B": (1.6e9, 2.6e9)}


def runs_at(path: Path, tokens: float, rows: int = 2 * VOCAB) -> Runs:
    columns = {"total_params": "params_active_precise"}
    return read_runs(path, columns, where={"tokens": tokens}, embedding_rows=rows)


def best_shapes(runs: Runs) -> dict[str, Any]:
    """In each class of total parameters: the best shape, and whether it is the one nearest to the law's depth."""
    made = {}
    law = transition_law().depth(runs.block_params).value
    for name, (low, high) in CLASSES.items():
        here = np.flatnonzero((runs.total_params > low) & (runs.total_params < high))
        if len(here) < 3:
            continue
        best = here[np.argmin(runs.loss[here])]
        near = here[np.argmin(np.abs(np.log(runs.depth[here] / law[here])))]
        made[name] = {
            "shapes": len(here),
            "best": f"{runs.width[best]:.0f}x{runs.depth[best]:.0f}",
            "its loss": runs.loss[best],
            "law's depth there": law[best],
            "nearest to the law": f"{runs.width[near]:.0f}x{runs.depth[near]:.0f}",
            "the same": bool(best == near),
            "worst loses, %": 100 * (runs.loss[here].max() / runs.loss[best] - 1),
        }
    return made


def ridge(runs: Runs, **options: Any) -> dict[str, Any]:
    fit = fit_ridge(runs, bootstrap=1000, **options)
    found: dict[str, Any] = {"shapes": fit.runs, "noise, %": 100 * fit.noise}
    found["minimum, depth / law's"] = limits(fit.minimum)
    found["factor 2 costs, %"] = limits(fit.cost(2))
    found["factor 4 costs, %"] = limits(fit.cost(4))
    found["warnings"] = [str(warning) for warning in fit.warnings]
    return found


def limits(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [interval.value, interval.low, interval.high]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    paths = {name: args.data / f"gemstones/wandb_dfs/wandb_df_for_fitting_{file}.jsonl" for name, file in FILES.items()}
    result: dict[str, Any] = {
        "command": "python -m benchmarks.fit_gemstones --data ../shared/data --out results/fit/gemstones.json",
        "source": "Gemstones (McLeish et al. 2025, arXiv 2502.06857), MIT",
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths.values()},
        "python": platform.python_version(),
        "numpy": np.__version__,
        "best shapes": {},
        "ridge": {},
        "embedding trap": {},
    }
    for name, path in paths.items():
        for tokens in LENGTHS[name]:
            runs = runs_at(path, tokens)
            title = f"{name}, {tokens / 1e9:.0f}B tokens"
            result["best shapes"][title] = best_shapes(runs)
            result["ridge"][title] = {"plain": ridge(runs), "with an embedding term": ridge(runs, embeddings=True)}
            large = runs.select(runs.total_params > 0.4e9)
            result["ridge"][title]["from 0.4B"] = ridge(large)
    # The published code's "no embeds" takes off one of the two embedding matrices: 50304 rows instead of 100608.
    for rows, words in ((2 * VOCAB, "both matrices off"), (VOCAB, "one matrix off"), (0, "none off: total")):
        result["embedding trap"][words] = ridge(runs_at(paths["hot"], 100e9, rows))
    text = json.dumps(result, allow_nan=False)
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.5g}"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")
    for title, each in result["ridge"].items():
        line = {name: [round(v, 2) for v in fit["minimum, depth / law's"] or [math.nan]] for name, fit in each.items()}
        print(title, json.dumps(line))


if __name__ == "__main__":
    main()
