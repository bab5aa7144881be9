"""The joint fit as an object: its best depth, its law, what it predicts, when it declines, and back from JSON."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deepwide
from deepwide.errors import DeepwideError
from deepwide.fitting import JointFit, Runs, fit, fit_joint, load_fit, simulate
from deepwide.fitting.model import Design, by_name, size_curve
from deepwide.laws import JointLaw, TransitionLaw, depth_cost, load_law
from deepwide.quantities import Floats
from fitting.builders import sweep

FACTORS = np.array([0.6, 0.8, 1.0, 1.25, 1.6])  # of the best depth

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
SIZES = list(np.geomspace(1e4, 4e6, 6))


@pytest.fixture(scope="module")
def answer() -> JointFit:
    return fit_joint(simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, seed=4), bootstrap=400)


def _ladder(vocabulary: float) -> Runs:
    """tokens = 20·total, with the truth a constant ratio."""
    draw = np.random.default_rng(7)
    L, N = (c.ravel() for c in np.meshgrid([4.0, 8, 16, 32], np.geomspace(1e7, 1e9, 6)))
    total = N + vocabulary * np.sqrt(N / (12 * L))
    z = np.log(L / (16 * np.cbrt(N / 1e8)))
    loss = (1.7 + 0.9 * (N / 1e8) ** -0.3 + 0.6 * (total / 1e8) ** -0.3) * np.exp(0.02 * z**2)
    return Runs.of(
        depth=L, block_params=N, total_params=total, tokens=20 * total, loss=loss * np.exp(draw.normal(0, 0.003, 24))
    )


def test_the_first_line_has_the_interval_at_the_largest_size(answer: JointFit) -> None:
    first = answer.headline()[0]
    best = answer.best_depth(answer.params_range[1])[0]
    assert f"{best.value:.3g} ({best.low:.3g} to {best.high:.3g}) layers" in first
    assert answer.summary().splitlines()[0] == first


def test_intervals_hold_the_truth_and_widen_outside_the_runs(answer: JointFit) -> None:
    sizes = np.array([2e5, 4e6, 4e7, 4e8])
    best = answer.best_depth(sizes)
    truth = LAW.depth(sizes).value
    assert all(b.low <= t <= b.high for b, t in zip(best, truth, strict=True) if b.low and b.high)
    widths = [np.log(b.high / b.low) for b in best if b.low and b.high]
    assert widths == sorted(widths)
    assert widths[3] > 2 * widths[1]


def test_the_law_carries_the_posterior_and_plan_reads_it(answer: JointFit, tmp_path: Path) -> None:
    path = answer.save_law(tmp_path / "law.json")
    law = load_law(path)
    assert isinstance(law, JointLaw)
    assert len(law.draws) == len(answer.resamples) == 400
    planned = deepwide.plan("40M", law=path)
    best = answer.best_depth(4e7)[0]
    assert planned.law_depth.low == pytest.approx(best.low, rel=0.05)
    assert planned.law_depth.high == pytest.approx(best.high, rel=0.05)
    cost = depth_cost(best.value / 4, best.value, 4e7, law)
    assert cost is not None
    assert (cost.low or 0) < cost.value < (cost.high or 0)


def test_a_fit_is_the_same_after_json(answer: JointFit, tmp_path: Path) -> None:
    assert load_fit(answer.save(tmp_path / "fit.json")) == answer


def test_predictions_of_arrays_are_those_of_each(answer: JointFit) -> None:
    rows = answer.predict_rows([2, 4, 8], 1e6)
    assert [row["depth"] for row in rows] == [2, 4, 8]
    one = answer.predict(4, 1e6)
    assert (one.value, one.low) == (rows[1]["loss"], rows[1]["low"])
    for row in rows:
        assert row["run_low"] < row["low"] < row["loss"] < row["high"] < row["run_high"]
    truth = (0.9 + 8 * 1e6**-0.2) * np.exp(0.02 * np.log(4 / LAW.depth(1e6).value[0]) ** 2)
    assert one.value == pytest.approx(truth, rel=0.01)
    assert [note.code for note in answer.predict(4, 1e8).notes] == ["outside-size"]


def test_without_a_bowl_it_declines_in_a_sentence(tmp_path: Path) -> None:
    flat = fit_joint(simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, curvature=0.0, noise=0.01), bootstrap=200)
    assert flat.law() is None
    assert flat.headline()[0].startswith("No best depth: the probability that loss has a minimum")
    assert flat.verdict().outcome == "undecided"
    for ask in (
        lambda: flat.best_depth(1e6),
        lambda: flat.predict_rows(4, 1e6),
        lambda: flat.save_law(tmp_path / "x.json"),
    ):
        with pytest.raises(DeepwideError, match="minimum"):
            ask()


def test_ladders_have_a_way_in() -> None:
    answer = fit_joint(_ladder(50_000), bootstrap=400)
    assert answer.tokens_line is not None
    assert "ladder" in [warning.code for warning in answer.warnings]
    best = answer.best_depth(1e8)[0]
    assert (best.low or 99) < 16 < (best.high or 0) < 4 * (best.low or 0)
    with pytest.raises(DeepwideError, match="total"):
        answer.predict_rows(16, 1e8)
    rows = answer.predict_rows(16, 1e8, total=1e8 + 50_000 * 722)
    assert rows[0]["loss"] == pytest.approx(3.12, rel=0.02)


def test_diverged_runs_push_the_best_depth_away() -> None:
    runs = simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, seed=4, seeds=1)
    lost = runs.depth == 8
    rows = runs.rows()
    for row, gone in zip(rows, lost, strict=True):
        row["loss"] = np.nan if gone and row["block_params"] < 3e5 else row["loss"]
    again = fit(rows, bootstrap=200)
    assert again.diverged == 3
    assert isinstance(again, JointFit)
    assert again.best_depth(2e5)[0].value < 6


def test_many_seeds_of_a_cell_do_not_count_as_shapes() -> None:
    """Eight seeds say what the seeds' noise is, not that their shape weighs eight times."""
    draw = np.random.default_rng(3)
    base = simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, seeds=1, noise=0.0, seed_effect=0.0, seed=4)
    missed = draw.normal(0, 0.006, len(base))
    one = [row | {"loss": row["loss"] * np.exp(u)} for row, u in zip(base.rows(), missed, strict=True)]
    many = [row | {"seed": k, "loss": row["loss"] * np.exp(draw.normal(0, 1e-3))}
            for i, row in enumerate(one) for k in range(8 if i % 4 == 0 else 1)]  # fmt: skip
    few_, many_ = (fit(rows, bootstrap=400).best_depth(2e5)[0] for rows in (one, many))  # type: ignore[attr-defined]
    assert np.log(many_.high / many_.low) > 0.7 * np.log(few_.high / few_.low)


