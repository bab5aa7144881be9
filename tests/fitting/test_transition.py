"""Crossings, the line through them, and what may be said of regimes."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, TransitionFit, fit_transition, load_fit, simulate
from deepwide.fitting.fit import t95
from deepwide.laws import TransitionLaw
from deepwide.planning import plan
from deepwide.quantities import show_count

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
DEPTHS = (1, 2, 4, 8)
SIZES = list(np.geomspace(1e4, 4e6, 8))


def sweep(**changes: object) -> Runs:
    settings: dict[str, object] = {"depths": DEPTHS, "sizes": SIZES, "noise": 0.002} | changes
    return simulate(LAW, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


def parabolas(crossing: float, sizes: list[float]) -> Runs:
    """Two depths whose curves are exact parabolas and cross at one place: the deeper wins beyond it."""
    x = np.log(np.array(sizes) / crossing)
    shallow, deep = 0.5 - 0.1 * x + 0.01 * x**2, 0.5 - 0.15 * x + 0.01 * x**2
    return Runs.of(
        depth=np.repeat([2, 4], len(sizes)),
        block_params=np.tile(sizes, 2),
        loss=np.exp(np.concatenate([shallow, deep])),
    )


@pytest.mark.parametrize("crossing", [3e4, 1e5, 7e5])
def test_the_crossing_of_exact_parabolas_is_found_exactly(crossing: float) -> None:
    fit = fit_transition(parabolas(crossing, SIZES), bootstrap=0)
    (pair,) = fit.pairs
    assert pair.size == pytest.approx(crossing)
    assert pair.status == "bracketed"
    assert pair.verdict == "seen"


def test_a_crossing_beyond_the_data_is_called_extrapolated_and_far_beyond_is_none() -> None:
    near, far = (fit_transition(parabolas(c, SIZES), bootstrap=0) for c in (8e6, 1e8))
    assert near.pairs[0].status == "extrapolated"
    assert near.pairs[0].size == pytest.approx(8e6)
    assert any("outside the sizes trained" in warning for warning in near.warnings)
    assert far.pairs[0].status == "none"
    assert far.pairs[0].size is None


def test_the_deeper_must_start_to_win_not_stop() -> None:
    runs = parabolas(1e5, SIZES)
    swapped = Runs.of(depth=6 - runs.depth, block_params=runs.block_params, loss=runs.loss)
    assert fit_transition(swapped, bootstrap=0).pairs[0].size is None


def test_a_known_law_is_recovered_within_its_interval(fitted: TransitionFit) -> None:
    for name, truth in (("a", LAW.a), ("b", LAW.b)):
        limits = fitted.interval(name)
        assert limits.low is not None
        assert limits.high is not None
        assert limits.low < truth < limits.high
        assert abs(fitted[name] - truth) < 0.15 * truth


def test_crossings_lie_at_the_geometric_mean_of_their_depths(fitted: TransitionFit) -> None:
    for pair in fitted.pairs:
        assert pair.depth == pytest.approx(math.sqrt(pair.shallow * pair.deep))
        truth = 12 * pair.depth * float(LAW.width(pair.depth)[0]) ** 2
        assert pair.low is None or pair.low < truth
        assert pair.high is None or truth < pair.high


def test_the_line_goes_through_two_crossings_when_there_are_two() -> None:
    fit = fit_transition(sweep(depths=(2, 4, 8)), bootstrap=0)
    for pair in fit.pairs:
        assert pair.size is not None
        width = math.sqrt(pair.size / (12 * pair.depth))
        assert math.log(width) == pytest.approx(fit["a"] + fit["b"] * pair.depth)


def test_the_law_plans(fitted: TransitionFit) -> None:
    law = fitted.law()
    assert law is not None
    made = plan("1M", law=law)
    assert made.shape.depth == pytest.approx(float(LAW.depth(1e6).value[0]), abs=1.5)
    assert made.law_depth.low is not None
    assert law.bowl is not None
    assert law.bowl.curvature == pytest.approx(0.02, rel=0.3)
    assert made.measured_depth is None, "the law's own runs say what a wrong depth costs"


def test_the_laws_error_includes_that_depths_are_only_bracketed(fitted: TransitionFit) -> None:
    law = fitted.law()
    assert law is not None
    assert law.covariance is not None
    assert law.covariance[0][0] > fitted.covariance[0][0]
    assert law.covariance[1][1] > fitted.covariance[1][1]


def test_an_assumed_slope_needs_one_crossing_only() -> None:
    runs = sweep(depths=(2, 4))
    assert fit_transition(runs, bootstrap=0).law() is None
    fit = fit_transition(runs, bootstrap=50, slope=0.25)
    assert fit.names == ("a",)
    assert fit["a"] == pytest.approx(LAW.a, abs=0.2)
    law = fit.law()
    assert law is not None
    assert law.b == 0.25
    assert "assumed" in fit.summary()


@pytest.mark.parametrize("a", [0.0, 7.0])
def test_a_sweep_without_a_crossing_says_so_instead_of_inventing_one(a: float) -> None:
    runs = simulate(TransitionLaw(name="far", a=a, b=0.25), depths=DEPTHS, sizes=SIZES)
    fit = fit_transition(runs, bootstrap=50)
    assert all(pair.status != "bracketed" for pair in fit.pairs)
    assert fit.names == ()
    assert fit.law() is None
    assert fit.verdict()[0] == "not seen"
    assert "no crossing" in fit.summary()
    assert "No law" in fit.summary()


def test_noise_alone_is_undecided() -> None:
    runs = sweep(curvature=0.0, noise=0.02)
    assert fit_transition(runs, bootstrap=0).verdict()[0] == "undecided"


def test_pairs_that_are_not_neighbours_can_be_asked_for() -> None:
    fit = fit_transition(sweep(), bootstrap=0, pairs=((2, 8),))
    asked = fit.pairs[-1]
    assert (asked.shallow, asked.deep) == (2, 8)
    assert asked.size == pytest.approx(12 * 4 * float(LAW.width(4)[0]) ** 2, rel=0.5)
    assert len(fit.used) == 3, "the line goes through neighbours only"
    for wrong in ((8, 2), (2, 16)):
        with pytest.raises(DeepwideError):
            fit_transition(sweep(), bootstrap=0, pairs=(wrong,))


def test_a_diverged_run_is_counted_and_moves_the_curve_up() -> None:
    runs = sweep()
    row = int(np.flatnonzero((runs.depth == 8) & (runs.seed == 1))[-1])
    loss, diverged = runs.loss.copy(), np.zeros(len(runs))
    loss[row], diverged[row] = np.nan, 1
    broken = Runs.of(
        depth=runs.depth, width=runs.width, block_params=runs.block_params, loss=loss, seed=runs.seed, diverged=diverged
    )
    fit, whole = fit_transition(broken, bootstrap=20), fit_transition(runs, bootstrap=20)
    assert fit.diverged == 1
    assert sum(residual.diverged for residual in fit.residuals) == 1
    size = float(runs.block_params[row])
    assert fit.predict(8, size).value > whole.predict(8, size).value
    assert "1 of them diverged" in fit.summary()


def test_predicting_many_sizes_at_once_is_sent_to_the_curves(fitted: TransitionFit) -> None:
    with pytest.raises(DeepwideError, match=r"curves\.loss"):
        fitted.predict(2, [1e5, 1e6])  # type: ignore[arg-type]


def test_an_answer_that_hangs_on_one_cell_warns() -> None:
    """Four and eight layers would cross beyond the data; one lucky cell brings them together inside."""
    runs = sweep(noise=0.0005, depths=(2, 4, 8), sizes=SIZES[:5], off_size=0.0)
    assert fit_transition(runs, bootstrap=0).pairs[1].status != "bracketed"
    lucky = (runs.depth == 8) & (runs.block_params == runs.block_params[runs.depth == 8].max())
    loss = np.where(lucky, 0.97, 1.0) * runs.loss
    hanging = Runs.of(depth=runs.depth, width=runs.width, block_params=runs.block_params, loss=loss, seed=runs.seed)
    fit = fit_transition(hanging, bootstrap=0)
    assert fit.pairs[1].status == "bracketed"
    assert any("hangs on one cell" in warning and "depth 8 at 307K" in warning for warning in fit.warnings)


def test_large_embeddings_are_a_warning() -> None:
    runs = sweep()
    total = runs.block_params + 30_000
    shared = Runs.of(
        depth=runs.depth, width=runs.width, block_params=runs.block_params, total_params=total, loss=runs.loss
    )
    fit = fit_transition(shared, bootstrap=0)
    assert fit.embedding_share is not None
    assert fit.embedding_share[1] > 0.7
    assert any("embeddings" in warning for warning in fit.warnings)
    by_total = fit_transition(shared, bootstrap=0, counting="total")
    assert by_total.params_range[0] > 30_000


def test_lengths_are_not_mixed() -> None:
    runs = sweep()
    tokens = np.where(np.arange(len(runs)) % 2, 1e6, 2e6)
    mixed = Runs.of(depth=runs.depth, block_params=runs.block_params, loss=runs.loss, tokens=tokens)
    with pytest.raises(DeepwideError, match="different numbers of tokens"):
        fit_transition(mixed)


def test_too_little_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="at least two depths with 3 sizes"):
        fit_transition(sweep(sizes=SIZES[:2]))
    with pytest.raises(DeepwideError, match="at least two depths"):
        fit_transition(sweep(depths=(4,)))


def test_the_order_of_rows_does_not_matter() -> None:
    runs = sweep()
    order = np.random.default_rng(0).permutation(len(runs))
    first, second = (fit_transition(each, bootstrap=0) for each in (runs, runs.select(order)))
    np.testing.assert_allclose(first.values, second.values, rtol=1e-9)


def test_scaling_every_loss_moves_no_crossing() -> None:
    runs = sweep()
    scaled = Runs.of(depth=runs.depth, block_params=runs.block_params, loss=3 * runs.loss, seed=runs.seed)
    first, second = (fit_transition(each, bootstrap=0) for each in (runs, scaled))
    assert [p.size for p in first.pairs] == pytest.approx([p.size for p in second.pairs], rel=1e-7)


def test_a_fit_goes_through_json_unchanged(fitted: TransitionFit, tmp_path: Path) -> None:
    again = load_fit(fitted.save(tmp_path / "fit.json"))
    assert again == fitted
    assert again.summary() == fitted.summary()
    assert again.law() == fitted.law()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "deepwide-fit-1", "fit": {"kind": "transition"}}'])
def test_a_file_that_is_no_fit_gets_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "fit.json").write_text(text)
    with pytest.raises(DeepwideError):
        load_fit(tmp_path / "fit.json")


def test_transition_sizes_follow_the_line(fitted: TransitionFit) -> None:
    at = fitted.transition(4)
    assert at.value == pytest.approx(48 * math.exp(2 * (fitted["a"] + 4 * fitted["b"])))
    assert at.low is not None
    assert at.high is not None
    assert at.low < at.value < at.high
    assert fitted.placed is not None
    gradient = np.array([2.0, 8.0])
    error = math.sqrt(gradient @ np.array(fitted.placed) @ gradient)
    assert math.log(at.high / at.value) == pytest.approx(t95(fitted.dof) * error)


@pytest.mark.slow
def test_intervals_of_simulated_sweeps_cover() -> None:
    """The whole calibration is benchmarks/fit_calibration.py; this is a fifth of its first line."""
    hits = []
    for seed in range(40):
        fit = fit_transition(
            simulate(LAW, depths=DEPTHS, sizes=list(np.geomspace(2e4, 2e6, 7)), seed=seed), bootstrap=100
        )
        for how in ("likelihood", "bootstrap"):
            limits = fit.interval("b", how)
            hits.append((limits.low or -math.inf) <= LAW.b <= (limits.high or math.inf))
    assert 0.86 <= np.mean(hits) <= 1.0


def test_a_crossings_limits_are_where_equal_curves_are_just_refused(fitted: TransitionFit) -> None:
    for pair in fitted.pairs:
        for limit in (pair.low, pair.high):
            if limit is not None:
                delta, error = fitted.curves.difference(pair.shallow, pair.deep, limit)
                assert abs(delta[0]) / error[0] == pytest.approx(t95(fitted.curves.dof), rel=0.02)


def test_the_lines_error_is_that_of_moving_the_curves() -> None:
    """The delta method against finite differences: move each of the curves' parameters, find the line again."""
    fit = fit_transition(sweep(depths=(2, 4, 8)), bootstrap=0)
    theta, C = np.array(fit.curves.theta), np.array(fit.curves.covariance)

    def line(moved: np.ndarray) -> np.ndarray:
        curves = fit.curves.model_copy(update={"theta": tuple(moved)})
        sizes = []
        for pair in fit.pairs:
            grid = np.geomspace(0.5 * (pair.size or 1), 2 * (pair.size or 1), 200_001)
            sizes.append(grid[np.argmin(np.abs(curves.difference(pair.shallow, pair.deep, grid)[0]))])
        L = np.array([pair.depth for pair in fit.pairs])
        y = np.log(np.sqrt(np.array(sizes) / (12 * L)))
        b = (y[1] - y[0]) / (L[1] - L[0])
        return np.array([y[0] - b * L[0], b])

    step = 1e-3
    J = np.stack([(line(theta + step * e) - line(theta - step * e)) / (2 * step) for e in np.eye(len(theta))], axis=1)
    np.testing.assert_allclose(np.diag(J @ C @ J.T), np.diag(np.array(fit.covariance)), rtol=0.05)


