"""Do the intervals of `deepwide fit` cover? 200 simulated sweeps from known laws, and 200 without a crossing.

`python -m benchmarks.fit_calibration --out results/fit/calibration.json`
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.answers import Interval
from deepwide.fitting import fit_ridge, fit_transition, simulate
from deepwide.laws import TransitionLaw, depth_cost

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
SIZES = list(np.geomspace(2e4, 2e6, 7))
UNEVEN: dict[str, Any] = {
    "depths": (1, 2, 4, 8), "sizes": list(np.geomspace(1e4, 4e6, 9)), "seeds": 1,
    "noise": {1: 0.04, 2: 0.01, 4: 0.005, 8: 0.005},
}  # fmt: skip
DESIGNS: dict[str, dict[str, Any]] = {
    "4 depths, 7 sizes, 2 seeds": {"depths": (1, 2, 4, 8), "sizes": SIZES, "seeds": 2},
    "4 depths, 7 sizes, 1 seed": {"depths": (1, 2, 4, 8), "sizes": SIZES, "seeds": 1},
    "4 depths, 5 sizes, 3 seeds": {"depths": (1, 2, 4, 8), "sizes": SIZES[::2] + SIZES[-2:-1], "seeds": 3},
    "4 depths, 9 sizes, 1 seed, noise 4, 1, 0.5, 0.5% by depth": UNEVEN,
    "the same, each depth's own noise": UNEVEN | {"own": "depth"},
    "4 depths, 7 sizes, 2 seeds, each depth's own noise": {
        "depths": (1, 2, 4, 8),
        "sizes": SIZES,
        "seeds": 2,
        "own": "depth",
    },
    "4 depths, 7 sizes, 2 seeds, noise 1%": {"depths": (1, 2, 4, 8), "sizes": SIZES, "seeds": 2, "noise": 0.01},
}


def covered(limits: Interval, truth: float) -> bool:
    """An interval without a limit reaches to infinity."""
    low, high = (-np.inf if limits.low is None else limits.low), (np.inf if limits.high is None else limits.high)
    return bool(low <= truth <= high)


def transition(design: dict[str, Any], number: int, resamples: int) -> dict[str, Any]:
    """Coverage and bias of a, b and of each crossing."""
    design = dict(design)
    own = design.pop("own", "same")
    hits: dict[str, list[bool]] = {}
    values, laws = [], 0
    for seed in range(number):
        fit = fit_transition(simulate(LAW, seed=seed, **design), bootstrap=resamples, noise=own)
        for pair in fit.crossings:
            truth = 12 * pair.depth * float(LAW.width(pair.depth)[0]) ** 2
            if pair.size is not None:
                inside = covered(Interval(pair.size, pair.low, pair.high), truth)
                hits.setdefault(f"crossing {pair.shallow}/{pair.deep}", []).append(inside)
        if not fit.names:
            continue
        laws += 1
        values.append(fit.values)
        for name, truth in (("a", LAW.a), ("b", LAW.b)):
            hits.setdefault(f"{name}, likelihood", []).append(covered(fit.interval(name), truth))
            hits.setdefault(f"{name}, bootstrap", []).append(covered(fit.interval(name, "bootstrap"), truth))
            error = 1.96 * (np.array(fit.placed)[("a", "b").index(name)][("a", "b").index(name)] ** 0.5)
            wide = Interval(fit[name], fit[name] - error, fit[name] + error)
            hits.setdefault(f"{name}, with the depths' own error", []).append(covered(wide, truth))
    made = np.array(values)
    return {
        "sweeps": number,
        "with a law": laws,
        "crossings shown": {name: len(each) / number for name, each in hits.items() if name.startswith("crossing")},
        "coverage": {name: float(np.mean(each)) for name, each in hits.items()},
        "mean": dict(zip("ab", made.mean(axis=0).tolist(), strict=True)),
        "spread": dict(zip("ab", made.std(axis=0).tolist(), strict=True)),
        "bias in units of the spread": dict(
            zip("ab", ((made.mean(axis=0) - (LAW.a, LAW.b)) / made.std(axis=0)).tolist(), strict=True)
        ),
    }


def ridge(number: int, resamples: int) -> dict[str, Any]:
    """Coverage of the bowl's minimum and curvature, about the true law, where the model is exact in x."""
    hits: dict[str, list[bool]] = {}
    for seed in range(number):
        fit = fit_ridge(simulate(LAW, seed=seed, **next(iter(DESIGNS.values()))), base=LAW, bootstrap=resamples)
        if fit.minimum is not None:
            hits.setdefault("minimum, likelihood", []).append(covered(fit.minimum, 1.0))
        hits.setdefault("curvature, likelihood", []).append(covered(fit.interval("b2"), 0.02))
        hits.setdefault("curvature, bootstrap", []).append(covered(fit.interval("b2", "bootstrap"), 0.02))
    return {"sweeps": number, "coverage": {name: float(np.mean(each)) for name, each in hits.items()}}


