"""The lower bound of structured weights as an answer and as a file: which blocks were ranked, modulo which primes.

It is a statement about generic weights: rank at least `lower`, by special ones, and at most `upper`, by proof. Where
the two meet the generic rank is known. The weights come from the seed, and the matrices from the weights, so a file
holds neither; `verify_structured` writes everything down again and ranks it by FLINT.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from deepwide import __version__, files
from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes
from deepwide.separation.certificates import Hash, Seconds, Whole, seal
from deepwide.separation.dimensions import degree
from deepwide.separation.field import (
    LARGEST_SINGLE,
    PRIME,
    another_prime,
    draw_prime,
    flint_rank,
    rank_in_place,
    single_primes,
)
from deepwide.separation.measurement import default_memory
from deepwide.separation.network import Case
from deepwide.separation.structured import (
    Forms,
    Kind,
    ParityClass,
    blocks_to_measure,
    check_size,
    class_bytes,
    class_rank,
    classes,
    forms,
    random_symmetric,
    settled,
    thin,
)
from deepwide.separation.upper_bounds import TooLargeError, upper_bounds
from deepwide.settings import explain

FORMAT: Literal["deepwide structured rank 2"] = "deepwide structured rank 2"
PART_FORMAT = "deepwide structured classes 3"
LARGEST_FILE = 4 << 20
_SECONDS_BETWEEN = 0.5
_FLINT_ROWS = 3000  # larger classes are ranked in float32, modulo two small primes
_POINTS = 2  # two polynomials of degree C agree at one random point with a probability of at most C/p
_DEEPEST_SINGLE = 6  # deeper networks have degrees above every small prime

Algorithm = Literal["dgemm", "sgemm", "flint"]
Progress = Callable[[str, float], None]  # what was just ranked, and the share of all work that is finished


class StructuredBlock(Answer):
    """One block: its classes by signs, the largest of them, and the sum of their ranks."""

    block: Whole
    rank: Whole
    bound: Whole
    classes: Whole
    largest: tuple[Whole, Whole]


class SecondPrime(Answer):
    """The same ranks modulo another prime: by FLINT where the classes are small, else by the same elimination."""

    prime: Whole
    algorithm: Algorithm
    ranks: tuple[Whole, ...]
    seconds: Seconds


class StructuredCertificate(Answer):
    """What structured weights prove about the separation rank of generic weights of one head."""

    format: Literal["deepwide structured rank 2"] = FORMAT
    proves: Literal["a lower bound: the rank of generic weights is at least `lower`"] = (
        "a lower bound: the rank of generic weights is at least `lower`"
    )
    depth: Annotated[int, Field(strict=True, ge=1)]
    width: Annotated[int, Field(strict=True, ge=1)]
    seed: Annotated[int, Field(strict=True, ge=-(10**18), le=10**18)]
    weights: Kind = "diagonal"
    blocks: Annotated[tuple[StructuredBlock, ...], Field(min_length=1)]
    prime: Whole
    second: SecondPrime | None
    lower: Whole
    upper: Whole
    made_by: Annotated[str, Field(strict=True, max_length=100)]
    seconds: Seconds
    cpu_seconds: Seconds | None = None  # modulo both primes, of all threads and of all interrupted runs
    peak_bytes: Whole | None = None
    sha256: Hash

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.second and (self.second.prime == self.prime or len(self.second.ranks) != len(self.blocks)):
            raise ValueError("its second prime is its first one, or is not about the same blocks")
        return self

    @property
    def reached(self) -> bool:
        """Whether the lower bound meets the upper one: then it is the rank of generic weights."""
        return self.lower == self.upper

    def rows(self) -> list[dict[str, Any]]:
        """One row per measured block."""
        return [{"depth": self.depth, "width": self.width, **block.model_dump()} for block in self.blocks]


def structured_rank(
    depth: int,
    width: int,
    *,
    weights: Kind = "diagonal",
    seed: int = 0,
    prime: int | None = None,
    confirm: bool = True,
    memory: int | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> StructuredCertificate:
    """Rank the blocks that settle all others, for structured weights; with `out`, resumable and stored there.

    `weights` are diagonal, or matrices on pairs of indices, which are slower and reach more. Without a `prime` small
    cases are measured modulo a large one and confirmed by FLINT; large ones in float32 modulo two small primes, which
    proves as much: a rank modulo any prime is a lower bound.

    >>> answer = structured_rank(2, 3)
    >>> answer.lower, answer.upper, answer.reached
    (49, 49, True)
    """
    if weights not in ("diagonal", "pairs"):
        raise DeepwideError(f"The weights are 'diagonal' or 'pairs', not {weights!r}.")
    check_size(depth, width, prime or PRIME, weights)
    most = upper_bounds(Case(depth, width))
    blocks = list(blocks_to_measure(depth, width))
    parts = [list(classes(depth, width, k, weights)) for k in blocks]
    every = [part for block in parts for part in block]
    large = depth <= _DEEPEST_SINGLE and any(min(part.shape) > _FLINT_ROWS for part in every)
    first, other = single_primes(degree(depth)) if large and prime is None else (prime or PRIME, None)
    other = other or another_prime(first)
    memory = default_memory() if memory is None else memory
    _check_memory(map(thin, every), memory, first)
    finished = _Finished(out, depth, width, seed, weights)
    work = _Work(every, 2 if confirm else 1, progress)
    bounds = [most.blocks[k] for k in blocks]

    def measure(prime: int, algorithm: Algorithm) -> list[int]:
        finished.clock(prime)
        table = forms(depth, width, prime, seed, weights)
        return [
            _rank(table, block, bound, algorithm, finished, work, memory)
            for block, bound in zip(parts, bounds, strict=True)
        ]

    measured, again = measure(first, _algorithm(first)), None
    if confirm:
        small = all(min(part.shape) <= _FLINT_ROWS for part in every)
        algorithm: Algorithm = "flint" if small else _algorithm(other)
        again = measure(other, algorithm)
        if again != measured:
            raise DeepwideError(
                f"The blocks {blocks} have ranks {measured} modulo {first} and {again} modulo {other}: a prime was "
                "unlucky, or there is a bug; try another seed."
            )
    finished.clock(None)
    second = again and SecondPrime(
        prime=other, algorithm=algorithm, ranks=tuple(again), seconds=round(finished.seconds[other], 3)
    )
    ranks = dict(zip(blocks, measured, strict=True))
    body: dict[str, Any] = {
        "depth": depth,
        "width": width,
        "seed": seed,
        "weights": weights,
        "blocks": tuple(_block(k, ranks[k], most.blocks[k], block) for k, block in zip(blocks, parts, strict=True)),
        "prime": first,
        "second": second,
        "lower": sum(settled(depth, width, ranks)),
        "upper": most.total,
        "made_by": f"deepwide {__version__}",
        "seconds": round(finished.seconds[first], 3),
        "cpu_seconds": round(finished.cpu_seconds, 3),
        "peak_bytes": finished.peak_bytes,
    }
    unsealed = StructuredCertificate(**body, sha256="0" * 64)
    certificate = StructuredCertificate(**body, sha256=seal(unsealed.model_dump(mode="json")))
    if out:
        files.write_text(out, json.dumps(certificate.model_dump(mode="json"), indent=1) + "\n")
        finished.remove()
    return certificate


def _algorithm(prime: int) -> Algorithm:
    return "sgemm" if prime <= LARGEST_SINGLE else "dgemm"


class _Work:
    """How much of the elimination is finished, told after every class."""

    def __init__(self, parts: list[ParityClass], times: int, progress: Progress | None) -> None:
        self.all = times * sum(map(self.cost, parts)) or 1.0
        self.finished, self.progress = 0.0, progress

    @staticmethod
    def cost(part: ParityClass) -> float:
        return float(min(part.shape)) ** 3

    def add(self, part: ParityClass, rank: int, prime: int) -> None:
        self.finished += self.cost(part)
        if self.progress:
            rows, columns = part.shape
            text = f"block {part.block}, {rows} × {columns}: rank {rank} modulo {prime}"
            self.progress(text, min(1.0, self.finished / self.all))


def _block(k: int, rank: int, bound: int, parts: list[ParityClass]) -> StructuredBlock:
    if rank > bound:
        raise DeepwideError(
            f"Block {k} has rank {rank}, above its upper bound {bound}: this is a bug, please report it."
        )
    largest = max((part.shape for part in parts), key=min)
    return StructuredBlock(block=k, rank=rank, bound=bound, classes=len(parts), largest=largest)


def _check_memory(parts: Iterable[ParityClass], memory: int, prime: int) -> None:
    largest = max(parts, key=class_bytes)
    needed = class_bytes(largest, 4 if prime <= LARGEST_SINGLE else 8)
    if needed > memory:
        raise TooLargeError(
            f"The largest class, {' × '.join(map(str, largest.shape))}, needs {show_bytes(needed)}, and "
            f"{show_bytes(memory)} may be used."
        )


def _rank(
    table: Forms,
    parts: list[ParityClass],
    bound: int,
    algorithm: Algorithm,
    finished: "_Finished",
    work: _Work,
    memory: int,
) -> int:
    """The rank of a block. All rows and columns of a class are needed only if the few that are tried first fall short.

    They may fall short of the class and yet reach the bound of the block together, where relations lower it.
    """
    eliminate = flint_rank if algorithm == "flint" else rank_in_place
    ranks, open_parts = [], []
    for n, part in enumerate(parts):
        few = thin(part)
        name = f"{algorithm}/{table.prime}/{part.block}/{part.parity}"
        partial = name + "/few"
        if name not in finished.ranks and partial not in finished.ranks:
            rank = class_rank(table, few, eliminate)
            finished.add(name if few is part or rank == min(part.shape) else partial, rank)
        if name not in finished.ranks:
            open_parts.append((n, name))
        ranks.append(finished.ranks.get(name, finished.ranks.get(partial, 0)))
        work.add(part, ranks[-1], table.prime)
    for n, name in open_parts:
        if sum(ranks) < bound:
            _check_memory([parts[n]], memory, table.prime)
            finished.add(name, class_rank(table, parts[n], eliminate))
            ranks[n] = finished.ranks[name]
    return sum(ranks)


class _Finished:
    """The classes that are finished, and what they took, beside the certificate until that is written."""

    def __init__(self, certificate: Path | None, depth: int, width: int, seed: int, weights: Kind) -> None:
        self.path = certificate and certificate.with_name(f".{certificate.name}.part")
        self._identity: dict[str, Any] = {
            "format": PART_FORMAT, "depth": depth, "width": width, "seed": seed, "made_by": f"deepwide {__version__}"
        }  # fmt: skip
        if weights != "diagonal":
            self._identity["weights"] = weights
        self.ranks: dict[str, int] = {}
        self.seconds: dict[int, float] = {}  # wall seconds modulo each prime
        self.cpu_seconds, self.peak_bytes = 0.0, 0
        self._prime: int | None = None
        self._saved = self._wall = time.monotonic()
        self._cpu = time.process_time()
        if self.path and self.path.exists():
            content = files.read_json(self.path, "a file of finished classes", most=LARGEST_FILE, unique_keys=True)
            if not isinstance(content, dict) or content.get("sha256") != seal(content):
                raise DeepwideError(f"{self.path} should hold finished classes, but it is torn; remove it.")
            if {key: content.get(key) for key in self._identity} != self._identity:
                raise DeepwideError(f"{self.path} holds finished classes of another case, seed or version; remove it.")
            self.ranks = {str(name): int(rank) for name, rank in content["ranks"].items()}
            self.seconds = {int(prime): float(seconds) for prime, seconds in content["seconds"].items()}
            self.cpu_seconds, self.peak_bytes = float(content["cpu_seconds"]), int(content["peak_bytes"])

    def clock(self, prime: int | None) -> None:
        """What has passed belongs to the last prime, what follows to this one."""
        wall, cpu = time.monotonic(), time.process_time()
        if self._prime is not None:
            self.seconds[self._prime] = self.seconds.get(self._prime, 0.0) + wall - self._wall
            self.cpu_seconds += cpu - self._cpu
            self.peak_bytes = max(self.peak_bytes, _peak_bytes())
        self._prime, self._wall, self._cpu = prime, wall, cpu

    def add(self, name: str, rank: int) -> None:
        self.ranks[name] = rank
        if self.path and time.monotonic() - self._saved >= _SECONDS_BETWEEN:
            self.clock(self._prime)
            body = {
                **self._identity,
                "ranks": self.ranks,
                "seconds": {str(prime): seconds for prime, seconds in self.seconds.items()},
                "cpu_seconds": self.cpu_seconds,
                "peak_bytes": self.peak_bytes,
            }
            files.write_text(self.path, json.dumps({**body, "sha256": seal(body)}) + "\n")
            self._saved = time.monotonic()

    def remove(self) -> None:
        if self.path:
            self.path.unlink(missing_ok=True)


def _peak_bytes() -> int:
    """The most memory that this process has held so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else 1024 * peak)


