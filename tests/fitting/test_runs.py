"""Runs as a table of columns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, fit_surface, fit_transition, read_runs, simulate
from deepwide.fitting.runs import draws_of, units_of
from deepwide.laws import TransitionLaw
from fitting.builders import chinchilla_like, codes, gemstones_like


def test_seeds_that_do_not_link_the_shapes_are_repeats() -> None:
    law = TransitionLaw(name="truth", a=3.2, b=0.25)
    runs = simulate(law, depths=(1, 2, 4), sizes=np.geomspace(1e4, 1e6, 6), seeds=2)
    shapes: dict[str, Any] = {
        "depth": runs.depth,
        "width": runs.width,
        "block_params": runs.block_params,
        "loss": runs.loss,
    }
    each_its_own = Runs.of(**shapes, seed=np.arange(len(runs)))
    each_depth_its_own = Runs.of(**shapes, seed=10 * runs.depth + runs.seed)
    without = fit_transition(Runs.of(**shapes), bootstrap=0)
    for unlinked in (each_its_own, each_depth_its_own):
        assert "seeds-unlinked" in codes(unlinked.notes)
        assert fit_transition(unlinked, bootstrap=0).values == without.values
    chain = Runs.of(depth=[1, 2, 2, 4, 4], width=[8] * 5, loss=[2.0] * 5, seed=[0, 0, 1, 1, 2])
    assert chain.seed.tolist() == [0, 0, 1, 1, 2], "1 shares a seed with 2, which shares one with 4"


def test_tokens_that_are_partly_blank_are_refused_where_the_others_differ() -> None:
    shapes: dict[str, Any] = {"depth": [1, 2, 4], "width": [8, 8, 8], "loss": [2.0, 1.9, 1.8]}
    with pytest.raises(DeepwideError, match="1 run has no tokens, and the others 2e"):
        Runs.of(**shapes, tokens=[np.nan, 2e6, 2.001e6])
    assert len(Runs.of(**shapes, tokens=[np.nan, 2e6, 2e6])) == 3


def test_flops_and_totals_give_tokens() -> None:
    runs = Runs.of(total_params=[10.0], train_flops=[600.0], loss=[1.0])
    assert list(runs.tokens) == [10.0]
    with pytest.raises(DeepwideError, match="column depth="):
        runs.need("depth")


def test_a_column_that_is_found_and_blank_is_named_with_how_many_rows() -> None:
    rows: list[dict[str, Any]] = [{"layers": "", "params": 1e6, "loss": 2.0} for _ in range(3)]
    some = read_runs([*rows, rows[0] | {"layers": 4}])
    with pytest.raises(
        DeepwideError, match=r"'depth' \('layers' of the table\) is blank in 3 of the 4 runs.*where depth>0"
    ):
        some.need("depth")
    with pytest.raises(DeepwideError, match=r"'depth' \('layers' of the table\) is blank in 3 of the 3 runs") as error:
        read_runs(rows).need("depth")
    assert "where" not in str(error.value), "no row would be left"
    with pytest.raises(DeepwideError, match="has none that is called so: map it"):
        some.need("width")
    widths = read_runs([{"depth": 2, "width": w, "loss": 2.0} for w in (64, None)])
    with pytest.raises(DeepwideError, match="the column 'width' of the table is blank in 1 of the 2 runs"):
        widths.need("block_params")


def test_a_mapping_to_nothing_names_the_nearest() -> None:
    with pytest.raises(DeepwideError, match="no column 'depht'"):
        Runs.of(loss=[1.0], depht=[1])


def test_what_a_diverged_run_exceeds_is_the_worst_that_finished_near_its_size() -> None:
    runs = Runs.of(
        depth=[1, 1, 1, 2],
        block_params=[100.0, 110.0, 1000.0, 105.0],
        loss=[2.0, 2.5, 1.0, np.nan],
        diverged=[0, 0, 0, 1],
    )
    np.testing.assert_array_equal(runs.bounds(), [np.nan, np.nan, np.nan, 2.5])
    paired = Runs.of(
        depth=[1, 1, 4], block_params=[100.0] * 3, loss=[2.0, np.nan, 9.0], seed=[0, 1, 0], diverged=[0, 1, 0]
    )
    assert paired.bounds()[1] == 2.0, "its own shape's other seed finished: that is what is known"
    alone = Runs.of(block_params=[100.0, 1e6], loss=[2.0, np.nan], diverged=[0, 1])
    assert alone.bounds()[1] == 2.0, "where nothing near finished, the nearest that did"


@given(st.permutations(range(6)))
def test_cells_do_not_depend_on_the_order(order: list[int]) -> None:
    depth, width = np.array([1, 1, 2, 2, 4, 4]), np.array([8, 8, 8, 8, 8, 16])
    runs = Runs.of(depth=depth, width=width, loss=np.ones(6), seed=[0, 1, 0, 1, 0, 1])
    mixed = runs.select(np.array(order))
    pairs = {(a, b) for a in range(6) for b in range(6) if runs.groups[order[a]] == runs.groups[order[b]]}
    assert pairs == {(a, b) for a in range(6) for b in range(6) if mixed.groups[a] == mixed.groups[b]}


def test_runs_of_one_group_are_resampled_together() -> None:
    runs = chinchilla_like(0.01)
    doubled = runs.select(np.repeat(np.arange(len(runs)), 2))
    draws = draws_of(units_of(doubled, "group"), 5, 20, seed=0)
    assert (draws[:, ::2] == draws[:, 1::2]).all()
    assert (draws.sum(axis=1) == len(doubled)).all()


def test_resampling_checkpoints_with_their_shape_widens_the_intervals() -> None:
    runs = gemstones_like(0.003)
    shift = np.exp(np.random.default_rng(2).normal(0, 0.01, 30))[units_of(runs, "shape")]
    runs = replace(runs, loss=runs.loss * shift)
    widths = []
    for unit in ("group", "shape"):
        fit = fit_surface(runs, terms="shape", unit=unit, bootstrap=60)
        interval = fit.interval("depth_exponent", "bootstrap")
        widths.append(interval.high - interval.low)  # type: ignore[operator]
        assert fit.dof == (90 if unit == "group" else 30) - 9
    assert widths[1] > 1.2 * widths[0]


def test_the_same_seed_gives_the_same_resamples_and_another_does_not() -> None:
    runs = chinchilla_like(0.01)
    one, same, other = (fit_surface(runs, bootstrap=25, seed=seed).resamples for seed in (1, 1, 2))
    assert one == same
    assert one != other