@pytest.mark.parametrize(("depths", "words"), [((2, 4), "three depths"), ((1, 2, 4), "at least 8 shapes")])
def test_too_few_shapes_are_refused(depths: tuple[int, ...], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        fit_joint(simulate(LAW, depths=depths, sizes=SIZES[:2] if len(depths) == 3 else SIZES))


def test_a_profile_says_how_sure_and_what_it_costs(answer: JointFit) -> None:
    best = answer.best_depth(1e6)[0]
    rows = answer.profile(1e6, [best.low or 0, best.value, best.high or 0])
    assert [row["below"] for row in rows] == pytest.approx([0.025, 0.5, 0.975], abs=0.002)
    assert all(row["low"] <= row["cost"] <= row["high"] for row in rows)
    assert rows[1]["cost"] < min(rows[0]["cost"], rows[2]["cost"])
    default = answer.profile(1e6)
    assert default[0]["depth"] < best.low < best.high < default[-1]["depth"]  # type: ignore[operator]
    with pytest.raises(DeepwideError, match="above 0"):
        answer.profile(-1)


def test_what_is_assumed_is_shown(answer: JointFit) -> None:
    text = answer.summary()
    assert "assumed from runs" in text
    bend = next(line for line in text.splitlines() if line.startswith("bend"))
    assert "0 ± 0.02" in bend
    share = 1 - (answer.standard_errors["bend"] / 0.02) ** 2
    assert bend.endswith(f"{share:.0%}")
    wider = answer.with_wider_bend
    assert wider is not None
    assert f"{wider.low:.3g} to {wider.high:.3g}" in answer.headline()[2]


def test_beyond_the_runs_growth_may_end_or_go_on(answer: JointFit) -> None:
    law = answer.law()
    assert law is not None
    ends = np.repeat([False, True], len(law.draws))  # each draw counts both ways
    largest = answer.params_range[1]
    place, far = law.place(largest), law.place(100 * largest)
    assert np.all(np.abs(far - place)[ends] < 0.5)  # within 0.3 e-folds of growth
    assert np.median((far - place)[~ends]) > 0.4
    best = answer.best_depth(100 * largest)[0]
    assert best.value == pytest.approx(np.exp(np.median(far[~ends])))
    assert (best.low or 0) < np.exp(np.median(far[ends])) < best.value


def test_limits_hardly_depend_on_the_seed_of_the_draws() -> None:
    """Independent draws, a thousand of them, would have standard deviations of 2.2, 1.3 and 4.1% here."""
    runs = simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, seeds=1, seed=4, noise=0.008)
    limits = []
    for seed in range(8):
        best = fit_joint(runs, seed=seed, examine=False).best_depth(SIZES[-1])[0]
        limits.append((np.log(best.low or 0), np.log(best.value), np.log(best.high or 0)))
    low, value, high = np.std(limits, axis=0)
    assert low < 0.015
    assert value < 0.006
    assert high < 0.03


