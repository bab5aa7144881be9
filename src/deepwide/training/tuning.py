"""Settings that are measured rather than assumed: bf16 and torch.compile. What is chosen goes into the config."""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from deepwide.data.corpus import prepare
from deepwide.training.config import RunConfig
from deepwide.training.hardware import find_device, has_fast_bf16
from deepwide.training.loop import Run
from deepwide.training.parallel import World

STEPS = 5


class Trial(NamedTuple):
    """What compiling takes, and what a step takes with and without it, in seconds."""

    plain: float
    compiled: float
    compiling: float

    def pays(self, steps: int) -> bool:
        """Whether a run of so many steps ends sooner compiled."""
        return self.compiling + steps * self.compiled < steps * self.plain


def choose_precision(device: str) -> str:
    """bf16 where the hardware multiplies it, else fp32."""
    return "bf16" if has_fast_bf16(find_device(device)) else "fp32"


def try_compile(config: RunConfig, device: str) -> Trial:
    """Train a few throw-away steps both ways."""
    where = find_device(device)
    corpus = prepare(config.data)

    def start(compiled: bool) -> Run:
        run = Run(config.model_copy(update={"compile": compiled}), corpus, World(), where, lambda: False)
        run.begin(None, {})
        return run

    plain, compiled = start(False), start(True)
    plain.advance()
    begun = time.perf_counter()
    compiled.advance()
    compiling = time.perf_counter() - begun
    compiled.advance()
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(min(STEPS, max(1, plain.steps - 2))):
        for which, run in ((False, plain), (True, compiled)):
            times[which].append(_seconds(run.advance, where))
    best = {which: min(seconds) for which, seconds in times.items()}
    return Trial(best[False], best[True], max(0.0, compiling - best[True]))


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    begun = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun
