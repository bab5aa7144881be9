"""What further runs would settle about the crossing of 4 and 8 layers in the study depth-width, by simulation.

    python -m benchmarks.studies.next_crossings

Each plan adds runs to those there are: their losses are drawn from the parabolas of ln loss in ln size that the runs so
far give, with each depth's own scatter. Then the study's own fit is made, 100 times per plan. A plan settles the claim
that the transition grows with depth in those draws in which the crossing of 4 and 8 layers has 95% limits on both
sides, above those of 2 and 4 layers. It is assumed that the parabolas hold beyond the runs, which nobody knows.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepwide.fitting import Crossing, Runs, fit_transition, read_runs

ROOT = Path(__file__).resolve().parents[2]
DRAWS = 100
Plan = Sequence[tuple[int, float]]  # depth, block parameters
# Training tokens, the table of the runs so far, and what could be trained next.
POOLS: Mapping[str, tuple[float, str]] = {
    "2M tokens": (2e6, "results/studies/depth-width-cpu/runs.csv"),
    "8M tokens": (8e6, "results/fit/depth-width-long.csv"),
}


def both(*sizes: float) -> Plan:
    """4 and 8 layers at these sizes."""
    return [(depth, size) for depth in (4, 8) for size in sizes]


PLANS: Mapping[str, Mapping[str, Plan]] = {
    "2M tokens": {
        "4 and 8 layers at 1.6M, 2.2M": both(1.6e6, 2.2e6),
        "4 and 8 layers at 1.6M, 2.2M, 3.2M": both(1.6e6, 2.2e6, 3.2e6),
        "4 and 8 layers at six sizes from 240k to 600k": both(2.4e5, 3.1e5, 3.6e5, 4.6e5, 5.3e5, 6e5),
    },
    "8M tokens": {
        "4 and 8 layers at 560k, 800k": both(5.6e5, 8e5),
        "4 and 8 layers at 560k, 800k, 1.1M": both(5.6e5, 8e5, 1.1e6),
        "4 and 8 layers at 560k to 2.2M, five sizes": both(5.6e5, 8e5, 1.1e6, 1.6e6, 2.2e6),
    },
}


def load(path: Path) -> Runs:
    """The runs so far; the study's own table has no widths."""
    if path.read_text(encoding="utf-8").startswith("depth,size,loss,"):
        rows = np.genfromtxt(path, delimiter=",", names=True, usecols=(0, 1, 2))
        return of(rows["depth"], rows["size"], rows["loss"])
    runs = read_runs(path)
    return of(runs.depth, runs.size(), runs.loss)


def of(depth: NDArray[Any], size: NDArray[Any], loss: NDArray[Any]) -> Runs:
    """Runs by depth and size; the width follows."""
    return Runs.of(depth=depth, width=np.sqrt(size / (12 * depth)), block_params=size, loss=loss)


def crossings(runs: Runs) -> dict[tuple[int, int], Crossing]:
    """Of neighbouring depths, as the study fits them."""
    fit = fit_transition(runs, noise="depth", bootstrap=0, bowl=False)
    return {(each.shallow, each.deep): each for each in fit.crossings}


def is_limited(crossing: Crossing | None) -> bool:
    """Whether both 95% limits are there."""
    return crossing is not None and crossing.low is not None and crossing.high is not None


def try_plan(runs: Runs, plan: Plan, tokens: float, random: np.random.Generator) -> dict[str, Any]:
    """In how many draws the crossing of 4 and 8 layers is limited, and lies above that of 2 and 4."""
    size, log_loss = np.log(runs.size()), np.log(runs.loss)
    curves, scatter = {}, {}
    for depth in {depth for depth, _ in plan}:
        here = runs.depth == depth
        curves[depth] = np.polyfit(size[here], log_loss[here], 2)
        residuals = log_loss[here] - np.polyval(curves[depth], size[here])
        scatter[depth] = np.sqrt((residuals**2).sum() / (here.sum() - 3))
    depths, sizes = (np.array(column, dtype=float) for column in zip(*plan, strict=True))
    limited = above = 0
    for _ in range(DRAWS):
        drawn = [np.polyval(curves[d], np.log(n)) + scatter[d] * random.normal() for d, n in plan]
        more = of(np.r_[runs.depth, depths], np.r_[runs.size(), sizes], np.r_[runs.loss, np.exp(drawn)])
        by_pair = crossings(more)
        lower, upper = by_pair.get((2, 4)), by_pair.get((4, 8))
        if is_limited(upper):
            limited += 1
            assert upper is not None
            above += is_limited(lower) and (lower.high or 0) < (upper.low or 0)  # type: ignore[union-attr]
    return {
        "runs": len(plan),
        "train_flops": float(6 * tokens * sizes.sum()),
        "limited on both sides": limited / DRAWS,
        "and above that of 2 and 4 layers": above / DRAWS,
    }


def main(words: Sequence[str] | None = None) -> None:
    """Try every plan and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "studies" / "depth-width-next.json")
    given = parser.parse_args(words)
    result: dict[str, Any] = {"command": "python -m benchmarks.studies.next_crossings", "draws": DRAWS, "pools": {}}
    for pool, (tokens, table) in POOLS.items():
        runs = load(ROOT / table)
        now = crossings(runs).get((4, 8))
        outcomes = {name: try_plan(runs, plan, tokens, np.random.default_rng(0)) for name, plan in PLANS[pool].items()}
        result["pools"][pool] = {
            "table": table,
            "crossing of 4 and 8 layers now": None if now is None else [now.size, now.low, now.high],
            "plans": outcomes,
        }
        print(json.dumps({pool: result["pools"][pool]}, indent=1), flush=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
