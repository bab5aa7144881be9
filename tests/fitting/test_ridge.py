"""The best depth at a size, and what missing it costs."""

import json
import math
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from deepwide.errors import DeepwideError
from deepwide.fitting import (
    Runs,
    fit_ridge,
    load_fit,
    read_runs,
    simulate,
)
from deepwide.fitting.regression import t95
from deepwide.laws import RidgeLaw, TransitionLaw, load_law, save_law, transition_law
from deepwide.planning import plan
from fitting.builders import LAW, codes, noted, sweep

SMALL = list(np.geomspace(1e4, 4e6, 7))


def small_sweep(law: TransitionLaw = LAW, **changes: object) -> Runs:
    return sweep(law, **({"sizes": SMALL, "noise": 0.001} | changes))


def bowl(shift: float, drift: float = 0.0, curvature: float = 0.01) -> Runs:
    """Exactly the regression's own model, about the published law."""
    depth, size = (np.ravel(each) for each in np.meshgrid([6.0, 12, 24, 48], np.geomspace(1e7, 1e9, 5)))
    s = np.log(size / np.exp(np.mean(np.log(size))))
    x = np.log(depth / transition_law().depth(size).value)
    loss = np.exp(
        1.0 - 0.06 * s + 0.005 * s**2 + curvature * (x - shift - drift * s) ** 2 - curvature * drift**2 * s**2
    )
    return Runs.of(depth=depth, width=np.sqrt(size / 12 / depth), block_params=size, loss=loss)


@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.4])
def test_an_exact_bowl_is_recovered_exactly(shift: float) -> None:
    fit = fit_ridge(bowl(shift), bootstrap=0)
    assert fit.minimum is not None
    assert fit.minimum.value == pytest.approx(math.exp(shift))
    assert fit["b2"] == pytest.approx(0.01)
    assert fit.cost(2).value == pytest.approx(100 * math.expm1(0.01 * math.log(2) ** 2))
    assert fit.cost(0.5).value == pytest.approx(fit.cost(2).value)


def test_a_drift_is_found_when_asked_for() -> None:
    fit = fit_ridge(bowl(0.2, drift=0.1), drift=True, bootstrap=0)
    law = fit.law()
    assert law is not None
    assert law.shift == pytest.approx(0.2)
    assert law.drift == pytest.approx(0.1)


def test_a_law_allows_for_growth_that_changes_beyond_its_runs() -> None:
    law = fit_ridge(bowl(0.2), bootstrap=0).law()
    assert law is not None
    assert law.growth_error > 0


def test_a_law_s_normal_limits_are_those_of_student_s_t() -> None:
    """A law multiplies its errors by 1.96; with few runs the fit's own limits are wider."""
    fit = fit_ridge(small_sweep(sizes=SMALL[:3]), bootstrap=0)
    law = fit.law()
    assert law is not None
    assert law.covariance is not None
    quantile = stats.t.ppf(0.975, fit.dof)
    assert quantile > 2.1, "few enough runs to matter"
    shift, covariance = fit._at_minimum()
    variance = covariance[0, 0] * (quantile / stats.norm.ppf(0.975)) ** 2
    variance += max([(math.log(other.minimum) - shift) ** 2 for other in fit.others], default=0.0)
    assert law.covariance[0][0] == pytest.approx(variance, rel=1e-3)


def test_the_error_of_the_minimum_is_that_of_moving_the_coefficients() -> None:
    """The delta method against finite differences, of a bowl whose minimum is not at the law's depth."""
    fit = fit_ridge(small_sweep(noise=0.002), bootstrap=0)
    C = np.array(fit.covariance)
    i1, i2 = fit.names.index("b1"), fit.names.index("b2")
    J = np.zeros(len(fit.names))
    for i, moved in ((i1, (1e-6, 0.0)), (i2, (0.0, 1e-6))):
        ends = [-(fit["b1"] + sign * moved[0]) / (2 * (fit["b2"] + sign * moved[1])) for sign in (1, -1)]
        J[i] = (ends[0] - ends[1]) / 2e-6
    where, covariance = fit._at_minimum()
    assert where == pytest.approx(-fit["b1"] / (2 * fit["b2"]))
    assert abs(J[i2]) > 0.1 * abs(J[i1]), "it matters here"
    assert covariance[0, 0] == pytest.approx(J @ C @ J, rel=1e-4)


