"""Do the 95% intervals of the best depth cover, inside the data and at 10 and 100 times the largest size?

Sweeps are simulated from truths that the model does not share, with noise that it does not expect; every row says how
often the interval holds the true best depth, how often the fit declines, and how wide the interval is beside that of
a model which knows the truth's formula and the noise's covariance (its Cramér–Rao bound), and of one that also has to
learn whether the bowl is steeper on one side.

What the model assumes was chosen on every second row and on sweeps in which everything happens at once (`CHOSEN_ON`)
with seeds below `FRESH`. All that is published is measured with other seeds, and the other rows were looked at once, at
the end.

`python -m benchmarks.coverage --out results/fit/coverage.json`; interrupted, it resumes.

`LATER` has truths, bowls and tables that were written down when all this was finished. What failed on them (8 shapes, a
bowl in width/depth, embeddings, checkpoints) then showed what the model lacked: a prior on the noise, the bowl's tail,
embeddings as part of the size, what the lengths of a shape share. `NEWEST` was written down after that, and measured
once: `python -m benchmarks.coverage --later --number 40 --out results/fit/coverage_later.json` measures both.
"""

import argparse
import json
import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deepwide.fitting import Runs, fit_joint
from deepwide.laws import TransitionLaw
from deepwide.quantities import Floats, Numbers

COMMAND = "python -m benchmarks.coverage --out results/fit/coverage.json"
COMMAND_LATER = "python -m benchmarks.coverage --later --number 40 --out results/fit/coverage_later.json"
FRESH = 50_000  # seeds from here on were not used to choose anything
PLACES = ("middle", "largest", "10x", "100x")
Best = Callable[[Floats, Floats], Floats]  # parameters of the truth, ln size -> ln best depth
MIDDLE = math.log(2e5)


def power(p: Floats, n: Floats) -> Floats:
    """A power of the size."""
    return np.asarray(p[0] + p[1] * (n - MIDDLE))


def constant_ratio(p: Floats, n: Floats) -> Floats:
    """width = ratio·depth: the cube root of the size."""
    return np.asarray(p[0] + (n - MIDDLE) / 3)


def levine(p: Floats, n: Floats) -> Floats:
    """ln width = a + b·depth."""
    return np.asarray(np.log(TransitionLaw(name="truth", a=float(p[0]), b=float(p[1])).depth(np.exp(n)).value))


def ceiling(p: Floats, n: Floats) -> Floats:
    """A power that saturates."""
    return np.asarray(p[2] - np.log(1 + np.exp(-4 * (power(p, n) - p[2]))) / 4)


def late(p: Floats, n: Floats) -> Floats:
    """A slow power that turns into a constant ratio."""
    return np.asarray(power(p, n) + (1 / 3 - p[1]) * np.log1p(np.exp(1.5 * (n - p[2]))) / 1.5)


def log_squared(p: Floats, n: Floats) -> Floats:
    """The square of ln size."""
    return np.asarray(p[0] + 2 * np.log(n / MIDDLE))


def logistic(p: Floats, n: Floats) -> Floats:
    """From one depth to another as ln size grows."""
    return np.asarray(np.log(np.exp(p[0]) + (np.exp(p[1]) - np.exp(p[0])) / (1 + np.exp(p[2] - n))))


def worse_deep(p: Floats, n: Floats) -> Floats:
    """The best depth under a learning rate that suits deep networks ever less as size grows: that of
    (x − power)² + p[2]·(x·excess size)²."""
    return np.asarray(power(p, n) / (1 + p[2] * np.maximum(n - MIDDLE, 0) ** 2))


TRUTHS: Mapping[str, tuple[Best, tuple[float, ...]]] = {
    "power 0.25": (power, (math.log(3), 0.25)),
    "power 0.1": (power, (math.log(3), 0.1)),
    "power 0.45": (power, (math.log(3), 0.45)),
    "constant ratio": (constant_ratio, (math.log(3),)),
    "levine": (levine, (3.2, 0.25)),
    "ceiling": (ceiling, (math.log(3), 0.4, math.log(5))),
    "ceiling at the largest": (ceiling, (math.log(3), 0.4, math.log(8))),
    "late": (late, (math.log(3), 0.1, math.log(4e6))),
    "constant ratio, large": (lambda p, n: constant_ratio(p, n - math.log(500)), (math.log(16),)),
}
TRUTHS_LATER: Mapping[str, tuple[Best, tuple[float, ...]]] = {
    "(ln size)²": (log_squared, (math.log(3),)),
    "logistic in ln size": (logistic, (math.log(1.5), math.log(9), math.log(8e5))),
    "a rate ever worse for deep": (worse_deep, (math.log(3), 0.25, 0.025)),
}


