"""The separation rank of a network, measured exactly: sample, separate the degrees, take ranks.

Side A and side B get random points; M[s, t] = y(A point s, B point t). Scaling side B by τ turns y into
Σ_k τ^k y_k, and sep = Σ_k rank(y_k). Each block is sampled on one point more than its upper bound,
so that a rank above the bound would show, and is an error. Over a prime field

    measured rank ≤ rank over the rationals ≤ separation rank ≤ upper bound,

so a measured rank that reaches the bound is a proof; one below it is a proved lower bound, and most likely
exact (docs/theory.md says how likely) once `confirm` has repeated it with a second prime and by FLINT.

A Route is how a case is measured, chosen once: which of three evaluations, graded or not, how large and how long.

chain   one head: y as one long product, run from both ends; the fast one
gram    any heads, a residual connection: the Gram form, layer by layer
eq3     eq. 3 itself, position by position: causal networks, and the independent check
"""

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes
from deepwide.separation.blas import Matrix
from deepwide.separation.dimensions import degree
from deepwide.separation.evaluate import Evaluator, Method, Points, evaluator
from deepwide.separation.field import CORES, EXACT, PRIME, another_prime, check_prime, flint_rank, rank_in_place
from deepwide.separation.network import Case
from deepwide.separation.upper_bounds import TooLargeError, upper_bounds

TILE_ROWS, TILE_COLUMNS = 32, 512
METHODS: dict[Method, str] = {"chain": "a chain of products", "gram": "the Gram form", "eq3": "eq. 3"}


@dataclass(frozen=True)
class Estimate:
    """What a measurement will cost, before it starts; times are for a machine like ours and only a start."""

    sizes: tuple[int, ...]
    bytes: int  # needed at once: the largest block and the sample points
    beside_bytes: int  # all but the block
    all_bytes: int  # every block at once
    sample_seconds: float
    rank_seconds: float

    @property
    def seconds(self) -> float:
        return self.sample_seconds + self.rank_seconds


@dataclass(frozen=True)
class Route:
    """A case with the evaluation that was chosen for it; one bound per block, or one in all without grading."""

    case: Case
    method: Method
    graded: bool
    bounds: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many points each block is sampled on: its bound and one more, so that a rank above it would show."""
        return tuple(bound + 1 for bound in self.bounds)

    def evaluator(self, points: Points) -> Evaluator:
        """The values of every block on tiles of these points."""
        return evaluator(self.case, self.method, self.graded, points)

    def estimate(self, flint: bool = False) -> Estimate:
        """Memory and time, from the sizes alone."""
        largest = max(self.sizes)
        beside = self._points_bytes(largest) + self._tile_bytes(largest)
        return Estimate(
            self.sizes,
            # FLINT takes a list of pointers and makes a matrix of its own out of it.
            (32 if flint else 8) * largest**2 + beside,
            beside,
            8 * sum(n * n for n in self.sizes),
            largest**2 * self._nanoseconds_per_pair() * 1e-9 / CORES,
            sum(rank_seconds(n, flint) for n in self.sizes),
        )

    def _points_bytes(self, number: int) -> int:
        """The weights, the points of both sides with the copies made while drawing one, and their matrices."""
        (a, b), d = self.case.positions, self.case.width
        drawing = 4 * max(a, b) * d * number
        grams = 0 if self.method == "eq3" else (3 if self.method == "chain" else 6) * d * d * number
        return 8 * (4 * self.case.depth * d * d + (a + b) * d * number + max(drawing, grams))

    def _tile_bytes(self, number: int) -> int:
        """What the cores need while they evaluate one tile each; the chain needs little."""
        if self.method == "chain":
            return 0
        rows, columns = min(TILE_ROWS, number), min(TILE_COLUMNS, number)
        tiles = -(-number // rows) * -(-number // columns)
        values = 6 * len(self.case.sides) * self.case.width if self.method == "eq3" else 5 * self.case.width**2
        return 8 * values * rows * columns * (min(CORES, tiles) if tiles >= 8 else 1)

    def _nanoseconds_per_pair(self) -> float:
        """One value of y on one core: multiplications at 0.35 ns by BLAS and 1.4 ns else, reductions at 3 ns."""
        case = self.case
        c, d, heads, positions = degree(case.depth), case.width, case.heads, len(case.sides)
        if self.method == "chain":
            return (c / 2) ** 2 * (0.35 * d * d + 4.5 * d) + c * c / 4 * d
        if self.method == "gram":
            between = (case.depth - 2) * (0.7 * (2 * heads + 2) * d**3 + 2 * (2 * heads + 3) * d * d)
            ends = (9 + 2 * heads) * d * d + 20 * d  # the first layer is known, the last one meets vectors only
            return (max(0.0, between) + ends) * (c + 1 if self.graded else 1)
        layer = heads * positions * (1.4 * 4 * d * d / heads + positions * 6 * d / heads)
        return case.depth * layer * (c + 1 if self.graded else 1)


def rank_seconds(n: int, flint: bool) -> float:
    """The elimination of an n×n matrix."""
    return 6e-10 * n**2.8 + 5e-7 * n * n if flint else 2 / 3 * n**3 / 4e10


def choose_route(case: Case, *, full_grid: bool = False, independent: bool = False) -> Route:
    """The fastest evaluation of a case; `independent` takes another one than that wherever there is one.

    `full_grid` is eq. 3 without grading, however slow.

    >>> [choose_route(case).method for case in (Case(2, 3), Case(2, 4, 2), Case(2, 3, causal=True))]
    ['chain', 'gram', 'eq3']
    >>> choose_route(Case(2, 4, 2), independent=True).method
    'eq3'
    """
    try:
        return _choose(case, full_grid, independent)
    except TooLargeError as error:
        options = _what_fits(case, full_grid, available_memory())
        raise TooLargeError(f"{str(error).removesuffix('.')}; what would fit: {options}.") from None


def _choose(case: Case, full_grid: bool, independent: bool) -> Route:
    fastest: Method = "gram" if case.heads > 1 or case.residual else "chain"
    if full_grid or case.causal:
        fastest = "eq3"
    method = fastest
    if independent and not case.causal:  # eq. 3 is the only way to evaluate a causal network
        method = "eq3" if fastest == "gram" else "gram"
    graded = case.graded and not full_grid
    bounds = upper_bounds(case)
    return Route(case, method, graded, bounds.blocks if graded else (bounds.total,))


def available_memory() -> int:
    """Bytes this machine can still give without swapping."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def default_memory() -> int:
    """How much a measurement may use when nobody says: most of what there is."""
    return int(0.7 * available_memory())


