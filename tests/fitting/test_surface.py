"""Surfaces: exact on exact data, right on other people's, not to be improved, honest about what they cannot know."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, read_runs
from deepwide.fitting.diagnosis import unseen
from deepwide.fitting.fit import read_document
from deepwide.fitting.resampling import draws_of, units_of
from deepwide.fitting.robust import Problem, forward, objective, projected, sandwich
from deepwide.fitting.robust import minimise as polish
from deepwide.fitting.surface import SurfaceFit, fit_surface
from deepwide.laws import COMPUTE_LAWS, find_law, load_law, save_law

TRUTH = (1.8, 400.0, 1500.0, 0.34, 0.36)
SHAPE_TRUTH = (0.4, 1.1, -0.2, 6.0, 10.5, 0.25, 0.5, 0.36, 0.5)
GEMSTONES = (0.4282048563, 1.082043835, -0.2186969889, 6.0902355695, 10.4720427681)
GEMSTONES_EXPONENTS = (0.2195783536, 0.4758917337, 0.3636454068, 0.4935127042)


def chinchilla_like(noise: float = 0.0, seed: int = 0, sizes: int = 8, lengths: int = 6, **more: Any) -> Runs:
    N, D = (g.ravel() for g in np.meshgrid(np.geomspace(3e7, 3e9, sizes), np.geomspace(1e9, 1e11, lengths)))
    E, A, B, alpha, beta = TRUTH
    loss = (E + A / N**alpha + B / D**beta) * np.exp(np.random.default_rng(seed).normal(0, noise, len(N)))
    return Runs.of(total_params=N, tokens=D, loss=loss, **more)


def gemstones_like(noise: float = 0.0) -> Runs:
    L, d, T = (g.ravel() for g in np.meshgrid([3, 6, 12, 24, 36, 60], [128, 256, 512, 1024, 2048], [5e9, 3e10, 2e11]))
    P = 15 * L * d**2 + 100608 * d
    c, p = np.array(SHAPE_TRUTH[:5]), np.array(SHAPE_TRUTH[5:])
    loss = np.exp(c[0]) + np.exp(c[1:, None] - p[:, None] * np.log([d, L, P, T])).sum(axis=0)
    loss = loss * np.exp(np.random.default_rng(0).normal(0, noise, len(L)))
    return Runs.of(depth=L, width=d, total_params=P, block_params=15 * L * d**2, tokens=T, loss=loss)


def epoch_points(shared_data: Path) -> Runs:
    path = shared_data / "gemstones" / "data" / "epoch_chinchilla_svg_extracted_data.csv"
    return read_runs(path, {"total_params": "Model Size", "train_flops": "Training FLOP"})


def without_the_five_highest(runs: Runs) -> Runs:
    return runs.select(runs.loss < np.sort(runs.loss)[-5])


def huber_of_ln(values: Any, runs: Runs, delta: float = 1e-3) -> float:
    """The objective of E, A, B, alpha, beta, written a second time."""
    E, A, B, alpha, beta = values
    r = np.log(runs.loss) - np.log(E + A / runs.total_params**alpha + B / runs.tokens**beta)
    return float(np.where(np.abs(r) <= delta, r**2 / 2, delta * (np.abs(r) - delta / 2)).sum())


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
    held: dict[str, list[bool]] = {"bootstrap": [], "likelihood": []}
    for seed in range(10):
        fit = fit_surface(chinchilla_like(0.005, seed=seed), bootstrap=100)
        assert fit.noise == pytest.approx(0.005, rel=0.4)
        for how, hits in held.items():
            intervals = [fit.interval(name, how) for name in fit.names]  # type: ignore[arg-type]
            hits += [i.low < true < i.high for i, true in zip(intervals, TRUTH, strict=True)]  # type: ignore[operator]
    assert 0.8 <= np.mean(held["bootstrap"]) < 1
    assert 0.8 <= np.mean(held["likelihood"]) < 1


@pytest.mark.parametrize("delta", [1e-3, 1e-1])
def test_scipy_cannot_improve_the_objective(delta: float) -> None:
    runs = chinchilla_like(0.01, seed=3)
    fit = fit_surface(runs, bootstrap=0, delta=delta)
    assert fit.objective == pytest.approx(huber_of_ln(fit.values, runs, delta), rel=1e-9)
    start = np.array([*np.log(fit.values[:3]), *fit.values[3:]])

    def scaled(v: Any) -> float:
        return huber_of_ln([*np.exp(v[:3]), *v[3:]], runs, delta) / fit.objective

    for method in ("Nelder-Mead", "BFGS", "L-BFGS-B"):
        assert minimize(scaled, start, method=method).fun > 1 - 1e-8


def test_the_gradient_and_the_hessian_are_the_objectives() -> None:
    from deepwide.fitting.robust import _state

    random = np.random.default_rng(1)
    censored = np.arange(30) < 8
    problem = Problem(random.normal(0, 1, (2, 30)), random.normal(0.8, 0.5, 30), censored, 0.4)
    theta, weights = random.uniform(0.2, 0.8, (3, 5)), random.uniform(0, 2, (3, 30))
    state = _state(problem, theta, weights, 0.4)
    step = 1e-6
    for i in range(5):
        move = step * np.eye(5)[i]
        up, down = (_state(problem, theta + sign * move, weights, 0.4) for sign in (1, -1))
        assert (up.objective - down.objective) / (2 * step) == pytest.approx(state.gradient[:, i], rel=1e-5, abs=1e-7)
        assert (up.gradient - down.gradient) / (2 * step) == pytest.approx(state.hessian[:, i], rel=1e-4, abs=1e-5)
    assert state.objective == pytest.approx(objective(problem, theta, weights), rel=1e-12)


def test_projection_finds_the_coefficients_of_given_exponents() -> None:
    runs = chinchilla_like()
    x = np.log([runs.total_params, runs.tokens])
    centre = x.mean(axis=1, keepdims=True)
    problem = Problem(x - centre, np.log(runs.loss), runs.diverged, 1e-3)
    theta, _ = projected(problem, np.array([TRUTH[3:]]))
    assert np.exp(theta[0, :3] + [0, *(theta[0, 3:] * centre[:, 0])]) == pytest.approx(TRUTH[:3], rel=1e-8)


def test_a_batch_gives_what_its_members_give_alone() -> None:
    runs = chinchilla_like(0.01)
    x = np.log([runs.total_params, runs.tokens])
    problem = Problem(x - x.mean(axis=1, keepdims=True), np.log(runs.loss), runs.diverged, 1e-3)
    weights = draws_of(units_of(runs, "cell"), 5, 6, seed=0)
    start = np.tile([0.6, -1.0, -1.0, 0.3, 0.3], (6, 1))
    together = polish(problem, start, weights)
    assert together.converged.all()
    for i in range(6):
        repeated = np.repeat(np.arange(len(runs)), weights[i].astype(int))
        alone = Problem(problem.x[:, repeated], problem.log_loss[repeated], problem.censored[repeated], 1e-3)
        found = polish(alone, start[:1], np.ones((1, len(repeated))))
        assert found.objective[0] == pytest.approx(together.objective[i], rel=1e-8)


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
    assert any("checkpoints" in each for each in fit.warnings)


def test_resampling_checkpoints_with_their_shape_widens_the_intervals() -> None:
    runs = gemstones_like(0.003)
    shift = np.exp(np.random.default_rng(2).normal(0, 0.01, 30))[units_of(runs, "shape")]
    runs = replace(runs, loss=runs.loss * shift)
    widths = []
    for unit in ("cell", "shape"):
        fit = fit_surface(runs, terms="shape", unit=unit, bootstrap=60)
        interval = fit.interval("depth_exponent", "bootstrap")
        widths.append(interval.high - interval.low)  # type: ignore[operator]
        assert fit.dof == (90 if unit == "cell" else 30) - 9
    assert widths[1] > 1.2 * widths[0]


def test_runs_of_one_cell_are_resampled_together() -> None:
    runs = chinchilla_like(0.01)
    doubled = runs.select(np.repeat(np.arange(len(runs)), 2))
    draws = draws_of(units_of(doubled, "cell"), 5, 20, seed=0)
    assert (draws[:, ::2] == draws[:, 1::2]).all()
    assert (draws.sum(axis=1) == len(doubled)).all()
    one, two = (sandwich_of(r) for r in (runs, doubled))
    assert two == pytest.approx(one, rel=1e-6)


def sandwich_of(runs: Runs) -> Any:
    """At the same θ, with the same window, copies of a run in one unit are no news."""
    x = np.log([runs.total_params, runs.tokens])
    problem = Problem(x - x.mean(axis=1, keepdims=True), np.log(runs.loss), runs.diverged, 1.0)
    return sandwich(problem, np.array([0.6, -1.0, -1.0, 0.3, 0.3]), units_of(runs, "cell"))


def test_with_a_wide_corner_the_sandwich_is_least_squares_own() -> None:
    runs = chinchilla_like(0.01)
    x = np.log([runs.total_params, runs.tokens])
    problem = Problem(x - x.mean(axis=1, keepdims=True), np.log(runs.loss), runs.diverged, 1.0)
    theta = np.array([0.6, -1.0, -1.0, 0.3, 0.3])
    f, _, G = (part[0] for part in forward(problem, theta[None]))
    bread = np.linalg.inv(G @ G.T)
    meat = (G * (problem.log_loss - f) ** 2) @ G.T
    assert sandwich_of(runs) == pytest.approx(48 / 43 * bread @ meat @ bread, rel=1e-6)


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


def test_a_surface_in_tokens_names_no_depth_and_says_so() -> None:
    fit = fit_surface(chinchilla_like(0.005), bootstrap=0)
    assert fit.law() is None
    assert any("names no depth" in line for line in fit.headline())
    with pytest.raises(DeepwideError, match="names no depth"):
        fit.best_depth(1e9)


def test_the_optimum_is_the_least_loss_at_its_flops_and_warns_outside_the_runs() -> None:
    fit = fit_surface(chinchilla_like(0.005), bootstrap=100)
    best = fit.optimum(1e20)
    N = best.params.value * np.geomspace(0.5, 2, 201)
    losses = fit.predict(params=N, tokens=1e20 / (6 * N))
    assert losses.argmin() == 100
    assert best.tokens_per_param.value == pytest.approx(best.tokens.value / best.params.value)
    assert best.params.low < best.params.value < best.params.high  # type: ignore[operator]
    assert not best.warnings
    assert fit.flops_range == pytest.approx((6 * 3e7 * 1e9, 6 * 3e9 * 1e11))
    assert [each.split()[1] for each in fit.optimum(1e25).warnings] == ["FLOPs", "optimum's", "optimum's"]
    assert "FLOPs lie outside the runs" in fit.optimum(1e16).warnings[0]
    with pytest.raises(DeepwideError, match="above 0"):
        fit.optimum(-1.0)


def test_a_term_that_is_not_there_is_called_unseen() -> None:
    N, D = (g.ravel() for g in np.meshgrid(np.geomspace(3e7, 3e9, 8), np.geomspace(1e9, 1e11, 6)))
    noise = np.random.default_rng(0).normal(0, 1e-3, len(N))
    fit = fit_surface(Runs.of(total_params=N, tokens=D, loss=(1.8 + 400 / N**0.34) * np.exp(noise)), bootstrap=30)
    assert fit.warnings
    assert fit["alpha"] == pytest.approx(0.34, abs=0.05)
    fit.headline()


def test_unseen_names_what_went_to_zero_and_what_stopped() -> None:
    x = np.log(np.geomspace(1, 100, 20))
    problem = Problem(np.array([x, x]) - x.mean(), np.full(20, 0.5), np.zeros(20, dtype=bool), 1e-3)
    theta = np.array([0.5, -20.0, -1.0, 0.3, 4.0])
    said = unseen(problem, theta, forward(problem, theta[None])[1][0], ("E", "A", "B", "alpha", "beta"))
    assert [each.split()[0] for each in said] == ["A", "beta"]


def test_few_sizes_and_sizes_that_go_together_are_warned_of() -> None:
    few = fit_surface(chinchilla_like(0.005, sizes=4), bootstrap=0)
    assert any("only 4 different params" in each for each in few.warnings)
    runs = chinchilla_like(0.002)
    together = replace(runs, tokens=runs.total_params * 20 * np.exp(np.random.default_rng(0).normal(0, 0.05, 48)))
    assert any("go together" in each for each in fit_surface(together, bootstrap=0).warnings)


def test_a_run_that_decides_alone_is_named() -> None:
    runs = chinchilla_like(0.002, sizes=5, lengths=5)
    alone = Runs.of(
        total_params=np.append(runs.total_params, 1e5),
        tokens=np.append(runs.tokens, 1e10),
        loss=np.append(runs.loss, 13.0),
    )
    fit = fit_surface(alone, bootstrap=0)
    assert any("without row 26" in each for each in fit.warnings)
    assert fit.residuals[25].leverage == max(r.leverage for r in fit.residuals)
    assert sum(r.leverage for r in fit.residuals) == pytest.approx(5)
    assert not fit_surface(runs, bootstrap=0).warnings


def test_bad_input_gives_one_sentence() -> None:
    runs = chinchilla_like()
    cases = [
        (lambda: fit_surface(runs.select(slice(0, 5))), "needs more finished runs"),
        (lambda: fit_surface(replace(runs, total_params=np.full(48, 1e8))), "1 different params"),
        (lambda: fit_surface(replace(runs, tokens=np.full(48, np.nan))), "column 'tokens'"),
        (lambda: fit_surface(runs, terms="shape"), "column 'width'"),
        (lambda: fit_surface(runs, counting="block"), "column 'block_params'"),
        (lambda: fit_surface(runs, delta=0.0), "delta must be above 0"),
        (lambda: fit_surface(runs, bootstrap=-1), "bootstrap at least 0"),
        (lambda: fit_surface(runs, terms="depth"), "'tokens' or 'shape'"),  # type: ignore[arg-type]
        (lambda: fit_surface(runs, unit="row"), "'cell' or 'shape'"),  # type: ignore[arg-type]
    ]
    for ask, words in cases:
        with pytest.raises(DeepwideError, match=words) as caught:
            ask()
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


def test_a_fit_reads_back_as_it_was_saved(tmp_path: Path) -> None:
    for runs, terms in ((chinchilla_like(0.01), "tokens"), (gemstones_like(0.01), "shape")):
        fit = fit_surface(runs, terms=terms, bootstrap=25)  # type: ignore[arg-type]
        back = SurfaceFit.model_validate(read_document(fit.save(tmp_path / f"{terms}.json")))
        assert back == fit
        assert back.summary() == fit.summary()


def test_the_same_seed_gives_the_same_resamples_and_another_does_not() -> None:
    runs = chinchilla_like(0.01)
    one, same, other = (fit_surface(runs, bootstrap=25, seed=seed).resamples for seed in (1, 1, 2))
    assert one == same
    assert one != other
