"""Does choosing runs pay? FLOPs for the same interval beside grids, random order and cheapest first, with coverage.

Sweeps are simulated from truths that the model does not share (those of `benchmarks.coverage`). The target is the best
depth at ten times the largest size that may be run. A designed sweep starts with nothing and pays for its pilot. The
uniform grids are chosen in hindsight: of many, those that no cheaper one beats, with lines between them; what they
reach is measured on other sweeps than chose them.

"designed, shorter too" may also run a quarter and a sixteenth of the length; the target is at the full length. There
the best depth shifts with length as it pleases: by −0.1 to 0.35 per e-fold, which changes with size by up to 0.05 and
with length by up to 0.06 per e-fold, the bowl's curvature falls by up to a third per e-fold, and loss against length is
not the model's formula. In "noise falls" the ln of the noise falls too, by up to 0.8 per e-fold: a sixteenth of the
length may have nine times the noise.

`python -m benchmarks.design --out results/design/simulated.json`; interrupted, it resumes.
"""

import argparse
import itertools
import json
import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coverage import TRUTHS, Row, covariance, mean_loss, truth_of
from deepwide.designing import Goalpost, Pool, decide
from deepwide.errors import DeepwideError
from deepwide.fitting import Places, Runs, fit_joint
from deepwide.quantities import Floats

COMMAND = "python -m benchmarks.design --out results/design/simulated.json"
ROWS = {
    "power": Row("power"),
    "levine": Row("levine", truth="levine"),
    "constant ratio": Row("constant ratio", truth="constant ratio"),
    "ceiling at 5 layers": Row("ceiling", truth="ceiling"),
    "ceiling at 8 layers": Row("ceiling", truth="ceiling at the largest"),
    "smooth misfit 0.5%": Row("smooth", smooth=0.005),
    "depth offsets 0.4%": Row("offsets", offsets=0.004),
    "2.7 times steeper when too shallow": Row("steeper", steeper=2.7),
    "ladder, tokens = 20·total": Row("ladder", "L", "constant ratio, large", ladder=True),
}
BUDGETS = (1.0, 2.0, 4.0, 8.0)  # in runs of the largest size
BUDGETS_SHORTER = (0.25, 0.5, 1.0)
SHORTER = (1.0, 0.25, 0.0625)  # of the length
SHIFTS = ((-0.1, 0.35), (-0.05, 0.05), (-0.03, 0.03))  # per e-fold of length, and size, and length
FLATTER = (-0.4, 0.05)  # by how much the bowl does, per e-fold of length: ln of its curvature
FALLS = (0.0, 0.8)  # by how much noise does: ln of it
CURVE = 0.005  # sd of what loss against size and length has besides
TOKENS = 8e7
TO_CHOOSE, TO_JUDGE = 5, 15  # sweeps of each uniform grid, and of those that were chosen
RATIOS = (5.0, 4.0, 3.5, 3.0, 2.75)  # of the interval at the target, high/low


@dataclass(frozen=True, eq=False)
class World:
    """A pool of shapes with their true mean ln loss, misfit included."""

    row: Row
    seed: int
    pool: Pool
    size: Floats  # nominal
    y: Floats
    largest_cost: float
    tokens: float | None = None  # of the target, where there are several lengths
    falls: float = 0.0  # ln of the noise, per e-fold of tokens

    @property
    def target(self) -> float:
        return 10 * float(self.size.max())

    def truth(self) -> float:
        """The best depth at the target."""
        best, p = TRUTHS[self.row.truth]
        return float(np.exp(best(np.array(p), np.log([self.target]))[0]))

    def goal(self) -> Goalpost:
        place = self.pool.places
        share = np.log(place.total_params / place.block_params)
        return Goalpost("depth", self.target, float(share[place.block_params.argmax()]), self.tokens)

    def runs(self, picks: Sequence[int]) -> Runs:
        """What these runs of the pool give; a shape's later runs have other seeds."""
        place, times = self.pool.places, dict.fromkeys(picks, 0)
        rows, seeds, noise = [], [], []
        for pick in picks:
            seed = times[pick]
            times[pick] += 1
            own = np.random.default_rng([self.seed, pick, seed]).normal(0, self.row.noise)
            shared = np.random.default_rng([self.seed, 10_000 + seed]).normal(0, 0.003)
            rows.append(pick)
            seeds.append(seed)
            length = place.tokens[pick] / self.tokens if self.tokens else 1.0
            noise.append((own + shared) * length**-self.falls)
        columns: dict[str, Any] = {"total_params": place.total_params[rows]} if self.row.ladder else {}
        columns |= {"tokens": place.tokens[rows]} if self.row.ladder or self.tokens else {}
        return Runs.of(
            depth=place.depth[rows], block_params=place.block_params[rows], seed=seeds,
            loss=np.exp(self.y[rows] + np.array(noise)), source="simulated", **columns,
        )  # fmt: skip


