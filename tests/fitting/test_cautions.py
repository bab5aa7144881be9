"""What a careful reader is warned of."""

import math
from dataclasses import replace

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import (
    Runs,
    fit_joint,
    fit_ridge,
    fit_surface,
    fit_transition,
)
from deepwide.fitting.cautions import about_terms
from deepwide.fitting.huber import Problem, forward
from deepwide.laws import TransitionLaw
from fitting.builders import LAW, SIZES, UNEVEN, chinchilla_like, codes, curved, noted, one_bowl, sweep


def test_an_answer_that_depends_on_one_group_warns() -> None:
    """Four and eight layers would cross beyond the data; one lucky cell brings them together inside."""
    runs = sweep(noise=0.0005, depths=(2, 4, 8), sizes=SIZES[:5], off_size=0.0)
    assert fit_transition(runs, bootstrap=0).crossings[1].status != "bracketed"
    lucky = (runs.depth == 8) & (runs.block_params == runs.block_params[runs.depth == 8].max())
    loss = np.where(lucky, 0.97, 1.0) * runs.loss
    hanging = Runs.of(depth=runs.depth, width=runs.width, block_params=runs.block_params, loss=loss, seed=runs.seed)
    fit = fit_transition(hanging, bootstrap=0)
    assert fit.crossings[1].status == "bracketed"
    assert "depth 8 at 307K" in noted("depends-on-one", fit.warnings)["groups"]


def test_large_embeddings_are_a_warning() -> None:
    runs = sweep()
    total = runs.block_params + 30_000
    shared = Runs.of(
        depth=runs.depth, width=runs.width, block_params=runs.block_params, total_params=total, loss=runs.loss
    )
    fit = fit_transition(shared, bootstrap=0)
    assert fit.embedding_share is not None
    assert fit.embedding_share[1] > 0.7
    assert noted("embeddings-large", fit.warnings)["share"] == fit.embedding_share[1]
    by_total = fit_transition(shared, bootstrap=0, counting="total")
    assert by_total.params_range[0] > 30_000


def test_a_depth_that_is_left_out_is_noted() -> None:
    runs = sweep()
    diverged = (runs.depth == 8).astype(float)
    broken = Runs.of(
        depth=runs.depth, width=runs.width, block_params=runs.block_params, seed=runs.seed, diverged=diverged,
        loss=np.where(diverged > 0, np.nan, runs.loss),
    )  # fmt: skip
    fit = fit_transition(broken, bootstrap=0)
    assert fit.curves.depths == (1, 2, 4)
    assert noted("depth-left-out", fit.warnings) == {"depth": 8, "runs": 16, "diverged": 16}


def test_a_crossing_without_a_limit_makes_the_line_a_guess() -> None:
    fit = fit_transition(sweep(noise=0.01), bootstrap=0)
    assert any(pair.low is None or pair.high is None for pair in fit.crossings)
    assert "line-unlimited" in codes(fit.warnings)
    law = fit.law()
    assert law is None or any("guess" in caution for caution in law.cautions)


def test_depths_that_scatter_differently_are_warned_of_and_can_have_their_own_noise() -> None:
    runs = sweep(noise=UNEVEN, seeds=1, sizes=list(np.geomspace(1e4, 4e6, 12)))
    same, own = (fit_transition(runs, bootstrap=0, noise=noise) for noise in ("same", "depth"))
    assert noted("noise-unequal", same.warnings)["depths"] == [1, 2, 4, 8]
    assert "noise-unequal" not in codes(own.warnings)
    assert own.noise_by_depth is not None
    assert own.noise_by_depth[1] > 5 * own.noise_by_depth[4]
    assert "% of loss at 1, 2, 4 and 8 layers" in own.summary()
    first, last = same.crossings[2], own.crossings[2]
    assert first.size == pytest.approx(last.size), "each depth has its own curve, whatever the noise"
    assert None not in (last.low, last.high)
    assert math.log((last.high or 1) / (last.low or 1)) < 0.5 * math.log((first.high or 1e9) / (first.low or 1))