@dataclass(frozen=True)
class Row:
    """What is simulated, and how it differs from independent noise about a power."""

    name: str
    design: str = "A"
    truth: str = "power 0.25"
    curvature: float = 0.02
    noise: float = 0.004  # of a single run
    cell: float = 0.0  # of a cell, common to its seeds
    by_size: bool = False  # the noise falls fourfold from the smallest to the largest
    tails: str = ""  # t: 2.2 degrees of freedom; accidents: one run in twenty is 3% worse
    smooth: float = 0.0  # sd of a misfit that is smooth over ln size and ln depth
    lengths: tuple[float, float] = (2.0, 1.0)
    offsets: float = 0.0  # sd of each depth's own offset
    steeper: float = 1.0  # the bowl when too shallow, over when too deep
    on_reducible: bool = False  # the bowl multiplies the loss above the floor
    ladder: bool = False  # tokens = 20·total, vocabulary 50k
    seeds: tuple[int, ...] = (1,)  # of each cell, repeated
    mixed: bool = field(default=False, repr=False)  # each sweep has its own truth and noise (`drawn`)
    # Seeds depend on the text of a row, so what came later is not in it.
    bowl: str = field(default="", repr=False)  # ratio: in width/depth, not its logarithm; size: on A/N^α alone; …
    by_depth: bool = field(default=False, repr=False)  # the noise grows like the root of depth
    run: float = field(default=0.0, repr=False)  # sd of what the checkpoints of one run share
    lengths_per_run: int = field(default=1, repr=False)
    embeddings: float = field(default=0.0, repr=False)  # how much of an embedding counts as size, in logarithms
    near: float = field(default=0.0, repr=False)  # fit again without depths farther than this factor from the best
    untold: bool = field(default=False, repr=False)  # the table has no totals
    by_width: float = field(default=0.0, repr=False)  # sd of each size's own offset
    falls: float = field(default=0.0, repr=False)  # ln of the noise, per e-fold of tokens
    flatter: float = field(default=0.0, repr=False)  # ln of the bowl's curvature, likewise

    @property
    def best(self) -> tuple[Best, tuple[float, ...]]:
        """ln best depth against ln size, and its parameters."""
        return {**TRUTHS, **TRUTHS_LATER}[self.truth]

    def without_noise(self) -> "Row":
        """What cells of a shape share: misfit, offsets, luck."""
        return replace(self, noise=0.0, by_size=False, by_depth=False)

    def noise_alone(self) -> "Row":
        """What differs between single runs of a cell."""
        return replace(self, cell=0.0, smooth=0.0, offsets=0.0, run=0.0, by_width=0.0, seeds=(1,))


