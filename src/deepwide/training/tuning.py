"""Settings that are measured rather than assumed: bf16 and torch.compile. What is chosen goes into the config."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from deepwide.answers import Note
from deepwide.errors import DeepwideError, did_you_mean
from deepwide.training.config import RunConfig, resolve, task_of
from deepwide.training.hardware import find_device, has_fast_bf16
from deepwide.training.loop import Learner
from deepwide.training.parallel import World

STEPS = 5


class Tuned(NamedTuple):
    """A resolved config with what the hardware decided, and why."""

    config: RunConfig
    notes: tuple[Note, ...]


def tune(
    config: RunConfig | Mapping[str, Any], *, device: str = "auto", precision: str = "auto", compiled: str = "off"
) -> Tuned:
    """The config with the precision and torch.compile that suit this machine, unless the config sets them.

    `precision` auto means bf16 where the hardware multiplies it. `compiled` auto measures a few steps both ways and
    takes torch.compile if the run ends sooner with it.
    """
    given = config if isinstance(config, RunConfig) else RunConfig.of(config)
    if compiled not in ("off", "on", "auto"):
        raise DeepwideError(f"compile must be off, on or auto, not '{compiled[:40]}'.")
    if precision not in ("auto", "fp32", "bf16"):
        raise DeepwideError(f"no precision '{precision[:40]}': {did_you_mean(precision, ('auto', 'fp32', 'bf16'))}")
    run = resolve(given)
    if "precision" not in given.model_fields_set:
        run = run.model_copy(update={"precision": choose_precision(device) if precision == "auto" else precision})
    if "compile" in given.model_fields_set or compiled == "off":
        return Tuned(run, ())
    if compiled == "on":
        return Tuned(run.model_copy(update={"compile": True}), ())
    assert run.steps is not None
    trial = try_compile(run, device)
    pays = trial.pays(run.steps)
    return Tuned(run.model_copy(update={"compile": pays}), (trial.note(pays),))


class Trial(NamedTuple):
    """What compiling takes, and what a step takes with and without it, in seconds."""

    plain: float
    compiled: float
    compiling: float

    def pays(self, steps: int) -> bool:
        """Whether a run of so many steps ends sooner compiled."""
        return self.compiling + steps * self.compiled < steps * self.plain

    def note(self, pays: bool) -> Note:
        """What was measured and decided."""
        times = f"{self.plain * 1e3:.1f} ms per step, {self.compiled * 1e3:.1f} compiled, after {self.compiling:.0f} s"
        text = f"torch.compile {'pays' if pays else 'does not pay'}: {times}."
        return Note.of("compile", text, pays=pays, **self._asdict())


def choose_precision(device: str) -> str:
    """bf16 where the hardware multiplies it, else fp32."""
    return "bf16" if has_fast_bf16(find_device(device)) else "fp32"


def try_compile(config: RunConfig, device: str) -> Trial:
    """Train a few throw-away steps both ways."""
    where = find_device(device)
    task = task_of(config)

    def start(compiled: bool) -> Learner:
        learner = Learner(config.model_copy(update={"compile": compiled}), task, World(), where, lambda: False)
        learner.begin(None, {})
        return learner

    plain, compiled = start(False), start(True)
    plain.advance()
    begun = time.perf_counter()
    compiled.advance()
    compiling = time.perf_counter() - begun
    compiled.advance()
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(min(STEPS, max(1, plain.steps - 2))):
        for which, learner in ((False, plain), (True, compiled)):
            times[which].append(_seconds(learner.advance, where))
    best = {which: min(seconds) for which, seconds in times.items()}
    return Trial(best[False], best[True], max(0.0, compiling - best[True]))


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    begun = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun
