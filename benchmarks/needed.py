"""How much of the interval's width is needed? The shortest interval for somebody who knows what may be true.

Nine truths of `benchmarks.coverage` that differ in one thing from independent noise about a power: variance by size,
three smooth misfits, depths' offsets, either side steeper, a bowl on the reducible loss. They and their covariances are
known; which of them is true is not, nor are the bowl's curvature, the power, the place and the curve of loss against
size, near the first of them (everything is linear there). Sought is the shortest interval of fixed length about an
affine function of the losses that holds in at least 90% of sweeps whichever is true (Donoho 1994; Armstrong & Kolesár
2018). Its half-width for each truth, s·cv(bias/s), is convex in the function's weights, so the optimum that is found is
the least there is; two starts must agree.

Beside it stand the width of the joint fit, which knows none of this, and how often the shortest interval holds where
nothing is amiss: if in more than 98%, that is what 90% elsewhere costs, and an interval of its kind that holds in 90 to
98% everywhere is longer.

`python -m benchmarks.needed --out results/fit/needed.json` (after benchmarks.coverage)
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import NonlinearConstraint, brentq, minimize
from scipy.special import ndtr

from benchmarks.coverage import ROWS, Row, covariance, label, mean_loss, shapes, truth_of
from deepwide.quantities import Floats

COMMAND = "python -m benchmarks.needed --out results/fit/needed.json"
COVERAGE = Path("results/fit/coverage.json")
LEAST = 0.9
DESIGNS = "ABCDE"
SCALE = 0.05  # of ln depth, in which all is measured
PLACES = ("middle", "largest")
MIDDLE = math.log(2e5)  # ln size that the truths' best depth is stated at
FREE = [0, 1, 2, 3, 6, 7]  # of `truth_of`: curvature, floor, scale and power of the curve, place and growth


class World(NamedTuple):
    """What is known: the truths' means and covariances; what is not: the directions J, along which T moves by g."""

    names: list[str]
    means: Floats  # (truths, cells), less that of independent noise
    covariances: Floats
    J: Floats
    g: Floats


def truths(design: str) -> list[Row]:
    """Independent noise, and what differs in one thing from it, with this design."""
    usual = next(row for row in ROWS if row.name == "independent" and row.design == design)
    unlike = ("truth", "mixed", "tails", "ladder", "cell", "curvature")
    near = (row for row in ROWS if all(getattr(row, name) == getattr(usual, name) for name in unlike))
    here = (replace(row, design=design, seeds=usual.seeds) for row in near if row.design in ("A", design))
    return [usual, *(row for row in dict.fromkeys(here) if row != usual)]


def world(design: str, place: str) -> World:
    """With the sizes that the first seed has."""
    rows = truths(design)
    L, N = shapes(rows[0], np.random.default_rng(0))
    D, usual, p = np.ones(len(L)), rows[0], truth_of(rows[0])
    steps = 1e-5 * np.eye(len(p))[FREE]
    J = np.array([mean_loss(usual, p + h, L, N, D) - mean_loss(usual, p - h, L, N, D) for h in steps]).T / 2e-5
    at = {"middle": np.log(N).mean(), "largest": np.log(N).max()}[place]
    means = np.array([mean_loss(row, truth_of(row), L, N, D) for row in rows])
    return World(
        [row.name for row in rows],
        means - means[0],
        np.array([covariance(row, L, N, D) for row in rows]),
        J,
        np.array([0, 0, 0, 0, 1, at - MIDDLE]),
    )


def held(half: float, bias: Floats, sd: Floats) -> Floats:
    """How often an estimate with this bias and standard deviation is within half a width of the truth."""
    return np.asarray(ndtr((half - bias) / sd) - ndtr((-half - bias) / sd))


def half_needed(bias: Floats, sd: Floats) -> float:
    """The half-width that holds in 90% for every truth."""
    each = zip(np.abs(bias).tolist(), sd.tolist(), strict=True)
    return max(brentq(lambda h, b=b, s=s: float(held(h, b, s)) - LEAST, 0, b + 4 * s) for b, s in each)


def _last(v: Floats) -> float:
    return float(v[-1])


def shortest(known: World) -> tuple[float, Floats]:
    """Its half-width, and how often it holds for each truth."""
    any_one = np.linalg.lstsq(known.J.T, known.g, rcond=None)[0]
    free = null_space(known.J.T)  # what may be added without depending on what is unknown
    root = np.linalg.cholesky(free.T @ known.covariances.mean(axis=0) @ free)
    moves = SCALE * np.linalg.solve(root, free.T).T  # so that a step of one changes all of them alike

    def errors(u: Floats) -> tuple[Floats, Floats]:
        a = any_one + moves @ u[:-1]
        return known.means @ a + SCALE * u[-1], np.sqrt(np.einsum("i,rij,j->r", a, known.covariances, a))

    found = []
    for weight in (0.1, 10.0):
        K = known.covariances.mean(axis=0) + weight * known.means.T @ known.means / len(known.means)
        u = np.append(-np.linalg.solve(moves.T @ K @ moves, moves.T @ K @ any_one), 0.0)
        start = np.append(u, half_needed(*errors(u)) / SCALE)
        best = minimize(
            _last,
            start,
            constraints=NonlinearConstraint(lambda v: held(SCALE * v[-1], *errors(v[:-1])), LEAST, np.inf),
            method="SLSQP",
            tol=1e-8,
            options={"maxiter": 1000},
        ).x[:-1]
        found.append((half_needed(*errors(best)), best))
    found.sort(key=lambda each: each[0])
    assert found[1][0] < 1.01 * found[0][0], "two starts end apart"
    half, best = found[0]
    return half, held(half, *errors(best))


def measure(design: str, place: str, measured: dict[str, Any]) -> dict[str, Any]:
    """The shortest interval beside the joint fit's."""
    known = world(design, place)
    half, coverage = shortest(known)
    ours = {name: measured.get(label(row)) for name, row in zip(known.names, truths(design), strict=True)}
    usual = ours[known.names[0]]
    assert usual
    own = math.log(usual[place]["high/low"])
    return {
        "shortest, high/low": math.exp(2 * half),
        "ours, high/low": math.exp(own),
        "ours over it, in logarithms": own / (2 * half),
        "shortest covers": dict(zip(known.names, coverage.tolist(), strict=True)),
        "ours covers": {name: row[place]["coverage"] for name, row in ours.items() if row},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    measured = json.loads(COVERAGE.read_text())["rows"]
    result: dict[str, Any] = {"command": COMMAND, "least coverage": LEAST, "designs": {}}
    for design in DESIGNS:
        result["designs"][design] = {place: measure(design, place, measured) for place in PLACES}
        print(design, json.dumps(result["designs"][design]), flush=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.3g}"))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