def test_noise_that_cannot_be_estimated_or_named_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="no depth was trained at enough sizes"):
        fit_transition(sweep(sizes=SIZES[:3], seeds=1), bootstrap=0, noise="depth")
    few = sweep(noise=UNEVEN)
    few = few.select((few.depth != 8) | (few.block_params > 5e5))
    fit = fit_transition(few, bootstrap=0, noise="depth")
    assert noted("noise-borrowed", fit.warnings) == {"depths": [8]}
    assert (fit.crossings[2].low, fit.crossings[2].high) == (None, None)
    assert fit.crossings[1].low is not None
    with pytest.raises(DeepwideError, match="same or depth"):
        fit_transition(sweep(), noise="loud")  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match="noise of depth 8 is not given"):
        sweep(noise={1: 0.1, 2: 0.1, 4: 0.1})


def test_a_crossing_that_one_group_makes_is_warned_of_without_a_law_too() -> None:
    runs = curved(lambda x: -0.02 + 0 * x)
    loss = runs.loss.copy()
    loss[-1] *= 0.92
    runs = Runs.of(depth=runs.depth, block_params=runs.block_params, loss=loss)
    fit = fit_transition(runs, bootstrap=0)
    assert fit.law() is None
    assert noted("depends-on-one", fit.warnings)["what"] == "the crossing of 2 and 4 layers"
    assert all(name.startswith("depth 4 at") for name in noted("depends-on-one", fit.warnings)["groups"])
    calm = fit_transition(curved(lambda x: 0.02 * x), bootstrap=0)
    assert not {"depends-on-one", "moves-without-one"} & set(codes(calm.warnings))


def test_curves_that_miss_more_than_seeds_explain_are_warned_of() -> None:
    fit = fit_transition(sweep(noise=0.00002, seed_effect=0.0), bootstrap=0)
    assert noted("curves-misfit", fit.warnings)["ratio"] > 5
    assert not {"curves-misfit"} & set(codes(fit_transition(sweep(), bootstrap=0).warnings))


def test_a_minimum_outside_the_depths_trained_warns() -> None:
    fit = fit_ridge(sweep(TransitionLaw(name="deep", a=1.0, b=0.25)), bootstrap=0)
    assert fit.minimum is None or "minimum-outside" in codes(fit.warnings)


def test_a_bowl_that_one_group_hides_is_noted() -> None:
    runs = sweep(noise=0.001, seeds=1, sizes=list(np.geomspace(1e4, 4e6, 7)))
    loss = runs.loss.copy()
    loss[6] *= 0.3
    hidden = Runs.of(depth=runs.depth, width=runs.width, block_params=runs.block_params, loss=loss)
    fit = fit_ridge(hidden, base=LAW, bootstrap=0)
    assert fit.minimum is None
    assert noted("bowl-hidden-by-one", fit.warnings)["group"].startswith("depth")


def test_checkpoints_taken_for_runs_are_warned_of() -> None:
    runs = sweep(seeds=1)
    lengths = np.tile([1e6, 2e6, 4e6, 8e6], len(runs.loss))
    each = [np.repeat(column, 4) for column in (runs.depth, runs.width, runs.block_params, runs.loss)]
    curve = Runs.of(
        depth=each[0], width=each[1], block_params=each[2], loss=each[3] * (lengths / 1e6) ** -0.1, tokens=lengths
    )
    assert noted("checkpoints-as-runs", fit_ridge(curve, base=LAW, bootstrap=0).warnings) == {"lengths": 4}
    two = curve.select(curve.tokens < 3e6)
    assert "checkpoints-as-runs" not in codes(fit_ridge(two, base=LAW, bootstrap=0).warnings)


def test_a_term_that_is_not_there_is_called_unseen() -> None:
    N, D = (g.ravel() for g in np.meshgrid(np.geomspace(3e7, 3e9, 8), np.geomspace(1e9, 1e11, 6)))
    noise = np.random.default_rng(0).normal(0, 1e-3, len(N))
    fit = fit_surface(Runs.of(total_params=N, tokens=D, loss=(1.8 + 400 / N**0.34) * np.exp(noise)), bootstrap=30)
    assert {"term-unseen", "exponent-at-limit", "influence"} & set(codes(fit.warnings))
    assert fit["alpha"] == pytest.approx(0.34, abs=0.05)
    fit.headline()


