"""The learning rate of a step, as a share of its peak."""

import math

from deepwide.training.config import ScheduleConfig


def rate(schedule: ScheduleConfig, step: int, steps: int) -> float:
    """The share of the peak rate that update `step` of 1 … `steps` uses.

    >>> [round(rate(ScheduleConfig(warmup=2, final=0.1), step, 6), 3) for step in range(1, 7)]
    [0.5, 1.0, 0.868, 0.55, 0.232, 0.1]
    >>> constant = ScheduleConfig(kind="constant", warmup=2, cooldown=2, final=0.0)
    >>> [round(rate(constant, step, 6), 3) for step in range(1, 7)]
    [0.5, 1.0, 1.0, 1.0, 0.5, 0.0]
    """
    warmup, cooldown = schedule.warmup or 0, schedule.cooldown or 0
    if step <= warmup:
        return step / warmup
    if schedule.kind == "cosine":
        done = (step - warmup) / max(1, steps - warmup)
        return schedule.final + (1 - schedule.final) * 0.5 * (1 + math.cos(math.pi * done))
    into = step - (steps - cooldown)
    return 1.0 if into <= 0 else 1 - (1 - schedule.final) * into / cooldown
