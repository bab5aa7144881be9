"""`sweep_design`: the runs, what to expect of them, and every way in which there are none."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deepwide
from deepwide.designing.candidates import candidates
from deepwide.designing.design import Request, Spent, as_runs, design_next
from deepwide.errors import DeepwideError
from deepwide.fitting import Runs
from deepwide.sweeping import cells_of, make_spec
from designing.bases import REAL, runs

sweep_design = partial(deepwide.sweep_design, rehearse=0)  # what takes long is tested once
ROOT = Path(__file__).parents[2]
LONG, LONG_RUNS = ROOT / "sweeps/depth-width-long.toml", ROOT / "results/fit/depth-width-long.csv"
SPEC = make_spec(REAL)
OPTIONS = candidates(SPEC)


def ask(known: Runs | None = None, target: str = "1M", budget: str | float = "3e12", **more: Any) -> deepwide.Design:
    request = Request.of(target, more.pop("goal", "depth"), budget, more.pop("until", None), more.pop("batch", 4))
    return design_next(SPEC, known, request, OPTIONS, **more)


def test_a_design_from_nothing_begins_with_what_can_be_fitted() -> None:
    design = sweep_design(REAL, target="1M", budget="1e12")
    assert design == ask(budget="1e12").model_copy(update={"runs": design.runs, "stages": design.stages})
    first = {(run.depth, run.width) for run in design.next}
    assert len(first) >= 8
    assert len({depth for depth, _ in first}) >= 3
    assert [note.code for note in design.notes] == ["no_fit", "beyond"]
    assert design.now.interval is None
    assert "nothing can be stated yet" in design.headline()


def test_before_any_run_the_plan_is_rehearsed() -> None:
    design = sweep_design(REAL, target="1M", budget="1e13", rehearse=3)
    assert design.rehearsal is not None
    assert design.rehearsal.sweeps == 3
    assert sweep_design(REAL, target="1M", budget="1e13").rehearsal is None
    assert ask(runs(), rehearse=3).rehearsal is None  # a fit says more
    for wrong in (-1, 1001, 2.5, True):
        with pytest.raises(DeepwideError, match="number of rehearsals must be a whole number from 0 to 1000"):
            ask(rehearse=wrong)


def test_short_runs_are_assumed_to_be_noisier_and_a_noise_that_is_known_counts_instead() -> None:
    """A real sweep of 2M to 8M tokens had been promised 4.63 by 0.5% of noise, and got 11.8."""

    def expected(tokens: str, **more: Any) -> deepwide.Design:
        return sweep_design(REAL | {"iso": REAL["iso"] | {"tokens": tokens}}, target="1M", budget="1e16", **more)

    short, long = expected("1M"), expected("10M")
    assert (short.noise, long.noise) == (pytest.approx(0.0158, rel=1e-2), pytest.approx(0.005))
    known = expected("1M", noise="0.5%")
    assert known.noise == pytest.approx(0.005)
    assert known.after.ratio < short.after.ratio
    assert "noise of 0.5% of loss)" in str(known.notes[0])
    assert "noise of 1.6% of loss; if you know it, say so)" in str(short.notes[0])


def test_the_noise_that_is_given_is_that_of_the_length_that_is_asked_about() -> None:
    base = REAL | {"iso": {key: value for key, value in REAL["iso"].items() if key != "tokens"}}
    design = sweep_design(base, target="1M", budget="1e15", tokens="1M,4M", noise=0.01)
    assert design.noise == pytest.approx(0.01)
    design = sweep_design(base, target="1M", budget="1e15", tokens="1M,4M", length="1M", noise=0.01)
    assert design.noise == pytest.approx(0.01)


@pytest.mark.parametrize("noise", ["3", "0", "-1%", "much", 1.0])
def test_a_noise_that_is_no_share_of_the_loss_is_refused(noise: str | float) -> None:
    with pytest.raises(DeepwideError, match=r"is not the noise of one run's loss.*write 1.5% or 0.015"):
        sweep_design(REAL, target="1M", budget="1e12", noise=noise)


@settings(max_examples=15)
@given(budget=st.floats(2e11, 5e13), batch=st.integers(1, 9), known=st.booleans())
def test_runs_never_cost_more_than_the_budget(budget: float, batch: int, known: bool) -> None:
    design = ask(runs() if known else None, budget=int(budget), batch=batch)
    assert sum(run.train_flops for run in design.runs) <= budget
    assert len({(run.depth, run.width, run.tokens, run.seed) for run in design.runs}) == len(design.runs)
    assert bool(design.runs) != bool(design.stop)


def test_the_next_batch_is_a_sweep_that_costs_what_was_said() -> None:
    design = ask(runs())
    cells = cells_of(make_spec(design.spec))
    assert [(c.cost.depth, c.cost.width, c.seed, c.cost.train_flops) for c in cells] == [
        (run.depth, run.width, run.seed, run.train_flops) for run in design.next
    ]
    assert {cell.cost.tokens for cell in cells} == {run.tokens for run in design.next}
    assert [stage.expected for stage in design.stages] == [False] + [True] * len(design.stages[1:])
    assert [stage.batch for stage in design.stages] == list(range(len(design.stages)))
    assert design.after.ratio < design.now.ratio
    interval, after = design.now.interval, design.after.interval
    assert interval is not None
    assert after is not None
    assert interval.low < after.low < interval.value < after.high
    assert design.after.train_flops == sum(run.train_flops for run in design.runs)


def test_the_same_question_has_the_same_answer() -> None:
    assert ask(runs()) == ask(runs())


def test_seeds_that_were_used_are_not_used_again() -> None:
    design = ask(runs())
    first = design.runs[0]
    taken = {(first.depth, first.width, first.tokens): {0, 1}}
    again = ask(runs(), taken=taken)
    assert not {(r.depth, r.width, r.seed) for r in again.runs} & {(first.depth, first.width, s) for s in (0, 1)}


def test_a_budget_in_time_is_kept_in_time() -> None:
    design = ask(runs(), budget="2min")
    assert design.unit == "seconds"
    assert 0 < sum(run.expected_seconds for run in design.runs) <= 120


def test_it_says_where_the_best_depth_lies_beyond_what_may_be_run() -> None:
    """The base of the long sweep ends at 8 layers, and 12 are best at 4.1M: deeper runs narrow more for the same."""
    ends = [note for note in sweep_design(LONG, LONG_RUNS, target="4.1M", budget="1e14").notes
            if note.code == "depths-end"]  # fmt: skip
    assert "layers, and at most 8 may be run: allow deeper networks" in ends[0].text
    inside = sweep_design(LONG, LONG_RUNS, target="200k", budget="1e14")
    assert "depths-end" not in [note.code for note in inside.notes]


def test_it_says_what_of_a_large_budget_is_not_planned() -> None:
    notes = {note.code: note.text for note in sweep_design(LONG, LONG_RUNS, target="4.1M", budget="1e17").notes}
    assert "no more of what may be run would narrow the interval" in notes["unspent"]
    some = {note.code for note in sweep_design(LONG, LONG_RUNS, target="4.1M", budget="1e14").notes}
    assert "unspent" not in some


def test_a_goal_that_most_made_up_sweeps_miss_is_named() -> None:
    design = deepwide.sweep_design(REAL, target="1M", budget="1e13", until=1.2, rehearse=10)
    assert "rehearsed-short" in [note.code for note in design.notes]


def test_a_loss_far_beyond_the_runs_is_said_to_rest_on_what_is_assumed() -> None:
    notes = {note.code: note.text for note in ask(runs(), goal="loss", target="1B").notes}
    assert "rests on how loss against size is assumed to go on there" in notes["beyond"]


def test_a_loss_can_be_the_target() -> None:
    design = ask(runs(), goal="loss")
    assert design.headline().startswith("Loss at the best depth at 1M")
    assert design.after.ratio < design.now.ratio < 1.5


def test_it_stops_when_the_interval_suffices() -> None:
    design = ask(runs(), until=50.0)
    assert design.stop
    assert design.stop.code == "interval"
    assert design.runs == ()
    assert design.after == design.now


@pytest.mark.parametrize("known", [False, True])
def test_it_spends_no_more_than_the_interval_needs(known: bool) -> None:
    so_far = runs() if known else None
    whole = ask(so_far, budget="1e14")
    wanted = math.sqrt(whole.now.ratio * whole.after.ratio) if known else 1.1 * whole.after.ratio
    enough = ask(so_far, budget="1e14", until=wanted)
    assert whole.after.ratio < wanted
    assert 1 < enough.after.ratio <= 1.001 * wanted
    assert enough.after.train_flops < 0.9 * whole.after.train_flops
    beyond = ask(so_far, budget="1e14", until=1.0001)
    assert beyond.runs == whole.runs, "what cannot be reached is come as close to as the budget allows"


def test_runs_far_smaller_than_those_so_far_are_not_chosen() -> None:
    known = runs(largest=1e8)
    known = Runs.of(depth=known.depth, block_params=1e4 * known.block_params, loss=known.loss)
    design = ask(known, target="1e12", budget="1e14")
    assert design.runs == ()
    assert design.stop
    assert design.stop.code == "small"
    assert "allow larger sizes" in str(design.stop)


def test_it_stops_and_says_so_when_more_runs_cannot_help() -> None:
    """Far beyond what may be run, growth there decides, and no small run says anything about it."""
    many = runs(largest=1.6e5)
    depth, size, loss = (np.tile(column, 6) for column in (many.depth, many.block_params, many.loss))
    loss = loss * np.exp(np.random.default_rng(0).normal(0, 0.001, len(loss)))
    known = Runs.of(depth=depth, block_params=size, loss=loss, seed=np.repeat(np.arange(6), len(many)))
    design = ask(known, target="1B", budget="1e10")
    assert design.stop
    assert design.stop.code == "misfit"
    assert "more runs cannot help" in str(design.stop)
    assert design.stop.data["beyond"] > 0.5


def test_runs_without_a_bowl_are_named() -> None:
    L, N = (column.ravel() for column in np.meshgrid([1.0, 2, 4, 8], [1e4, 3e4, 1e5]))
    flat = Runs.of(depth=L, block_params=N, loss=3 * N**-0.1 * np.exp(np.random.default_rng(0).normal(0, 0.01, 12)))
    design = ask(flat)
    assert design.notes[0].code == "no_bowl"
    assert design.runs


def test_a_budget_too_small_for_a_fit_says_so() -> None:
    design = ask(budget="6e10")
    assert design.stop
    assert "fewer than 8 shapes" in str(design.stop)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"target": "big"}, "is not a target, a size in block parameters"),
        ({"budget": "1e3"}, "pays for no run: the cheapest that may be run, "),
        ({"budget": "much"}, "is not a budget of FLOPs"),
        ({"budget": "0s"}, "must be above 0"),
        ({"goal": "width"}, "the goal is depth or loss"),
        ({"until": 0.5}, "above 1"),
        ({"batch": 0}, "at least 1"),
    ],
)
def test_bad_input_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        ask(**changes)


def test_runs_come_from_wherever_they_are(tmp_path: Path) -> None:
    assert as_runs(None) is None
    assert as_runs([]) is None
    assert as_runs(runs()) is not None
    with pytest.raises(DeepwideError, match="no folder or table"):
        as_runs(tmp_path / "none")


def test_runs_of_no_shape_of_the_sweep_are_taken_for_its_own_with_a_note() -> None:
    foreign = runs()
    some = OPTIONS[:: len(OPTIONS) // 12]
    own = Runs.of(
        depth=[o.depth for o in some],
        width=[o.width for o in some],
        block_params=[o.block_params for o in some],
        tokens=[o.tokens for o in some],
        loss=[2.0 + 0.01 * i for i in range(len(some))],
    )
    assert "other-runs" not in {note.code for note in ask(own).notes}
    note = next(note for note in ask(foreign).notes if note.code == "other-runs")
    assert dict(note.data) == {"runs": len(foreign)}


def test_fewer_than_three_depths_are_refused_whatever_the_budget() -> None:
    with pytest.raises(DeepwideError, match="needs runs of at least 3 depths, and with what may be run there are 2"):
        sweep_design(REAL, target="1M", budget="1e15", depths=[2, 4])


def test_a_design_passes_on_what_the_fit_warns_of() -> None:
    known = runs()
    loss = known.loss.copy()
    loss[3] *= 1.3
    assert "stands-out" not in [warning.code for warning in ask(known).warnings]
    assert "stands-out" in [warning.code for warning in ask(replace(known, loss=loss)).warnings]


def test_a_best_depth_below_one_is_explained() -> None:
    assert "below-one" not in [note.code for note in ask(runs()).notes]
    assert "below-one" in [note.code for note in ask(runs(), target="3").notes]


def test_a_pool_that_no_budget_can_fit_is_refused() -> None:
    one_size = REAL | {"iso": REAL["iso"] | {"params": ["40k"]}}
    with pytest.raises(DeepwideError, match="at least 8 shapes, and with what may be run there are 4"):
        sweep_design(one_size, target="1M", budget="1e18")
    assert sweep_design(one_size, runs(), target="1M", budget="1e12").now.interval


def test_an_interval_out_of_reach_is_called_so() -> None:
    assert "out-of-reach" in [note.code for note in ask(runs(), until=1.01).notes]
    assert "out-of-reach" not in [note.code for note in ask(runs(), until=50.0).notes]


def test_the_target_is_at_the_longest_length_or_the_one_asked_for() -> None:
    design = sweep_design(REAL, target="1M", budget="1e12", tokens=["100k", "400k"])
    assert design.target_tokens == max(run.tokens for run in design.runs)
    assert "at 1M and 400K tokens" in design.headline()
    assert len({run.tokens for run in design.runs}) == 2
    asked = sweep_design(REAL, target="1M", budget="1e12", tokens=["100k", "400k"], length="1M")
    assert asked.target_tokens == 1_000_000
    assert sweep_design(REAL, target="1M", budget="1e12").target_tokens is None
    with pytest.raises(DeepwideError, match="length"):
        sweep_design(REAL, target="1M", budget="1e12", length="long")


def test_runs_of_another_length_only_are_told() -> None:
    known = replace(runs(), tokens=np.full(len(runs()), 1e5))
    design = sweep_design(REAL, known, target="1M", budget="1e12", tokens=["100k", "400k"])
    assert design.now.interval is None
    assert "other_length" in [note.code for note in design.notes]


def test_a_length_that_no_run_could_tell_of_is_refused() -> None:
    with pytest.raises(DeepwideError, match="none would tell the best depth at 100M: allow several lengths"):
        sweep_design(REAL, target="1M", budget="1e12", length="100M")
    same = sweep_design(REAL, target="1M", budget="1e12", length="100k")
    assert same.spec == sweep_design(REAL, target="1M", budget="1e12").spec
    known = replace(runs(), tokens=np.full(len(runs()), 4e5))
    assert sweep_design(REAL, known, target="1M", budget="1e12", length="1M").target_tokens == 1e6


def test_where_runs_so_far_have_other_lengths_the_target_is_at_what_may_be_run() -> None:
    known = replace(runs(), tokens=np.where(np.arange(len(runs())) % 2, 2e5, 4e5))
    design = sweep_design(REAL, known, target="1M", budget="1e12")
    assert design.target_tokens == pytest.approx(1e5, rel=0.01)


def test_runs_that_all_diverged_are_no_evidence() -> None:
    """A table of losses that are not a number promised an interval half as wide as no table."""
    known = runs()
    with pytest.raises(DeepwideError, match="runs so far diverged, so there is nothing to design by"):
        ask(replace(known, diverged=np.ones(len(known), dtype=bool)))


def test_lengths_too_short_to_tell_of_longer_ones_are_named() -> None:
    request = Request.of("1M", "depth", "3e12", None, 4)
    largest = max(option.block_params for option in OPTIONS)

    def notes(*lengths: int) -> list[str]:
        options = [option for tokens in lengths for option in candidates(SPEC, tokens=[tokens])]
        return [note.code for note in design_next(SPEC, None, request, options).notes]

    assert "short" in notes(2 * largest, 20 * largest)
    assert "short" not in notes(11 * largest, 40 * largest)
    assert "short" not in notes(2 * largest), "with one length nothing is told of another"


def test_a_budget_that_just_pays_for_a_fit_buys_it_and_less_is_told_what_it_costs() -> None:
    message = str(ask(budget=1e10).stop)
    assert "nothing can be fitted to fewer than 8 shapes of 3 depths, the cheapest of which cost" in message
    least = sum(sorted(option.train_flops for option in OPTIONS)[:8])
    assert not ask(budget=0.99 * least).runs
    design = ask(budget=1.01 * least)
    assert len({(run.depth, run.width) for run in design.runs}) == 8
    assert not design.stop


def test_that_shorter_runs_are_allowed_too_makes_no_promise_worse() -> None:
    """Allowing lengths of a hundredth had raised 7.8 to 23: it raised the noise assumed of the longest runs."""
    base = REAL | {"iso": {key: value for key, value in REAL["iso"].items() if key != "tokens"}}

    def promised(tokens: str) -> float:
        design = sweep_design(base, target="1M", budget="2e13", tokens=tokens, length="4M")
        return float(design.after.ratio)

    alone = promised("4M")
    assert promised("1M,4M") < alone
    assert promised("40k,4M") <= alone


def test_of_a_budget_far_above_the_plan_a_batch_is_a_part_too() -> None:
    assert max(run.batch for run in ask(budget="1e18").runs) > 2


def test_a_budget_that_is_spent_says_so() -> None:
    before = ask(runs()).stages[:1]
    design = ask(runs(), budget="1e12", spent=Spent(20, 2 * 10**12, 10.0), before=before)
    assert str(design.stop) == "the budget is spent: 2T FLOPs of 1T FLOPs"
    assert "the next" not in " ".join(map(str, design.notes))


def test_a_small_budget_that_cannot_help_is_told_from_runs_that_cannot() -> None:
    design = sweep_design(LONG, LONG_RUNS, target="4.1M", budget="1e13")
    assert "this budget cannot help" in str(design.stop)
    assert sweep_design(LONG, LONG_RUNS, target="4.1M", budget="1e14").runs


def test_a_noise_that_was_given_is_said_not_to_count_once_there_is_a_fit() -> None:
    design = sweep_design(REAL, runs(), target="1M", budget="3e12", noise="1%")
    assert "noise-found" in [note.code for note in design.notes]
    chosen, without = ([(run.batch, run.depth, run.width, run.seed) for run in d.runs] for d in (design, ask(runs())))
    assert chosen == without


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"until": "inf"}, "a number above 1"),
        ({"until": "few"}, "a number above 1"),
        ({"depths": {1: 2}}, "a number, a list of them or a range"),
        ({"tokens": "100k,200k", "length": "1"}, "over 100 times away"),
        ({"tokens": "100k,200k", "length": "1e30"}, "over 100 times away"),
        ({"budget": "1h30m"}, "or a time such as 30min, 2h or 3d"),
    ],
)
def test_what_makes_no_sense_is_refused_by_a_sentence(options: dict[str, Any], sentence: str) -> None:
    asked = {"target": "1M", "budget": "3e12"} | options
    with pytest.raises(DeepwideError, match=sentence):
        sweep_design(REAL, **asked)


def test_sizes_that_no_network_of_these_depths_has_are_passed_over() -> None:
    """The upper end had ended in a TypeError of numpy's."""
    design = sweep_design(REAL, target="1M", budget="3e12", sizes="5k:1e38")
    assert design.runs


def test_choices_may_be_arrays_and_numbers_as_text() -> None:
    design = sweep_design(REAL, target="1M", budget="3d", sizes=np.array([10_000, 40_000, 160_000]), until="9")
    assert design.unit == "seconds"
    assert design.budget == 3 * 86400