def test_beyond_the_runs_the_loss_too_is_for_growth_that_goes_on(answer: JointFit) -> None:
    law, N = answer.law(), 100 * answer.params_range[1]
    assert law is not None
    row = answer.predict_rows(2, N)[0]
    s = np.full(len(answer.resamples), np.log(N / answer.centre))
    curve = size_curve(by_name(answer.names, np.array(answer.resamples)), Design(s[:1], None, None, s[:1]))[:, 0]
    both = np.concatenate([curve, curve]) + law.above(2, N)
    assert row["loss"] == pytest.approx(np.exp(np.median(both[: len(curve)])), rel=1e-3)  # a depth's offset is carried
    assert row["loss"] > 1.005 * np.exp(np.median(both))  # a shallow network costs less if growth ends
    assert (row["low"], row["high"]) == pytest.approx(np.exp(np.quantile(both, (0.025, 0.975))), rel=1e-3)


def test_one_depth_at_each_size_tells_nothing_about_depth_and_the_advice_is_more_depths() -> None:
    runs = _ladder(50_000)
    assert "depth-collinear" not in {note.code for note in fit_joint(runs, bootstrap=200).warnings}
    sizes = np.geomspace(1e6, 1e9, 12)
    one = Runs.of(depth=np.round(np.cbrt(sizes) / 16), block_params=sizes, loss=2 + (sizes / 1e6) ** -0.3)
    told = {note.code: str(note) for note in fit_joint(one, bootstrap=200).warnings}
    assert "three depths or more at some of the sizes" in told["depth-collinear"]


def test_every_cell_has_its_leverage_and_together_they_are_the_parameters(answer: JointFit) -> None:
    groups = answer.rows("groups")
    leverage = [row["leverage"] for row in groups]
    assert all(0 < h <= 1 for h in leverage)
    assert 3 < sum(leverage) < 1.5 * len(answer.names)  # misfit that is correlated counts in it too


def test_shapes_that_miss_the_model_by_more_than_seeds_are_mentioned() -> None:
    runs = simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, seeds=3, noise=0.006, seed_effect=0.0)
    assert "lack-of-fit" not in [note.code for note in fit_joint(runs, bootstrap=200).warnings]
    missed = np.exp(np.random.default_rng(1).normal(0, 0.04, len(runs.groups)))[runs.groups]
    rows = [row | {"loss": row["loss"] * m} for row, m in zip(runs.rows(), missed, strict=True)]
    assert "lack-of-fit" in [note.code for note in fit(rows, bootstrap=200).warnings]


def test_losses_without_noise_never_have_an_error_of_0() -> None:
    exact = fit_joint(simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES, noise=0.0, seed_effect=0.0), bootstrap=200)
    assert min(exact.standard_errors.values()) > 0


def _with_top(*depths: float) -> Runs:
    """Eight depths at three sizes of up to 1e5, and some at 4e6."""
    draw = np.random.default_rng(3)
    cells = [(L, N) for N in (1e4, 3e4, 1e5) for L in (1.0, 2, 3, 4, 6, 8, 12, 16)] + [(L, 4e6) for L in depths]
    L, N = np.array(cells).T
    z = np.log(L / (3 * (N / 2e5) ** 0.25))
    loss = (0.9 + 0.7 * (N / 2e5) ** -0.2) * np.exp(0.02 * z**2 + draw.normal(0, 0.004, len(L)))
    return Runs.of(depth=L, block_params=N, loss=loss)


