"""The learning rate rises, and falls as the schedule wants."""

from typing import Literal

import pytest

from deepwide.training.config import ScheduleConfig
from deepwide.training.schedule import rate


def test_schedules_begin_peak_and_end_where_they_should() -> None:
    kinds: tuple[Literal["cosine", "constant"], ...] = ("cosine", "constant")
    for kind in kinds:
        schedule = ScheduleConfig(kind=kind, warmup=10, cooldown=30, final=0.1)
        rates = [rate(schedule, step, 100) for step in range(1, 101)]
        assert rates[0] == 0.1
        assert max(rates) == rates[9] == 1
        assert rates[-1] == pytest.approx(0.1)
        assert rates[9:] == sorted(rates[9:], reverse=True)
    assert rates[69] == 1 > rates[70]
