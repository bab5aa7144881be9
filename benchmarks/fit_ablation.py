"""What our own runs say: crossings, ridge and verdict of each set of runs, and the tests that LOG.md stated beforehand.

Those were stated for one noise common to all depths, before it was seen how much more one layer scatters; both ways are
computed and kept.

`python -m benchmarks.fit_ablation --out results/fit/ablation.json`
"""

import argparse
import json
from pathlib import Path
from typing import Any

from deepwide.answers import Interval
from deepwide.fitting import Crossing, Fit, Noise, Runs, fit_ridge, fit_transition, read_runs

FOLDER = Path("results/fit")
SETS = {
    "2M tokens, first shapes": ("depth-width-cpu",),
    "2M tokens, new shapes": ("depth-width-between",),
    "2M tokens, all": ("depth-width-cpu", "depth-width-between"),
    "8M tokens": ("depth-width-long",),
    "film reviews, 2M tokens": ("depth-width-imdb",),
}
DISTANT = ((1, 4), (1, 8), (2, 8), (2, 16), (4, 16))
NOISES: tuple[Noise, ...] = ("same", "depth")


def limits(value: Interval) -> list[float | None]:
    return [value.value, value.low, value.high]


def ridge(runs: Runs, noise: Noise) -> dict[str, Any]:
    """The best depth as a power of the size."""
    fit = fit_ridge(runs, base="power", noise=noise)
    law = fit.law()
    assert law is not None
    ends = [law.depth(size).at() for size in fit.params_range]
    return {
        "exponent": limits(fit.drift),
        "sizes": list(fit.params_range),
        "best depth there": [limits(end) for end in ends],
        "factor 2 costs, %": limits(fit.cost(2)),
        "noise, %": noises(fit),
        "warnings": [str(warning) for warning in fit.warnings],
    }


def transition(runs: Runs, noise: Noise) -> dict[str, Any]:
    """Neighbouring depths and some that are not."""
    sizes = {depth: len(set(runs.block_params[runs.depth == depth])) for depth in map(int, set(runs.depth))}
    pairs = tuple(pair for pair in DISTANT if all(sizes.get(depth, 0) >= 3 for depth in pair))
    fit = fit_transition(runs, pairs=pairs, noise=noise)
    return {
        "crossings": {f"{each.shallow}/{each.deep}": crossing(each) for each in fit.crossings},
        "two regimes": fit.verdict().outcome,
        "two regimes, neighbours alone": fit_transition(runs, noise=noise, bootstrap=0).verdict().outcome,
        "line": {name: limits(fit.interval(name, "bootstrap")) for name in fit.names},
        "noise, %": noises(fit),
        "warnings": [str(warning) for warning in fit.warnings],
    }


def noises(fit: Fit) -> Any:
    return {d: 100 * s for d, s in fit.noise_by_depth.items()} if fit.noise_by_depth else 100 * fit.noise


def crossing(found: Crossing) -> dict[str, Any]:
    return {"status": found.status, "size": [found.size, found.low, found.high], "two regimes": found.regimes}


def in_order(found: dict[str, Any], first: str, second: str) -> bool:
    """Both bracketed with limits on both sides, the second wholly above the first."""
    pairs = [found["crossings"].get(name) for name in (first, second)]
    if any(pair is None or pair["status"] != "bracketed" or None in pair["size"] for pair in pairs):
        return False
    return bool(pairs[0]["size"][2] < pairs[1]["size"][1])


def stated_tests(made: dict[str, Any]) -> dict[str, bool]:
    """The four of LOG.md, in its order."""
    first, new, whole = (made[f"2M tokens, {name}"]["same"] for name in ("first shapes", "new shapes", "all"))
    exponent, before = (found["ridge"]["exponent"] for found in (new, first))
    return {
        "new shapes alone: 1/4 and 1/8 cross, limited on both sides, 1/8 above": in_order(
            new["transition"], "1/4", "1/8"
        ),
        "new shapes alone: the best depth grows with size, at the rate found before": (
            exponent[1] > 0 and exponent[1] <= before[2] and before[1] <= exponent[2]
        ),
        "all shapes: 1/2 and 2/4 cross, limited on both sides, 2/4 above": in_order(whole["transition"], "1/2", "2/4"),
        "all shapes: two regimes seen, by neighbouring depths": whole["transition"]["two regimes, neighbours alone"]
        == "seen",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER / "ablation.json")
    given = parser.parse_args()
    made: dict[str, Any] = {}
    for name, tables in SETS.items():
        runs = read_runs([FOLDER / f"{table}.csv" for table in tables])
        made[name] = {"shapes": len(set(runs.groups)), "runs": len(runs)}
        for noise in NOISES:
            made[name][noise] = {"ridge": ridge(runs, noise), "transition": transition(runs, noise)}
    made["stated before the runs"] = stated_tests(made)
    print(json.dumps(made["stated before the runs"], indent=1))
    rounded = json.loads(json.dumps(made), parse_float=lambda number: float(f"{float(number):.4g}"))
    given.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