def test_growth_is_known_only_where_depths_show_the_best() -> None:
    """One run of a far larger size, or two that are close, must not pass for knowledge of growth up to there."""
    for depths in ((4,), (6, 8)):
        thin = fit_joint(_with_top(*depths), bootstrap=400)
        assert thin.known[1] == pytest.approx(1e5)
        assert "end-thin" in {note.code for note in thin.warnings}
    wide = fit_joint(_with_top(2, 16), bootstrap=400)
    assert wide.known == pytest.approx((1e4, 4e6))
    assert "end-thin" not in {note.code for note in wide.warnings}
    thin, law = fit_joint(_with_top(4), bootstrap=400), wide.law()
    assert law
    assert law.sizes == pytest.approx((1e4, 4e6))
    widths = [np.log((best.high or 0) / (best.low or 1)) for best in (thin.best_depth(4e7)[0], wide.best_depth(4e7)[0])]
    assert widths[0] > 1.5 * widths[1]


def test_sizes_that_are_thin_alone_may_show_growth_together() -> None:
    """Depths close to the best one at every size: none of them is worse than its neighbours, so all are known."""
    draw = np.random.default_rng(0)
    sizes = np.geomspace(1e4, 4e6, 8)
    best = 3 * (sizes / 2e5) ** 0.25
    L, N = np.array([(depth, size) for size, at in zip(sizes, best, strict=True) for depth in at * FACTORS]).T
    z = np.log(L / (3 * (N / 2e5) ** 0.25))
    for _ in range(5):
        loss = (0.9 + 0.7 * (N / 2e5) ** -0.2) * np.exp(0.02 * z**2 + draw.normal(0, 0.004, len(N)))
        known = fit_joint(Runs.of(depth=L, block_params=N, loss=loss), bootstrap=400, examine=False).known
        assert known[1] > 4e6 / 6
        assert known[0] < 1e4 * 6


def test_tokens_that_follow_the_size_exactly_change_next_to_nothing() -> None:
    """tokens = 20·N makes two columns one: the answer is about that without tokens, and no noise is lost."""
    draw = np.random.default_rng(2)
    L, N = (c.ravel() for c in np.meshgrid([1.0, 2, 4, 8], np.geomspace(1e4, 4e6, 6)))
    z = np.log(L / (3 * (N / 2e5) ** 0.25))
    loss = (0.9 + 0.7 * (N / 2e5) ** -0.2) * np.exp(0.02 * z**2 + draw.normal(0, 0.004, 24))
    unknown = np.full(len(N), np.nan)
    one, ladder = (
        fit_joint(Runs.of(depth=L, block_params=N, loss=loss, tokens=tokens), bootstrap=4000)
        for tokens in (unknown, 20 * N)
    )
    assert ladder.noise == pytest.approx(one.noise, rel=0.2)
    for size in (2e5, 4e6):
        a, b = one.best_depth(size)[0], ladder.best_depth(size)[0]
        assert b.value == pytest.approx(a.value, rel=0.1)
        widths = [np.log((best.high or 0) / (best.low or 1)) for best in (a, b)]
        assert widths[1] > 0.8 * widths[0]
    assert "ladder" in {note.code for note in ladder.warnings}


def test_losses_of_a_ladder_are_as_sure_as_its_noise() -> None:
    """Size and tokens are not told apart, but where the runs are, the loss is known, and not far beyond them too."""
    runs = _ladder(50_000)
    ladder = fit_joint(runs, examine=False)
    rows = ladder.predict_rows(runs.depth, runs.block_params, tokens=runs.tokens, total=runs.total_params)
    widths = [np.log(row["high"] / row["low"]) for row in rows]
    assert max(widths) < 0.06
    assert np.mean([row["run_low"] < loss < row["run_high"] for row, loss in zip(rows, runs.loss, strict=True)]) > 0.9
    far = ladder.predict_rows(48, 4e9, tokens=8e10, total=4.1e9)[0]
    assert 0.01 < np.log(far["high"] / far["low"]) < 0.15


