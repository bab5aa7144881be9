"""One decision: what is known now is what the fit says, and what is expected follows."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deepwide.answers import Interval
from deepwide.designing import Goalpost, Pool, decide
from deepwide.fitting import Places, Runs, fit_joint, simulate
from deepwide.laws import TransitionLaw

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
RUNS = simulate(LAW, depths=(1, 2, 4, 8), sizes=np.geomspace(1e4, 1e5, 4), seeds=1, seed=5)
GOAL = Goalpost("depth", 1e6)


def pool(largest: float = 1e6) -> Pool:
    L, N = (column.ravel() for column in np.meshgrid([1.0, 2, 4, 8, 16], np.geomspace(1e4, largest, 5)))
    return Pool(Places(L, N, N, np.full(len(N), math.nan), np.ones(len(N))), N.copy(), np.full(len(N), 4))


def test_the_interval_now_is_the_fit_s_and_more_runs_narrow_it() -> None:
    decision = decide(RUNS, pool(), GOAL, 8e6, draws=400)
    best = fit_joint(RUNS, bootstrap=400, examine=False).best_depth(1e6)[0]
    assert decision.interval == best
    assert decision.ratio == pytest.approx((best.high or 0) / (best.low or 1))
    assert decision.ratios[-1] < 0.8 * decision.ratio
    assert decision.floor <= decision.ratios[-1] * 1.001
    assert len(decision.ratios) == len(decision.batches)
    assert sum(decision.floor_share) == pytest.approx(1)


def test_what_is_expected_of_runs_comes_true_on_average() -> None:
    """Ten simulated sweeps, each extended by the runs that were chosen: the medians agree within a fifth."""
    promised, reached = [], []
    here = pool()
    for seed in range(10):
        first = simulate(LAW, depths=(1, 2, 4, 8), sizes=np.geomspace(1e4, 1e5, 4), seeds=1, off_size=0, seed=seed)
        decision = decide(first, here, GOAL, 6e6, draws=400)
        picks = [run for part in decision.batches for run in part]
        draw = np.random.default_rng(seed)
        L, N = here.places.depth[picks], here.places.block_params[picks]
        off = np.log(L / LAW.depth(N).value)
        loss = (0.9 + 8 * N**-0.2) * np.exp(0.02 * off**2 + draw.normal(0, 0.004, len(N)))
        columns: dict[str, Any] = {name: np.concatenate([getattr(first, name), new]) for name, new in
                   (("depth", L), ("block_params", N), ("loss", loss))}  # fmt: skip
        law = fit_joint(Runs.of(**columns), bootstrap=400, examine=False).law()
        assert law
        promised.append(math.log(decision.ratios[-1]))
        reached.append(math.log(float(law.depth(1e6).high[0] / law.depth(1e6).low[0])))
    assert np.median(reached) == pytest.approx(np.median(promised), rel=0.2)


def test_a_run_that_the_fit_leaves_out_counts_as_not_run() -> None:
    wrong = replace(RUNS, loss=RUNS.loss * np.where(np.arange(len(RUNS)) == 13, 1.3, 1.0))
    others = RUNS.select(np.arange(len(RUNS)) != 13)
    one, other = (decide(runs, pool(), GOAL, 4e6, draws=200) for runs in (wrong, others))
    assert one.fit
    assert one.fit.left_out == (13,)
    assert (one.interval, one.batches, one.ratios) == (other.interval, other.batches, other.ratios)


def test_a_loss_can_be_the_goal() -> None:
    decision = decide(RUNS, pool(), Goalpost("loss", 1e6), 8e6, draws=400)
    assert decision.interval
    assert 1 < decision.ratios[-1] < decision.ratio < 1.5


def test_without_runs_there_is_an_expectation_and_no_interval() -> None:
    decision = decide(None, pool(), GOAL, 8e6)
    assert decision.fit is None
    assert decision.interval is None
    assert decision.ratios[-1] < decision.ratio


def test_runs_without_a_bowl_are_followed_by_runs_to_see_one() -> None:
    L, N = (column.ravel() for column in np.meshgrid([1.0, 2, 4, 8], [1e4, 3e4, 1e5]))
    loss = 3 * N**-0.1 * np.exp(np.random.default_rng(0).normal(0, 0.01, len(N)))
    decision = decide(Runs.of(depth=L, block_params=N, loss=loss), pool(), GOAL, 8e6)
    assert decision.fit
    assert decision.fit.declined
    assert decision.interval is None
    assert decision.batches


def test_too_little_money_buys_nothing() -> None:
    assert decide(RUNS, pool(), GOAL, 1e3, draws=200).batches == ()


def test_an_interval_with_a_long_tail_is_not_promised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are all too shallow give no upper limit, and deeper ones end that at once."""
    usual = decide(RUNS, pool(), GOAL, 8e6, draws=400)
    monkeypatch.setattr("deepwide.designing.deciding.interval_of", lambda *_: Interval(40.0, 16.0, 6e4))
    tailed = decide(RUNS, pool(), GOAL, 8e6, draws=400)
    assert tailed.ratio == pytest.approx(6e4 / 16)
    assert math.log(tailed.ratios[-1]) < 1.6 * math.log(usual.ratios[-1])
    assert math.log(tailed.floor) < 1.6 * math.log(usual.floor)


def lengths(shares: tuple[float, ...], largest: float = 1e5) -> Pool:
    """The same shapes for several lengths, shares of 1e8 tokens."""
    one = pool(largest).places
    L, N = (np.tile(column, len(shares)) for column in (one.depth, one.block_params))
    share = np.repeat(shares, len(one))
    return Pool(Places(L, N, N, 1e8 * share, np.ones(len(N))), N * share, np.full(len(N), 4))


def test_shorter_runs_narrow_the_interval_for_less() -> None:
    goal = Goalpost("depth", 1e6, tokens=1e8)
    one = decide(None, lengths((1.0,)), goal, 2e5)
    several = decide(None, lengths((1.0, 0.25, 0.0625)), goal, 1e5)
    assert several.ratios[-1] < one.ratios[-1], "at half the cost"
    picks = [run for batch in several.batches for run in batch]
    assert lengths((1.0, 0.25, 0.0625)).cost[picks].sum() <= 1e5
    assert (lengths((1.0, 0.25, 0.0625)).places.tokens[picks] < 9e7).any()


def test_runs_of_one_length_say_nothing_of_another() -> None:
    goal = Goalpost("depth", 1e6, tokens=1e8)
    short = Runs.of(depth=RUNS.depth, block_params=RUNS.block_params, loss=RUNS.loss, tokens=np.full(len(RUNS), 2.5e7))
    decision = decide(short, lengths((1.0, 0.25)), goal, 6e5, draws=400)
    assert decision.fit
    assert not decision.fit.declined
    assert decision.interval is None
    full = Runs.of(depth=RUNS.depth, block_params=RUNS.block_params, loss=RUNS.loss, tokens=np.full(len(RUNS), 1e8))
    assert decide(full, lengths((1.0, 0.25)), goal, 6e5, draws=400).interval is not None
