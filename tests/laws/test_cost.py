"""What a wrong depth costs: by hand from the pooled and derived numbers, and the derived numbers from the runs."""

import json
import math
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.answers import Interval
from deepwide.laws import (
    Bowl,
    RidgeLaw,
    bowl_of,
    depth_cost,
    depth_law,
    measured_optimum,
    outside_the_data,
    own_cost,
    own_costs,
    own_shape_costs,
    pooled_law,
    shape_cost,
    shape_costs,
    step_time_ratio,
    transition_law,
)

ROOT = Path(__file__).parents[2]
DERIVED = json.loads(files("deepwide.laws").joinpath("gemstones.json").read_text(encoding="utf-8"))
SIZES = st.floats(6, 14).map(lambda power: 10**power)
FACTORS = st.floats(0.17, 4)  # of the law's depth: just beyond what was measured


def law_depth(N: float) -> float:
    return float(transition_law().depth(N).value[0])


def cost(one: float, two: float, N: float) -> Interval:
    """The cost of one factor of the law's depth instead of another."""
    found = depth_cost(one * law_depth(N), two * law_depth(N), N)
    assert found is not None
    return found


def limits(found: Interval) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@given(FACTORS, SIZES)
def test_a_depth_costs_nothing_against_itself(factor: float, N: float) -> None:
    assert cost(factor, factor, N) == Interval(0, 0, 0)


@given(FACTORS, FACTORS, SIZES)
def test_there_and_back_costs_nothing(one: float, two: float, N: float) -> None:
    """Costs are ratios of losses: one way multiplied by the other way is 1, and the interval turns around."""
    there, back = cost(one, two, N), cost(two, one, N)
    (low, high), (back_low, back_high) = limits(there), limits(back)
    for a, b in ((there.value, back.value), (low, back_high), (high, back_low)):
        assert (1 + a / 100) * (1 + b / 100) == pytest.approx(1, rel=1e-9)


@given(FACTORS, FACTORS, FACTORS, SIZES)
def test_costs_add_up_along_the_way(one: float, two: float, three: float, N: float) -> None:
    steps = (1 + cost(one, two, N).value / 100) * (1 + cost(two, three, N).value / 100)
    assert steps == pytest.approx(1 + cost(one, three, N).value / 100, rel=1e-9)


@given(SIZES, st.floats(1.01, 2), st.floats(1.01, 2), st.sampled_from([1, -1]))
def test_the_interval_widens_with_the_distance_from_the_laws_depth(
    N: float, far: float, more: float, side: int
) -> None:
    near, further = (cost(factor**side, 1, N) for factor in (far, far * more))

    def log_width(found: Interval) -> float:
        low, high = limits(found)
        return math.log1p(high / 100) - math.log1p(low / 100)

    assert log_width(further) > log_width(near)
    assert limits(near)[0] < near.value < limits(near)[1]


@given(SIZES, st.sampled_from([0.01, 0.06, 4.9, 100]), FACTORS)
def test_far_beyond_the_data_it_says_nothing(N: float, far: float, factor: float) -> None:
    """Twice the measured range is still quoted."""
    L = law_depth(N)
    assert depth_cost(far * L, factor * L, N) is None
    assert depth_cost(factor * L, far * L, N) is None


@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 4])
def test_the_value_and_its_interval_follow_from_the_pooled_numbers(factor: float) -> None:
    """By draws of the place and of ln curvature within what 95% allow."""
    law = pooled_law()
    bowl, N = law.bowl, law.centre_params
    assert bowl is not None
    assert bowl.log_error is not None
    found, best = cost(factor, 1, N), law.depth(N).at()
    x, at = math.log(factor) - law.shift, -law.shift
    assert found.value == pytest.approx(100 * math.expm1(bowl.curvature * (x * x - at * at)), rel=1e-9)
    _, high = limits(best)
    random = np.random.default_rng(0)
    u, v = random.normal(size=(2, 400_000))
    u, v = (each / np.hypot(u, v) * 1.959964 for each in (u, v))
    p = v * math.log(high / best.value) / 1.959964
    drawn = bowl.curvature * np.exp(u * bowl.log_error) * ((x - p) ** 2 - (at - p) ** 2)
    assert limits(found) == pytest.approx(
        (100 * np.expm1(drawn.min()), 100 * np.expm1(drawn.max())), rel=5e-3, abs=1e-3
    )


