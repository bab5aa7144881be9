"""How long a cell will take here: its FLOPs over the measured speed of a matrix product of its width, plus overhead.

Training is slower than its matrix products. Until runs of this sweep have finished, half of that speed is assumed and a
fixed overhead per layer; then the median of what those runs really took corrects the estimate.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from deepwide.run import UnreadableRun, read_lease
from deepwide.sweeping.grid import Cell

ROWS = 512
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# In a process of its own: how many threads a library uses for a product is fixed when it is loaded.
MEASURE = f"""
import sys, time
import numpy as np
for width in map(int, sys.argv[1:]):
    a, b = np.ones(({ROWS}, width), np.float32), np.ones((width, 4 * width), np.float32)
    best, began = 1e9, time.perf_counter()
    while best == 1e9 or time.perf_counter() - began < 0.02:
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    print(2.0 * {ROWS} * width * 4 * width / best)
"""
OBSERVED_SHARE, OBSERVED_SECONDS = 0.02, 2.0  # of the work, and of time: less says nothing about the pace


def expected_seconds(cells: Sequence[Cell], runs: Path, threads: int = 1) -> list[float]:
    """Seconds per cell on this machine, with so many threads."""
    if not cells:
        return []
    from deepwide.training import LAYER_SECONDS, SHARE_OF_PEAK, STEP_SECONDS

    speed = _speeds(sorted({_measured_width(cell) for cell in cells}))
    guesses = []
    for cell in cells:
        products = cell.cost.train_flops / (SHARE_OF_PEAK * threads * speed[_measured_width(cell)])
        guesses.append(products + cell.cost.steps * (STEP_SECONDS + LAYER_SECONDS * cell.cost.depth))
    ratios = []
    for cell, seconds in zip(cells, guesses, strict=True):
        with contextlib.suppress(UnreadableRun, OSError):  # the run's own matter; the others can be forecast
            held = read_lease(runs / cell.id)
            if held and held["ended"] == "done" and held["number"] == 1 and held.get("worked"):
                ratios.append(held["worked"] / seconds)
    factor = statistics.median(ratios) if ratios else 1.0
    return [factor * seconds for seconds in guesses]


def cells_per_worker(seconds: Sequence[float], worth_seconds: float = 20.0) -> int:
    """How many cells one worker process takes in turn: small ones share the seconds that starting Python costs.

    >>> cells_per_worker([300.0]), cells_per_worker([5.0, 5.0]), cells_per_worker([0.1])
    (1, 4, 16)
    """
    mean = statistics.fmean(seconds) if seconds else 0.0
    return max(1, min(16, int(worth_seconds / max(mean, 0.1))))


class Pace:
    """The time left of work that several workers share, corrected by how fast it has been done since the first look."""

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.workers, self._clock = workers, clock
        self._first: tuple[float, float] | None = None

    def seconds_left(self, work_left: float) -> float:
        """Seconds until `work_left` expected worker-seconds are done.

        >>> times = iter([0.0, 10.0])
        >>> pace = Pace(workers=2, clock=lambda: next(times))
        >>> pace.seconds_left(100.0), pace.seconds_left(90.0)  # 10 s of work took 10 s: half as fast as assumed
        (50.0, 90.0)
        """
        now = self._clock()
        if self._first is None:
            self._first = work_left, now
        done, elapsed = self._first[0] - work_left, now - self._first[1]
        if elapsed >= OBSERVED_SECONDS and done > OBSERVED_SHARE * self._first[0]:
            return work_left * elapsed / done
        return work_left / self.workers


def _speeds(widths: Sequence[int]) -> dict[int, float]:
    """FLOPs per second of one thread on the products of a block, by width."""
    command = [sys.executable, "-c", MEASURE, *map(str, widths)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True, timeout=120)
    return dict(zip(widths, map(float, done.stdout.split()), strict=True))


def _measured_width(cell: Cell) -> int:
    """Its width, or a neighbour that many cells share: a power of two between 16 and 2048."""
    return int(1 << min(11, max(4, round(cell.cost.width).bit_length() - 1)))
