"""The separation rank of a network, measured exactly: sample, separate the degrees, take ranks.

Side A and side B get random points; M[s, t] = y(A point s, B point t). Scaling side B by τ turns y into
Σ_k τ^k y_k, and sep = Σ_k rank(y_k). Each block is sampled on one point more than its dimension bound,
so that a rank above the bound would show, and is an error. Over a prime field

    measured rank ≤ rank over the rationals ≤ separation rank ≤ bound,

so a measured rank that meets the bound is a proof; one below it is a proved lower bound, and most likely
exact (docs/theory.md says how likely) once `confirm` has repeated it with a second prime and by FLINT.
"""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes
from deepwide.separation.case import Case
from deepwide.separation.counting import degree
from deepwide.separation.evaluate import Evaluator, Points, evaluator
from deepwide.separation.field import (
    CORES,
    PRIME,
    Matrix,
    another_prime,
    check_prime,
    flint_rank,
    rank_in_place,
)

Progress = Callable[[float], None]
_TILE_ROWS, _TILE_COLUMNS = 32, 512


class AboveTheCountError(DeepwideError):
    """A measured rank above its dimension bound: a bug, here or in the theory."""


@dataclass(frozen=True)
class Measurement:
    """The rank of every block modulo one prime, with what is needed to do it again."""

    case: Case
    prime: int
    full_grid: bool
    blocks: tuple[int, ...]  # one entry, the total, when there is no grading
    bounds: tuple[int, ...]
    points_hash: str
    algorithm: str
    seconds: float

    @property
    def rank(self) -> int:
        return sum(self.blocks)

    @property
    def bound(self) -> int:
        return self.case.bound


@dataclass(frozen=True)
class Estimate:
    """What a measurement will cost, before it starts."""

    sizes: tuple[int, ...]
    bytes: int  # held at once at the least: the largest block and the sample points
    beside_bytes: int  # all but the block
    all_bytes: int
    sample_seconds: float
    rank_seconds: float

    @property
    def seconds(self) -> float:
        return self.sample_seconds + self.rank_seconds


def block_sizes(case: Case, full_grid: bool = False) -> tuple[int, ...]:
    """How many points each block is sampled on: its bound and one more."""
    if full_grid or not case.graded:
        return (case.bound + 1,)
    return tuple(bound + 1 for bound in case.block_bounds)


def estimate(case: Case, full_grid: bool = False, *, flint: bool = False, chain: bool = True) -> Estimate:
    """Memory and time from the sizes alone; times are for a machine like ours and only a start."""
    sizes = block_sizes(case, full_grid)
    largest = max(sizes)
    chain = chain and not (full_grid or case.causal or case.residual or case.heads > 1)
    beside = _points_bytes(case, largest) + (0 if chain else _tile_bytes(case, largest, full_grid or case.causal))
    nanoseconds = _nanoseconds_a_pair(case, chain, len(sizes) > 1, full_grid or case.causal)
    return Estimate(
        sizes,
        # FLINT takes a list of pointers and makes a matrix of its own out of it.
        (32 if flint else 8) * largest**2 + beside,
        beside,
        8 * sum(n * n for n in sizes),
        largest**2 * nanoseconds * 1e-9 / CORES,
        sum(_rank_seconds(n, flint) for n in sizes),
    )


def _points_bytes(case: Case, number: int) -> int:
    """The weights, the points of both sides with the copies made while drawing one, and their Gram matrices."""
    a, b, d = case.sides.count("A"), case.sides.count("B"), case.width
    drawing = 4 * max(a, b) * d * number
    grams = 0 if case.causal else 3 * d * d * number
    return 8 * (4 * case.depth * d * d + (a + b) * d * number + max(drawing, grams))