def world(row: Row, seed: int) -> World:
    """The pool of one simulated sweep."""
    draw = np.random.default_rng([seed, zlib.crc32(repr(row).encode())])
    sizes = np.geomspace(1e7, 1e9, 8) if row.ladder else np.geomspace(1e4, 4e6, 10)
    depths = (4, 6, 8, 12, 16, 24, 32, 48) if row.ladder else (1, 2, 3, 4, 6, 8, 12, 16)
    L, size = (column.ravel() for column in np.meshgrid(np.array(depths, dtype=float), sizes))
    N = size * np.exp(draw.normal(0, 0.03, len(size)))
    total = N + 50_000 * np.sqrt(N / (12 * L)) if row.ladder else N
    tokens = 20 * total if row.ladder else np.full(len(N), TOKENS)
    y = mean_loss(row, truth_of(row), L, N, tokens)
    cells = covariance(replace(row, noise=0.0), L, N)
    y = y + np.linalg.cholesky(cells + 1e-14 * np.eye(len(N))) @ draw.normal(size=len(N))
    cost = 6 * total * tokens
    places = Places(L, N, total, tokens, np.ones(len(N)))
    top = float(np.median(cost[size == size.max()]))
    return World(row, seed, Pool(places, cost, np.full(len(N), 8)), size, y, top)


def shorter(row: Row, seed: int, noise_falls: bool = False) -> World:
    """The same with shorter lengths besides."""
    one = world(row, seed)
    draw = np.random.default_rng([seed, zlib.crc32(repr(row).encode()), 3])
    places, number = one.pool.places, len(SHORTER)
    L, N, total = (np.tile(v, number) for v in (places.depth, places.block_params, places.total_params))
    t = np.repeat(np.log(SHORTER), len(places))
    n = np.log(N / np.exp(np.log(places.block_params).mean()))
    r, u, v = (draw.uniform(*ends) for ends in SHIFTS)
    truth, shifted = truth_of(row), L * np.exp(-t * (r + u * n + v * t))
    whole, level = (mean_loss(row, p, shifted, N, TOKENS * np.exp(t)) for p in (truth, np.append(0.0, truth[1:])))
    y = level + (whole - level) * np.exp(t * draw.uniform(*FLATTER))
    y = y + np.log1p(0.3 * np.expm1(-0.3 * t))
    near = [np.exp(-((np.subtract.outer(a, a) / long) ** 2) / 2) for a, long in ((n, 2.0), (t, 1.5))]
    V = covariance(replace(row, noise=0.0), L, N) * near[1] + CURVE**2 * near[0] * near[1]
    y = y + np.linalg.cholesky(V + 1e-12 * np.eye(len(N))) @ draw.normal(size=len(N))
    cost = 6 * total * TOKENS * np.exp(t)
    pool = Pool(Places(L, N, total, TOKENS * np.exp(t), np.ones(len(N))), cost, np.full(len(N), 8))
    falls = draw.uniform(*FALLS) * noise_falls
    return World(row, seed, pool, np.tile(one.size, number), y, one.largest_cost, TOKENS, falls)


def designed(here: World, budget: float) -> Iterator[tuple[list[int], float]]:
    """The runs after each batch, and the high/low that was promised at the start for the whole budget."""
    picks: list[int] = []
    left = budget
    while True:
        answer = decide(here.runs(picks) if picks else None, here.pool, here.goal(), left, draws=400)
        if not answer.batches:
            return
        picks = picks + list(answer.batches[0])
        left = budget - float(here.pool.cost[picks].sum())
        assert left >= -1e-6 * budget
        yield picks, answer.ratios[-1]


