"""What length does to the bowl and to noise: their priors, and the designed sweep of short runs that missed.

For every set of runs of several lengths: how the curvature and the best depth change per e-fold of tokens, with next to
nothing assumed of the curvature (0 ± 0.5), how noise falls, and how much seeds differ at each length. For the designed
sweep (results/design/lengths): what its runs say of 411K and 4.11M at 8M tokens as on its day (a change of the
curvature by 0 ± 0.08, noise the same at all lengths), with the prior on the curvature now, and with noise that may fall
too, alone and with the sweep of 8M tokens; how far its runs and those of that sweep lie from their fits. For every
designed sweep that was stated before it ran: what it says, what the finished sweep says there, what the cheapest
uniform grid of the finished one that is as narrow costs, and what high/low was promised on its day (noise of 0.5%), is
promised now, and would be by the noise that its runs had, and what made-up sweeps of the design now end with.

`python -m benchmarks.lengths --data ../shared/data --out results/fit/lengths.json`
"""

import argparse
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.design_replay import best_grid, cost_of, in_order, several_lengths, width
from benchmarks.prediction import gemstones, gemstones_file
from deepwide.designing import Design, sweep_design
from deepwide.fitting import JointFit, Runs, fit_joint, read_runs
from deepwide.quantities import show_count

COMMAND = "python -m benchmarks.lengths --data ../shared/data --out results/fit/lengths.json"
PRIORS = "deepwide.fitting.model.PRIORS"
FREE: Mapping[str, tuple[float, float]] = {"curvature_tokens": (0.0, 0.5)}
FORMER: Mapping[str, tuple[float, float]] = {"curvature_tokens": (0.0, 0.08)}
NOISE = "deepwide.fitting.mixed.FALLS"
ONE_NOISE = ((0.0, 1.0),)
SIZES = {"411K": 4.11e5, "4.11M": 4.11e6}
LENGTH = 8e6
ORDERS = 15  # random ones
REHEARSED = 100  # made-up sweeps
LOWER_RATES = (2e10, 5e10, 1e11)
DESIGNED = Path("results/design/lengths/runs.csv")
LONG = Path("results/fit/depth-width-long.csv")
SMALL = Path("results/design/small/pool.csv")
ENWIK8 = Path("results/fit/depth-width-enwik8.csv")
LANGUAGES = Path("results/fit/depth-width-languages.csv")


class Stated(NamedTuple):
    """A designed sweep whose test was stated before it ran: its runs, the finished sweep, the target."""

    runs: Path
    finished: Path
    params: float
    tokens: float
    base: Path
    budget: float
    lengths: str
    sizes: str | None = None


HALF_STEPS = "12.5k,18k,25k,36k,50k,70k,100k,140k,200k,280k,400k"
STATED = {
    "shorter": Stated(
        Path("results/design/shorter/runs.csv"), SMALL, 4e5, 1e6,
        Path("sweeps/design-small.toml"), 2e12, "250k,500k,1M",
    ),
    "lengths": Stated(
        DESIGNED, LONG, 4.11e6, LENGTH, Path("sweeps/depth-width-long.toml"), 4.5e13, "1M,2M,4M,8M", HALF_STEPS
    ),
    "again": Stated(
        Path("results/design/again/runs.csv"), LONG, 4.11e6, LENGTH,
        Path("sweeps/depth-width-long.toml"), 4.5e13, "2M,4M,8M", HALF_STEPS,
    ),
    "enwik8": Stated(
        Path("results/design/enwik8/runs.csv"), ENWIK8, 8.44e5, 2e6,
        Path("sweeps/depth-width-enwik8.toml"), 1e13, "1M,2M",
    ),
    "languages": Stated(
        Path("results/design/languages/runs.csv"), LANGUAGES, 4.04e5, 2e6,
        Path("sweeps/depth-width-languages.toml"), 1.5e13, "2M",
    ),
}  # fmt: skip


def sets(data: Path) -> dict[str, Runs]:
    whole = gemstones(gemstones_file(data, "Gemstones, lower rates"), None)
    near = [
        int(row)
        for shape in np.unique(whole.shapes)
        for tokens in LOWER_RATES
        for row in [np.argmin(np.where(whole.shapes == shape, np.abs(np.log(whole.tokens / tokens)), np.inf))]
        if abs(math.log(whole.tokens[row] / tokens)) < 0.02
    ]
    return several_lengths(data) | {
        "Gemstones, lower rates, 20B, 50B and 100B tokens": whole.select(near),
        "Morph": read_runs(data / "morph/morph.csv"),
        "ours, designed": read_runs(DESIGNED),
        "ours, designed, and 8M tokens": read_runs([DESIGNED, LONG]),
    }


def per_e_fold(name: str, fit: JointFit) -> list[float]:
    """Estimate and 95% limits."""
    draws = np.array(fit.resamples)[:, fit.names.index(name)]
    return [fit.values[fit.names.index(name)], *np.quantile(draws, (0.025, 0.975)).tolist()]


def of_set(runs: Runs) -> dict[str, Any]:
    runs = runs.select(~runs.diverged)
    with patch.dict(PRIORS, FREE):
        fit = fit_joint(runs, length=float(runs.tokens.max()), bootstrap=1000, examine=False)
    changes = {name: per_e_fold(name, fit) for name in ("curvature_tokens", "depth_tokens")}
    return changes | {"noise falls": fit.noise_falls, "seeds differ by %": between_seeds(runs)}