def test_a_gap_that_closes_at_one_end_is_undecided() -> None:
    """From about their crossing on the deeper wins, first within the noise and then surely: one regime is not shown."""
    crossing = 12 * math.sqrt(8) * float(LAW.width(math.sqrt(8))[0]) ** 2
    runs = sweep(depths=(2, 4), sizes=list(crossing * np.geomspace(1.1, 40, 6)))
    (pair,) = fit_transition(runs, bootstrap=0).pairs
    assert pair.verdict == "undecided"


def test_a_crossing_must_lie_where_both_depths_were_trained() -> None:
    runs = parabolas(1e5, SIZES)
    short = runs.select((runs.depth == 2) | (runs.block_params < 6e4))
    assert fit_transition(short, bootstrap=0).pairs[0].status == "extrapolated"


def test_a_depth_that_is_left_out_is_said() -> None:
    runs = sweep()
    diverged = (runs.depth == 8).astype(float)
    broken = Runs.of(
        depth=runs.depth, width=runs.width, block_params=runs.block_params, seed=runs.seed, diverged=diverged,
        loss=np.where(diverged > 0, np.nan, runs.loss),
    )  # fmt: skip
    fit = fit_transition(broken, bootstrap=0)
    assert fit.curves.depths == (1, 2, 4)
    assert any("depth 8" in warning and "16 diverged" in warning for warning in fit.warnings)