def test_the_law_is_the_base_laws_depth_times_the_factor(tmp_path: Path) -> None:
    law = fit_ridge(bowl(0.3), bootstrap=0).law()
    assert isinstance(law, RidgeLaw)
    base = transition_law().depth(1e8).value[0]
    assert law.depth(1e8).value[0] == pytest.approx(base * math.exp(0.3))
    assert load_law(save_law(law, tmp_path / "law.json")) == law
    assert plan("100M", law=law).shape.depth == pytest.approx(base * math.exp(0.3), abs=1.5)


def test_without_a_base_the_best_depth_is_a_power_of_the_size(tmp_path: Path) -> None:
    depth, size = (np.ravel(each) for each in np.meshgrid([1.0, 2, 4, 8], np.geomspace(1e4, 1e6, 5)))
    best = 3 * (size / 1e5) ** 0.3
    noise = np.random.default_rng(0).normal(0, 1e-3, len(size))
    loss = np.exp(1 - 0.05 * np.log(size) + 0.03 * np.log(depth / best) ** 2 + noise)
    fit = fit_ridge(Runs.of(depth=depth, width=np.sqrt(size / 12 / depth), loss=loss, block_params=size), base="power")
    law = fit.law()
    assert law is not None
    assert law.drift == pytest.approx(0.3, abs=0.01)
    assert fit.headline()[1].startswith("The best depth grows like the size to the power 0.3")
    for at in (1e4, 1e5, 1e8):
        found = law.depth(at).at()
        assert found.value == pytest.approx(3 * (at / 1e5) ** 0.3, rel=0.05)
        assert found.low < found.value < found.high  # type: ignore[operator]
    assert fit.predict(4, 1e5).value == pytest.approx(
        np.exp(1 - 0.05 * np.log(1e5) + 0.03 * np.log(4 / 3) ** 2), rel=1e-3
    )
    assert load_law(save_law(law, tmp_path / "law.json")) == law
    assert load_fit(fit.save(tmp_path / "fit.json")) == fit


def test_a_depth_that_outgrows_the_size_gives_no_law() -> None:
    depth, size = (np.ravel(each) for each in np.meshgrid([1.0, 2, 4, 8], np.geomspace(1e4, 1e5, 5)))
    loss = np.exp(1 + 0.03 * np.log(depth / (size / 3e4) ** 1.2) ** 2)
    fit = fit_ridge(Runs.of(depth=depth, width=np.sqrt(size / 12 / depth), loss=loss, block_params=size), base=None)
    assert fit.drift.value == pytest.approx(1.2)
    assert fit.law() is None
    assert "layers" in fit.summary()


def test_the_interval_of_the_law_holds_the_truth() -> None:
    fit = fit_ridge(small_sweep(), base=LAW, bootstrap=200)
    assert fit.minimum is not None
    assert fit.minimum.low is not None
    assert fit.minimum.high is not None
    assert fit.minimum.low < 1 < fit.minimum.high
    law = fit.law()
    assert law is not None
    curve = law.depth(1e6)
    assert curve.low[0] < float(LAW.depth(1e6).value[0]) < curve.high[0]


def test_the_minimums_limits_are_where_a_flat_bowl_is_just_refused() -> None:
    fit = fit_ridge(small_sweep(noise=0.004), bootstrap=0)
    i, j = fit.names.index("b1"), fit.names.index("b2")
    C = fit.covariance
    assert fit.minimum is not None
    for limit in (fit.minimum.low, fit.minimum.high):
        assert limit is not None
        z = math.log(limit)
        error = math.sqrt(C[i][i] + 4 * z * C[i][j] + 4 * z * z * C[j][j])
        assert abs(fit["b1"] + 2 * z * fit["b2"]) / error == pytest.approx(t95(fit.dof), rel=0.05)