def between_seeds(runs: Runs) -> dict[str, tuple[float, int]]:
    """Standard deviation between seeds of one shape, in percent of loss, and its degrees of freedom, by length."""
    result = {}
    lengths = np.round(np.log2(runs.tokens))
    for length in np.unique(lengths):
        here = runs.select(lengths == length)
        groups = here.groups
        dof = len(groups) - len(np.unique(groups))
        y = np.log(here.loss)
        off = y - (np.bincount(groups, y) / np.bincount(groups))[groups]
        if dof:
            tokens = show_count(round(float(np.median(here.tokens))))
            result[tokens] = 100 * math.sqrt(float(off @ off) / dof), dof
    return result


def stated(runs: Runs) -> dict[str, Any]:
    """The best depth at LENGTH, with 95% limits."""
    fit = fit_joint(runs, length=LENGTH, bootstrap=1000, examine=False)
    best = zip(SIZES, fit.best_depth(list(SIZES.values())), strict=True)
    return {size: [depth.value, depth.low, depth.high] for size, depth in best}


def three_ways(runs: Runs) -> dict[str, Any]:
    with patch(NOISE, ONE_NOISE):
        one_noise = stated(runs)
        with patch.dict(PRIORS, FORMER):
            on_its_day = stated(runs)
    return {"on its day": on_its_day, "one noise": one_noise, "now": stated(runs)}


def misses(runs: Runs, tokens: float) -> float:
    """How far the runs of a length lie from the fit to all, root mean square, in percent of loss."""
    fit = fit_joint(runs, length=LENGTH if runs.several_lengths else None, bootstrap=200, examine=False)
    off = [run.residual for run in fit.residuals if run.tokens and abs(math.log(run.tokens / tokens)) < 0.1]
    return 100 * float(np.sqrt(np.mean(np.square(off))))


def designed() -> dict[str, Any]:
    own, long = read_runs(DESIGNED), read_runs(LONG)
    with patch.dict(PRIORS, FORMER), patch(NOISE, ONE_NOISE):
        curvature = fit_joint(own, length=LENGTH, examine=False)["curvature"]
    return {
        "alone": three_ways(own),
        "with the sweep of 8M tokens": three_ways(read_runs([DESIGNED, LONG])),
        "curvature, on its day": curvature,
        "curvature of the sweep of 8M tokens": fit_joint(long, examine=False)["curvature"],
        "runs of 1M tokens miss by %": misses(own, 1e6),
        "runs of 8M tokens miss by %": misses(long, LENGTH),
    }


def designed_again(test: Stated, noise: float | None, rehearse: int = 0) -> Design:
    """The design before any run; what text of bytes is read does not matter to it."""
    base = tomllib.loads(test.base.read_text())
    base["run"].pop("data", None)
    base["run"].pop("data.source", None)
    return sweep_design(
        base, target=test.params, budget=test.budget, sizes=test.sizes, tokens=test.lengths, length=test.tokens,
        noise=noise, rehearse=rehearse,
    )  # fmt: skip


def promised_then(test: Stated) -> float:
    """The same on the day of the sweep, as it was printed before the first run."""
    first = (test.runs.parent / "printed.txt").read_text().splitlines()[0]
    match = re.search(r"expected after .*: high/low ([\d.]*\d)", first)
    assert match, first
    return float(match[1])


def outcome(test: Stated) -> dict[str, Any]:
    """What the designed sweep says at its target now, beside the finished sweep and its cheapest grid as narrow."""
    own, finished = read_runs(test.runs), read_runs(test.finished)
    law = fit_joint(finished, bootstrap=400, examine=False).law()
    assert law is not None
    best = [float(value[0]) for value in law.depth(test.params)]
    fit = fit_joint(own, length=test.tokens, examine=False)
    said = fit.best_depth(test.params)[0]
    result: dict[str, Any] = {"runs": len(own), "says": [said.value, said.low, said.high], "finished sweep says": best}
    stated_by = width(own, range(len(own)), test.params, test.tokens)
    assert stated_by is not None
    result["noise %"] = {show_count(round(end)): 100 * fit.noise * fit.falling(end) for end in fit.tokens_range or ()}
    before = designed_again(test, None, REHEARSED)
    result["high/low"] = {
        "promised on its day": promised_then(test),
        "promised now": before.after.ratio,
        "promised by its noise": designed_again(test, fit.noise * fit.falling(test.tokens)).after.ratio,
        "reached": math.exp(stated_by[0]),
    }
    assert before.rehearsal is not None
    result["rehearsed"] = before.rehearsal.model_dump()
    result["FLOPs"] = float(cost_of(own).sum())
    result["FLOPs of the finished sweep"] = float(cost_of(finished).sum())
    result["FLOPs of the best grid as narrow"] = best_grid(finished, test.params, stated_by[0], best[0])
    return result | at_random(finished, test.params, result["FLOPs"])


def at_random(finished: Runs, params: float, flops: float) -> dict[str, Any]:
    """What as many FLOPs of the finished sweep's runs in random order state: median high/low, None without end."""
    orders = [np.random.default_rng(seed).permutation(len(finished)).tolist() for seed in range(ORDERS)]
    stated_by = [width(finished, in_order(finished, order, flops), params) for order in orders]
    middle = float(np.median([math.inf if each is None else each[0] for each in stated_by]))
    return {
        "random order of the same FLOPs, high/low": math.exp(middle) if middle < math.log(1e6) else None,
        "random orders": ORDERS,
        "random orders that state nothing": sum(each is None for each in stated_by),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    result = {"command": COMMAND, "sets": {name: of_set(runs) for name, runs in sets(args.data).items()}}
    result["designed"] = designed()
    result["stated"] = {name: outcome(test) for name, test in STATED.items() if test.runs.exists()}
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps(rounded, indent=1))


if __name__ == "__main__":
    main()