def test_a_crossing_without_a_limit_makes_the_line_a_guess() -> None:
    fit = fit_transition(sweep(noise=0.01), bootstrap=0)
    assert any(pair.low is None or pair.high is None for pair in fit.pairs)
    assert any("no limit on one side" in warning for warning in fit.warnings)
    law = fit.law()
    assert law is None or any("guess" in caution for caution in law.cautions)


def test_settings_that_make_no_sense_get_a_sentence(fitted: TransitionFit) -> None:
    for settings in ({"bootstrap": -1}, {"slope": 0.0}, {"slope": -1.0}):
        with pytest.raises(DeepwideError):
            fit_transition(sweep(), **settings)
    with pytest.raises(DeepwideError, match="by likelihood or bootstrap"):
        fitted.interval("b", "boot")  # type: ignore[arg-type]


def test_crossings_in_total_parameters_give_no_law_in_blocks() -> None:
    runs = sweep()
    columns: dict[str, Any] = {"depth": runs.depth, "width": runs.width, "loss": runs.loss, "seed": runs.seed}
    fit = fit_transition(Runs.of(total_params=runs.block_params, **columns), counting="total", bootstrap=0)
    assert fit.names == ("a", "b")
    assert fit.law() is None
    assert "total parameters" in fit.headline()[-1]


