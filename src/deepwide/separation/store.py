"""Where certificates are stored: a folder with one file per case, or one .json file for one case.

The finished blocks of a long measurement lie beside its certificate until that is written. A file of another
measurement (another case, seed, prime, program or version) or a torn one stops the run and is left as it is: a rank
that was measured for something else must never be used.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deepwide import __version__, files
from deepwide.errors import DeepwideError
from deepwide.separation.certificates import FORMAT, Certificate, seal, weights_hash
from deepwide.separation.measurement import Algorithm, Route
from deepwide.separation.network import Case
from deepwide.settings import explain

LARGEST_FILE = 4 << 20  # bytes; the certificate of 3280 blocks has a twentieth of that
BLOCKS_FORMAT = "deepwide separation blocks 1"
_SECONDS_BETWEEN = 0.5


def read_certificate(path: Path) -> Certificate:
    """A certificate whose seal fits, or a sentence that says why not.

    >>> read_certificate(Path("nowhere.json"))
    Traceback (most recent call last):
    deepwide.errors.DeepwideError: There is no file nowhere.json.
    """
    content = files.read_json(path, "a certificate", most=LARGEST_FILE, unique_keys=True)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DeepwideError(f"{path} is not a certificate of this program: its format is not '{FORMAT}'.")
    try:
        sealed = content.get("sha256") == seal(content)
    except (RecursionError, ValueError):
        raise DeepwideError(
            f"{path} is not a certificate: it is nested too deep or its numbers are too long."
        ) from None
    if not sealed:
        raise DeepwideError(f"{path} was changed after it was written: its sha256 does not fit its content.")
    try:
        return Certificate.model_validate(content)
    except ValidationError as error:
        raise DeepwideError(f"{path} is not a valid certificate: {explain(error, Certificate, noun='key')}") from None


class FinishedBlocks:
    """Finished blocks of one case, modulo one prime, by one program."""

    def __init__(self, certificate: Path, route: Route, prime: int, full_grid: bool, algorithm: Algorithm) -> None:
        self.path = self.place(certificate, algorithm)
        self._identity: dict[str, Any] = {
            "format": BLOCKS_FORMAT,
            "case": asdict(route.case),
            "prime": prime,
            "full_grid": full_grid,
            "algorithm": algorithm,
            "bounds": list(route.bounds),
            "made_by": f"deepwide {__version__}",
        }
        if route.case.from_file:
            self._identity["weights_sha256"] = weights_hash(route.case)
        self.ranks = self._read() if self.path.exists() else {}
        self._saved = time.monotonic()

    @staticmethod
    def place(certificate: Path, algorithm: Algorithm) -> Path:
        """The file beside the certificate."""
        return certificate.with_name(f".{certificate.name}.{algorithm}.part")

    def _read(self) -> dict[int, int]:
        try:
            content = files.read_json(self.path, "a file of finished blocks", most=LARGEST_FILE, unique_keys=True)
            whole = content["sha256"] == seal(content)
            ranks = {int(k): int(rank) for k, rank in content["ranks"].items()}
        except (DeepwideError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            whole, content, ranks = False, {}, {}
        if not whole:
            raise DeepwideError(f"{self.path} should hold the finished blocks of this case, but it is torn; remove it.")
        if {key: content.get(key) for key in self._identity} != self._identity:
            raise DeepwideError(
                f"{self.path} holds finished blocks of another measurement (other case, seed, prime or version); "
                "choose another place for the certificate, or remove it."
            )
        if not all(0 <= k < len(self._identity["bounds"]) for k in ranks):
            raise DeepwideError(f"{self.path} holds blocks that this case does not have; remove it.")
        return ranks

    def add(self, block: int, rank: int) -> None:
        """Record one more block; written at most twice a second, so that a quick measurement writes nothing."""
        self.ranks[block] = rank
        if time.monotonic() - self._saved >= _SECONDS_BETWEEN:
            body = {**self._identity, "ranks": {str(k): rank for k, rank in self.ranks.items()}}
            files.write_text(self.path, json.dumps({**body, "sha256": seal(body)}) + "\n")
            self._saved = time.monotonic()

    def remove(self) -> None:
        """The certificate is written: nothing is needed any more."""
        self.path.unlink(missing_ok=True)


class Store:
    """Certificates by case. What is there is never overwritten by another case, nor lost when a run stops."""

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)

    @property
    def holds_one(self) -> bool:
        """Whether the place is a single file."""
        return self.place.suffix == ".json"

    def path(self, case: Case) -> Path:
        """Where the certificate of a case is, or would be."""
        return self.place if self.holds_one else self.place / f"{case.name()}.json"

    def find(self, case: Case, prime: int | None, full_grid: bool = False) -> Certificate | None:
        """The certificate of a case if it is there, modulo this prime or any; anything else there is an error."""
        path = self.path(case)
        if not path.exists():
            return None
        certificate = read_certificate(path)
        wanted = certificate.prime if prime is None else prime
        if (certificate.case, certificate.prime, certificate.full_grid) != (case, wanted, full_grid):
            raise DeepwideError(
                f"{path} is the certificate of another measurement (other shape, sides, seed, prime or grid); "
                "choose another place, or remove it."
            )
        certificate.check_weights()
        return certificate

    def started_with(self, case: Case, algorithm: Algorithm) -> int | None:
        """The prime of an interrupted measurement, if there is one; whether it is of this case is checked later."""
        path = FinishedBlocks.place(self.path(case), algorithm)
        if not path.exists():
            return None
        content = files.read_json(path, "a file of finished blocks", most=LARGEST_FILE, unique_keys=True)
        prime = content.get("prime") if isinstance(content, dict) else None
        return prime if isinstance(prime, int) else None

    def finished_blocks(self, route: Route, prime: int, full_grid: bool, algorithm: Algorithm) -> FinishedBlocks:
        """What an interrupted measurement has finished."""
        return FinishedBlocks(self.path(route.case), route, prime, full_grid, algorithm)

    def write(self, certificate: Certificate, parts: Iterable[FinishedBlocks] = ()) -> None:
        """The certificate first, and only then away with the blocks it was made of."""
        certificate.write(self.path(certificate.case))
        for part in parts:
            part.remove()

    def certificates(self) -> list[Certificate]:
        """Every certificate of the folder, sorted by file name."""
        paths = [self.place] if self.holds_one else sorted(self.place.glob("*.json")) if self.place.is_dir() else []
        if not paths:
            raise DeepwideError(f"There are no certificates in {self.place}.")
        return [read_certificate(path) for path in paths]