ROWS = (
    *(Row("independent", design, seeds=(2,) if design == "B" else (1,)) for design in "ABCDE"),
    Row("variance by size", by_size=True),
    Row("t with 2.2 degrees", tails="t"),
    Row("accidents", tails="accidents"),
    *(Row("smooth misfit 0.5%", design, smooth=0.005) for design in "AC"),
    Row("smooth misfit 0.5%, rough", smooth=0.005, lengths=(1.0, 0.5)),
    Row("smooth misfit 0.5%, long", smooth=0.005, lengths=(4.0, 1.5)),
    *(Row("depth offsets 0.4%", design, offsets=0.004) for design in "AC"),
    *(Row("2.7 times steeper when too shallow", design, steeper=2.7) for design in "ACD"),
    Row("bowl on the reducible part", on_reducible=True),
    *(Row("truth power 0.1", design, "power 0.1") for design in "A"),
    *(Row("truth power 0.45", design, "power 0.45") for design in "A"),
    *(Row("truth constant ratio", design, "constant ratio") for design in "AE"),
    *(Row("truth levine", design, "levine") for design in "AE"),
    *(Row("truth ceiling at 5 layers", design, "ceiling") for design in "AE"),
    Row("truth ceiling at 8, the largest run's best", "A", "ceiling at the largest"),
    Row("ladder, tokens = 20·total", "L", "constant ratio, large", ladder=True),
    Row("unequal seeds", cell=0.004, noise=0.003, seeds=(8, 1, 1, 1)),
)
CHOSEN_ON = frozenset(ROWS[::2])
ROWS = (
    *ROWS,  # and what was added when everything had been chosen
    Row("1.5 times steeper when too deep", steeper=1 / 1.5),
    Row("flatter bowl", curvature=0.01),
    Row("truth growth that sets in at the largest", "A", "late"),
    Row("truth levine, smooth misfit 0.5%", "E", "levine", smooth=0.005),
    *(Row(f"one depth at the largest size, truth {truth}", "T", truth) for truth in ("power 0.25", "ceiling")),
    Row("ladder, tokens = 20·blocks", "X", "constant ratio, large", ladder=True),
)
MIXED = tuple(
    Row("everything at once", design, seeds=(2,) if design == "B" else (1,), mixed=True) for design in "ABCDE"
)
CHOSEN_ON |= frozenset(MIXED)
ROWS = (*ROWS, *MIXED)
LARGE = {"truth": "constant ratio, large", "ladder": True}
LATER = (
    *(Row(f"truth {truth}", design, truth) for truth in TRUTHS_LATER for design in "AE"),
    *(Row("bowl in width/depth", design, bowl="ratio") for design in "AD"),
    *(Row("bowl in width/depth, fitted within a factor 3", design, bowl="ratio", near=3.0) for design in "AD"),
    *(Row("bowl E + A/N^α·(1 + c·z²)", design, bowl="size", curvature=0.045) for design in "AC"),
    *(Row("noise grows with depth", design, by_depth=True) for design in "AD"),
    *(Row(f"8 shapes, truth {truth}", "8", truth) for truth in ("power 0.25", "levine")),
    *(Row(f"60 shapes of one size, truth {truth}", "S", truth) for truth in ("power 0.25", "ceiling at the largest")),
    Row("tokens at random, 5 to 100 per parameter", "R", **LARGE),  # type: ignore[arg-type]
    *(
        Row(f"embeddings up to 70%, which count {share:g}", design, embeddings=share, **LARGE)  # type: ignore[arg-type]
        for share in (0.5, 1.0)
        for design in "LI"
    ),
    Row("embeddings up to 70%, totals not given", "I", embeddings=1.0, untold=True, **LARGE),  # type: ignore[arg-type]
    Row("equal FLOPs", "I", **LARGE),  # type: ignore[arg-type]
    *(
        Row(f"checkpoints, a run's own noise {100 * run:g}%", "K", noise=0.001, run=run, lengths_per_run=5, **LARGE)  # type: ignore[arg-type]
        for run in (0.0, 0.004)
    ),
)
NEWEST = (
    *(Row("bowl of Liu's sum of powers", design, bowl="liu") for design in "AD"),
    Row("bowl flat far out", "A", bowl="flat"),
    Row("bowl with a cliff when far too shallow", "A", bowl="cliff"),
    Row("10 shapes at random, noise 1.2%", "10", noise=0.012, curvature=0.05),
    Row("10 shapes at random, noise 0.1%", "10", noise=0.001),
    Row("offsets by size 0.4%", "A", by_width=0.004),
    Row("two seeds of 8 shapes", "8", seeds=(2,)),
    Row("3 lengths of each shape, a run's own noise 0.3%", "K", noise=0.002, run=0.003, lengths_per_run=3, **LARGE),  # type: ignore[arg-type]
    Row("12 shapes on a ladder", "l", **LARGE),  # type: ignore[arg-type]
    *(Row(f"truth {truth}, widths × depths", "D", truth) for truth in ("ceiling", "levine")),  # a user's question
    *(Row("noise falls with length", design, falls=0.4, **LARGE) for design in "RL"),  # type: ignore[arg-type]
    Row("noise falls with length, the bowl too", "R", falls=0.4, flatter=-0.25, **LARGE),  # type: ignore[arg-type]
    # With noise as of large networks a bowl that is no parabola shows: a user's sweeps held in 24 of 31.
    *(Row("bowl of Liu's sum of powers, noise 0.15%", design, bowl="liu", noise=0.0015) for design in "AD"),
    *(Row("2.7 times steeper when too shallow, noise 0.15%", design, steeper=2.7, noise=0.0015) for design in "AD"),
    *(Row("bowl in width/depth, noise 0.15%", design, bowl="ratio", noise=0.0015) for design in "AD"),
)


