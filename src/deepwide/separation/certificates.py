"""A measured rank as an answer and as a file that anyone can check again: what was drawn, from which seed, the ranks.

A certificate holds no matrix. Weights and sample points come from SHAKE-256 of the seed, so they can be drawn again;
the hash of the points shows that they are the same. The seal is a plain hash: it finds damage, not forgery. What a
certificate claims is believed only after `verify` has measured it again.
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    model_serializer,
    model_validator,
)

from deepwide import __version__
from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.separation.measurement import Algorithm, Measurement
from deepwide.separation.network import Case
from deepwide.separation.upper_bounds import ideal_bound, upper_bounds

FORMAT: Literal["deepwide separation rank 1"] = "deepwide separation rank 1"
LARGE_PRIME = 500_000  # primes above this make an accident in a rank unlikely

Whole = Annotated[int, Field(strict=True, ge=0)]
Blocks = Annotated[tuple[Whole, ...], Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Hash = Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{64}$")]


class Confirmation(Answer):
    """The same ranks once more: another prime, another program."""

    prime: Whole
    algorithm: Algorithm
    blocks: Blocks
    points_sha256: Hash
    seconds: Seconds


class Certificate(Answer):
    """The separation rank of a case, as measured: a proved lower bound, beside a proved upper bound."""

    format: Literal["deepwide separation rank 1"] = FORMAT
    case: Case
    full_grid: StrictBool
    rank: Whole
    bound: Whole
    blocks: Blocks
    block_bounds: Blocks
    prime: Whole
    points: Blocks
    points_sha256: Hash
    algorithm: Algorithm
    confirmed: Confirmation | None
    made_by: Annotated[str, Field(strict=True, max_length=100)]
    seconds: Seconds
    weights_sha256: Hash | None = None
    sha256: Hash

    @classmethod
    def of(cls, measurement: Measurement, confirmation: Measurement | None = None) -> Self:
        """The certificate of a measurement, sealed."""
        body: dict[str, Any] = {
            "case": measurement.case,
            "full_grid": measurement.full_grid,
            "rank": measurement.rank,
            "bound": measurement.bound,
            "blocks": measurement.blocks,
            "block_bounds": measurement.bounds,
            "prime": measurement.prime,
            "points": tuple(bound + 1 for bound in measurement.bounds),
            "points_sha256": measurement.points_hash,
            "algorithm": measurement.algorithm,
            "confirmed": confirmation
            and Confirmation(
                prime=confirmation.prime,
                algorithm=confirmation.algorithm,
                blocks=confirmation.blocks,
                points_sha256=confirmation.points_hash,
                seconds=round(confirmation.seconds, 3),
            ),
            "made_by": f"deepwide {__version__}",
            "seconds": round(measurement.seconds, 3),
        }
        if measurement.case.from_file:
            body["weights_sha256"] = weights_hash(measurement.case)
        unsealed = cls(**body, sha256="0" * 64)
        return cls(**body, sha256=seal(unsealed.model_dump(mode="json")))

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if not len(self.blocks) == len(self.block_bounds) == len(self.points):
            raise ValueError("'blocks', 'block_bounds' and 'points' do not have the same length")
        if self.case.from_file and self.weights_sha256 is None:
            raise ValueError("'weights_sha256' is missing")
        if self.confirmed and self.confirmed.prime == self.prime:
            raise ValueError(f"it is confirmed by its own prime, {self.prime}")
        return self

    @model_serializer(mode="wrap")
    def _without_the_absent_hash(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = dump(self)
        if self.weights_sha256 is None:
            del plain["weights_sha256"]
        return plain

    @property
    def reached(self) -> bool:
        """Whether the rank reaches the upper bound, and is thereby proved to be the separation rank."""
        return self.rank == self.bound

    @property
    def almost_surely_exact(self) -> bool:
        """Whether a rank below its bound may be called almost surely exact: two different large primes agree.

        Not for weights from a file: both primes are known, and a file can be made special modulo both.
        """
        if self.confirmed is None or self.case.from_file:
            return False
        return min(self.prime, self.confirmed.prime) >= LARGE_PRIME

    @property
    def relations(self) -> int:
        """By how much relations lower the dimension count to the upper bound."""
        return upper_bounds(self.case).relations if len(self.blocks) > 1 else 0

    @property
    def ideal_bound(self) -> int | None:
        """The sharper bound of docs/theory.md, eq. 11', where it applies and is quickly computed."""
        return ideal_bound(self.case)

    @property
    def measurement(self) -> Measurement:
        """The measurement a certificate was made from."""
        return Measurement(
            self.case, self.prime, self.full_grid, self.blocks, self.block_bounds, self.points_sha256, self.algorithm,
            self.seconds,
        )  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """One row per block, with its bound."""
        shape = {"depth": self.case.depth, "width": self.case.width, "heads": self.case.heads}
        pairs = zip(self.blocks, self.block_bounds, strict=True)
        return [{**shape, "block": k, "rank": rank, "bound": bound} for k, (rank, bound) in enumerate(pairs)]

    def check_weights(self) -> None:
        """Stop if the weights were in a file that has changed since."""
        if self.case.from_file and weights_hash(self.case) != self.weights_sha256:
            raise DeepwideError(f"{self.case.weights} is not the file that the certificate is about: it has changed.")

    def write(self, path: Path) -> None:
        """The certificate as a file, whole or not at all."""
        from deepwide.files import write_text

        write_text(path, json.dumps(self.model_dump(mode="json"), indent=1) + "\n")


def seal(content: dict[str, Any]) -> str:
    """The SHA-256 of the content but for the seal itself."""
    plain = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def weights_hash(case: Case) -> str:
    from deepwide.separation.weights import file_hash  # few cases have their weights in a file

    return file_hash(Path(case.weights))
