"""How a case is measured: which of three evaluations, with or without grading, how large and how long. Chosen once.

chain   one head: y as one long product, run from both ends; the fast one
gram    any heads, a residual connection: the Gram form, layer by layer
eq3     eq. 3 itself, position by position: causal networks, and the independent check
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes
from deepwide.separation.case import Case
from deepwide.separation.dimensions import degree
from deepwide.separation.evaluate import Evaluator, Method, Points, evaluator
from deepwide.separation.field import CORES, EXACT, PRIME, check_prime
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
        """The weights, the points of both sides with the copies made while drawing one, and their Gram matrices."""
        (a, b), d = self.case.positions, self.case.width
        drawing = 4 * max(a, b) * d * number
        grams = 0 if self.method == "eq3" else 3 * d * d * number
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
        if self.method == "eq3":
            layer = heads * positions * (1.4 * 4 * d * d / heads + positions * 6 * d / heads)
        else:
            layer = 1.4 * (2 * heads + 2) * d**3 + 3 * (2 * heads + 3) * d * d
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
    if longest * (prime // 2 + 2) ** 2 >= EXACT:
        raise DeepwideError(
            f"Modulo {prime} sums of {longest} products are not exact in float64; at depth {case.depth} and width "
            f"{case.width} take a smaller prime: the default is {PRIME}."
        )
