"""Where does the width of the best depth's interval come from, and could an honest one be narrower?

Three answers. *Switched off*: sweeps of `benchmarks.coverage` are fitted again with one thing that the model allows for
taken away; what the interval loses in width, and in coverage where that thing is there. *From the priors*: truths are
drawn from what the model assumes, misfit included; a right inference covers 95% of them (Cook, Gelman & Rubin 2006).
*Beyond the runs*: growth may end with the largest run or go on as it was, and the runs do not say which. An interval
that is to hold in 90% of sweeps in either case is at least as long as the way between the two plus 1.28 standard errors
at either end, whatever the method; errors are those of an oracle that knows all but the skew.

`python -m benchmarks.decomposition --out results/fit/decomposition.json`
"""

import argparse
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.coverage import ROWS, TRUTHS, Row, label, oracle, shapes, sweep, targets
from deepwide.fitting import Runs, fit_joint, inference, misfit, mixed, model
from deepwide.quantities import Floats

COMMAND = "python -m benchmarks.decomposition --out results/fit/decomposition.json"
SHOWN = (
    "independent (A)",
    "independent (C)",
    "smooth misfit 0.5% (A)",
    "depth offsets 0.4% (A)",
    "2.7 times steeper when too shallow (A)",
    "bowl on the reducible part (A)",
    "truth ceiling at 5 layers (A)",
)
SIZES = ("middle", "largest")
BEYOND = ("independent (A)", "truth power 0.1 (A)", "truth power 0.45 (A)", "truth constant ratio (A)")
ONE_SIDED = 1.2816  # standard errors that hold 90% on one side


def _known(**values: tuple[float, float]) -> Callable[[ExitStack], Any]:
    return lambda stack: stack.enter_context(patch.object(inference, "PRIORS", {**model.PRIORS, **values}))


SWITCHES: Mapping[str, Callable[[ExitStack], Any]] = {
    "nothing": lambda _: None,
    "no misfit, smooth or by depth": lambda stack: stack.enter_context(
        patch.dict(mixed.DOUBTS, {"smooth": ((0.0, 1.0),), "depth": ((0.0, 1.0),)})
    ),
    "the bowl is symmetric": _known(skew=(0.0, 1e-4), tail=(0.0, 1e-4)),
    "its sides are parabolas": _known(tail=(0.0, 1e-4)),
    "its curvature is the same at all sizes": _known(curvature_size=(0.0, 1e-4)),
    "growth does not bend": _known(bend=(0.0, 1e-5)),
    "loss against size is nearly known": _known(size2=(0.0, 1e-6), floor=(0.25, 0.1), size_power=(math.log(0.2), 0.1)),
    "the noise is nearly known": lambda stack: stack.enter_context(
        patch.object(mixed, "NOISE", (math.log(0.004), 0.05))
    ),
}


def switched(row: Row, number: int) -> dict[str, float]:
    """Median ln(high/low) and coverage in the middle and at the largest size."""
    best, truth = TRUTHS[row.truth]
    inside, widths = [], []
    for seed in range(number):
        runs = sweep(row, seed)
        law = fit_joint(runs, seed=seed, examine=False).law()
        if law is None:
            continue
        n = targets(runs)[:2]
        _, low, high = law.depth(np.exp(n))
        goal = np.exp(best(np.array(truth), n))
        inside.append((low <= goal) & (goal <= high))
        widths.append(np.log(high / low))
    result: dict[str, float] = {}
    for i, size in enumerate(SIZES):
        result[f"ln(high/low), {size}"] = float(np.median([width[i] for width in widths]))
        result[f"coverage, {size}"] = float(np.mean([hit[i] for hit in inside]))
    return result


def from_the_priors(design: str, number: int) -> dict[str, float]:
    """How often 95% intervals hold a truth that is drawn from what the model assumes."""
    inside = []
    for seed in range(number):
        draw = np.random.default_rng([seed, 77])
        runs, place = _of_the_model(design, draw)
        law = fit_joint(runs, seed=seed, examine=False).law()
        if law is None:
            continue
        n = np.log(runs.block_params)
        sizes = np.exp([n.mean(), n.max()])
        _, low, high = law.depth(sizes)
        goal = np.exp(place(np.log(sizes) - n.mean()))
        inside.append((low <= goal) & (goal <= high))
    return {f"coverage, {size}": float(np.mean([hit[i] for hit in inside])) for i, size in enumerate(SIZES)} | {
        "sweeps": len(inside)
    }


def _of_the_model(design: str, draw: np.random.Generator) -> tuple[Runs, Callable[[Floats], Floats]]:
    L, N = shapes(Row("from the priors", design), draw)
    s = np.log(N) - np.log(N).mean()
    places = model.Design(s, None, None, np.log(L))
    theta = {name: mean + sd * draw.normal() for name, (mean, sd) in model.PRIORS.items() if math.isfinite(sd)}
    theta |= {"level": 0.5, "curvature": 0.02 * math.exp(0.3 * draw.normal())}
    theta |= {"depth": math.log(3) + 0.2 * draw.normal(), "skew": float(np.clip(theta["skew"], -0.9, 0.9))}
    values = np.array([theta[name] for name in places.names])
    y = model.log_loss(places.names, values[None], places)[0] + 0.004 * draw.normal(size=len(N))
    sizes, weights = zip(*mixed.MISFIT, strict=True)
    for factor in misfit.misfit_factors(places).values():
        y = y + 0.004 * draw.choice(sizes, p=weights) * (factor @ draw.normal(size=factor.shape[1]))
    runs = Runs.of(depth=L, block_params=N, loss=np.exp(y), source="simulated")
    return runs, lambda far: np.asarray(theta["depth"] + theta["growth"] * far + theta["bend"] * far**2)


def beyond(row: Row, stated: Mapping[str, Any]) -> dict[str, float]:
    """ln(high/low) at 10 and 100 times the largest size: what is stated, and the least that holds either way."""
    best, truth = TRUTHS[row.truth]
    n = math.log(float(np.exp(np.log(shapes(row, np.random.default_rng(0))[1]).max())))
    growth = float(np.diff(best(np.array(truth), np.array([n - 1e-3, n])))[0] / 1e-3)
    error = float(oracle(row, learns_skew=True)[1]) / (2 * 1.96)
    result = {}
    for factor, place in ((10, "10x"), (100, "100x")):
        result[f"stated, {place}"] = math.log(stated[place]["high/low"])
        result[f"at least, {place}"] = growth * math.log(factor) + 2 * ONE_SIDED * error
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=25)
    parser.add_argument("--coverage", type=Path, default=Path("results/fit/coverage.json"))
    args = parser.parse_args(arguments)
    rows = {label(row): row for row in ROWS}
    result: dict[str, Any] = {"command": COMMAND, "switched off": {}, "from the priors": {}, "beyond the runs": {}}
    for name, switch in SWITCHES.items():
        with ExitStack() as stack:
            switch(stack)
            result["switched off"][name] = {row: switched(rows[row], args.number) for row in SHOWN}
        print(name, json.dumps(result["switched off"][name]), flush=True)
    for design in "ACD":
        result["from the priors"][design] = from_the_priors(design, 5 * args.number)
    measured = json.loads(args.coverage.read_text())["rows"]
    result["beyond the runs"] = {row: beyond(rows[row], measured[row]) for row in BEYOND}
    print(json.dumps({key: result[key] for key in ("from the priors", "beyond the runs")}), flush=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.3g}"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