UNEVEN = {1: 0.04, 2: 0.004, 4: 0.002, 8: 0.002}


def test_depths_that_scatter_differently_are_warned_of_and_can_have_their_own_noise() -> None:
    runs = sweep(noise=UNEVEN, seeds=1, sizes=list(np.geomspace(1e4, 4e6, 12)))
    same, own = (fit_transition(runs, bootstrap=0, noise=noise) for noise in ("same", "depth"))
    assert any("--noise depth" in warning for warning in same.warnings)
    assert not any("--noise depth" in warning for warning in own.warnings)
    assert own.noise_by_depth is not None
    assert own.noise_by_depth[1] > 5 * own.noise_by_depth[4]
    assert "% of loss at 1, 2, 4 and 8 layers" in own.summary()
    first, last = same.pairs[2], own.pairs[2]
    assert first.size == pytest.approx(last.size), "each depth has its own curve, whatever the noise"
    assert None not in (last.low, last.high)
    assert math.log((last.high or 1) / (last.low or 1)) < 0.5 * math.log((first.high or 1e9) / (first.low or 1))


def test_with_its_own_noise_a_pairs_limits_are_welchs() -> None:
    fit = fit_transition(sweep(noise=UNEVEN, seeds=1), bootstrap=0, noise="depth")
    curves, (pair, *_) = fit.curves, fit.pairs[1:]
    assert curves.dofs == pytest.approx((5, 5, 5, 5))
    assert pair.high is not None
    parts = [g @ np.array(curves.covariance) @ g for g in (curves.gradient(d, pair.high)[0] for d in (2, 4))]
    welch = sum(parts) ** 2 / sum(v**2 / 5 for v in parts)
    delta, error = curves.difference(2, 4, pair.high)
    assert abs(delta[0]) / error[0] == pytest.approx(t95(welch), rel=0.02)
    assert error[0] ** 2 == pytest.approx(sum(parts))


