"""How long a cell will take here: its FLOPs over the measured speed of a matrix product of its width.

Training is slower than its matrix products. Until runs of this sweep have ended, half of that speed is assumed; then
the median of what those runs really took replaces the assumption.
"""

import statistics
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from deepwide.run.folder import RunFolder
from deepwide.sweep.executors.local import cores
from deepwide.sweep.grid import Cell

SHARE = 0.5
ROWS = 512


@lru_cache
def product_flops_per_second(width: int) -> float:
    """What one core does on the products of a block of this width, measured in a few hundredths of a second."""
    import numpy as np

    width = min(2048, max(8, width))
    a, b = np.ones((ROWS, width), np.float32), np.ones((width, 4 * width), np.float32)
    a @ b
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < 0.02:
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2.0 * ROWS * width * 4 * width / best / cores()


def expected_seconds(cells: Sequence[Cell], runs: Path, threads: int = 1) -> list[float]:
    """Seconds per cell on this machine, with so many threads."""
    ideal = [cell.cost.train_flops / product_flops_per_second(cell.cost.width) / threads for cell in cells]
    ratios = []
    for cell, seconds in zip(cells, ideal, strict=True):
        path = runs / cell.id
        ended = RunFolder.open(path).result() if path.exists() else None
        if ended and ended["status"] == "done" and isinstance(ended.get("seconds"), int | float) and seconds > 0:
            ratios.append(ended["seconds"] / seconds)
    factor = statistics.median(ratios) if ratios else 1 / SHARE
    return [factor * seconds for seconds in ideal]


def cells_per_worker(cells: Sequence[Cell], runs: Path, threads: int, worth_seconds: float = 20.0) -> int:
    """How many cells one worker process takes in turn: small ones share the seconds that starting Python costs."""
    seconds = statistics.fmean(expected_seconds(cells, runs, threads)) if cells else 0.0
    return max(1, min(16, int(worth_seconds / max(seconds, 0.1))))
