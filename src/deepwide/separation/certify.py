"""The life of a certificate: is it stored, is it confirmed, resume with finished blocks, measure, confirm, write."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, needs
from deepwide.quantities import plural, show_seconds
from deepwide.separation.certificates import Certificate
from deepwide.separation.field import PRIME, another_prime, draw_prime
from deepwide.separation.measurement import (
    METHODS,
    Algorithm,
    Measurement,
    Progress,
    Route,
    check_exact,
    check_size,
    choose_route,
    confirm,
    default_memory,
    measure,
)
from deepwide.separation.network import DRAWN, Case

if TYPE_CHECKING:
    from deepwide.separation.store import FinishedBlocks, Store

CHEAP_SECONDS = 60.0  # what takes longer is confirmed only on request


class Watcher:
    """What a long measurement reports while it works. This one ignores everything; override what you want to see."""

    def note(self, note: Note) -> None:
        """Something the reader should know."""

    def stage(self, name: str, seconds: float) -> AbstractContextManager[Progress | None]:  # noqa: ARG002
        """One part of the work and its estimated time; it may want its progress, a share from 0 to 1."""
        return nullcontext()


class Forecast(Answer):
    """What a measurement would cost, estimated for a machine like ours; nothing was measured."""

    case: Case
    method: str
    blocks: int
    largest_block: int
    bytes: int
    memory: int
    seconds: float
    confirm_seconds: float
    confirms: bool
    stored: bool

    @property
    def total_seconds(self) -> float:
        return 0.0 if self.stored else self.seconds + self.confirm_seconds * self.confirms


def rank(
    depth: int | None = None,
    width: int | None = None,
    heads: int = 1,
    *,
    positions: tuple[int, int] | None = None,
    partition: str = "",
    at: int = -1,
    residual: bool = False,
    causal: bool = False,
    weights: str | Path = "random",
    seed: int = 0,
    prime: int | None = None,
    full_grid: bool = False,
    confirm: bool | None = None,
    memory: int | None = None,
    store: "Store | str | Path | None" = None,
) -> Certificate:
    """Measure the separation rank of a network exactly, over a prime field.

    A weight file gives depth and width itself. See `certify` for `prime`, `confirm` and `store`.

    >>> answer = rank(depth=2, width=3)
    >>> answer.rank, answer.bound, answer.reached
    (49, 49, True)
    """
    case = make_case(
        depth, width, heads, positions=positions, partition=partition, at=at, residual=residual, causal=causal,
        weights=str(weights), seed=seed,
    )  # fmt: skip
    if isinstance(store, str | Path):
        from deepwide.separation.store import Store

        store = Store(store)
    return certify(case, store=store, confirm=confirm, prime=prime, full_grid=full_grid, memory=memory)


def make_case(
    depth: int | None,
    width: int | None,
    heads: int = 1,
    *,
    positions: tuple[int, int] | None = None,
    partition: str = "",
    at: int = -1,
    residual: bool = False,
    causal: bool = False,
    weights: str = "random",
    seed: int = 0,
) -> Case:
    """A case from what people give: positions per side or a partition; a weight file has its own depth and width."""
    if positions and partition:
        raise DeepwideError("positions and partition both place the positions: give one of them.")
    if weights not in DRAWN and (depth is None or width is None):
        from deepwide.separation.weights import file_shape

        file_depth, file_width = file_shape(Path(weights))
        depth, width = depth or file_depth, width or file_width
    if depth is None or width is None:
        raise DeepwideError(f"the {'depth' if depth is None else 'width'} is missing, as in depth=2, width=3.")
    sides = Case.with_positions(*positions) if positions else partition
    return Case(depth, width, heads, sides, at, residual, causal, weights, seed)


def certify(
    case: Case,
    store: "Store | None" = None,
    confirm: bool | None = None,
    *,
    prime: int | None = None,
    full_grid: bool = False,
    memory: int | None = None,
    watcher: Watcher | None = None,
) -> Certificate:
    """The certificate of a case: the stored one, or a new one that resumes with the blocks finished before.

    `confirm` measures again with a second prime and by FLINT; None means: if that takes under a minute. A stored
    certificate that is not confirmed is confirmed if `confirm` is True. Weights from a file are measured modulo primes
    drawn anew, unless one is given.
    """
    needs("flint", "rank")
    watcher = watcher or Watcher()
    memory = default_memory() if memory is None else memory
    wanted = _usual_prime(case, prime)
    stored = store.find(case, wanted, full_grid) if store else None
    if stored and (stored.confirmed or confirm is not True):
        return stored
    route = choose_route(case, full_grid=full_grid)
    prime = stored.prime if stored else wanted or (store and store.started_with(case, "dgemm")) or draw_prime()
    check_exact(case, prime)
    work = _Work(case, prime, full_grid, memory, store, route, watcher)
    measurement = stored.measurement if stored else work.measure()
    seconds = work.confirm_seconds(measurement)
    if confirm is None and seconds > CHEAP_SECONDS:
        text = f"Not confirmed: that would take about {show_seconds(seconds)}"
        watcher.note(Note.of("not-confirmed", text, seconds=seconds))
        confirm = False
    second = None
    if confirm is not False:
        if store and seconds > CHEAP_SECONDS:  # what is known is stored while the rest takes its time
            work.write(Certificate.of(measurement))
        second = work.confirm(measurement, seconds)
    certificate = Certificate.of(measurement, second)
    work.write(certificate)
    return certificate


def _usual_prime(case: Case, prime: int | None) -> int | None:
    """The prime to use, or None where it is to be drawn: weights that somebody chose could be special modulo ours."""
    return PRIME if prime is None and not case.from_file else prime


class _Work:
    """One case being measured: what measuring and confirming it share."""

    def __init__(
        self,
        case: Case,
        prime: int,
        full_grid: bool,
        memory: int,
        store: "Store | None",
        route: Route,
        watcher: Watcher,
    ) -> None:
        self.case, self.prime, self.full_grid, self.memory = case, prime, full_grid, memory
        self.store, self.route, self.watcher = store, route, watcher
        self.parts: list[FinishedBlocks] = []
        self.need = check_size(route, memory)
        self.label = f"depth {case.depth}, width {case.width}"

    def measure(self) -> Measurement:
        part = self._resume(self.prime, "dgemm")
        with self.watcher.stage(self.label, self.need.seconds) as progress:
            return measure(
                self.case, self.prime, full_grid=self.full_grid, route=self.route, memory=self.memory,
                progress=progress, finished=part.ranks if part else None, report=part.add if part else None,
            )  # fmt: skip

    def confirm_seconds(self, measurement: Measurement) -> float:
        """How long confirming takes; the first measurement shows how this machine compares with ours."""
        slower = max(1.0, measurement.seconds / self.need.seconds) if self.need.seconds > 1 else 1.0
        return slower * self.route.estimate(flint=True).seconds

    def confirm(self, measurement: Measurement, seconds: float) -> Measurement:
        prime = another_prime(self.prime)
        if self.case.from_file:
            prime = (self.store and self.store.started_with(self.case, "flint")) or draw_prime(self.prime)
        part = self._resume(prime, "flint")
        with self.watcher.stage(f"{self.label}, again by FLINT", seconds) as progress:
            return confirm(
                measurement, prime=prime, memory=self.memory, progress=progress, finished=part.ranks if part else None,
                report=part.add if part else None,
            )  # fmt: skip

    def _resume(self, prime: int, algorithm: Algorithm) -> "FinishedBlocks | None":
        if self.store is None:
            return None
        part = self.store.finished_blocks(self.route, prime, self.full_grid, algorithm)
        self.parts.append(part)
        if part.ranks:
            text = f"Resuming with {plural(len(part.ranks), 'finished block')} from {part.path}"
            self.watcher.note(Note.of("resumed", text, blocks=len(part.ranks), path=str(part.path)))
        return part

    def write(self, certificate: Certificate) -> None:
        if self.store:
            self.store.write(certificate, self.parts)
            self.parts.clear()


def forecast(
    case: Case,
    store: "Store | None" = None,
    confirm: bool | None = None,
    *,
    prime: int | None = None,
    full_grid: bool = False,
    memory: int | None = None,
) -> Forecast:
    """What `certify` would do with the same arguments, and for how long; measures nothing.

    >>> forecast(Case(2, 8)).largest_block
    667
    """
    memory = default_memory() if memory is None else memory
    wanted = _usual_prime(case, prime)
    stored = store.find(case, wanted, full_grid) if store else None
    route = choose_route(case, full_grid=full_grid)
    check_exact(case, wanted or PRIME)  # one that is drawn is smaller
    need = check_size(route, memory)
    again = route.estimate(flint=True).seconds
    confirms = again <= CHEAP_SECONDS if confirm is None else confirm
    finished = stored is not None and (stored.confirmed is not None or confirm is not True)
    return Forecast(
        case=case,
        method=METHODS[route.method],
        blocks=len(need.sizes),
        largest_block=max(need.sizes),
        bytes=need.bytes,
        memory=memory,
        seconds=0.0 if stored else need.seconds,
        confirm_seconds=again,
        confirms=confirms and not finished,
        stored=finished,
    )
