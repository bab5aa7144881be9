"""Fit small, predict large, on real runs: loss and best depth of the largest sizes, beside simpler rules.

`python -m benchmarks.prediction --data ../shared/data --out results/fit/prediction.json`

The losses of Gemstones on two other validation sets are in benchmarks/ of github.com/mcleish7/gemstone-scaling-laws
(fineweb_dclm_losses_combined.jsonl and fineweb_edu_losses_combined.jsonl, MIT, read at 5f42047): put both into a folder
and add `--validation FOLDER`; without it these two tests stay as they were measured.
"""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, fit_joint, fit_ridge, fit_surface, read_runs
from deepwide.laws import transition_law
from deepwide.quantities import Floats

COMMAND = "python -m benchmarks.prediction --data ../shared/data --out results/fit/prediction.json"
OURS = Path("results/fit")
CLASS = 1.6  # sizes within this factor of the largest are its class


VALIDATION = {"DCLM": "fineweb_dclm_losses_combined.jsonl", "FineWeb-Edu": "fineweb_edu_losses_combined.jsonl"}
FILES = {
    "Gemstones, 100B tokens": "hot",
    "Gemstones, 350B tokens": "hot_100b+_477",
    "Gemstones, cooled down": "cool_end",
    "Gemstones, lower rates": "lr_ablation_hot_477",
}


def gemstones(path: Path, tokens: float | None) -> Runs:
    """Every shape, at one length or at all; embeddings are two matrices of 50,304 rows."""
    columns = {"total_params": "params_active_precise"}
    return read_runs(path, columns, where={"tokens": tokens} if tokens else None, embedding_rows=2 * 50304)


def _gemstones_test(path: Path, tokens: float) -> tuple[Runs, float]:
    return gemstones(path, tokens), 6e8


def gemstones_file(data: Path, name: str) -> Path:
    return data / f"gemstones/wandb_dfs/wandb_df_for_fitting_{FILES[name]}.jsonl"


def held_out(data: Path, validation: Path | None = None) -> dict[str, tuple[Runs, float]]:
    """Runs, and the block parameters up to which they are fitted."""
    lengths = dict(zip(FILES, (1e11, 3.5e11, 1.1e11, 1e11), strict=True))
    chosen: dict[str, Callable[[], tuple[Runs, float]]] = {
        **{name: partial(_gemstones_test, gemstones_file(data, name), lengths[name]) for name in FILES},
        **{
            f"Gemstones, 350B tokens, loss on {name}": partial(_gemstones_test, validation / file, 3.5e11)
            for name, file in VALIDATION.items()
            if validation
        },
        "Morph": lambda: (read_runs(data / "morph/morph.csv"), 2e8),
        "ours, 8M tokens": lambda: (read_runs(OURS / "depth-width-long.csv"), 2e5),
        "ours, 2M tokens": lambda: (
            read_runs([OURS / "depth-width-cpu.csv", OURS / "depth-width-between.csv"]),
            1.5e5,
        ),
        "ours, film reviews": lambda: (read_runs(OURS / "depth-width-imdb.csv"), 1.5e5),
        "ours, enwik8": lambda: (read_runs(OURS / "depth-width-enwik8.csv"), 1.5e5),
        "ours, four languages": lambda: (read_runs(OURS / "depth-width-languages.csv"), 1.5e5),
    }
    pairs: dict[str, tuple[Runs, float]] = {}
    for name, read in chosen.items():
        try:
            pairs[name] = read()
        except (DeepwideError, OSError) as error:
            print(f"{name}: left out, {error}")
    return pairs


def size_alone(small: Runs, large: Runs) -> Floats:
    """ln(E + A/N^α + B/D^β) by least squares, a little held to usual values; N is the total where it is known."""
    from scipy.optimize import least_squares

    known = not np.isnan(small.total_params).any()

    def columns(runs: Runs) -> tuple[Floats, Floats]:
        size = runs.total_params if known else runs.block_params
        return np.log(size), np.log(np.where(np.isnan(runs.tokens), 1.0, runs.tokens))

    n, d = columns(small)
    at = n.mean(), d.mean()
    y = np.log(small.loss)

    def curve(p: Floats, n: Floats, d: Floats) -> Floats:
        level, floor, alpha, data, beta = p
        parts = np.exp(floor) + np.exp(-np.exp(alpha) * (n - at[0])) + np.exp(data - np.exp(beta) * (d - at[1]))
        return np.asarray(level + np.log(parts))

    start = np.array([y.mean() - 1, 0.5, math.log(0.3), 0.0, math.log(0.3)])
    weak = np.array([0.0, 1 / 1.5, 1 / 0.6, 1 / 1.5, 1 / 0.6]) * 0.01

    def misfit(p: Floats) -> Floats:
        return np.append(curve(p, n, d) - y, weak * (p - start))

    solution = least_squares(misfit, start)
    return curve(solution.x, *columns(large))


