"""Surfaces: exact on exact data, right on other people's, honest about what they cannot know."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, fit_surface, read_runs
from deepwide.fitting.huber import Problem, objective
from deepwide.laws import COMPUTE_LAWS, compute_law, find_law, load_law, save_law
from deepwide.planning import plan
from fitting.builders import (
    SHAPE_TRUTH,
    TRUTH,
    chinchilla_like,
    codes,
    epoch_points,
    gemstones_like,
    huber_of_ln,
    without_the_five_highest,
)

GEMSTONES = (0.4282048563, 1.082043835, -0.2186969889, 6.0902355695, 10.4720427681)
GEMSTONES_EXPONENTS = (0.2195783536, 0.4758917337, 0.3636454068, 0.4935127042)


def test_exact_losses_give_the_exact_surface_in_tokens() -> None:
    fit = fit_surface(chinchilla_like(), bootstrap=0)
    assert fit.values == pytest.approx(TRUTH, rel=1e-6)
    assert fit.objective < 1e-16
    assert fit.noise < 1e-8
    assert not fit.warnings


def test_exact_losses_give_the_exact_surface_in_shape() -> None:
    fit = fit_surface(gemstones_like(), terms="shape", bootstrap=0)
    assert fit.values == pytest.approx(SHAPE_TRUTH, rel=1e-4)
    assert fit.objective < 1e-16


def test_under_noise_the_truth_mostly_lies_within_the_intervals() -> None:
    held: dict[str, list[bool]] = {"bootstrap": [], "sandwich": []}
    for seed in range(10):
        fit = fit_surface(chinchilla_like(0.005, seed=seed), bootstrap=100)
        assert fit.noise == pytest.approx(0.005, rel=0.4)
        for how, hits in held.items():
            intervals = [fit.interval(name, how) for name in fit.names]  # type: ignore[arg-type]
            hits += [i.low < true < i.high for i, true in zip(intervals, TRUTH, strict=True)]  # type: ignore[operator]
    assert 0.8 <= np.mean(held["bootstrap"]) < 1
    assert 0.8 <= np.mean(held["sandwich"]) < 1


def test_the_order_of_rows_does_not_matter() -> None:
    runs = chinchilla_like(0.01)
    order = np.random.default_rng(5).permutation(len(runs))
    one, other = (fit_surface(r, bootstrap=30) for r in (runs, runs.select(order)))
    assert one.values == pytest.approx(other.values, rel=1e-6)
    assert np.array(one.resamples) == pytest.approx(np.array(other.resamples), rel=1e-2)


def test_other_units_of_tokens_change_only_their_coefficient() -> None:
    runs = chinchilla_like(0.01)
    one, other = (fit_surface(r, bootstrap=30) for r in (runs, replace(runs, tokens=runs.tokens / 1e9)))
    for name in ("E", "A", "alpha", "beta"):
        assert one[name] == pytest.approx(other[name], rel=1e-6)
        assert one.interval(name, "bootstrap").low == pytest.approx(other.interval(name, "bootstrap").low, rel=1e-5)
        assert one.standard_errors[name] == pytest.approx(other.standard_errors[name], rel=1e-4)
    assert one["B"] == pytest.approx(other["B"] * 1e9 ** one["beta"], rel=1e-6)


def test_a_loss_in_other_units_scales_the_coefficients() -> None:
    runs = chinchilla_like(0.01)
    one, other = (fit_surface(r, bootstrap=0) for r in (runs, replace(runs, loss=runs.loss / np.log(2))))
    assert np.array(other.values[:3]) == pytest.approx(np.array(one.values[:3]) / np.log(2), rel=1e-6)
    assert other.values[3:] == pytest.approx(one.values[3:], rel=1e-6)


def with_a_diverged_run(params: float, tokens: float, noise: float = 0.01) -> Runs:
    runs = chinchilla_like(noise)
    extra = {"total_params": params, "tokens": tokens, "loss": np.nan, "diverged": 1.0}
    columns: dict[str, Any] = {name: np.append(getattr(runs, name), value) for name, value in extra.items()}
    return Runs.of(**columns)


def test_a_diverged_run_that_was_expected_to_be_bad_changes_nothing() -> None:
    plain = fit_surface(chinchilla_like(0.01), bootstrap=0)
    fit = fit_surface(with_a_diverged_run(3e7, 1e6), bootstrap=0)
    assert fit.values == pytest.approx(plain.values, rel=1e-5)
    assert (fit.diverged, fit.runs) == (1, 49)


def test_a_diverged_run_that_was_expected_to_be_good_moves_the_fit() -> None:
    plain = fit_surface(chinchilla_like(0.01), bootstrap=0)
    fit = fit_surface(with_a_diverged_run(3e9, 1e11), bootstrap=0)
    assert abs(fit["E"] - plain["E"]) > 1e-3
    assert fit.predict(params=3e9, tokens=1e11) > plain.predict(params=3e9, tokens=1e11)
    last = fit.residuals[-1]
    assert last.diverged
    assert last.residual > 0
    assert "1 of them diverged" in fit.summary()


def test_the_refit_of_chinchilla_lands_within_epochs_intervals(shared_data: Path) -> None:
    runs = epoch_points(shared_data)
    assert len(runs) == 245
    kept = without_the_five_highest(runs)
    fit = fit_surface(kept, bootstrap=300)
    assert len(kept) == fit.runs == 240
    for name, low, high in (("E", 1.769, 1.871), ("alpha", 0.317, 0.373), ("beta", 0.331, 0.415)):
        assert low < fit[name] < high
        interval = fit.interval(name, "bootstrap")
        assert interval.low == pytest.approx(low, abs=0.15 * (high - low))
        assert interval.high == pytest.approx(high, abs=0.15 * (high - low))
    assert fit.objective < huber_of_ln(COMPUTE_LAWS["epoch"][1:], kept) < 1.01 * fit.objective
    assert huber_of_ln(COMPUTE_LAWS["hoffmann"][1:], kept) > 4 * fit.objective
    assert fit.evaluations < 600
    ratio = fit.optimum(1e21).tokens_per_param
    assert 15 < ratio.low < 20 < ratio.value < ratio.high < 30  # type: ignore[operator]


def test_the_five_highest_losses_move_chinchillas_exponent_of_tokens(shared_data: Path) -> None:
    fit = fit_surface(epoch_points(shared_data), bootstrap=0)
    assert fit["beta"] > 0.415
    assert fit["E"] > 1.871


def test_gemstones_published_surface_is_their_first_file_not_quite_minimised(shared_data: Path) -> None:
    path = shared_data / "gemstones" / "wandb_dfs" / "wandb_df_for_fitting_hot_100b+.jsonl"
    runs = read_runs(path, {"total_params": "params_active_precise"})
    x = np.log([runs.width, runs.depth, runs.total_params, runs.tokens])
    problem = Problem(x, np.log(runs.loss), runs.diverged, 1e-4)
    theirs = objective(problem, np.array([[*GEMSTONES, *GEMSTONES_EXPONENTS]]), np.ones((1, 770)))[0]
    assert theirs == pytest.approx(0.0002949708, rel=1e-6)
    fit = fit_surface(runs, terms="shape", delta=1e-4, bootstrap=0)
    assert 0.999 * theirs < fit.objective < theirs
    assert fit.values[5:8] == pytest.approx(GEMSTONES_EXPONENTS[:3], abs=0.02)
    law = fit.law()
    published = find_law("gemstones")
    assert law is not None
    assert law.layer_matrices == pytest.approx(15, rel=0.01)
    assert law.embedding_rows == pytest.approx(100608, rel=0.01)
    assert law.optimum(2e9)[0] == pytest.approx(published.optimum(2e9)[0], rel=0.05)  # type: ignore[attr-defined]
    assert "shape-checkpoints" in codes(fit.warnings)


def test_the_law_of_a_surface_in_shape_can_be_planned_with(tmp_path: Path) -> None:
    fit = fit_surface(gemstones_like(), terms="shape", bootstrap=25)
    law = fit.law()
    assert law is not None
    assert (law.layer_matrices, law.embedding_rows) == pytest.approx((15, 100608), rel=1e-9)
    assert law.loss(12, 512, 3e10) == pytest.approx(
        fit.predict(width=512, depth=12, params=15 * 12 * 512**2 + 100608 * 512, tokens=3e10)
    )
    assert fit.predict(width=512, depth=12, params=98_697_216, tokens=3e10) == pytest.approx(
        gemstones_like().loss[(gemstones_like().width == 512) & (gemstones_like().depth == 12)][1], rel=1e-6
    )
    save_law(law, tmp_path / "law.json")
    assert load_law(tmp_path / "law.json") == law
    best = fit.best_depth(1e9)
    assert best.low <= best.value * 1.001  # type: ignore[operator]
    assert best.value == pytest.approx(law.optimum(1e9)[0][0])
    assert law.tokens_per_param == pytest.approx(
        np.exp(np.log(gemstones_like().tokens / gemstones_like().total_params).mean())
    )


def test_the_law_of_a_surface_carries_the_bootstraps_errors() -> None:
    fit = fit_surface(gemstones_like(0.003), terms="shape", bootstrap=100)
    law = fit.law()
    assert law is not None
    for total in (1e8, 1e9):
        best = fit.best_depth(total)
        _, width = law.optimum(total)
        curve = law.depth(total - law.embedding_rows * width[0]).at()
        assert (curve.value, curve.low, curve.high) == pytest.approx((best.value, best.low, best.high), rel=0.03)
    assert fit_surface(gemstones_like(0.003), terms="shape", bootstrap=0).law().depth(1e9).at().low is None  # type: ignore[union-attr]


def test_a_best_depth_that_no_run_has_is_said_in_the_headline() -> None:
    runs = gemstones_like(0.003)
    shallow = fit_surface(runs.select(runs.depth <= 12), terms="shape", bootstrap=0)
    assert shallow.best_depth(shallow.params_range[1]).value > 12
    assert "But the runs have 3 to 12 layers." in shallow.headline()[1]
    assert "But" not in fit_surface(runs, terms="shape", bootstrap=0).headline()[1]


def test_counting_blocks_leaves_the_embeddings_out_of_the_law() -> None:
    fit = fit_surface(gemstones_like(0.002), terms="shape", counting="block", bootstrap=0)
    law = fit.law()
    assert law is not None
    assert (law.layer_matrices, law.embedding_rows) == pytest.approx((15, 0))
    assert fit.params_range == (15 * 3 * 128**2, 15 * 60 * 2048**2)


def test_a_surface_in_tokens_predicts_no_depth_and_says_so() -> None:
    fit = fit_surface(chinchilla_like(0.005), bootstrap=0)
    assert fit.law() is None
    assert any("predicts no depth" in line for line in fit.headline())
    with pytest.raises(DeepwideError, match="predicts no depth"):
        fit.best_depth(1e9)


def test_the_optimum_is_the_least_loss_at_its_flops_and_warns_outside_the_runs() -> None:
    fit = fit_surface(chinchilla_like(0.005), bootstrap=100)
    best = fit.optimum(1e20)
    N = best.params.value * np.geomspace(0.5, 2, 201)
    losses = fit.predict(params=N, tokens=1e20 / (6 * N))
    assert losses.argmin() == 100
    assert best.tokens_per_param.value == pytest.approx(best.tokens.value / best.params.value)
    assert best.params.low < best.params.value < best.params.high  # type: ignore[operator]
    assert not best.notes
    assert fit.flops_range == pytest.approx((6 * 3e7 * 1e9, 6 * 3e9 * 1e11))
    assert codes(fit.optimum(1e25).notes) == ["flops-outside", "optimum-outside", "optimum-outside"]
    assert codes(fit.optimum(1e16).notes)[0] == "flops-outside"
    with pytest.raises(DeepwideError, match="above 0"):
        fit.optimum(-1.0)


def test_bad_input_gives_one_sentence() -> None:
    runs = chinchilla_like()
    cases = [
        (lambda: fit_surface(runs.select(slice(0, 5))), "needs more finished runs"),
        (lambda: fit_surface(replace(runs, total_params=np.full(48, 1e8))), "1 different params"),
        (lambda: fit_surface(replace(runs, tokens=np.full(48, np.nan))), "column 'tokens'"),
        (lambda: fit_surface(runs, terms="shape"), "column 'width'"),
        (lambda: fit_surface(runs, counting="block"), "column 'block_params'"),
        (lambda: fit_surface(runs, delta=0.0), "delta must be above 0"),
        (lambda: fit_surface(runs, bootstrap=-1), "must be a whole number of at least 0"),
        (lambda: fit_surface(runs, terms="depth"), "'tokens' or 'shape'"),  # type: ignore[arg-type]
        (lambda: fit_surface(runs, unit="row"), "'group' or 'shape'"),  # type: ignore[arg-type]
    ]
    for ask, words in cases:
        with pytest.raises(DeepwideError, match=words) as caught:
            ask()
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("power", [0, -1])
def test_parameters_that_do_not_grow_with_depth_give_no_law_but_a_sentence(power: int) -> None:
    """The count of matrices per layer was 0 then, which no law accepts: a traceback."""
    runs = gemstones_like(0.003)
    strange = replace(runs, total_params=runs.width * 1e5 * runs.depth**power)
    fit = fit_surface(strange, terms="shape", bootstrap=0)
    assert fit.layer_matrices == 0
    assert fit.law() is None
    assert "count-unrelated" in codes(fit.warnings)
    assert "no law for plan" in fit.summary()
    with pytest.raises(DeepwideError, match="do not grow"):
        fit.best_depth(1e9)


def test_a_surface_in_tokens_is_a_compute_law_that_plans(tmp_path: Path) -> None:
    fit = fit_surface(chinchilla_like(0.005), bootstrap=0)
    path = fit.save_law(tmp_path / "compute.json")
    law = compute_law(path)
    assert law[1:] == fit.values
    expected = fit.optimum(1e20)
    assert law.optimum(1e20) == pytest.approx((expected.params.value, expected.tokens.value))
    planned = plan("1e20", kind="flops", compute=str(path))
    assert planned.shape.total_params == pytest.approx(expected.params.value, rel=0.2)


def test_the_verdict_of_a_surface_needs_every_exponent_above_zero() -> None:
    seen = fit_surface(chinchilla_like(0.002), bootstrap=50).verdict()
    assert seen.outcome == "seen"
    assert seen.measured is not None
    assert seen.measured.low is not None
    assert 0 < seen.measured.low < 0.34
    N, D = (g.ravel() for g in np.meshgrid(np.geomspace(3e7, 3e9, 8), np.geomspace(1e9, 1e11, 6)))
    noise = np.random.default_rng(0).normal(0, 1e-3, len(N))
    flat = Runs.of(total_params=N, tokens=D, loss=(1.8 + 400 / N**0.34) * np.exp(noise))
    assert fit_surface(flat, bootstrap=50).verdict().outcome == "undecided"


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_parameters_that_no_matrices_of_such_a_width_have_give_no_law_either(factor: float) -> None:
    """A random table had 1e-29 matrices per layer: a traceback."""
    runs = gemstones_like(0.003)
    fit = fit_surface(replace(runs, total_params=12 * factor * runs.depth * runs.width**2), terms="shape", bootstrap=0)
    assert fit.law() is None
    assert "count-unrelated" in codes(fit.warnings)
