"""The lower bound of diagonal weights as an answer and as a file: which blocks were ranked, modulo which primes.

It is a statement about generic weights: rank at least `lower`, by special ones, and at most `upper`, by proof. Where
the two meet the generic rank is known. The weights come from the seed, and the matrices from the weights, so a file
holds neither; `verify_structured` writes everything down again and ranks it by FLINT.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from deepwide import __version__, files
from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.quantities import show_bytes
from deepwide.separation.certificates import Hash, Seconds, Whole, seal
from deepwide.separation.dimensions import degree
from deepwide.separation.field import PRIME, another_prime, flint_rank, rank_in_place
from deepwide.separation.measurement import default_memory
from deepwide.separation.network import Case
from deepwide.separation.structured import (
    Forms,
    ParityClass,
    blocks_to_measure,
    check_size,
    class_bytes,
    class_rank,
    classes,
    forms,
    settled,
)
from deepwide.separation.upper_bounds import TooLargeError, upper_bounds
from deepwide.settings import explain

FORMAT: Literal["deepwide structured rank 1"] = "deepwide structured rank 1"
PART_FORMAT = "deepwide structured classes 1"
LARGEST_FILE = 4 << 20
_SECONDS_BETWEEN = 0.5
_FLINT_ROWS = 3000  # larger classes are confirmed by our own elimination modulo the second prime

Algorithm = Literal["dgemm", "flint"]


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
    """What diagonal weights prove about the separation rank of generic weights of one head."""

    format: Literal["deepwide structured rank 1"] = FORMAT
    depth: Annotated[int, Field(strict=True, ge=1)]
    width: Annotated[int, Field(strict=True, ge=1)]
    seed: Annotated[int, Field(strict=True, ge=-(10**18), le=10**18)]
    weights: Literal["diagonal"] = "diagonal"
    blocks: Annotated[tuple[StructuredBlock, ...], Field(min_length=1)]
    prime: Whole
    second: SecondPrime | None
    lower: Whole
    upper: Whole
    made_by: Annotated[str, Field(strict=True, max_length=100)]
    seconds: Seconds
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
    seed: int = 0,
    prime: int = PRIME,
    confirm: bool = True,
    memory: int | None = None,
    out: Path | None = None,
) -> StructuredCertificate:
    """Rank the blocks that settle all others, for diagonal weights; with `out`, resumable and stored there.

    >>> answer = structured_rank(2, 3)
    >>> answer.lower, answer.upper, answer.reached
    (49, 49, True)
    """
    started = time.monotonic()
    check_size(depth, width, prime)
    case = Case(depth, width)
    most = upper_bounds(case)
    blocks = list(blocks_to_measure(depth, width))
    parts = [list(classes(depth, width, k)) for k in blocks]
    _check_memory([part for block in parts for part in block], default_memory() if memory is None else memory)
    finished = _Finished(out, depth, width, seed)
    table = forms(depth, width, prime, seed)
    measured = [_ranks(table, block, "dgemm", finished) for block in parts]
    seconds = time.monotonic() - started
    second = None
    if confirm:
        started = time.monotonic()
        small = all(min(part.shape) <= _FLINT_ROWS for block in parts for part in block)
        algorithm: Algorithm = "flint" if small else "dgemm"
        other = another_prime(prime)
        table = forms(depth, width, other, seed)
        again = [_ranks(table, block, algorithm, finished) for block in parts]
        if [sum(ranks) for ranks in again] != [sum(ranks) for ranks in measured]:
            raise DeepwideError(
                f"The blocks {blocks} have ranks {[sum(r) for r in measured]} modulo {prime} and "
                f"{[sum(r) for r in again]} modulo {other}: a prime was unlucky, or there is a bug; try another seed."
            )
        second = SecondPrime(
            prime=other,
            algorithm=algorithm,
            ranks=tuple(sum(ranks) for ranks in again),
            seconds=round(time.monotonic() - started, 3),
        )
    ranks = {k: sum(of_block) for k, of_block in zip(blocks, measured, strict=True)}
    body: dict[str, Any] = {
        "depth": depth,
        "width": width,
        "seed": seed,
        "blocks": tuple(_block(k, ranks[k], most.blocks[k], block) for k, block in zip(blocks, parts, strict=True)),
        "prime": prime,
        "second": second,
        "lower": sum(settled(depth, width, ranks)),
        "upper": most.total,
        "made_by": f"deepwide {__version__}",
        "seconds": round(seconds, 3),
    }
    unsealed = StructuredCertificate(**body, sha256="0" * 64)
    certificate = StructuredCertificate(**body, sha256=seal(unsealed.model_dump(mode="json")))
    if out:
        files.write_text(out, json.dumps(certificate.model_dump(mode="json"), indent=1) + "\n")
        finished.remove()
    return certificate


def _block(k: int, rank: int, bound: int, parts: list[ParityClass]) -> StructuredBlock:
    if rank > bound:
        raise DeepwideError(
            f"Block {k} has rank {rank}, above its upper bound {bound}: this is a bug, please report it."
        )
    largest = max((part.shape for part in parts), key=min)
    return StructuredBlock(block=k, rank=rank, bound=bound, classes=len(parts), largest=largest)


def _check_memory(parts: Iterable[ParityClass], memory: int) -> None:
    largest = max(parts, key=class_bytes)
    if class_bytes(largest) > memory:
        raise TooLargeError(
            f"The largest class, {' × '.join(map(str, largest.shape))}, needs {show_bytes(class_bytes(largest))}, and "
            f"{show_bytes(memory)} may be used."
        )


def _ranks(table: Forms, parts: list[ParityClass], algorithm: Algorithm, finished: "_Finished") -> list[int]:
    eliminate = flint_rank if algorithm == "flint" else rank_in_place
    ranks = []
    for part in parts:
        name = f"{algorithm}/{table.prime}/{part.block}/{part.parity}"
        if name not in finished.ranks:
            finished.add(name, class_rank(table, part, eliminate))
        ranks.append(finished.ranks[name])
    return ranks


class _Finished:
    """The classes that are finished, beside the certificate until that is written."""

    def __init__(self, certificate: Path | None, depth: int, width: int, seed: int) -> None:
        self.path = certificate and certificate.with_name(f".{certificate.name}.part")
        self._identity = {
            "format": PART_FORMAT, "depth": depth, "width": width, "seed": seed, "made_by": f"deepwide {__version__}"
        }  # fmt: skip
        self.ranks: dict[str, int] = {}
        self._saved = time.monotonic()
        if self.path and self.path.exists():
            content = files.read_json(self.path, "a file of finished classes", most=LARGEST_FILE, unique_keys=True)
            if not isinstance(content, dict) or content.get("sha256") != seal(content):
                raise DeepwideError(f"{self.path} should hold finished classes, but it is torn; remove it.")
            if {key: content.get(key) for key in self._identity} != self._identity:
                raise DeepwideError(f"{self.path} holds finished classes of another case, seed or version; remove it.")
            self.ranks = {str(name): int(rank) for name, rank in content["ranks"].items()}

    def add(self, name: str, rank: int) -> None:
        self.ranks[name] = rank
        if self.path and time.monotonic() - self._saved >= _SECONDS_BETWEEN:
            body = {**self._identity, "ranks": self.ranks}
            files.write_text(self.path, json.dumps({**body, "sha256": seal(body)}) + "\n")
            self._saved = time.monotonic()

    def remove(self) -> None:
        if self.path:
            self.path.unlink(missing_ok=True)


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
    algorithm: Algorithm = "flint"


def verify_structured(path: Path, *, memory: int | None = None) -> StructuredVerification:
    """Check a certificate again: its blocks are ranked by FLINT, modulo its second prime if it has one."""
    claimed = read_structured(path)
    depth, width = claimed.depth, claimed.width
    prime = claimed.second.prime if claimed.second else claimed.prime
    check_size(depth, width, prime)
    if any(entry.block > degree(depth) for entry in claimed.blocks):
        raise DeepwideError(f"{path} names a block that depth {depth} does not have: they are 0 to {degree(depth)}.")
    most = upper_bounds(Case(depth, width))
    parts = {entry.block: list(classes(depth, width, entry.block)) for entry in claimed.blocks}
    _check_memory([part for block in parts.values() for part in block], default_memory() if memory is None else memory)
    table = forms(depth, width, prime, claimed.seed)
    ranks = {k: sum(class_rank(table, part, flint_rank) for part in block) for k, block in parts.items()}
    entries = tuple(_block(k, ranks[k], most.blocks[k], block) for k, block in parts.items())
    second = claimed.second.ranks if claimed.second else tuple(entry.rank for entry in entries)
    for what, claim, measured in (
        ("blocks", claimed.blocks, entries),
        ("ranks modulo its second prime", second, tuple(entry.rank for entry in entries)),
        ("lower bound", claimed.lower, sum(settled(depth, width, ranks))),
        ("upper bound", claimed.upper, most.total),
    ):
        if claim != measured:
            raise DeepwideError(f"{path} does not hold: its {what} differ from what is measured here.")
    return StructuredVerification(
        file=str(path), lower=claimed.lower, upper=claimed.upper, blocks=tuple(parts), prime=prime
    )