def own_law(name: str, data: Path, validation: Path | None, small: Runs, large: Runs, until: float) -> Floats | None:
    """ln loss by the form that the runs' own publication fits, fitted to the small runs; None where there is none.

    Gemstones' surface in width, depth, parameters and tokens needs several lengths: it gets all of the small shapes'.
    """
    if name.startswith("Gemstones"):
        other = [file for key, file in VALIDATION.items() if key in name]
        path = validation / other[0] if other and validation else gemstones_file(data, name)
        runs = gemstones(path, None)
        runs = runs.select((runs.block_params <= until) & ~runs.diverged)
        surface = fit_surface(runs, terms="shape", delta=1e-4, bootstrap=0)
        guess = surface.predict(params=large.total_params, tokens=large.tokens, width=large.width, depth=large.depth)
        return np.log(guess)
    return morph_law(small, large) if name == "Morph" else None


def morph_law(small: Runs, large: Runs) -> Floats:
    """ln[(E + A/N^α + B/D^β)(1 + ε·R^γ)], R = width/depth (Bian et al. 2025), by least squares on ln loss."""
    from scipy.optimize import least_squares

    def columns(runs: Runs) -> tuple[Floats, Floats, Floats]:
        return np.log(runs.total_params / 1e8), np.log(runs.tokens / 1e9), np.log(runs.width / runs.depth)

    def curve(p: Floats, n: Floats, d: Floats, ratio: Floats) -> Floats:
        parts = np.exp(p[0]) + np.exp(p[1] - p[2] * n) + np.exp(p[3] - p[4] * d)
        return np.asarray(np.log(parts) + np.log1p(np.exp(p[5] + p[6] * ratio)))

    here, y = columns(small), np.log(small.loss)
    start = np.array([0.5, 0.0, 0.3, 0.0, 0.3, -5.0, 0.5])

    def misfit(p: Floats) -> Floats:
        return curve(p, *here) - y

    solution = least_squares(misfit, start)
    return curve(solution.x, *columns(large))


def percent(errors: Floats) -> float:
    return 100 * float(np.sqrt(np.mean(errors**2)))


def measure(name: str, runs: Runs, until: float, data: Path, validation: Path | None) -> dict[str, Any]:
    """Errors of ln loss and of ln depth beyond `until`."""
    runs = runs.select(~runs.diverged)
    small, large = (runs.select(rows) for rows in (runs.block_params <= until, runs.block_params > until))
    result: dict[str, Any] = {
        "fitted": len(small), "predicted": len(large),
        "factor": float(large.block_params.max() / small.block_params.max()),
    }  # fmt: skip
    joint = fit_joint(small)
    y = np.log(large.loss)
    alone = size_alone(small, large)
    result["size alone, loss %"] = percent(alone - y)
    own = own_law(name, data, validation, small, large, until)
    result["own law, loss %"] = None if own is None else percent(own - y)
    total = None if joint.embeddings_mean is None else large.total_params
    tokens = None if joint.centre_tokens is None else large.tokens
    embeddings = joint.embeddings_mean is not None
    ridge = fit_ridge(small, base="power", embeddings=embeddings, bootstrap=0)
    guess = [
        ridge.predict(float(L), float(N), tokens=float(D) if ridge.centre_tokens else None,
                      total=float(P) if embeddings else None).value
        for L, N, D, P in zip(large.depth, large.block_params, large.tokens, large.total_params, strict=True)
    ]  # fmt: skip
    result["ridge, loss %"] = percent(np.log(guess) - y)
    if joint.declined:
        return result | {"declined": joint.declined}
    rows = joint.predict_rows(large.depth, large.block_params, tokens=tokens, total=total)
    errors = np.log([row["loss"] for row in rows]) - y
    result |= {"joint, loss %": percent(errors), "joint, mean error of loss %": 100 * float(errors.mean())}
    inside = [row["run_low"] <= loss <= row["run_high"] for row, loss in zip(rows, large.loss, strict=True)]
    result["runs inside"] = f"{sum(inside)} of {len(inside)}"
    size, best, length = _best(large)
    if joint.centre_tokens is not None:
        joint = fit_joint(small, length=length, examine=False)
    place = joint.best_depth(size)[0]
    centre = joint.best_depth(joint.centre)[0].value
    result |= {"size": size, "best depth seen": best, "joint, depth": [place.value, place.low, place.high]}
    result["constant ratio, depth"] = centre * float(np.cbrt(size / joint.centre))
    result["levine, depth"] = transition_law().depth_at(size)
    return result


def _best(large: Runs) -> tuple[float, float, float]:
    """Of the largest class the size, depth and tokens of least loss, at the fewest tokens per parameter."""
    tokens = np.where(np.isnan(large.tokens), 0.0, large.tokens)
    here = large.block_params > large.block_params.max() / CLASS
    per = np.round(np.log(np.maximum(tokens / large.block_params, 1e-9)))
    here &= per == per[here].min()
    rows = np.flatnonzero(here)
    best = rows[np.argmin(large.loss[rows])]
    return float(large.block_params[best]), float(large.depth[best]), float(large.tokens[best])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--validation", type=Path, help="has Gemstones' losses on other validation sets (see above)")
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "tests": {}}
    if args.out.exists() and not args.validation:
        before = json.loads(args.out.read_text())["tests"]
        result["tests"] = {name: test for name, test in before.items() if "loss on" in name}
    for name, (runs, until) in held_out(args.data, args.validation).items():
        try:
            result["tests"][name] = measure(name, runs, until, args.data, args.validation)
        except DeepwideError as error:
            result["tests"][name] = {"refused": str(error)}
        print(name, json.dumps(result["tests"][name], ensure_ascii=False), flush=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
    args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
