"""Base sweeps for tests: a toy whose cells take milliseconds, and a real one that is only counted."""

from typing import Any

import numpy as np

from deepwide.fitting import Runs, simulate
from deepwide.laws import TransitionLaw

TOY: dict[str, Any] = {
    "name": "toys",
    "run": {"trainer": "toy"},
    "iso": {"params": [64, 256, 1024], "depths": [1, 2, 3, 4, 6], "tokens": 4, "width_multiple": 1, "tolerance": 0.4},
}
REAL: dict[str, Any] = {
    "name": "real",
    "run": {"batch": 8, "context": 64, "model": {"heads": 2}},
    "iso": {"params": ["10k", "40k", "160k"], "depths": [1, 2, 4, 8], "tokens": "100k", "width_multiple": 4,
            "tolerance": 0.4},
}  # fmt: skip


def runs(largest: float = 1e5, seed: int = 5) -> Runs:
    """Sixteen simulated runs with a clear bowl."""
    law = TransitionLaw(name="truth", a=3.2, b=0.25)
    return simulate(law, depths=(1, 2, 4, 8), sizes=np.geomspace(1e4, largest, 4), seeds=1, seed=seed)
