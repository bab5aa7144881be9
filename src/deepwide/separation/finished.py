"""The blocks of a long measurement that are finished, in a file beside its certificate until that is written.

A file of another measurement (another case, seed, prime, program or version) or a torn one stops the run
and is left as it is: a rank that was measured for something else must never be used.
"""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deepwide import __version__, files
from deepwide.errors import DeepwideError
from deepwide.separation.certificates import LARGEST_FILE, seal
from deepwide.separation.measurement import Algorithm
from deepwide.separation.route import Route
from deepwide.separation.weights import file_hash

FORMAT = "deepwide separation blocks 1"
_SECONDS_BETWEEN = 0.5


class FinishedBlocks:
    """Finished blocks of one case, modulo one prime, by one program."""

    def __init__(self, certificate: Path, route: Route, prime: int, full_grid: bool, algorithm: Algorithm) -> None:
        self.path = certificate.with_name(f".{certificate.name}.{algorithm}.part")
        self._identity: dict[str, Any] = {
            "format": FORMAT,
            "case": asdict(route.case),
            "prime": prime,
            "full_grid": full_grid,
            "algorithm": algorithm,
            "bounds": list(route.bounds),
            "made_by": f"deepwide {__version__}",
        }
        if route.case.from_file:
            self._identity["weights_sha256"] = file_hash(Path(route.case.weights))
        self.ranks = self._read() if self.path.exists() else {}
        self._saved = time.monotonic()

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