def in_order(here: World, budget: float, order: Sequence[int]) -> list[int]:
    """Runs of the pool in an order, again and again, each that can still be paid."""
    picks: list[int] = []
    left = budget
    for run in itertools.chain.from_iterable(itertools.repeat(list(order), 8)):
        if here.pool.cost[run] <= left:
            picks.append(run)
            left -= float(here.pool.cost[run])
        if len(picks) >= 400:
            break
    return picks


def random_order(here: World, budget: float) -> list[int]:
    return in_order(here, budget, list(np.random.default_rng([here.seed, 7]).permutation(len(here.pool))))


def cheapest_first(here: World, budget: float) -> list[int]:
    return in_order(here, budget, list(np.argsort(here.pool.cost, kind="stable")))


def grids(here: World) -> Iterator[tuple[str, list[int]]]:
    """Uniform grids of depths × sizes, all seeds alike."""
    sizes = np.unique(here.size)
    depths = np.unique(here.pool.places.depth)
    for top, low, number in itertools.product((6, 7, 8, 9), (0, 3), (3, 4)):
        top -= 10 - len(sizes)
        chosen = np.unique(np.round(np.linspace(low, top, number)).astype(int))
        if len(chosen) < number:
            continue
        for name, which in (("all", slice(None)), ("every other", slice(0, None, 2)), ("the middle", slice(1, 6))):
            for seeds in (1, 2):
                here_too = np.isin(here.size, sizes[chosen]) & np.isin(here.pool.places.depth, depths[which])
                picks = np.flatnonzero(here_too).tolist()
                label = f"{name} depths × {number} sizes {low} to {top} × {seeds} seeds"
                yield label, picks * seeds


def judged(here: World, picks: Sequence[int]) -> tuple[float, float, bool] | None:
    """Cost, ln(high/low) and whether the truth is inside; None where the fit declines or is refused."""
    try:
        law = fit_joint(here.runs(picks), length=here.tokens, bootstrap=400, examine=False).law()
    except DeepwideError:
        return None
    if law is None:
        return None
    _, low, high = (float(v[0]) for v in law.depth(here.target))
    return float(here.pool.cost[list(picks)].sum()), math.log(high / low), low <= here.truth() <= high


def summed(results: Sequence[tuple[float, float, bool] | None]) -> dict[str, Any]:
    """Median cost and width, coverage, and how often nothing was stated (an interval without end)."""
    known = [result for result in results if result is not None]
    widths = [math.inf if result is None else result[1] for result in results]
    middle = float(np.median(widths))
    return {
        "sweeps": len(results),
        "declined": len(results) - len(known),
        "cost": float(np.median([cost for cost, _, _ in known])) if known else None,
        "high/low": math.exp(middle) if math.isfinite(middle) else None,
        "coverage": float(np.mean([inside for _, _, inside in known])) if known else None,
    }


Measured = list[tuple[float, float, bool] | None]


def measure_designed(row: Row, budget: float, number: int, make: Callable[[Row, int], World] = world) -> dict[str, Any]:
    """Designed sweeps of one budget: what they reach, and what was promised before the first run."""
    results: Measured = []
    promised, batches = [], []
    for seed in range(number):
        here = make(row, seed)
        steps = list(designed(here, budget * here.largest_cost))
        results.append(judged(here, steps[-1][0]))
        promised.append(steps[0][1])
        batches.append(len(steps))
    return summed(results) | {"promised high/low": float(np.median(promised)), "batches": float(np.mean(batches))}


def measure_order(row: Row, budget: float, number: int, order: Callable[[World, float], list[int]]) -> dict[str, Any]:
    worlds = [world(row, seed) for seed in range(number)]
    return summed([judged(here, order(here, budget * here.largest_cost)) for here in worlds])


