"""The separation rank of a network, measured exactly: sample, separate the degrees, take ranks.

Side A and side B get random points; M[s, t] = y(A point s, B point t). Scaling side B by τ turns y into
Σ_k τ^k y_k, and sep = Σ_k rank(y_k). Each block is sampled on one point more than its upper bound,
so that a rank above the bound would show, and is an error. Over a prime field

    measured rank ≤ rank over the rationals ≤ separation rank ≤ upper bound,

so a measured rank that reaches the bound is a proof; one below it is a proved lower bound, and most likely
exact (docs/theory.md says how likely) once `confirm` has repeated it with a second prime and by FLINT.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.separation.blas import Matrix
from deepwide.separation.case import Case
from deepwide.separation.evaluate import Evaluator, Points
from deepwide.separation.field import CORES, PRIME, another_prime, flint_rank, rank_in_place
from deepwide.separation.route import (
    TILE_COLUMNS,
    TILE_ROWS,
    Route,
    check_exact,
    check_size,
    choose_route,
    default_memory,
    rank_seconds,
)
from deepwide.separation.upper_bounds import upper_bounds

Progress = Callable[[float], None]
Algorithm = Literal["dgemm", "flint"]


class AboveTheBoundError(DeepwideError):
    """A measured rank above its upper bound: a bug, here or in the theory."""


@dataclass(frozen=True)
class Measurement:
    """The rank of every block modulo one prime, with what is needed to do it again."""

    case: Case
    prime: int
    full_grid: bool
    blocks: tuple[int, ...]  # one entry, the total, when there is no grading
    bounds: tuple[int, ...]
    points_hash: str
    algorithm: Algorithm
    seconds: float

    @property
    def rank(self) -> int:
        return sum(self.blocks)

    @property
    def bound(self) -> int:
        return upper_bounds(self.case).total


def measure(
    case: Case,
    prime: int = PRIME,
    *,
    full_grid: bool = False,
    flint: bool = False,
    route: Route | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
    finished: Mapping[int, int] | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure one case, by the fastest route unless one is given; `flint` ranks by FLINT.

    Blocks in `finished` are taken as they are; `report` gets the block and the rank of every other one.

    >>> measure(Case(depth=2, width=3)).blocks
    (1, 6, 21, 18, 3)
    """
    started = time.monotonic()
    route = route or choose_route(case, full_grid=full_grid)
    check_exact(case, prime)
    memory = default_memory() if memory is None else memory
    need = check_size(route, memory, flint)
    sizes = need.sizes
    points = Points.draw(case, max(sizes), prime)
    evaluate = route.evaluator(points)
    ranks = dict(finished or {})
    done = sum(rank_seconds(sizes[k], flint) for k in ranks)

    def show(seconds: float, share: float) -> None:
        if progress:
            progress(min(1.0, (done + seconds * share) / need.seconds))

    for group in _groups({k: n for k, n in enumerate(sizes) if k not in ranks}, memory - need.beside_bytes):
        sample_seconds = need.sample_seconds * (max(sizes[k] for k in group) / max(sizes)) ** 2
        blocks = sample(evaluate, {k: sizes[k] for k in group}, partial(show, sample_seconds))
        done += sample_seconds
        for k in group:
            block = blocks.pop(k)
            cost = rank_seconds(len(block), flint)
            ranks[k] = flint_rank(block, prime) if flint else rank_in_place(block, prime, partial(show, cost))
            done += cost
            if ranks[k] > route.bounds[k]:
                raise AboveTheBoundError(
                    f"Block {k} of {case} measured {ranks[k]}, above its upper bound {route.bounds[k]}, modulo "
                    f"{prime}: this is a bug, please report it."
                )
            if report:
                report(k, ranks[k])
    return Measurement(
        case, prime, full_grid, tuple(ranks[k] for k in range(len(sizes))), route.bounds, points.digest(),
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


def sample(evaluate: Evaluator, sizes: dict[int, int], progress: Progress | None = None) -> dict[int, Matrix]:
    """Sample the blocks, tile by tile, on all cores; smaller blocks take a corner of the same grid."""
    blocks = {k: np.empty((n, n)) for k, n in sizes.items()}
    largest = max(sizes.values())
    rows = min(TILE_ROWS, largest)
    columns = max(1, min(TILE_COLUMNS, largest))
    tiles = [(a, b) for a in range(0, largest, rows) for b in range(0, largest, columns)]
    finished = 0

    def work(tile: tuple[int, int]) -> None:
        nonlocal finished
        a, b = tile
        wanted = [k for k, n in sizes.items() if n > max(a, b)]
        if wanted:
            values = evaluate(slice(a, a + rows), slice(b, b + columns), wanted)
            for k, block_values in zip(wanted, values, strict=True):
                corner = blocks[k][a : a + rows, b : b + columns]
                corner[:] = block_values[: corner.shape[0], : corner.shape[1]]
        finished += 1
        if progress:
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


def measure_block(case: Case, block: int, rows: int, prime: int = PRIME, *, flint: bool = False) -> tuple[int, str]:
    """The rank of one block alone on as many points as wanted, and the hash of the points.

    More points than the proved bound needs show whether a sharper bound is wrong.

    >>> measure_block(Case(2, 3), 2, 30)[0]
    21
    """
    route = choose_route(case)
    check_exact(case, prime)
    points = Points.draw(case, rows, prime)
    matrix = sample(route.evaluator(points), {block: rows})[block]
    return (flint_rank(matrix, prime) if flint else rank_in_place(matrix, prime)), points.digest()


def confirm(
    measurement: Measurement,
    *,
    memory: int | None = None,
    progress: Progress | None = None,
    finished: Mapping[int, int] | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure again with another prime and by FLINT; different ranks are an error, never a warning."""
    other = another_prime(measurement.prime)
    again = measure(
        measurement.case, other, full_grid=measurement.full_grid, flint=True, memory=memory, progress=progress,
        finished=finished, report=report,
    )  # fmt: skip
    if again.blocks != measurement.blocks:
        raise DeepwideError(
            f"The rank is {measurement.rank} modulo {measurement.prime} but {again.rank} modulo {other} by FLINT (in "
            "total, or in single blocks): a prime was unlucky for these weights, or there is a bug; try another seed, "
            "and report it if it happens again."
        )
    return again