def test_no_bowl_gives_no_law() -> None:
    fit = fit_ridge(small_sweep(curvature=0.0, noise=0.01), base=LAW, bootstrap=20)
    assert fit.minimum is None
    assert fit.law() is None
    assert "No bowl" in fit.summary()


def test_lengths_get_terms_of_their_own() -> None:
    short, long = bowl(0.1), bowl(0.1)
    both = Runs.of(
        depth=np.tile(short.depth, 2),
        block_params=np.tile(short.block_params, 2),
        tokens=np.repeat([1e9, 4e9, 16e9], [20, 10, 10]),
        loss=np.concatenate([short.loss, 0.9 * long.loss[:10], 0.85 * long.loss[10:]]),
    )
    fit = fit_ridge(both, bootstrap=0)
    assert {"tokens", "tokens2"} <= set(fit.names)


def test_two_lengths_tell_no_bend() -> None:
    one = bowl(0.1)
    both = Runs.of(
        depth=np.tile(one.depth, 2),
        block_params=np.tile(one.block_params, 2),
        tokens=np.repeat([1e9, 4e9], 20),
        loss=np.concatenate([one.loss, 0.9 * one.loss]),
    )
    fit = fit_ridge(both, bootstrap=0)
    assert "tokens2" not in fit.names
    assert fit["tokens"] == pytest.approx(math.log(0.9) / math.log(4))
    assert fit.predict(12, 1e8, tokens=4e9).value == pytest.approx(0.9 * fit.predict(12, 1e8, tokens=1e9).value)


def test_a_fit_predicts_what_it_was_fitted_on() -> None:
    runs = bowl(0.1)
    fit = fit_ridge(runs, bootstrap=0)
    for row in (0, 7, 19):
        assert fit.predict(runs.depth[row], runs.block_params[row]).value == pytest.approx(runs.loss[row])


def test_a_fit_goes_through_json_unchanged(tmp_path: Path) -> None:
    fit = fit_ridge(small_sweep(), bootstrap=30)
    assert load_fit(fit.save(tmp_path / "fit.json")) == fit


def test_only_a_transition_law_can_be_the_base() -> None:
    with pytest.raises(DeepwideError, match="'nanochat' is none"):
        fit_ridge(small_sweep(), base="nanochat")
    with pytest.raises(DeepwideError, match="above 0"):
        fit_ridge(small_sweep(), bootstrap=0).cost(-1)


def test_gemstones_ridge_is_where_the_other_derivation_puts_it(shared_data: Path) -> None:
    """The same regression as benchmarks/derive_gemstones.py, written twice: same numbers."""
    runs = read_runs(
        shared_data / "gemstones/wandb_dfs/wandb_df_for_fitting_hot_100b+_477.jsonl",
        {"total_params": "params_active_precise"},
        where={"tokens": 100e9},
        embedding_rows=2 * 50304,
    )
    known = json.loads(files("deepwide.laws").joinpath("gemstones.json").read_text())["ridge"]
    assert len(runs) == 22
    # Norms are in the exact total, and not in the N of that derivation: a thousandth of it.
    fit = fit_ridge(runs, embeddings=True, bootstrap=0)
    assert fit["b2"] == pytest.approx(known["b2"], rel=0.01)
    assert fit.minimum is not None
    assert fit.minimum.value == pytest.approx(known["minimum_depth_over_law"]["estimate"], rel=0.02)
    assert 0.35 < fit.cost(2).value < 0.6
    assert 1.5 < fit.cost(4).value < 2.3
    without = fit_ridge(runs, bootstrap=0)
    assert without.minimum is not None
    assert 0.6 < without.minimum.value < 1.05, "laws.md: 0.67 to 1.05 by our arithmetic"


def test_a_drift_that_was_left_out_is_warned_of_and_carried_in_the_laws_error() -> None:
    """A new user's table: the best depth grows otherwise than the base law says, and plain defaults were sure of it."""
    plain, asked = (fit_ridge(small_sweep(), drift=drift, bootstrap=0) for drift in (False, True))
    assert noted("drift-left-out", plain.warnings)["unit"] == "times the law's depth"
    assert "drift-left-out" not in codes(asked.warnings)
    law = plain.law()
    assert law is not None
    for size in (3e4, 1e7):
        curve = law.depth(size)
        assert curve.low[0] < float(LAW.depth(size).value[0]) < curve.high[0]


