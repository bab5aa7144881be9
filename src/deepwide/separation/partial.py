"""The blocks of a long measurement that are finished, kept beside its certificate until that is written.

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
from deepwide.separation.case import Case
from deepwide.separation.certificates import file_hash, seal

FORMAT = "deepwide separation blocks 1"
_SECONDS_BETWEEN = 0.5


class Partial:
    """Finished blocks of one case, modulo one prime, by one program."""

    def __init__(self, certificate: Path, case: Case, prime: int, full_grid: bool, algorithm: str) -> None:
        self.path = certificate.with_name(f".{certificate.name}.{algorithm}.part")
        self._identity: dict[str, Any] = {
            "format": FORMAT,
            "case": asdict(case),
            "prime": prime,
            "full_grid": full_grid,
            "algorithm": algorithm,
            "bounds": list(case.block_bounds if case.graded and not full_grid else (case.bound,)),
            "made_by": f"deepwide {__version__}",
        }
        if case.weights not in ("random", "identity"):
            self._identity["weights_sha256"] = file_hash(Path(case.weights))
        self.ranks = self._read() if self.path.exists() else {}
        self._saved = time.monotonic()

    def _read(self) -> dict[int, int]:
        try:
            content = json.loads(self.path.read_text())
            whole = content["sha256"] == seal(content)
            ranks = {int(k): int(rank) for k, rank in content["ranks"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            whole, content, ranks = False, {}, {}
        if not whole:
            raise DeepwideError(f"{self.path} should hold the finished blocks of this case, but it is torn; remove it.")
        if {key: content.get(key) for key in self._identity} != self._identity:
            raise DeepwideError(
                f"{self.path} holds finished blocks of another measurement (other case, seed, prime or version); "
                "give another --out, or remove it."
            )
        return ranks

    def add(self, block: int, rank: int) -> None:
        """Keep one more block; written at most twice a second, so that a quick measurement writes nothing."""
        self.ranks[block] = rank
        if time.monotonic() - self._saved >= _SECONDS_BETWEEN:
            body = {**self._identity, "ranks": {str(k): rank for k, rank in self.ranks.items()}}
            files.write_text(self.path, json.dumps({**body, "sha256": seal(body)}) + "\n")
            self._saved = time.monotonic()

    def remove(self) -> None:
        """The certificate is written: nothing is needed any more."""
        self.path.unlink(missing_ok=True)
