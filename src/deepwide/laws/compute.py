"""From training FLOPs to a compute-optimal size and number of tokens: L(N, D) = E + A/N^α + B/D^β at C = 6·N·D.

N is the total number of parameters, embeddings included, as in the Chinchilla paper's own table.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.files import read_json, write_text

FORMAT = "deepwide-compute-law-1"


class ComputeLaw(NamedTuple):
    """A fitted loss in parameters and tokens."""

    citation: str
    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def optimum(self, train_flops: float) -> tuple[float, float]:
        """Parameters and tokens of least loss for C = 6·N·D."""
        a, b = self.alpha, self.beta
        N = self._scale * (train_flops / 6) ** (b / (a + b))
        return N, train_flops / (6 * N)

    def flops_for(self, params: float) -> float:
        """The training FLOPs at which this many parameters are the optimum."""
        a, b = self.alpha, self.beta
        return float(6 * (params / self._scale) ** ((a + b) / b))

    @property
    def has_optimum(self) -> bool:
        """Whether there is a least loss, at a size that a float can hold."""
        return min(self[2:]) > 0 and 0 < self._scale < math.inf

    @property
    def _scale(self) -> float:
        a, b = float(self.alpha), float(self.beta)
        try:
            return float((a * float(self.A) / (b * float(self.B))) ** (1 / (a + b)))
        except (OverflowError, ZeroDivisionError):
            return math.inf


COMPUTE_LAWS: Mapping[str, ComputeLaw] = {
    "epoch": ComputeLaw("Besiroglu et al. 2024 (Epoch), refit of Chinchilla", 1.8169, 482.01, 2085.43, 0.3478, 0.3658),
    "hoffmann": ComputeLaw("Hoffmann et al. 2022, as printed (rounded)", 1.69, 406.4, 410.7, 0.34, 0.28),
}


def compute_law(name: str | Path) -> ComputeLaw:
    """The compute law of that name, or one that `save_compute_law` (or a fitted surface) wrote to this path."""
    if name in COMPUTE_LAWS:
        return COMPUTE_LAWS[str(name)]
    path = Path(name)
    if path.suffix == ".json":
        return _load(path)
    raise DeepwideError(f"no compute law '{str(name)[:60]}': {did_you_mean(str(name), COMPUTE_LAWS)}")


def save_compute_law(law: ComputeLaw, path: str | Path) -> Path:
    """Save a compute law as a JSON file that `compute_law` reads."""
    return write_text(path, json.dumps({"format": FORMAT, "law": law._asdict()}, indent=2) + "\n")


def _load(path: Path) -> ComputeLaw:
    document = read_json(path, "a compute law", most=2**20)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a compute law: it must be an object with "format": "{FORMAT}".')
    law = document.get("law")
    fields: dict[str, Any] = law if isinstance(law, dict) else {}
    given = [fields.get(name) for name in ComputeLaw._fields[1:]]
    numbers = [x for x in given if isinstance(x, int | float) and not isinstance(x, bool)]
    if len(numbers) < len(given) or not all(0 < x < math.inf for x in numbers):
        raise DeepwideError(f"{path} is not a compute law: E, A, B, alpha and beta must be numbers above 0.")
    return ComputeLaw(str(fields.get("citation", path))[:200], *numbers)
