"""Seeded storms: kills, pauses, clocks, slow and failing disks, two drivers; and controls that show it can fail."""

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from deepwide.run import lease
from sweeping.simulation import simulate


def within(seconds: float) -> Callable[[], bool]:
    """A limit of CPU time, so that a busy machine does fewer sweeps and not fewer tests."""
    began = time.process_time()
    return lambda: time.process_time() - began > seconds


def test_no_storm_loses_doubles_or_changes_anything() -> None:
    """`python -m sweeping.simulation 2000` does more of the same seeds."""
    assert simulate(range(300), within(6)) == {}


@contextlib.contextmanager
def _unfenced(self: lease.Lease) -> Iterator[None]:
    with lease.lock(self.path, self.patience):
        yield


@contextlib.contextmanager
def _fenced_by_number(self: lease.Lease) -> Iterator[None]:
    with lease.lock(self.path, self.patience):
        held = lease.read_lease(self.path)
        if held is None or held["number"] != self.number:
            raise lease.LeaseLost("lost")
        yield


@pytest.mark.parametrize("fence", [_unfenced, _fenced_by_number], ids=["no fence", "a number without a nonce"])
def test_without_its_fence_the_simulation_finds_damage(monkeypatch: pytest.MonkeyPatch, fence: object) -> None:
    monkeypatch.setattr(lease.Lease, "fenced", fence)
    for seed in range(400):
        if simulate([seed]):
            return
    pytest.fail("nothing was found in 400 sweeps")