def drawn(row: Row, seed: int) -> Row:
    """The row of one sweep: its own, or where everything happens at once, a truth and noise of its own.

    In the other rows all but one thing is as the model assumes it to be on average, which no real sweep is.
    """
    if not row.mixed:
        return row
    draw = np.random.default_rng([seed, 4242, ord(row.design)])
    truths = [name for name in TRUTHS if not name.endswith("large")]
    return replace(
        row,
        truth=str(draw.choice(truths)),
        curvature=float(np.exp(draw.uniform(math.log(0.01), math.log(0.03)))),
        noise=float(draw.uniform(0.002, 0.006)),
        by_size=bool(draw.random() < 0.25),
        tails=str(draw.choice(["", "", "", "t", "accidents"])),
        smooth=0.005 * bool(draw.random() < 0.3),
        lengths=((1.0, 0.5), (2.0, 1.0), (4.0, 1.5))[int(draw.integers(3))],
        offsets=0.004 * bool(draw.random() < 0.3),
        steeper=float(np.exp(draw.uniform(math.log(1 / 1.5), math.log(2.7)))),
        on_reducible=bool(draw.random() < 0.4),
    )


def shapes(row: Row, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """Depths and sizes of the cells; sizes miss their mark by 3%, as widths in whole steps do."""
    best, truth = row.best
    depths: Sequence[float] = (1, 2, 4, 8)
    if row.design == "A":
        cells = [(L, N) for N in np.geomspace(1e4, 4e6, 6) for L in depths]
    elif row.design == "B":
        cells = [(L, N) for N in np.geomspace(2e4, 2e6, 3) for L in (1, 2, 4, 6, 8)]
    elif row.design == "C":
        cells = [
            (max(1, round(math.exp(best(np.array(truth), np.log([N]))[0]) * f)), N)
            for N in np.geomspace(1e4, 4e6, 6)
            for f in (0.5, 0.7, 1.0, 1.4, 2.0)
        ]
        cells = list(dict.fromkeys(cells))
    elif row.design == "D":
        cells = [(L, 12 * L * d**2) for L in depths for d in (32, 56, 96, 168, 288)]
    elif row.design == "E":
        cells = [(L, N) for N in np.geomspace(4e3, 4e6, 8) for L in depths]
    elif row.design == "T":
        cells = [*((L, N) for N in np.geomspace(1e4, 4e5, 5) for L in depths), (4, 4e6)]
    elif row.design == "8":
        cells = [(L, N) for N in (4e4, 1e6) for L in depths]
    elif row.design == "10":
        cells = [
            (round(math.exp(draw.uniform(0, math.log(12)))), math.exp(draw.uniform(*np.log([3e4, 3e6]))))
            for _ in range(10)
        ]
    elif row.design == "l":
        cells = [(L, N) for N in np.geomspace(2e7, 5e8, 3) for L in (4, 8, 16, 32)]
    elif row.design == "S":
        cells = [(L, 2e6 * math.exp(draw.uniform(-0.1, 0.1))) for L in np.geomspace(1, 24, 60).round()]
    elif row.design == "I":
        depths = (4, 8, 16, 32)
        cells = [(L, N * more) for more in (1, 3) for N in np.geomspace(3e7, 3e8, 4) for L in depths]
    elif row.design == "R":
        cells = [
            (round(math.exp(draw.uniform(*np.log([4, 40])))), math.exp(draw.uniform(*np.log([1e7, 1e9]))))
            for _ in range(36)
        ]
    else:
        cells = [(L, N) for N in np.geomspace(1e7, 1e9, 6) for L in (4, 8, 16, 32)]
    cells = [cell for cell in cells for _ in range(row.lengths_per_run)]
    L, N = np.array(cells, dtype=float).T
    off = np.repeat(draw.normal(0, 0.03, len(N) // row.lengths_per_run), row.lengths_per_run)
    return L, N * np.exp(off * (row.design != "D"))


def total_params(row: Row, L: Floats, N: Floats) -> Floats:
    """With a vocabulary of 50,000 on a ladder, except in design X."""
    return N + 50_000 * np.sqrt(N / (12 * L)) if row.ladder and row.design != "X" else N


def tokens_of(row: Row, total: Floats, draw: np.random.Generator) -> Floats:
    """20 per parameter, except where lengths are the point."""
    if row.design == "R":
        return total * np.exp(draw.uniform(math.log(5), math.log(100), len(total)))
    if row.design == "I":
        return np.asarray(np.repeat([3e18, 3e19], len(total) // 2) / (6 * total))
    if row.design == "K":
        return np.resize([2e9, 4e9, 8e9, 1.6e10, 3.2e10][: row.lengths_per_run], len(total))
    return 20 * total


def mean_loss(row: Row, p: Floats, L: Floats, N: Floats, D: Floats) -> Floats:
    """The truth: p is c, floor, scale, power, (tokens' scale and power), then the best depth's own."""
    best, _ = row.best
    c, floor, scale, alpha, data, beta = p[:6]
    c = c * (D / np.exp(np.log(D).mean())) ** row.flatter
    z = np.log(L) - best(p[6:], np.log(N))
    side = np.where(z < 0, row.steeper, 1.0)
    off = c * side * z**2
    if row.bowl == "ratio":  # r − 1 − ln r, r = ratio of width to depth over the best one's, as curved at the best
        off = c * side * 8 / 9 * (np.exp(-1.5 * z) - 1 + 1.5 * z)
    if row.bowl == "liu":  # its powers of depth and of width at equal size
        off = c * side * 2 / 1.55 * (np.expm1(-1.07 * z) / 1.07 + np.expm1(0.48 * z) / 0.48)
    elif row.bowl == "flat":
        off = c * side * z**2 / (1 + z**2 / 2)
    elif row.bowl == "cliff":
        off = c * side * (z**2 + np.where(z < -1.1, 2.0, 0.0))
    if row.truth == "a rate ever worse for deep":
        excess = np.maximum(np.log(N) - MIDDLE, 0)
        off = c * side * ((np.log(L) - power(p[6:], np.log(N))) ** 2 + p[8] * (np.log(L) * excess) ** 2)
    n = np.log(N) - (math.log(1e8) if row.ladder else MIDDLE)
    n = n + row.embeddings * np.log(total_params(row, L, N) / N)
    reducible = scale * np.exp(-alpha * n) * (1 + off if row.bowl == "size" else 1.0)
    if row.ladder:
        reducible = reducible + data * np.exp(-beta * (np.log(D) - math.log(2e9)))
    if row.bowl == "size":
        return np.asarray(np.log(floor + reducible))
    if row.on_reducible:
        return np.asarray(np.log(floor + reducible * np.exp(off)))
    return np.asarray(np.log(floor + reducible) + off)


def covariance(row: Row, L: Floats, N: Floats, D: Floats | None = None) -> Floats:
    """Of the cells' mean ln loss, seeds included (Gaussian rows; of others the Gaussian part)."""
    n, x = np.log(N), np.log(L)
    count = np.resize(row.seeds, len(N))
    single = row.noise**2 * np.ones(len(N))
    if row.by_size:
        single = single * (2 * 4 ** -((n - n.min()) / np.ptp(n))) ** 2
    if row.by_depth:
        single = single * L / 2
    if D is not None:
        single = single * (D / np.exp(np.log(D).mean())) ** (-2 * row.falls)
    V = np.diag(single / count + row.cell**2)
    if row.smooth:  # Matérn 3/2, rougher than what the model allows for
        apart = [np.subtract.outer(v, v) / long for v, long in zip((n, x), row.lengths, strict=True)]
        far = math.sqrt(3) * np.hypot(*apart)
        V = V + row.smooth**2 * (1 + far) * np.exp(-far)
    if row.run:
        V = V + row.run**2 * (np.equal.outer(L, L) & np.equal.outer(N, N))
    if row.by_width:  # sizes of one rung differ by a few percent
        V = V + row.by_width**2 * (np.abs(np.subtract.outer(n, n)) < 0.3)
    return np.asarray(V + row.offsets**2 * np.equal.outer(L, L))


def truth_of(row: Row) -> Floats:
    """The parameters of `mean_loss`."""
    loss = (1.7, 0.9, 0.3, 0.6, 0.3) if row.ladder else (0.9, 0.7, 0.2, 0.0, 0.0)
    return np.array([0.04 if row.on_reducible else row.curvature, *loss, *row.best[1]])


class Simulated(NamedTuple):
    """The cells of a sweep, and what each misses of the truth whatever its seed."""

    L: Floats
    N: Floats
    misfit: Floats


def sweep(row: Row, seed: int) -> Runs:
    """One simulated sweep."""
    return simulated(row, seed)[0]


def simulated(row: Row, seed: int) -> tuple[Runs, Simulated]:
    """One simulated sweep, and what it was made of."""
    draw = np.random.default_rng([seed, zlib.crc32(repr(row).encode())])
    L, N = shapes(row, draw)
    d = np.sqrt(N / (12 * L))
    total = total_params(row, L, N)
    D = tokens_of(row, total, draw)
    y = mean_loss(row, truth_of(row), L, N, D)
    shared = draw.normal(0, 0.003, max(row.seeds))
    count = np.resize(row.seeds, len(N))
    shares = covariance(row.without_noise(), L, N) + 1e-14 * np.eye(len(N))
    misfit = np.linalg.cholesky(shares) @ draw.normal(size=len(N))
    y = y + misfit
    single = np.sqrt(np.diag(covariance(row.noise_alone(), L, N, D)))
    number = np.concatenate([np.arange(k) for k in count])
    cell = np.repeat(np.arange(len(N)), count)
    noise = draw.normal(size=len(cell))
    if row.tails == "t":
        noise = draw.standard_t(2.2, size=len(cell))
    elif row.tails == "accidents":
        noise = noise + (draw.random(len(cell)) < 0.05) * 0.03 / row.noise
    loss = np.exp(y[cell] + shared[number] * (max(row.seeds) > 1) + single[cell] * noise)
    columns: dict[str, Any] = {"tokens": D[cell], "total_params": total[cell]} if row.ladder else {}
    if row.untold:
        del columns["total_params"]
    runs = Runs.of(
        depth=L[cell], width=d[cell], block_params=N[cell], loss=loss, seed=number, source="simulated", **columns
    )
    return runs, Simulated(L, N, misfit)


def targets(runs: Runs) -> Floats:
    """ln size in the middle, at the largest, at 10 and 100 times it."""
    n = np.log(runs.block_params)
    return np.array([n.mean(), n.max(), n.max() + math.log(10), n.max() + math.log(100)])


def oracle(row: Row, learns_skew: bool = False) -> Floats:
    """ln(high/low) of the interval that a model of the right form would give that knows the noise's covariance; it may
    have to learn how much steeper one side of the bowl is."""
    draw = np.random.default_rng(0)
    L, N = shapes(row, draw)
    D = tokens_of(row, total_params(row, L, N), draw)
    p = truth_of(row)
    free = [i for i in range(len(p)) if row.ladder or i not in (4, 5)]
    steps = np.eye(len(p))[free] * 1e-5
    J = np.array([mean_loss(row, p + h, L, N, D) - mean_loss(row, p - h, L, N, D) for h in steps]).T / 2e-5
    # Level, floor and powers of the size curve are a nuisance, which a ladder alone does not tell apart.
    known = [0.0, *[1 / (2 * value) ** 2 for value in p[free][1 : 6 if row.ladder else 4]], *[0.0] * (len(p) - 6)]
    if learns_skew:
        up, down = (replace(row, steeper=row.steeper * (1 + h)) for h in (1e-5, -1e-5))
        J = np.column_stack([J, (mean_loss(up, p, L, N, D) - mean_loss(down, p, L, N, D)) / 2e-5])
        known = [*known, 0.0]
    weak = np.diag(known)
    information = J.T @ np.linalg.solve(covariance(row, L, N, D), J) + weak
    n = np.array([np.log(N).mean(), np.log(N).max(), np.log(N).max() + math.log(10), np.log(N).max() + math.log(100)])
    best = row.best[0]
    g = np.zeros((4, J.shape[1]))
    for column, i in enumerate(free):
        if i >= 6:
            h = 1e-5 * np.eye(len(p))[i]
            g[:, column] = (best((p + h)[6:], n) - best((p - h)[6:], n)) / 2e-5
    variance = np.einsum("ij,jk,ik->i", g, np.linalg.inv(information), g)
    return np.asarray(2 * 1.96 * np.sqrt(variance))


def measure(row: Row, number: int, first: int = FRESH) -> dict[str, Any]:
    """Coverage, share declined and median width at each place."""
    inside: list[Numbers] = []
    widths: list[Floats] = []
    errors: list[Floats] = []
    start = time.process_time()
    rows = [drawn(row, seed) for seed in range(first, first + number)]
    for seed, one in enumerate(rows, first):
        best, truth = one.best
        runs = sweep(one, seed)
        law = fit_joint(runs, seed=seed, examine=False).law()
        if law is None:
            continue
        n = targets(runs)
        if row.near:
            off = np.log(runs.depth / law.depth(runs.block_params).value)
            law = fit_joint(runs.select(np.abs(off) < math.log(row.near)), seed=seed, examine=False).law()
            if law is None:
                continue
        value, low, high = law.depth(np.exp(n))
        goal = np.exp(best(np.array(truth), n))
        inside.append((low <= goal) & (goal <= high))
        widths.append(np.log(high / low))
        errors.append(np.log(value / goal))
    seconds = (time.process_time() - start) / number
    some = rows[:: max(number // 20, 1)] if row.mixed else rows[:1]
    exact, learning = (np.median([oracle(one, learns_skew) for one in some], axis=0) for learns_skew in (False, True))
    result: dict[str, Any] = {"chosen on": row in CHOSEN_ON, "sweeps": number, "declined": number - len(inside)}
    result["seconds per fit"] = seconds
    for i, place in enumerate(PLACES):
        hits = [bool(hit[i]) for hit in inside]
        share = (sum(hits) + 1) / (len(hits) + 2)  # so that 100% has an error too
        result[place] = {
            "coverage": float(np.mean(hits)) if inside else None,
            "standard error": math.sqrt(share * (1 - share) / max(len(hits), 1)),
            "high/low": float(np.exp(np.median([width[i] for width in widths]))) if inside else None,
            "high/low if the form is known": float(np.exp(exact[i])),
            "high/low if all but the skew is known": float(np.exp(learning[i])),
            "bias": float(np.mean([error[i] for error in errors])) if inside else None,
        }
    return result


def label(row: Row) -> str:
    return f"{row.name} ({row.design})"


def _words(place: Mapping[str, Any]) -> str:
    if place["coverage"] is None:
        return "–"
    width = f"{place['high/low']:.2f}/{place['high/low if the form is known']:.2f}"
    return f"{100 * place['coverage']:3.0f} ({width} {place['bias']:+.2f})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no row after so long")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--later", action="store_true", help="the rows that were added last")
    parser.add_argument("--fresh", action="store_true", help="measure again what the file has")
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND_LATER if args.later else COMMAND, "rows": {}}
    if args.out.exists() and not args.fresh:
        result = json.loads(args.out.read_text())
    start = time.monotonic()
    for row in (*LATER, *NEWEST) if args.later else ROWS:
        if time.monotonic() - start > args.seconds:
            break
        done = result["rows"].get(label(row), {})
        if args.only not in label(row) or done.get("sweeps", 0) >= args.number:
            continue
        measured = measure(row, args.number)
        result["rows"][label(row)] = measured
        shown = [_words(measured[place]) for place in PLACES]
        spent = f"{measured['seconds per fit']:.3f} s"
        print(f"{label(row):42} {'  '.join(shown)}  declined {measured['declined']}  {spent}", flush=True)
        text = json.dumps(result)
        rounded = json.loads(text, parse_float=lambda text: float(f"{float(text):.3g}"))
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