def test_losses_at_several_lengths_follow_the_shift_of_the_best_depth() -> None:
    draw = np.random.default_rng(3)
    L, N, D = (c.ravel() for c in np.meshgrid([1.0, 2, 4, 8, 16], np.geomspace(1e4, 4e6, 5), [1e7, 1e8, 1e9]))
    z = np.log(L / (4 * (N / 2e5) ** 0.25 * (D / 1e8) ** 0.2))
    loss = (0.9 + 0.7 * (N / 2e5) ** -0.2 + 0.3 * (D / 1e8) ** -0.3) * np.exp(
        0.03 * z**2 + draw.normal(0, 2e-3, len(N))
    )
    runs = Runs.of(depth=L, block_params=N, tokens=D, loss=loss)
    rows = fit_joint(runs, examine=False).predict_rows(L, N, tokens=D)
    errors = np.log([row["loss"] for row in rows]) - np.log(loss)
    assert np.sqrt(np.mean(errors**2)) < 3e-3


def test_runs_of_one_size_do_not_pass_for_growth_that_was_seen() -> None:
    draw = np.random.default_rng(5)
    L = np.array([1.0, 2, 3, 4, 6, 8, 10, 12, 16])
    loss = 2 * np.exp(0.03 * np.log(L / 4) ** 2 + draw.normal(0, 0.003, len(L)))
    first, *rest = fit_joint(Runs.of(depth=L, block_params=np.full(9, 1e5), loss=loss)).headline()
    assert first.startswith("Best depth at 100K, the largest size: ")
    assert "; at" not in first
    assert any(line.startswith("By assumption, as all runs have one size, the best depth grows") for line in rest)


@pytest.mark.parametrize("draws", [0, 1, 199, 20_000])
def test_draws_too_few_for_an_interval_or_more_than_a_law_holds_are_refused(draws: int) -> None:
    with pytest.raises(DeepwideError, match=rf"has 200 to 10,000 of them \(bootstrap\), not {draws:,}"):
        fit_joint(simulate(LAW, depths=(1, 2, 4, 8), sizes=SIZES), bootstrap=draws)


BOWLS: dict[str, Callable[[Floats], Floats]] = {
    "a parabola": lambda z: z**2,
    "in width/depth": lambda z: 8 / 9 * (np.exp(-1.5 * z) - 1 + 1.5 * z),
    "a sum of powers": lambda z: 2 / 1.55 * (np.expm1(-1.07 * z) / 1.07 + np.expm1(0.48 * z) / 0.48),
    "flat far out": lambda z: z**2 / (1 + z**2 / 2),
    "a cliff": lambda z: z**2 + np.where(z < -1.1, 2.0, 0.0),
}


@pytest.mark.parametrize("name", BOWLS)
def test_depths_far_from_the_best_do_not_move_it_whatever_the_bowl(name: str) -> None:
    L, N = (g.ravel() for g in np.meshgrid([1.0, 2.0, 4.0, 8.0], np.geomspace(1e4, 4e6, 6)))
    off = 0.02 * BOWLS[name](np.log(L / (3 * (N / 2e5) ** 0.25)))
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(0, 0.004, len(L))
        loss = np.exp(np.log(0.9 + 0.7 * (N / 2e5) ** -0.2) + off + noise)
        fit = fit_joint(Runs.of(depth=L, block_params=N, loss=loss), examine=False)
        for size in (fit.centre, fit.params_range[1]):
            best = fit.best_depth(size)[0]
            assert (best.low or 0) < 3 * (size / 2e5) ** 0.25 < (best.high or 0)


def test_checkpoints_of_one_run_count_as_one() -> None:
    """Ten lengths of a shape share its luck, so they say no more about depth than one."""
    rng = np.random.default_rng(4)
    L, N = (g.ravel() for g in np.meshgrid([4.0, 8.0, 16.0, 32.0], np.geomspace(1e7, 1e9, 6)))
    luck = rng.normal(0, 0.004, len(L))
    fits = {}
    for lengths in (2, 10):
        D = np.geomspace(2e9, 3e10, lengths)
        depth, size, own = (np.repeat(column, lengths) for column in (L, N, luck))
        tokens = np.tile(D, len(L))
        mean = np.log(1.7 + 0.9 * (size / 1e8) ** -0.3 + 0.6 * (tokens / 2e9) ** -0.3)
        loss = np.exp(mean + 0.02 * np.log(depth / (16 * (size / 1e8) ** (1 / 3))) ** 2 + own)
        loss = loss * np.exp(rng.normal(0, 0.0005, len(loss)))
        fits[lengths] = fit_joint(Runs.of(depth=depth, block_params=size, tokens=tokens, loss=loss))
    few, many = (fits[n].best_depth(fits[n].centre)[0] for n in (2, 10))
    widths = [math.log((best.high or 0) / (best.low or 1)) for best in (few, many)]
    assert widths[1] > 0.8 * widths[0]
    assert fits[10].run_noise == pytest.approx(0.004, rel=0.5)
    assert fits[10].noise < 0.001
    assert "checkpoints-as-runs" not in {note.code for note in fits[10].warnings}