def test_without_doubt_about_the_place_a_cost_has_the_curvature_s_interval() -> None:
    bowl = Bowl(curvature=0.01, log_error=0.5, x_range=(-2, 2))
    found = bowl.cost(1.0, 0.0)
    assert found is not None
    assert limits(found) == pytest.approx(
        [100 * math.expm1(0.01 * math.exp(sign * 0.5 * 1.959964)) for sign in (-1, 1)]
    )
    with pytest.raises(ValueError, match="give either"):
        Bowl(curvature=0.01, log_error=0.5, error=0.1, x_range=(-2, 2))


@given(SIZES)
def test_the_measured_optimum_is_where_the_bowl_has_its_minimum(N: float) -> None:
    best = measured_optimum(N)
    assert best.value == pytest.approx(law_depth(N) * math.exp(pooled_law().shift), rel=1e-5)
    low, high = limits(best)
    assert low < best.value < high
    for nearby in (0.98, 1.02):
        found = depth_cost(best.value * nearby, best.value, N)
        assert found is not None
        assert found.value > 0


def test_beyond_the_sets_it_says_so() -> None:
    law = pooled_law()
    assert law.fitted_block_params is not None
    assert law.bowl is not None
    (small, large), (low, high) = law.fitted_block_params, law.bowl.x_range
    for N in (small, large):
        best = law.depth_at(N)
        for x in (low, 0, high):
            assert outside_the_data(best * math.exp(x * 0.999), N) is None
        assert "times the best depth only" in str(outside_the_data(best * math.exp(low * 1.01), N))
        assert "times the best depth only" in str(outside_the_data(best * math.exp(high * 1.01), N))
    for N in (0.98 * small, 1.02 * large, 1e12):  # but for rounding
        assert str(outside_the_data(law.depth_at(N), N)) == "measured from 15M to 1.8B block parameters only"


@given(st.floats(1, 300), st.floats(1, 300))
def test_step_time_is_one_against_itself_and_turns_around(one: float, two: float) -> None:
    assert step_time_ratio(one, one).value == 1
    there, back = step_time_ratio(one, two), step_time_ratio(two, one)
    assert there.value * back.value == pytest.approx(1)
    assert limits(there)[0] * limits(back)[1] == pytest.approx(1)
    assert limits(there)[0] <= there.value <= limits(there)[1]


def test_twice_as_deep_is_a_quarter_slower() -> None:
    ratio, derived = step_time_ratio(48, 24), DERIVED["step_time"]["node_time_ratio_twice_as_deep_at_equal_flops"]
    assert ratio.value == pytest.approx(derived["estimate"], rel=1e-5)
    assert [ratio.low, ratio.high] == pytest.approx(derived["interval95"], rel=1e-4)