def is_structured(path: Path) -> bool:
    """Whether a file says that it is such a certificate."""
    content = files.read_json(path, "a certificate", most=LARGEST_FILE)
    return isinstance(content, dict) and content.get("format") == FORMAT


def read_structured(path: Path) -> StructuredCertificate:
    """A certificate whose seal fits, or a sentence that says why not."""
    content = files.read_json(path, "a certificate", most=LARGEST_FILE, unique_keys=True)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DeepwideError(f"{path} is not a certificate of structured weights: its format is not '{FORMAT}'.")
    if content.get("sha256") != seal(content):
        raise DeepwideError(f"{path} was changed after it was written: its sha256 does not fit its content.")
    try:
        return StructuredCertificate.model_validate(content)
    except ValidationError as error:
        text = explain(error, StructuredCertificate, noun="key")
        raise DeepwideError(f"{path} is not a valid certificate: {text}") from None


class StructuredVerification(Answer):
    """A certificate of structured weights that holds; one that does not is an error."""

    file: str
    holds: bool = True
    lower: int
    upper: int
    blocks: tuple[int, ...]
    prime: int
    compared: int  # at so many random matrices the coefficients were compared with the Gram form
    algorithm: Algorithm


def verify_structured(
    path: Path, *, memory: int | None = None, progress: Progress | None = None
) -> StructuredVerification:
    """Check a certificate again, in another way than it was made.

    Classes of at most a few thousand rows are ranked by FLINT modulo the second prime, if there is one. Larger ones
    would take FLINT hours: they are ranked in float64 modulo a prime that the certificate has not used. The
    coefficients that the matrices consist of are compared with the Gram form, layer by layer, at random matrices.
    """
    claimed = read_structured(path)
    depth, width, weights = claimed.depth, claimed.width, claimed.weights
    prime = claimed.second.prime if claimed.second else claimed.prime
    for each in {prime, claimed.prime}:
        check_size(depth, width, each, weights)
    blocks = list(blocks_to_measure(depth, width))
    if [entry.block for entry in claimed.blocks] != blocks:
        raise DeepwideError(
            f"{path} does not hold: it must be about the blocks {', '.join(map(str, blocks))}, from which those of "
            f"depth {depth} and width {width} follow."
        )
    most = upper_bounds(Case(depth, width))
    _compare(path, "upper bound", claimed.upper, most.total)
    parts = {k: list(classes(depth, width, k, weights)) for k in blocks}
    every = [part for block in parts.values() for part in block]
    algorithm: Algorithm = "flint"
    if any(min(part.shape) > _FLINT_ROWS for part in every):
        algorithm, prime = "dgemm", draw_prime(claimed.prime, prime)
    memory = default_memory() if memory is None else memory
    _check_memory(map(thin, every), memory, prime)
    # What can be counted is compared before anything is ranked.
    promised = {entry.block: entry.rank for entry in claimed.blocks}
    counted = tuple(_block(k, min(promised[k], most.blocks[k]), most.blocks[k], parts[k]) for k in blocks)
    _compare(path, "blocks", claimed.blocks, counted)
    _compare(path, "lower bound", claimed.lower, sum(settled(depth, width, promised)))
    if claimed.second:
        _compare(path, "ranks modulo its second prime", claimed.second.ranks, tuple(promised.values()))
    points = tuple(random_symmetric(width, prime) for _ in range(_POINTS if prime > 10**4 else 10 * _POINTS))
    table = forms(depth, width, prime, claimed.seed, weights, points)
    finished, work = _Finished(None, depth, width, claimed.seed, weights), _Work(every, 1, progress)
    ranks = {k: _rank(table, block, most.blocks[k], algorithm, finished, work, memory) for k, block in parts.items()}
    _compare(path, "ranks", promised, ranks)
    return StructuredVerification(
        file=str(path),
        lower=claimed.lower,
        upper=claimed.upper,
        blocks=tuple(parts),
        prime=prime,
        compared=len(points),
        algorithm=algorithm,
    )


def _compare(path: Path, what: str, claimed: object, measured: object) -> None:
    if claimed != measured:
        raise DeepwideError(f"{path} does not hold: something else is counted or measured here for its {what}.")