def test_a_fit_saved_before_bowls_had_tails_still_gives_its_law(answer: JointFit) -> None:
    i = answer.names.index("tail")
    saved = answer.model_dump(mode="json")
    for field in ("names", "values", "covariance"):
        saved[field] = [value for j, value in enumerate(saved[field]) if j != i]
    for field in ("covariance", "resamples"):
        saved[field] = [[value for j, value in enumerate(row) if j != i] for row in saved[field]]
    del saved["run_noise"], saved["priors"]["tail"]
    old = JointFit.model_validate(saved)
    assert old.best_depth(1e6) == answer.best_depth(1e6)
    assert old.cost(2).value != answer.cost(2).value
    assert "layers" in old.summary()
    with pytest.raises(DeepwideError, match="fit again"):
        old.predict(4, 1e6)


def test_diverged_runs_that_decide_where_the_best_depth_is_are_a_warning() -> None:
    """Two deep runs diverged for their rate: counted as bad depths, they make the best one shallower."""
    L, N = (g.ravel() for g in np.meshgrid([2.0, 4, 8, 16, 32, 64], np.geomspace(1e7, 1e9, 6)))
    best = 21 * (N / 1e9) ** 0.35
    noise = np.random.default_rng(1).normal(0, 0.003, len(L))
    loss = np.exp(np.log(1.7 + 0.9 * (N / 1e8) ** -0.3) + 0.02 * np.log(L / best) ** 2 + noise)
    codes = {}
    for name, bad in (("deep", (L == 64) & (N > 3e8)), ("one far off", (L == 2) & (N > 9e8))):
        runs = Runs.of(depth=L, block_params=N, loss=np.where(bad, np.nan, loss), diverged=bad)
        codes[name] = {note.code: dict(note.data) for note in fit_joint(runs).warnings}
    assert "diverged-decide" not in codes["one far off"]
    warned = codes["deep"]["diverged-decide"]
    assert warned["count"] == 2
    assert warned["low"] < 21 < warned["high"]


def test_what_is_no_number_costs_a_sentence(answer: JointFit) -> None:
    wrong: list[Any] = [["1B"], "x", -1, [1e6, 0], None, float("inf"), [[1.0]]]
    for given in wrong:
        for ask in (answer.best_depth, answer.profile, lambda value: answer.predict_rows([2], value)):
            with pytest.raises(DeepwideError, match="params must be a number above 0"):
                ask(given)
    with pytest.raises(DeepwideError, match="lists must be of one length, not 2 of depth, 3 of params"):
        answer.predict_rows([2, 4], [1e5, 1e6, 1e7])


def _three_lengths(shift: float = 0.3, noise: float = 0.002) -> Runs:
    """24 shapes, each run for three lengths; the best depth is 12 at 1e8 and 3e9 tokens, and shifts with tokens."""
    L, N, D = (g.ravel() for g in np.meshgrid([3.0, 6, 12, 24, 48], np.geomspace(1e7, 1e9, 5), [1e9, 3e9, 9e9]))
    best = np.log(12) + 0.25 * np.log(N / 1e8) + shift * np.log(D / 3e9)
    mean = np.log(1.7 + 0.9 * (N / 1e8) ** -0.3 + 0.6 * (D / 3e9) ** -0.3) + 0.02 * (np.log(L) - best) ** 2
    own = np.random.default_rng(7).normal(0, noise, len(L))
    return Runs.of(depth=L, block_params=N, tokens=D, loss=np.exp(mean + own))


@pytest.fixture(scope="module")
def lengths() -> dict[float | None, JointFit]:
    return {length: fit_joint(_three_lengths(), length=length) for length in (None, 1e9, 9e9, 2.7e10)}


