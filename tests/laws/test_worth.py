"""What a difference in loss is worth: put back into the surface it gives that loss."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.laws import COMPUTE_LAWS, MOST, ComputeLaw, worth_of

LAW = COMPUTE_LAWS["epoch"]


def loss(law: ComputeLaw, N: float, D: float) -> float:
    return law.E + law.A / N**law.alpha + law.B / D**law.beta


@given(st.floats(0.01, 1.0), st.floats(7, 11).map(lambda power: 10**power))
def test_what_makes_it_up_makes_it_up(percent: float, N: float) -> None:
    D = 20 * N
    worth = worth_of(Interval(percent), N, D)
    wanted = loss(LAW, N, D) / (1 + percent / 100)
    more = [1 + i.value / 100 for i in (worth.params_percent, worth.tokens_percent)]
    both = math.sqrt(1 + worth.flops_percent.value / 100)
    for factors in ((more[0], 1), (1, more[1]), (both, both)):
        if max(factors) < math.inf:
            assert loss(LAW, N * factors[0], D * factors[1]) == pytest.approx(wanted, rel=1e-6)
    assert worth.extra_flops.value == pytest.approx(6 * N * D * worth.flops_percent.value / 100)


def test_no_difference_is_worth_nothing_and_a_gain_less_than_nothing() -> None:
    worth = worth_of(Interval(0.0, -0.5, 0.5), 7e9, 140e9)
    for each in (worth.params_percent, worth.tokens_percent, worth.flops_percent):
        assert each.value == pytest.approx(0, abs=1e-6)
        assert each.low is not None
        assert each.high is not None
        assert each.low < 0 < each.high


def test_limits_are_over_both_published_surfaces() -> None:
    interval = Interval(0.5, 0.2, 0.8)
    named = [worth_of(interval, 7e9, 140e9, name).params_percent for name in COMPUTE_LAWS]
    assert (named[0].low, named[0].high) == pytest.approx((named[1].low, named[1].high))
    assert named[0].value != named[1].value


def test_what_no_amount_makes_up_is_infinite() -> None:
    worth = worth_of(Interval(15.0, 0.5, 40.0), 7e9, 140e9)
    assert worth.params_percent.value == worth.tokens_percent.high == worth.flops_percent.high == math.inf
    assert 0 < worth.params_percent.low < math.inf  # type: ignore[operator]
    # More parameters alone leave E and what the tokens lose; both together can come as near to E as wanted.
    both = math.sqrt(1 + worth.flops_percent.value / 100)
    assert MOST < both**2 < math.inf
    assert loss(LAW, 7e9 * both, 140e9 * both) == pytest.approx(loss(LAW, 7e9, 140e9) / 1.15, rel=1e-6)
    assert loss(LAW, 7e9, 140e9) / 1.4 < LAW.E


def test_flops_of_a_token_may_be_counted_with_attention() -> None:
    usual, more = (worth_of(Interval(0.5), 7e9, 140e9, price=1e-18, flops_per_token=each) for each in (None, 63e9))
    assert usual.training_flops == 6 * 7e9 * 140e9
    assert more.training_flops == 63e9 * 140e9
    assert more.flops_percent == usual.flops_percent
    assert more.money is not None
    assert more.money.value == pytest.approx(1e-18 * more.training_flops * more.flops_percent.value / 100)


def test_money_is_flops_times_their_price() -> None:
    worth = worth_of(Interval(0.5, 0.2, 0.8), 7e9, 140e9, price=1e-18)
    assert worth.money is not None
    assert worth.money.value == pytest.approx(1e-18 * worth.extra_flops.value)
    assert worth_of(Interval(0.5), 7e9, 140e9).money is None
    with pytest.raises(DeepwideError, match="no compute law"):
        worth_of(Interval(0.5), 7e9, 140e9, "nobody")


@pytest.mark.parametrize(
    ("N", "D", "first"), [(*LAW.optimum(1e22), "both"), (1e9, 1e13, "parameters"), (1e12, 2e10, "tokens")]
)
def test_the_cheapest_repair_is_named(N: float, D: float, first: str) -> None:
    """A model far too small for its tokens wants parameters, one far too large tokens."""
    worth = worth_of(Interval(0.3), N, D)
    assert next(iter(worth.repairs)) == first
    for name, (more, cost) in worth.repairs.items():
        k = 1 + more / 100
        bigger, longer = N * (k if name != "tokens" else 1), D * (k if name != "parameters" else 1)
        assert loss(LAW, bigger, longer) == pytest.approx(loss(LAW, N, D) / 1.003, rel=1e-6)
        assert cost == pytest.approx(100 * (bigger * longer / (N * D) - 1))
    costs = [cost for _, cost in worth.repairs.values()]
    assert costs == sorted(costs)
    assert worth_of(Interval(-0.3), N, D).repairs == {}
    assert worth_of(Interval(60.0), N, D).repairs == {}  # not even both reach the floor