def test_the_lines_freedom_is_that_of_the_depths_it_hangs_on() -> None:
    runs = sweep(noise=UNEVEN, seeds=1)
    small = simulate(LAW, depths=(16,), sizes=SIZES[4:8], noise=0.03, seeds=1)
    names = ("depth", "width", "block_params", "loss")
    both = Runs.of(**{name: np.concatenate([getattr(runs, name), getattr(small, name)]) for name in names})  # type: ignore[arg-type]
    fit = fit_transition(both, bootstrap=0, noise="depth")
    assert min(fit.curves.dofs) < 2
    used = {depth for i in fit.used for depth in (fit.pairs[i].shallow, fit.pairs[i].deep)}
    assert 16 not in used
    assert fit.dof == 5


def test_noise_that_cannot_be_told_or_named_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="no depth was trained at enough sizes"):
        fit_transition(sweep(sizes=SIZES[:3], seeds=1), bootstrap=0, noise="depth")
    few = sweep(noise=UNEVEN)
    few = few.select((few.depth != 8) | (few.block_params > 5e5))
    fit = fit_transition(few, bootstrap=0, noise="depth")
    assert any("depth 8 cannot tell its own noise" in warning for warning in fit.warnings)
    assert (fit.pairs[2].low, fit.pairs[2].high) == (None, None)
    assert fit.pairs[1].low is not None
    with pytest.raises(DeepwideError, match="same or depth"):
        fit_transition(sweep(), noise="loud")  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match="noise of depth 8 is not given"):
        sweep(noise={1: 0.1, 2: 0.1, 4: 0.1})


def curved(gap: Callable[[np.ndarray], np.ndarray], noise: float = 0.0005) -> Runs:
    """2 and 4 layers whose gap δ in ln loss, over ln size from −3 to 3, is the given function of x."""
    x = np.tile(np.linspace(-3, 3, 9), 2)
    depth = np.repeat([2, 4], 9)
    loss = np.exp(1 - 0.1 * x + np.where(depth == 2, gap(x), 0.0) + np.random.default_rng(3).normal(0, noise, 18))
    return Runs.of(depth=depth, block_params=1e5 * np.exp(x), loss=loss)