def _tile_bytes(case: Case, number: int, eq3: bool) -> int:
    """What the cores hold while they evaluate a tile each, other than by the chain, which needs little."""
    rows, columns = min(_TILE_ROWS, number), min(_TILE_COLUMNS, number)
    tiles = -(-number // rows) * -(-number // columns)
    values = 6 * len(case.sides) * case.width if eq3 else 5 * case.width**2
    return 8 * values * rows * columns * (min(CORES, tiles) if tiles >= 8 else 1)


def _nanoseconds_a_pair(case: Case, chain: bool, graded: bool, eq3: bool) -> float:
    """What one value of y costs one core: multiplications at 0.35 ns by BLAS and 1.4 ns else, reductions at 3 ns."""
    c, d, heads, positions = degree(case.depth), case.width, case.heads, len(case.sides)
    if chain:
        return (c / 2) ** 2 * (0.35 * d * d + 4.5 * d) + c * c / 4 * d
    if eq3:
        layer = heads * positions * (1.4 * 4 * d * d / heads + positions * 6 * d / heads)
    else:
        layer = 1.4 * (2 * heads + 2) * d**3 + 3 * (2 * heads + 3) * d * d
    return case.depth * layer * (c + 1 if graded else 1)


def _rank_seconds(n: int, flint: bool) -> float:
    return 6e-10 * n**2.8 + 5e-7 * n * n if flint else 2 / 3 * n**3 / 4e10


def available_memory() -> int:
    """Bytes this machine can still give without swapping."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def check_size(case: Case, full_grid: bool, memory: int, flint: bool = False, chain: bool = True) -> Estimate:
    """The estimate, or a sentence that says what would fit."""
    need = estimate(case, full_grid, flint=flint, chain=chain)
    if need.bytes <= memory:
        return need

    def fits(depth: int, width: int) -> bool:
        smaller = Case(depth, width, residual=case.residual, causal=case.causal)
        return estimate(smaller, full_grid, flint=flint, chain=chain).bytes <= memory

    width = next((w for w in range(case.width - 1, 0, -1) if fits(case.depth, w)), 0)
    depth = next((n for n in range(case.depth - 1, 0, -1) if fits(n, case.width)), 0)
    options = [f"at depth {case.depth} a width of {width}"] * bool(width)
    options += [f"at width {case.width} a depth of {depth}"] * bool(depth)
    one_head = " with one head" if case.heads > 1 else ""
    raise DeepwideError(
        f"Depth {case.depth} and width {case.width} need a matrix of {max(need.sizes):.4g} rows, "
        f"with its sample points and working space {show_bytes(need.bytes)}, and {show_bytes(memory)} may be used; "
        f"what would fit: {' or '.join(options) + one_head if options else 'more memory'}."
    )


def measure(
    case: Case,
    prime: int = PRIME,
    *,
    full_grid: bool = False,
    flint: bool = False,
    chain: bool = True,
    memory: int | None = None,
    progress: Progress | None = None,
    finished: Mapping[int, int] | None = None,
    keep: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure one case; `flint` ranks by FLINT, and without `chain` y is the Gram form, layer by layer.

    Blocks in `finished` are taken as they are; `keep` is told the block and the rank of every other one.

    >>> measure(Case(depth=2, width=3)).blocks
    (1, 6, 21, 18, 3)
    """
    started = time.monotonic()
    check_prime(prime, above=2 * degree(case.depth) + 2)
    if 2 * case.width * (prime // 2 + 2) ** 2 >= 2**53:
        raise DeepwideError(
            f"Modulo {prime} sums of {2 * case.width} products are not exact in float64; at width {case.width} take "
            f"a smaller prime: the default is {PRIME}."
        )
    memory = int(0.7 * available_memory()) if memory is None else memory
    need = check_size(case, full_grid, memory, flint, chain)
    points = Points.draw(case, max(need.sizes), prime)
    evaluate = evaluator(case, points, prime, full_grid=full_grid, chain=chain)
    bounds = case.block_bounds if len(need.sizes) > 1 else (case.bound,)
    done = 0.0

    def report(seconds: float, share: float) -> None:
        if progress:
            progress(min(1.0, (done + seconds * share) / need.seconds))

    ranks = dict(finished or {})
    done = sum(_rank_seconds(need.sizes[k], flint) for k in ranks)
    groups = _groups({k: n for k, n in enumerate(need.sizes) if k not in ranks}, memory - need.beside_bytes)
    for group in groups:
        share = need.sample_seconds * (max(need.sizes[k] for k in group) / max(need.sizes)) ** 2
        blocks = _fill(evaluate, {k: need.sizes[k] for k in group}, partial(report, share))
        done += share
        for k in group:
            block = blocks.pop(k)
            cost = _rank_seconds(len(block), flint)
            if flint:
                ranks[k] = flint_rank(block, prime)
            else:
                ranks[k] = rank_in_place(block, prime, partial(report, cost))
            done += cost
            if ranks[k] > bounds[k]:
                raise AboveTheCountError(
                    f"Block {k} of {case} measured {ranks[k]}, above its dimension bound {bounds[k]}, modulo "
                    f"{prime}: this is a bug, please report it."
                )
            if keep:
                keep(k, ranks[k])
    return Measurement(
        case, prime, full_grid, tuple(ranks[k] for k in range(len(bounds))), bounds, points.digest(),
        "flint" if flint else "dgemm", time.monotonic() - started,
    )  # fmt: skip


def _groups(sizes: Mapping[int, int], memory: int) -> list[list[int]]:
    """Blocks that are sampled together: as many as the memory holds, largest first."""
    groups: list[list[int]] = []
    room = 0
    for k in sorted(sizes, key=lambda k: -sizes[k]):
        need = 8 * sizes[k] ** 2
        if not groups or need > room:
            groups.append([])
            room = memory
        groups[-1].append(k)
        room -= need
    return groups


def _fill(evaluate: Evaluator, sizes: dict[int, int], progress: Progress) -> dict[int, Matrix]:
    """Sample the blocks, tile by tile, on all cores; smaller blocks take a corner of the same grid."""
    blocks = {k: np.empty((n, n)) for k, n in sizes.items()}
    largest = max(sizes.values())
    rows = min(_TILE_ROWS, largest)
    columns = max(1, min(_TILE_COLUMNS, largest))
    tiles = [(a, b) for a in range(0, largest, rows) for b in range(0, largest, columns)]
    finished = 0

    def work(tile: tuple[int, int]) -> None:
        nonlocal finished
        a, b = tile
        wanted = [k for k, n in sizes.items() if n > max(a, b)]
        if wanted:
            found = evaluate(slice(a, a + rows), slice(b, b + columns), wanted)
            for k, values in zip(wanted, found, strict=True):
                corner = blocks[k][a : a + rows, b : b + columns]
                corner[:] = values[: corner.shape[0], : corner.shape[1]]
        finished += 1
        progress(finished / len(tiles))

    if len(tiles) < 8:
        for tile in tiles:
            work(tile)
    else:
        pool = ThreadPoolExecutor(CORES)
        try:
            list(pool.map(work, tiles))
        finally:  # when interrupted, drop the tiles that are still waiting
            pool.shutdown(cancel_futures=True)
    return blocks


def confirm(
    measurement: Measurement,
    *,
    memory: int | None = None,
    progress: Progress | None = None,
    finished: Mapping[int, int] | None = None,
    keep: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure again with another prime and by FLINT; different ranks are an error, never a warning."""
    other = another_prime(measurement.prime)
    again = measure(
        measurement.case, other, full_grid=measurement.full_grid, flint=True, memory=memory, progress=progress,
        finished=finished, keep=keep,
    )  # fmt: skip
    if again.blocks != measurement.blocks:
        raise DeepwideError(
            f"Modulo {measurement.prime} the blocks measure {list(measurement.blocks)}, modulo {other} "
            f"by FLINT {list(again.blocks)}: a prime was unlucky for these weights, or there is a bug; "
            "try another --seed, and report it if it happens again."
        )
    return again