def measure_grids(row: Row) -> dict[str, Any]:
    """Uniform grids: a few sweeps of each, then others of those that no cheaper one beats.

    The narrowest of 96 by a few sweeps is narrow by luck too, so what chose a grid does not count for it.
    """
    worlds = [world(row, seed) for seed in range(TO_CHOOSE + TO_JUDGE)]
    picks = [dict(grids(here)) for here in worlds]

    def results(label: str, which: slice) -> dict[str, Any]:
        pairs = zip(worlds[which], picks[which], strict=True)
        return summed([judged(here, chosen[label]) for here, chosen in pairs])

    points = {label: results(label, slice(0, TO_CHOOSE)) for label in picks[0]}
    usable = {label: point for label, point in points.items() if point["high/low"]}
    best = {
        label
        for label, p in usable.items()
        if not any(q["cost"] <= p["cost"] and q["high/low"] < p["high/low"] for q in usable.values())
    }
    ordered = sorted(best, key=lambda label: float(usable[label]["cost"]))
    return {label: results(label, slice(TO_CHOOSE, None)) for label in ordered}


def cost_for(curve: Sequence[dict[str, Any]], ratio: float) -> float | None:
    """What an interval of this high/low costs, between the measured points of a curve; None where it is not reached."""
    points = sorted((point["cost"], math.log(point["high/low"])) for point in curve if point.get("high/low"))
    wanted = math.log(ratio)
    for i, (cost, width) in enumerate(points):
        if width > wanted:
            continue
        if i == 0:
            return cost
        before, wide = points[i - 1]
        share = (wide - wanted) / (wide - width)
        return math.exp(math.log(before) + share * (math.log(cost) - math.log(before)))
    return None


def compared(row: dict[str, Any]) -> dict[str, Any]:
    """FLOPs for the same interval: of each way over the designed one's, every way interpolated alike.

    Coverage is that of the first measured point of each way which is as narrow.
    """
    curves = {name: list(points.values()) for name, points in row.items() if name != "same interval"}
    result = {}
    for ratio in RATIOS:
        costs = {name: cost_for(curve, ratio) for name, curve in curves.items()}
        own = costs.pop("designed", None)
        result[f"{ratio:g}"] = {
            "designed FLOPs": own,
            "coverage": {name: coverage_at(curve, ratio) for name, curve in curves.items()},
        } | {name: cost / own if cost and own else None for name, cost in costs.items()}
    return result


def coverage_at(curve: Sequence[dict[str, Any]], ratio: float) -> float | None:
    """The coverage of the cheapest measured point that is as narrow."""
    narrow = [point for point in curve if point.get("high/low") and point["high/low"] <= ratio]
    return min(narrow, key=lambda point: point["cost"])["coverage"] if narrow else None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing after so long")
    parser.add_argument("--only", default="", help="truths whose name contains this")
    parser.add_argument("--way", default="", help="ways of choosing whose name contains this")
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "rows": {}}
    if args.out.exists():
        result = json.loads(args.out.read_text())
    start = time.monotonic()

    def save() -> None:
        rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")

    for name, row in ROWS.items():
        if args.only not in name:
            continue
        table = result["rows"].setdefault(name, {})
        ways: dict[str, tuple[Callable[[Row, float, int], dict[str, Any]], Sequence[float]]] = {
            "designed": (measure_designed, BUDGETS),
            "random order": (partial(measure_order, order=random_order), BUDGETS),
            "cheapest first": (partial(measure_order, order=cheapest_first), BUDGETS),
        }
        if not row.ladder:
            ways["designed, shorter too"] = (partial(measure_designed, make=shorter), BUDGETS_SHORTER)
            noisier = partial(shorter, noise_falls=True)
            ways["designed, shorter too, noise falls"] = (partial(measure_designed, make=noisier), BUDGETS_SHORTER)
        for way, (measure, budgets) in ways.items():
            for budget in budgets:
                if time.monotonic() - start > args.seconds:
                    return
                points = table.setdefault(way, {})
                if args.way in way and points.get(f"{budget:g}", {}).get("sweeps", 0) < args.number:
                    points[f"{budget:g}"] = measure(row, budget, args.number)
                    print(name, budget, way, json.dumps(points[f"{budget:g}"]), flush=True)
                    save()
        if not table.get("grid"):
            table["grid"] = measure_grids(row)
        table["same interval"] = compared(table)
        print(name, json.dumps(table["same interval"]), flush=True)
        save()


if __name__ == "__main__":
    main()