@pytest.mark.slow
def test_the_derived_numbers_are_what_the_script_makes_of_the_runs(shared_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "gemstones.json"
    command = [sys.executable, "-m", "benchmarks.derive_gemstones", "--data", str(shared_data), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    made = json.loads(out.read_text(encoding="utf-8"))
    assert made.pop("command").replace(str(shared_data), "../shared/data").replace(str(out), "x") == (
        DERIVED["command"].replace("src/deepwide/laws/gemstones.json", "x")
    )
    ours, theirs = flat({k: v for k, v in DERIVED.items() if k != "command"}), flat(made)
    assert list(theirs) == list(ours)
    for where, value in ours.items():
        # Another BLAS may round the last of six digits the other way.
        assert theirs[where] == (value if isinstance(value, str) else pytest.approx(value, rel=2e-5)), where


def flat(value: object, where: str = "") -> dict[str, object]:
    """Every leaf by its path."""
    if isinstance(value, dict):
        return {k: v for name, inner in value.items() for k, v in flat(inner, f"{where}.{name}").items()}
    if isinstance(value, list):
        return {k: v for i, inner in enumerate(value) for k, v in flat(inner, f"{where}.{i}").items()}
    return {where: value}


@given(FACTORS, FACTORS, SIZES, SIZES)
def test_shapes_of_two_sizes_are_compared_each_with_its_own_best_depth(
    one: float, two: float, N: float, M: float
) -> None:
    """By hand: the curvature times the difference of two squared logarithms."""
    depths = one * pooled_law().depth_at(N), two * pooled_law().depth_at(M)
    both = shape_cost(depths[0], N, (depths[1], M))
    at_one_size = depth_cost(depths[0], two * pooled_law().depth_at(N), N)
    if both is None:
        assert at_one_size is None
        assert np.isnan(shape_costs([depths[0]], [N], (depths[1], M))).all()
        return
    assert at_one_size is not None
    assert both.value == pytest.approx(at_one_size.value, rel=1e-6, abs=1e-9)
    curvature = pooled_law().bowl
    assert curvature is not None
    by_hand = 100 * math.expm1(curvature.curvature * (math.log(one) ** 2 - math.log(two) ** 2))
    assert both.value == pytest.approx(by_hand, rel=1e-6, abs=1e-9)
    assert shape_costs([depths[0]], [N], (depths[1], M))[0] == pytest.approx(both.value, rel=1e-9, abs=1e-12)


def test_a_law_with_a_bowl_of_its_own_prices_shapes_by_it() -> None:
    bowl = Bowl(slope=0.01, curvature=0.05, covariance=((1e-6, 0.0), (0.0, 1e-6)), x_range=(-1, 1))
    law = RidgeLaw(name="mine", base_a=None, base_b=None, shift=2.0, centre_params=1e6, bowl=bowl)
    x, y = math.log(10 / math.e**2), math.log(6 / math.e**2)
    by_hand = 100 * math.expm1(0.01 * (x - y) + 0.05 * (x * x - y * y))
    cost = shape_cost(10, 1e6, (6, 2e6), law)
    assert cost is not None
    assert cost.value == pytest.approx(by_hand)
    assert shape_costs([10], [1e6], (6, 2e6), law)[0] == pytest.approx(by_hand)


@pytest.mark.parametrize("name", ["levine", "nanochat", "pooled"])
def test_if_a_law_is_right_nothing_is_better_than_its_own_depth(name: str) -> None:
    law, N = depth_law(name), 3e8
    own = law.depth_at(N)
    assert own_costs(own, N, law)[0] == pytest.approx(0, abs=1e-12)
    depths = own * np.array([0.5, 0.8, 1.25, 2.0])
    assert np.all(own_costs(depths, N, law) > 0)
    c = pooled_law().bowl.curvature  # type: ignore[union-attr]
    assert own_costs(depths, N, law) == pytest.approx(c * np.log(depths / own) ** 2)
    cost = own_cost(2 * own, N, (own, N), law)
    assert cost is not None
    assert cost.low is not None
    assert cost.value == pytest.approx(100 * math.expm1(c * math.log(2) ** 2))
    assert own_shape_costs([2 * own], [N], (own, N), law)[0] == pytest.approx(cost.value)
    if name != "pooled":
        assert cost.low > 0  # only how steep it is, is unsure: the data's own doubt about the place is elsewhere
        data = shape_cost(2 * own, N, (own, N), law)
        assert data is not None
        assert data.value != pytest.approx(cost.value)


def test_far_beyond_the_data_a_depth_costs_as_much_as_they_allow() -> None:
    sloping = Bowl(slope=-0.01, curvature=0.02, covariance=((1e-6, 0.0), (0.0, 1e-5)), x_range=(-1.0, 1.5))
    x = np.linspace(-6, 4, 400)
    for bowl in (bowl_of(), sloping):
        costs, known = bowl.above_best(x), np.isfinite(bowl.log_ratio(x, 0.0))
        assert costs[known] == pytest.approx(bowl.log_ratio(x, 0.0)[known])
        slope = 0.0 if bowl.log_error is not None else bowl.slope
        assert np.all(costs[~known] > (slope * x + bowl.curvature * x * x)[~known])
        assert np.abs(np.diff(costs)).max() < 0.02  # no jump at the edge
    law, N = depth_law("levine"), 3e8
    assert own_costs(law.depth_at(N) * np.exp(x), N, law) == pytest.approx(bowl_of().above_best(x))