def laws_for_plan(number: int) -> dict[str, Any]:
    """Coverage of what plan says by a fitted law: the best depth, and what 1.75 times fewer layers cost."""
    hits: dict[str, list[bool]] = {}
    for seed in range(number):
        runs = simulate(LAW, seed=seed, **next(iter(DESIGNS.values())))
        fits = {
            "transition": fit_transition(runs, bootstrap=0),
            "ridge, base power": fit_ridge(runs, base="power", bootstrap=0),
        }
        for name, fit in fits.items():
            law = fit.law()
            for size in (5e4, 3e5, 1.5e6):
                truth = float(LAW.depth(size).value[0])
                if law is None:
                    continue
                found = law.depth(size).at()
                hits.setdefault(f"{name}: depth at {size:g}", []).append(covered(found, truth))
                cost = depth_cost(found.value / 1.75, found.value, size, law)
                off, here = np.log(found.value / 1.75 / truth), np.log(found.value / truth)
                if cost is not None:
                    true = 100 * np.expm1(0.02 * (off**2 - here**2))
                    hits.setdefault(f"{name}: cost at {size:g}", []).append(covered(cost, true))
    return {"sweeps": number, "coverage": {name: float(np.mean(each)) for name, each in hits.items()}}


def without_effect(number: int) -> dict[str, Any]:
    """Depth makes no difference: how often is a crossing, a law or a slope found?"""
    design = next(iter(DESIGNS.values()))
    fits = [fit_transition(simulate(LAW, seed=seed, curvature=0.0, **design), bootstrap=0) for seed in range(number)]
    slopes = [fit.interval("b") for fit in fits if fit.names]
    return {
        "sweeps": number,
        "pairs with a crossing": float(np.mean([pair.size is not None for fit in fits for pair in fit.crossings])),
        "laws for plan": sum(fit.law() is not None for fit in fits),
        "slopes whose interval excludes 0": sum(not covered(slope, 0.0) for slope in slopes),
        "verdicts 'seen'": sum(fit.verdict().outcome == "seen" for fit in fits),
    }


def without_crossing(number: int) -> dict[str, Any]:
    """Depths so far apart from the law that one always wins: how often is a crossing or a law invented?"""
    law = TransitionLaw(name="deep", a=0.0, b=0.25)  # at these sizes 8 layers are far from enough
    fits: list[Any] = [
        fit_transition(simulate(law, seed=seed, depths=(1, 2, 4, 8), sizes=SIZES), bootstrap=0)
        for seed in range(number)
    ]
    return {
        "sweeps": number,
        "laws invented": sum(bool(fit.names) for fit in fits),
        "crossings called bracketed": sum(pair.status == "bracketed" for fit in fits for pair in fit.crossings),
        "verdicts 'seen'": sum(fit.verdict().outcome == "seen" for fit in fits),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=400)
    args = parser.parse_args()
    start = time.perf_counter()
    command = "python -m benchmarks.fit_calibration --out results/fit/calibration.json"
    result: dict[str, Any] = {"command": command, "python": platform.python_version(), "numpy": np.__version__}
    result["truth"] = {"a": LAW.a, "b": LAW.b, "curvature": 0.02, "noise": 0.004, "a seed shares": 0.003}
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        name: partial(transition, design, args.number, args.resamples) for name, design in DESIGNS.items()
    }
    steps["ridge"] = lambda: ridge(args.number, args.resamples)
    steps["laws for plan"] = lambda: laws_for_plan(args.number)
    steps["depth makes no difference"] = lambda: without_effect(args.number)
    steps["no crossing"] = lambda: without_crossing(args.number)
    for name, step in steps.items():
        result[name] = step()
        print(f"{name}: {json.dumps(result[name])}  [{time.perf_counter() - start:.0f} s]", flush=True)
    text = json.dumps(result)
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.4g}"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rounded, indent=1) + "\n")


if __name__ == "__main__":
    main()
