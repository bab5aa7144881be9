"""How the joint fit is made: cells, ladders, diverged runs, which sizes are known, what is refused."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import JointFit, Runs, fit, fit_joint, simulate
from deepwide.laws import TransitionLaw
from deepwide.quantities import Floats
from fitting.builders import ladder, three_lengths

FACTORS = np.array([0.6, 0.8, 1.0, 1.25, 1.6])  # of the best depth

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
SIZES = list(np.geomspace(1e4, 4e6, 6))


def test_ladders_have_a_way_in() -> None:
    answer = fit_joint(ladder(50_000), bootstrap=400)
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


def test_one_depth_at_each_size_tells_nothing_about_depth_and_the_advice_is_more_depths() -> None:
    runs = ladder(50_000)
    assert "depth-collinear" not in {note.code for note in fit_joint(runs, bootstrap=200).warnings}
    sizes = np.geomspace(1e6, 1e9, 12)
    one = Runs.of(depth=np.round(np.cbrt(sizes) / 16), block_params=sizes, loss=2 + (sizes / 1e6) ** -0.3)
    told = {note.code: str(note) for note in fit_joint(one, bootstrap=200).warnings}
    assert "three depths or more at some of the sizes" in told["depth-collinear"]


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


def test_limits_of_a_ladder_hardly_depend_on_the_seed_of_the_draws() -> None:
    runs = ladder(50_000)
    best = [fit_joint(runs, seed=seed, examine=False).best_depth(1e9)[0] for seed in range(8)]
    for limits in ([b.low or 1 for b in best], [b.high or 1 for b in best]):
        assert float(np.std(np.log(limits))) < 0.03


@pytest.mark.parametrize(("falls", "least", "most"), [(0.7, 0.45, 0.8), (0.0, 0.0, 0.15)])
def test_noise_that_falls_with_length_is_seen(falls: float, least: float, most: float) -> None:
    runs = three_lengths(noise=0.003, falls=falls)
    answer = fit_joint(runs, bootstrap=400)
    assert least <= answer.noise_falls <= most
    assert answer.falling(3e9) == pytest.approx(1, rel=1e-6)
    assert answer.noise == pytest.approx(0.003, rel=0.3)
    short, long = answer.predict_rows(12, 1e8, tokens=[1e9, 9e9])
    wider = math.log(short["run_high"] / short["run_low"]) / math.log(long["run_high"] / long["run_low"])
    assert wider > 2 if falls else wider < 1.6
    assert ("% at 1B and 0." in answer.summary()) == bool(falls)


def test_seeds_say_how_noise_falls() -> None:
    """Three seeds of each shape differ by 1.3% at the shortest length and by 0.2% at the longest."""
    one = three_lengths(noise=0.0)
    off = np.random.default_rng(1).normal(0, 0.005, (3, len(one))) * (one.tokens / 3e9) ** -0.9
    runs = Runs.of(
        depth=np.tile(one.depth, 3),
        block_params=np.tile(one.block_params, 3),
        tokens=np.tile(one.tokens, 3),
        seed=np.repeat([0, 1, 2], len(one)),
        loss=(one.loss * np.exp(off)).ravel(),
    )
    answer = fit_joint(runs, bootstrap=400, examine=False)
    assert answer.noise_falls > 0.8
    assert answer.seed_noise == pytest.approx(0.005, rel=0.2)


@pytest.mark.parametrize("length", [1e3, 1e30])
def test_a_length_that_the_runs_say_nothing_of_is_refused(length: float) -> None:
    with pytest.raises(DeepwideError, match=r"these runs had .* tokens: they say nothing of 1e\+"):
        fit_joint(three_lengths(), length=length)
