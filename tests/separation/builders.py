"""What several tests of separation ranks need."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.separation.certificates import seal

PUBLISHED = Path(__file__).parents[2] / "results" / "separation" / "ranks"

# The counts of docs/theory.md with one head and enough positions, by depth and width; each of them was measured.
TABLE = {
    1: {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 8: 9},
    2: {1: 5, 2: 18, 3: 49, 4: 110, 5: 216, 6: 385, 8: 999},
    3: {1: 14, 2: 232},
    4: {1: 41, 2: 4538},
}


def save_weights(path: Path, seed: int, width: int = 2, depth: int = 2) -> Path:
    """A file of random weights."""
    draw = np.random.default_rng(seed)
    names = [f"{layer}.{name}" for layer in range(depth) for name in ("query", "key", "value", "output")]
    np.savez(path, **{name: draw.normal(size=(width, width)) for name in names})  # type: ignore[arg-type]
    return path


def save_special_weights(path: Path) -> Path:
    """Weights of depth 2 and width 3 that are multiples of both usual primes: zero modulo each, rank 49 in truth."""
    draw = np.random.default_rng(0)
    names = [f"{layer}.{name}" for layer in range(2) for name in ("query", "key", "value", "output")]
    small = {name: draw.integers(1, 50, (3, 3)).astype(float) for name in names}
    np.savez(path, **{name: array * 1_048_573 * 1_048_571 for name, array in small.items()})  # type: ignore[arg-type]
    return path


def reseal(path: Path, content: dict[str, Any]) -> None:
    """Write a certificate that was changed, with the seal that fits: a seal is no signature."""
    path.write_text(json.dumps({**content, "sha256": seal(content)}))


def is_one_sentence(message: str) -> bool:
    """One line of bounded length that ends as sentences do."""
    return len(message.splitlines()) == 1 and len(message) < 600 and message.endswith((".", "?"))
