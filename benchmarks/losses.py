"""Do the 95% limits of predicted losses cover: of a shape's mean over seeds, and of one new run?

Sweeps and truths are those of `benchmarks.coverage`. At the sizes there (the middle, the largest, 10 times it) the loss
of the truly best depth, and of half and twice of it, is predicted. What a truth has of misfit, offsets of depths and
luck of cells is drawn there together with that of the sweep's own cells.

`python -m benchmarks.losses --out results/fit/losses.json`
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coverage import FRESH, ROWS, Row, covariance, drawn, label, mean_loss, simulated, targets, truth_of
from deepwide.fitting import fit_joint
from deepwide.quantities import Floats

COMMAND = "python -m benchmarks.losses --out results/fit/losses.json"
PLACES = ("middle", "largest", "10x")
FACTORS = (0.5, 1.0, 2.0)  # of the best depth
NUMBER = 100


def asked(row: Row, sizes: Floats) -> tuple[Floats, Floats]:
    """Depths and sizes of which the loss is predicted: whole depths, as networks have."""
    best, truth = row.best
    N = np.repeat(np.exp(sizes), len(FACTORS))
    L = np.exp(best(np.array(truth), np.log(N))) * np.tile(FACTORS, len(sizes))
    return np.maximum(np.round(L), 1.0), N


def hits(row: Row, seed: int) -> dict[str, Any] | None:
    """Whether the limits hold, of the mean and of one run (places, factors), and ln(high/low) of either; None where the
    fit declines."""
    runs, cells = simulated(row, seed)
    fit = fit_joint(runs, seed=seed, examine=False)
    if fit.law() is None:
        return None
    L, N = asked(row, targets(runs)[: len(PLACES)])
    both = (np.append(cells.L, L), np.append(cells.N, N))
    K, n = covariance(row.without_noise(), *both), len(cells.L)
    gain = np.linalg.solve(K[:n, :n] + 1e-12 * np.eye(n), K[:n, n:])
    left = K[n:, n:] - K[:n, n:].T @ gain
    draw = np.random.default_rng([seed, 77])
    values, vectors = np.linalg.eigh(left)
    misfit = cells.misfit @ gain + vectors @ (np.sqrt(np.maximum(values, 0)) * draw.normal(size=len(L)))
    mean = mean_loss(row, truth_of(row), L, N, np.ones(len(L))) + misfit
    sd = np.sqrt(np.diag(covariance(row.noise_alone(), *both))[n:])
    one = mean + sd * draw.normal(size=len(L))
    rows = fit.predict_rows(L, N)
    column = {name: np.log([r[name] for r in rows]) for name in ("low", "high", "run_low", "run_high")}
    held = {
        "mean": (column["low"] <= mean) & (mean <= column["high"]),
        "run": (column["run_low"] <= one) & (one <= column["run_high"]),
    }
    width = {"mean": column["high"] - column["low"], "run": column["run_high"] - column["run_low"]}
    shape = (len(PLACES), len(FACTORS))
    return {kind: (held[kind].reshape(shape), width[kind].reshape(shape)) for kind in held}


def measure(row: Row, number: int, first: int = FRESH) -> dict[str, Any]:
    """Per place: how often limits hold, and their width in percent of loss."""
    results = [hits(drawn(row, seed), seed) for seed in range(first, first + number)]
    some = [each for each in results if each is not None]
    result: dict[str, Any] = {"sweeps": number, "declined": number - len(some)}
    for i, place in enumerate(PLACES):
        result[place] = {
            kind: {
                "coverage": float(np.mean([each[kind][0][i] for each in some])),
                "width, percent": float(100 * np.median([each[kind][1][i] for each in some])),
            }
            for kind in ("mean", "run")
        }
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "rows": {}}
    for row in ROWS:
        if row.ladder or args.only not in label(row):  # losses there depend on tokens too
            continue
        result["rows"][label(row)] = measured = measure(row, args.number)
        shown = [f"{100 * measured[p][kind]['coverage']:3.0f}" for p in PLACES for kind in ("mean", "run")]
        print(f"{label(row):46}", "  ".join(shown), flush=True)
        rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.3g}"))
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
