"""`rehearsed`: what made-up sweeps of the chosen runs end with."""

import numpy as np

from deepwide.designing import Goalpost
from deepwide.designing.answer import Rehearsal
from deepwide.designing.choosing import Pool
from deepwide.designing.rehearsing import rehearsed
from deepwide.fitting import Places

GOAL = Goalpost("depth", 4e6)


def pool(tokens: float = np.nan) -> Pool:
    L, N = (g.ravel() for g in np.meshgrid([1.0, 2.0, 4.0, 8.0, 16.0], np.geomspace(1e4, 4e6, 6)))
    return Pool(Places(L, N, N, np.full(len(L), tokens), np.ones(len(L))), N, np.full(len(L), 3))


ALL = range(len(pool()))


def test_little_noise_ends_with_narrow_intervals_and_much_with_none() -> None:
    calm = rehearsed(pool(), ALL, GOAL, noise=0.002, number=6)
    assert calm.stated == 6
    assert calm.low is not None
    assert calm.high is not None
    assert calm.ratio is not None
    assert 1 < calm.low <= calm.ratio <= calm.high < 4
    wild = rehearsed(pool(), ALL, GOAL, noise=0.3, number=6)
    assert (wild.stated, wild.low, wild.ratio, wild.high) == (0, None, None, None)
    assert str(wild) == "no interval in any of 6 made-up sweeps"


def test_a_noise_that_nobody_knows_spreads_what_they_end_with() -> None:
    unknown, known = (rehearsed(pool(1e9), ALL, GOAL, noise=noise, number=10) for noise in (None, 0.005))
    assert unknown.high is not None
    assert unknown.low is not None
    assert known.high is not None
    assert known.low is not None
    assert unknown.high / unknown.low > known.high / known.low


def test_it_is_the_same_each_time() -> None:
    again = [rehearsed(pool(), ALL, GOAL, noise=0.01, number=3, seed=1) for _ in range(2)]
    assert again[0] == again[1]


def test_too_few_runs_end_with_nothing() -> None:
    assert rehearsed(pool(), [0, 1, 2], GOAL, noise=0.001, number=2).stated == 0


def test_a_loss_can_be_rehearsed() -> None:
    loss = rehearsed(pool(), ALL, Goalpost("loss", 4e6), noise=0.005, number=3)
    assert loss.stated == 3
    assert loss.ratio is not None
    assert loss.ratio < 1.1


def test_it_reads_as_a_sentence() -> None:
    some = Rehearsal(sweeps=20, stated=13, ratio=5.251, low=4.0, high=None)
    assert str(some) == "an interval in 13 of 20 made-up sweeps, high/low 5.3 in the middle of all (80%: 4 to none)"
    few = some.model_copy(update={"sweeps": 3, "stated": 1})
    assert str(few) == "an interval in 1 of 3 made-up sweeps"