def test_the_reverse_of_two_regimes_is_called_so() -> None:
    fit = fit_transition(curved(lambda x: -0.01 * x), bootstrap=0)
    (pair,) = fit.pairs
    assert (pair.status, pair.size, pair.verdict) == ("none", None, "not seen")
    assert "the deeper wins up to" in pair.words
    assert "the reverse" in pair.words
    assert fit.verdict()[0] == "not seen"
    assert "at all sizes" not in fit.verdict()[1]


def test_a_deeper_that_wins_in_the_middle_only_is_no_regime() -> None:
    fit = fit_transition(curved(lambda x: 0.02 - 0.01 * x**2), bootstrap=0)
    (pair,) = fit.pairs
    assert pair.until == pytest.approx(1e5 * math.exp(math.sqrt(2)), rel=0.1)
    assert "only" in pair.words
    assert "again at" in pair.words
    assert pair.verdict == "undecided"


def test_depths_that_make_no_difference_get_no_crossing() -> None:
    """Equal curves cross at random; only if they can be told apart is that a crossing."""
    fits = []
    for seed in range(100, 130):
        x = np.tile(np.linspace(-3, 3, 9), 2)
        loss = np.exp(1 - 0.1 * x + np.random.default_rng(seed).normal(0, 0.002, 18))
        runs = Runs.of(depth=np.repeat([2, 4], 9), block_params=1e5 * np.exp(x), loss=loss)
        fits.append(fit_transition(runs, bootstrap=0))
    assert sum(fit.pairs[0].size is not None for fit in fits) <= 4
    assert all(fit.pairs[0].verdict != "seen" for fit in fits)
    same = fit_transition(curved(lambda x: 0 * x, noise=0.0), bootstrap=0)
    assert "the same at every size" in same.pairs[0].words
    assert not any("scatter" in warning for warning in same.warnings), "rounding is no noise"


def test_a_crossing_that_one_cell_makes_is_warned_of_without_a_law_too() -> None:
    runs = curved(lambda x: -0.02 + 0 * x)
    loss = runs.loss.copy()
    loss[-1] *= 0.92
    runs = Runs.of(depth=runs.depth, block_params=runs.block_params, loss=loss)
    fit = fit_transition(runs, bootstrap=0)
    assert fit.law() is None
    assert any("the crossing of 2 and 4 layers hangs on one cell: without depth 4" in each for each in fit.warnings)
    calm = fit_transition(curved(lambda x: 0.02 * x), bootstrap=0)
    assert not any("hangs" in each or "moves" in each for each in calm.warnings)


def test_the_summary_says_where_more_layers_pay_and_what_embeddings_are(fitted: TransitionFit) -> None:
    text = fitted.summary()
    size = fitted.transition(4)
    said = [show_count(round(value or 0)) for value in (size.value, size.low, size.high)]
    assert f"{said[0]} ({said[1]} to {said[2]}) for 4" in text
    assert "between seeds" in text
    assert fitted.seed_noise == pytest.approx(0.002, rel=0.3)
    assert fitted.pairs[1].resampled is not None
    low, high = fitted.pairs[1].resampled
    assert low < (fitted.pairs[1].size or 0) < high


def test_curves_that_miss_more_than_seeds_explain_are_warned_of() -> None:
    fit = fit_transition(sweep(noise=0.00002, seed_effect=0.0), bootstrap=0)
    assert any("a parabola does not fit" in warning for warning in fit.warnings)
    assert not any("a parabola does not fit" in warning for warning in fit_transition(sweep(), bootstrap=0).warnings)


@pytest.mark.parametrize("place", [(0, 1e5), (2, -1.0), (2, math.nan), (2, [1e4, 1e5])])
def test_only_a_size_can_be_predicted(fitted: TransitionFit, place: tuple[int, float]) -> None:
    with pytest.raises(DeepwideError):
        fitted.predict(*place)
