"""Where certificates are stored: a folder with one file per case, or one .json file for one case."""

from collections.abc import Iterable
from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.certificates import Certificate, read_certificate
from deepwide.separation.finished import FinishedBlocks
from deepwide.separation.measurement import Algorithm
from deepwide.separation.route import Route


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

    def find(self, case: Case, prime: int, full_grid: bool = False) -> Certificate | None:
        """The certificate of a case if it is there; anything else in its place is an error."""
        path = self.path(case)
        if not path.exists():
            return None
        certificate = read_certificate(path)
        if (certificate.case, certificate.prime, certificate.full_grid) != (case, prime, full_grid):
            raise DeepwideError(
                f"{path} is the certificate of another measurement (other shape, sides, seed, prime or grid); "
                "choose another place, or remove it."
            )
        certificate.check_weights()
        return certificate

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