@pytest.mark.parametrize("skew", [0.01, -0.01])
def test_a_bowl_that_is_steeper_on_one_side_is_warned_of(skew: float) -> None:
    depth, size = (np.ravel(each) for each in np.meshgrid([6.0, 12, 24, 48], np.geomspace(1e7, 1e9, 5)))
    x = np.log(depth / transition_law().depth(size).value)
    noise = np.random.default_rng(0).normal(0, 0.0005, len(x))
    loss = np.exp(1.0 - 0.06 * np.log(size / 1e8) + 0.03 * x**2 + skew * x**3 + noise)
    fit = fit_ridge(Runs.of(depth=depth, block_params=size, loss=loss), bootstrap=0)
    assert [other.term for other in fit.others] == ["skew"]
    assert fit.others[0].minimum == pytest.approx(1.0, abs=0.05)
    law = fit.law()
    assert law is not None
    curve = law.depth(1e8)
    assert curve.low[0] < float(transition_law().depth(1e8).value[0]) < curve.high[0]


def test_what_the_fit_warned_of_reaches_the_plan() -> None:
    law = fit_ridge(small_sweep(), bootstrap=0).law()
    assert law is not None
    assert any("allow a drift" in str(note) for note in plan("1M", law=law).notes)


def test_noisy_depths_count_less_when_they_have_their_own_noise() -> None:
    noise = {1: 0.05, 2: 0.002, 4: 0.002, 8: 0.002}
    runs = simulate(LAW, depths=(1, 2, 4, 8), sizes=list(np.geomspace(1e4, 4e6, 8)), noise=noise, seeds=1)
    same, own = (fit_ridge(runs, base=LAW, bootstrap=0, noise=noise) for noise in ("same", "depth"))
    assert "noise-unequal" in codes(same.warnings)
    assert own.standard_errors["b2"] < 0.5 * same.standard_errors["b2"]
    assert own.interval("b2").low <= 0.02 <= own.interval("b2").high  # type: ignore[operator]
    assert own.noise_by_depth is not None
    assert own.noise_by_depth[1] > 10 * own.noise_by_depth[8]


@pytest.mark.parametrize("counting", ["block", "total"])
@pytest.mark.parametrize("embeddings", [False, True])
@pytest.mark.parametrize("base", ["power", LAW])
def test_a_fit_predicts_its_own_fitted_values(counting: str, embeddings: bool, base: object) -> None:
    runs = small_sweep(noise=0.004)
    whole = runs.block_params + 256 * runs.width
    runs = Runs.of(
        depth=runs.depth,
        width=runs.width,
        block_params=runs.block_params,
        total_params=whole,
        loss=runs.loss,
        seed=runs.seed * 0,
    )
    fit = fit_ridge(runs, base=base, counting=counting, embeddings=embeddings, bootstrap=0)  # type: ignore[arg-type]
    for row, block, total in zip(fit.residuals, runs.block_params, runs.total_params, strict=True):
        assert fit.predict(row.depth or 0, block, total=total).value == pytest.approx(row.fitted, rel=1e-9)
    if counting == "total" or embeddings:
        with pytest.raises(DeepwideError, match="total number of parameters"):
            fit.predict(2, 1e5)


def test_a_best_depth_that_is_no_power_is_warned_of_and_its_law_still_holds_the_truth() -> None:
    """The best depth by a transition law is no power of the size over so many sizes."""
    fit = fit_ridge(small_sweep(noise=0.004), base="power", bootstrap=0)
    assert "bend-left-out" in codes(fit.warnings)
    law = fit.law()
    assert law is not None
    for size in (3e4, 3e5, 3e6):
        found, truth = law.depth(size).at(), float(LAW.depth(size).value[0])
        assert found.low < truth < found.high  # type: ignore[operator]