def test_the_best_depth_is_stated_for_the_length_that_is_asked_for(lengths: dict[float | None, JointFit]) -> None:
    for length, each in lengths.items():
        best = each.best_depth(1e8)[0]
        assert (best.low or 0) < 12 * ((length or 3e9) / 3e9) ** 0.3 < (best.high or 0)
        by = each.shift_by_tokens(2)
        assert (by.low or 0) < 2**0.3 < (by.high or 0)
    one, other = lengths[1e9].best_depth(1e8)[0], lengths[9e9].best_depth(1e8)[0]
    assert (one.high or 0) < (other.low or 0)
    assert "at 3B tokens, the mean of its runs" in lengths[None].summary()
    law = lengths[9e9].law()
    assert law is not None
    assert law.details == "at 9B tokens"
    assert "stated at 9B tokens; twice the tokens multiply it by 1.2" in law.cautions[0]
    assert not {"length-beyond"} & {note.code for note in lengths[9e9].warnings}
    far = next(dict(note.data) for note in lengths[2.7e10].warnings if note.code == "length-beyond")
    assert (far["low"], far["high"]) == pytest.approx((1e9, 9e9))


def test_a_loss_is_the_same_whatever_length_the_best_depth_is_stated_for(
    lengths: dict[float | None, JointFit],
) -> None:
    rows = [answer.predict_rows([6, 24], 3e8, tokens=9e9) for answer in lengths.values()]
    for row in rows[1:]:
        assert [each["loss"] for each in row] == pytest.approx([each["loss"] for each in rows[0]], rel=1e-4)


def test_near_its_runs_a_prediction_knows_what_the_formula_misses() -> None:
    """Bumps of 1% over size and tokens, which no sum of powers has."""
    runs = _three_lengths(noise=0.0005)
    bumps = 0.01 * np.sin(np.log(runs.block_params) + 1.5 * np.log(runs.tokens))
    runs = replace(runs, loss=runs.loss * np.exp(bumps))
    left_out = (runs.depth == 12) & (np.abs(np.log(runs.block_params / 1e8)) < 0.1)
    others, there = fit_joint(runs.select(~left_out), examine=False), runs.select(left_out)
    rows = others.predict_rows(there.depth, there.block_params, tokens=there.tokens)
    for row, loss in zip(rows, there.loss, strict=True):
        assert row["loss"] == pytest.approx(loss, rel=0.003)
        assert row["run_low"] < loss < row["run_high"]
        assert row["run_high"] / row["run_low"] < 1.02
    assert others.curve_misfit > 0.003


def test_a_length_needs_runs_that_say_something_of_it() -> None:
    runs = _three_lengths()
    one = runs.select(runs.tokens == 3e9)
    assert fit_joint(one, length=3e9, bootstrap=200, examine=False).best_depth(1e8)
    with pytest.raises(DeepwideError, match="all runs had 3B tokens"):
        fit_joint(one, length=9e9)
    with pytest.raises(DeepwideError, match="do not say how many tokens"):
        fit_joint(simulate(LAW, depths=(1, 2, 4), sizes=(1e4, 1e5, 1e6)), length=9e9)
    for wrong in (-1.0, "9B"):
        with pytest.raises(DeepwideError, match="length"):
            fit_joint(runs, length=wrong)  # type: ignore[arg-type]
    known = fit_joint(one, bootstrap=200, examine=False)
    assert known.knows_length(3e9)
    assert not known.knows_length(9e9)


def test_a_fit_saved_before_shifts_could_bend_still_gives_its_law(lengths: dict[float | None, JointFit]) -> None:
    saved = lengths[9e9].model_dump(mode="json")
    kept = [i for i, name in enumerate(saved["names"]) if name not in ("bend_both", "bend_tokens")]
    for field in ("names", "values", "covariance"):
        saved[field] = [saved[field][i] for i in kept]
    for field in ("covariance", "resamples"):
        saved[field] = [[row[i] for i in kept] for row in saved[field]]
    old = JointFit.model_validate(saved)
    assert old.best_depth(1e8)[0].value == pytest.approx(lengths[9e9].best_depth(1e8)[0].value, rel=0.1)
    with pytest.raises(DeepwideError, match="fit again"):
        old.predict(4, 1e8)


def test_a_loss_after_other_tokens_than_all_runs_had_is_not_predicted() -> None:
    answer = fit_joint(replace(sweep(), tokens=np.full(len(sweep()), 1e8)), bootstrap=200)
    assert answer.predict_rows(4, 1e6, tokens=1e8) == answer.predict_rows(4, 1e6)
    for tokens in (5.0, 1e9, [1e8, 1e9]):
        with pytest.raises(DeepwideError, match="all runs had 100M tokens: they do not say"):
            answer.predict_rows(4, 1e6, tokens=tokens)