def check_size(route: Route, memory: int, flint: bool = False) -> Estimate:
    """The estimate, or a sentence that says what would fit."""
    need = route.estimate(flint)
    if need.bytes <= memory:
        return need
    case = route.case
    raise TooLargeError(
        f"Depth {case.depth} and width {case.width} need a matrix of {max(need.sizes):.4g} rows, "
        f"with its sample points and working space {show_bytes(need.bytes)}, and {show_bytes(memory)} may be used; "
        f"what would fit: {_what_fits(case, route.graded != case.graded, memory, route.method, flint)}."
    )


def _what_fits(case: Case, full_grid: bool, memory: int, method: Method | None = None, flint: bool = False) -> str:
    """The largest width at this depth and the largest depth at this width, with one head and enough positions."""

    def fits(depth: int, width: int) -> bool:
        smaller = Case(depth, width, residual=case.residual, causal=case.causal)
        try:
            chosen = _choose(smaller, full_grid, independent=False)
            independent = method is not None and chosen.method == "chain" != method
            chosen = _choose(smaller, full_grid, independent)
            return chosen.estimate(flint).bytes <= memory
        except DeepwideError:
            return False

    width = _largest(lambda w: fits(case.depth, w), case.width - 1)
    depth = _largest(lambda n: fits(n, case.width), case.depth - 1)
    options = [f"at depth {case.depth} a width of {width}"] * bool(width)
    options += [f"at width {case.width} a depth of {depth}"] * bool(depth)
    one_head = " with one head" if case.heads > 1 else ""
    return " or ".join(options) + one_head if options else "more memory"


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number from 1 to `most` that fits, by bisection; 0 if none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def check_exact(case: Case, prime: int) -> None:
    """Refuse a modulus that is no prime, too small for the degrees, or so large that a sum could leave float64.

    The longest sums of products that are not reduced: 2d in a step of the chain, one per position in a Gram matrix,
    C + 1 in the interpolation, d·(⌊C/2⌋ + 1) where the two halves of the chain meet.
    """
    c = degree(case.depth)
    check_prime(prime, above=2 * c + 2)
    longest = max(2 * case.width, *case.positions, c + 1, case.width * (c // 2 + 1))
    if longest * (prime // 2 + 2) ** 2 >= EXACT[8]:
        raise DeepwideError(
            f"Modulo {prime} sums of {longest} products are not exact in float64; at depth {case.depth} and width "
            f"{case.width} take a smaller prime: the default is {PRIME}."
        )


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
    prime: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
    finished: Mapping[int, int] | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure again with another prime and by FLINT; different ranks are an error, never a warning."""
    other = another_prime(measurement.prime) if prime is None else prime
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