def test_unseen_names_what_went_to_zero_and_what_stopped() -> None:
    x = np.log(np.geomspace(1, 100, 20))
    problem = Problem(np.array([x, x]) - x.mean(), np.full(20, 0.5), np.zeros(20, dtype=bool), 1e-3)
    theta = np.array([0.5, -20.0, -1.0, 0.3, 4.0])
    notes = about_terms(problem, theta, forward(problem, theta[None])[1][0], ("E", "A", "B", "alpha", "beta"))
    assert [(note.code, note.data["name"]) for note in notes] == [("term-unseen", "A"), ("exponent-at-limit", "beta")]


def test_few_sizes_and_sizes_that_go_together_are_warned_of() -> None:
    few = fit_surface(chinchilla_like(0.005, sizes=4), bootstrap=0)
    assert noted("few-values", few.warnings) == {"name": "params", "count": 4}
    runs = chinchilla_like(0.002)
    together = replace(runs, tokens=runs.total_params * 20 * np.exp(np.random.default_rng(0).normal(0, 0.05, 48)))
    assert "collinear" in codes(fit_surface(together, bootstrap=0).warnings)


def test_a_run_that_decides_alone_is_named() -> None:
    runs = chinchilla_like(0.002, sizes=5, lengths=5)
    alone = Runs.of(
        total_params=np.append(runs.total_params, 1e5),
        tokens=np.append(runs.tokens, 1e10),
        loss=np.append(runs.loss, 13.0),
    )
    fit = fit_surface(alone, bootstrap=0)
    assert noted("influence", fit.warnings)["row"] == 26
    assert fit.residuals[25].leverage == max(r.leverage for r in fit.residuals)
    assert sum(r.leverage for r in fit.residuals) == pytest.approx(5)
    assert not fit_surface(runs, bootstrap=0).warnings


def test_totals_that_are_not_known_are_a_warning_where_embeddings_may_matter() -> None:
    assert "embeddings-unknown" in codes(fit_joint(one_bowl(None)).warnings)
    assert "embeddings-unknown" not in codes(fit_joint(one_bowl(None, (1e10, 3e10, 1e11))).warnings)
    assert "embeddings-unknown" not in codes(fit_joint(one_bowl(lambda L, d: 12 * L * d**2 + 50_000 * d)).warnings)


def test_totals_below_the_blocks_are_warned_of() -> None:
    """A model's name, 125M, is no count: embeddings of −6% were fitted without a word."""
    assert "total-below-blocks" in codes(fit_joint(one_bowl(lambda L, d: 11.9 * L * d**2)).warnings)
    assert "total-below-blocks" not in codes(fit_joint(one_bowl(lambda L, d: 12 * L * d**2 + 50_000 * d)).warnings)


def test_totals_with_experts_are_not_taken_for_embeddings() -> None:
    dense = fit_joint(one_bowl(lambda L, d: 12 * L * d**2 + 50_000 * d))
    assert "total-unexplained" not in codes(dense.warnings)
    assert "embeddings" in dense.names
    experts = fit_joint(one_bowl(lambda L, d: 68 * L * d**2 + 50_000 * d))
    assert noted("total-unexplained", experts.warnings) == pytest.approx({"total": 68, "blocks": 12})
    assert "embeddings" not in experts.names


@pytest.mark.parametrize(("times", "warned"), [(1000.0, True), (16 / 12, False), (0.05, True), (5 / 12, False)])
def test_block_parameters_that_no_such_shape_has_are_warned_of(times: float, warned: bool) -> None:
    """Gated feed-forwards (16 d²) and shared keys with a narrow one (5 d²) are plain enough."""
    runs = sweep()
    off = replace(runs, block_params=times * runs.block_params)
    for fit in (fit_transition(off, bootstrap=0), fit_ridge(off, base="power", bootstrap=0)):
        assert ("blocks-unlike-shape" in codes(fit.warnings)) == warned
    joint = fit_joint(off, bootstrap=200)
    assert ("blocks-unlike-shape" in codes(joint.warnings)) == warned
    if warned:
        assert noted("blocks-unlike-shape", joint.warnings)["ratio"] == pytest.approx(times, rel=0.01)


def test_depths_and_widths_that_may_be_swapped_are_named() -> None:
    runs = sweep()
    swapped = replace(runs, depth=np.round(runs.width), width=runs.depth)
    assert "width-below-depth" in codes(fit_joint(swapped, bootstrap=200).warnings)
    assert "width-below-depth" not in codes(fit_joint(runs, bootstrap=200).warnings)