def test_as_many_parameters_as_shapes_show_nothing() -> None:
    runs = small_sweep(seeds=1)
    fit = fit_ridge(runs.select(np.array([0, 5, 9, 14, 20, 27])), base="power", bootstrap=0)
    assert fit.dof == 0
    assert "can be shown" in fit.headline()[0]
    assert " 0  " not in fit.summary()


def test_a_prediction_has_the_interval_of_the_regression_line() -> None:
    """Against the textbook's formula, from the design matrix written a second time."""
    runs = small_sweep(noise=0.004, seeds=1)
    fit = fit_ridge(runs, base="power", bootstrap=0)
    s, x = np.log(runs.block_params / fit.centre), np.log(runs.depth)
    X = np.column_stack([np.ones_like(s), s, s**2, x, x**2, s * x])
    y = np.log(runs.loss)
    theta = np.linalg.lstsq(X, y)[0]
    variance = np.sum((y - X @ theta) ** 2) / (len(y) - 6)
    at = X[5]
    error = stats.t.ppf(0.975, len(y) - 6) * math.sqrt(variance * at @ np.linalg.inv(X.T @ X) @ at)
    found = fit.predict(float(runs.depth[5]), float(runs.block_params[5]))
    assert found.value == pytest.approx(math.exp(at @ theta))
    assert (found.low, found.high) == pytest.approx((math.exp(at @ theta - error), math.exp(at @ theta + error)))
    assert found.notes == ()


def test_a_prediction_outside_the_runs_says_so() -> None:
    fit = fit_ridge(small_sweep(), bootstrap=0)
    assert codes(fit.predict(4, 1e12).notes) == ["outside-size"]
    assert codes(fit.predict(400, 1e5).notes) == ["outside-depth"]
    near, far = fit.predict(4, 1e6), fit.predict(4, 1e12)
    assert math.log(far.high / far.low) > 5 * math.log(near.high / near.low)  # type: ignore[operator]


def test_predictions_of_arrays_are_those_of_each() -> None:
    fit = fit_ridge(small_sweep(), bootstrap=0)
    rows = fit.predict_rows([2, 4, 8], 1e6)
    assert [row["depth"] for row in rows] == [2, 4, 8]
    one = fit.predict(4, 1e6)
    assert rows[1] == {"depth": 4.0, "params": 1e6, "loss": one.value, "low": one.low, "high": one.high}
    with pytest.raises(DeepwideError, match="use predict_rows"):
        fit.predict([2, 4], 1e6)  # type: ignore[arg-type]


def test_the_verdict_is_by_the_curvature() -> None:
    bowl_seen = fit_ridge(small_sweep(), base=LAW, bootstrap=0).verdict()
    assert bowl_seen.outcome == "seen"
    assert bowl_seen.measured is not None
    assert bowl_seen.measured.value == pytest.approx(0.02, rel=0.3)
    flat = fit_ridge(small_sweep(curvature=0.0, noise=0.01), base=LAW, bootstrap=0).verdict()
    assert flat.outcome == "undecided"
    hill = fit_ridge(bowl(0.0, curvature=-0.01), bootstrap=0).verdict()
    assert hill.outcome == "not seen"


def test_fractional_depths_get_a_sentence() -> None:
    runs = small_sweep()
    with pytest.raises(DeepwideError, match="whole numbers of layers"):
        fit_ridge(replace(runs, depth=runs.depth + 0.5), bootstrap=0)


def test_tokens_that_follow_the_size_are_mentioned_or_refused_with_the_right_advice() -> None:
    runs = sweep()
    near = [row | {"tokens": 20 * row["block_params"] * (1 + 0.01 * (i % 3))} for i, row in enumerate(runs.rows())]
    assert "tokens-collinear" in [note.code for note in fit_ridge(read_runs(near), base="power", bootstrap=0).warnings]
    exactly = [row | {"tokens": 20 * row["block_params"]} for row in runs.rows()]
    with pytest.raises(DeepwideError, match="use a joint fit, ignore tokens, or add runs at other lengths"):
        fit_ridge(read_runs(exactly), base="power")
    assert fit_ridge(read_runs(exactly, {"tokens": None}), base="power", bootstrap=0).minimum is not None
