"""Ways through a pool: never dearer than the budget, the same every time, honest at the largest size."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.designing.choosing import NEAR, Pool, Way, batches, best_way, ends_of, frontier, ways
from deepwide.fitting import Places, Runs, fit_joint, outlook_of, simulate, spread_near
from deepwide.laws import TransitionLaw

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)
RUNS = simulate(LAW, depths=(1, 2, 4, 8), sizes=np.geomspace(1e4, 1e5, 3), seeds=1, seed=5)
FIT = fit_joint(RUNS, bootstrap=200, examine=False)


def pool(sizes: tuple[float, ...] = (1e4, 4e4, 1.6e5, 6.4e5), repeats: int = 2) -> Pool:
    L, N = (column.ravel() for column in np.meshgrid([1.0, 2, 4, 8, 16], sizes))
    return Pool(Places(L, N, N, np.full(len(N), math.nan), np.ones(len(N))), N.copy(), np.full(len(N), repeats))


def tried(here: Pool, budget: float, runs: Runs | None) -> list[Way]:
    before = Places.none() if runs is None else Places.of(runs)
    ends = ends_of(here, float(before.block_params.max()) if len(before) else 0.0)
    ahead = outlook_of(FIT if runs is not None else None, before, here.places, draws=6)
    return ways(ahead.covariances(before, here.places, "depth", 6.4e6, ends, 0.0), here, ends, budget, before)


@settings(max_examples=25)
@given(
    budget=st.floats(1e4, 2e7),
    sizes=st.lists(st.floats(5e3, 1e6), min_size=1, max_size=4, unique=True),
    pilot=st.booleans(),
)
def test_no_way_costs_more_than_the_budget_or_repeats_more_than_it_may(
    budget: float, sizes: list[float], pilot: bool
) -> None:
    here = pool(tuple(sizes))
    for way in tried(here, budget, None if pilot else RUNS):
        assert here.cost[list(way.runs)].sum() <= budget * (1 + 1e-9)
        assert way.costs[-1] <= budget * (1 + 1e-9)
        assert (np.bincount(way.runs, minlength=len(here)) <= here.repeats).all()
        assert np.isfinite(way.log_width[-1])


def test_what_may_not_be_repeated_is_not_run() -> None:
    here = pool()
    spent = Pool(here.places, here.cost, np.where(here.places.depth == 4, 0, 2))
    chosen = [run for way in tried(spent, 5e6, RUNS) for run in way.runs]
    assert chosen
    assert 4 not in here.places.depth[chosen]


def test_the_same_question_gives_the_same_runs() -> None:
    assert tried(pool(), 3e6, RUNS) == tried(pool(), 3e6, RUNS)


def test_a_larger_size_begins_with_depths_that_show_the_best_there() -> None:
    here = pool()
    largest = RUNS.block_params.max()
    for way in tried(here, 4e6, RUNS):
        sizes, depths = here.places.block_params[list(way.runs)], here.places.depth[list(way.runs)]
        if sizes.max() > 1.02 * largest:
            assert len(set(depths[sizes > sizes.max() / NEAR])) >= 2
            near = spread_near(
                float(sizes.max()), lambda places: np.ones(len(places)), Places.of(RUNS), here.places.at(list(way.runs))
            )
            assert near >= outlook_of(FIT, Places.of(RUNS), here.places, draws=6).spread


def test_a_budget_for_one_of_the_largest_does_not_buy_it() -> None:
    here = pool((1e4, 6.4e5))
    for way in tried(here, 1.9 * 6.4e5, RUNS):
        assert here.places.block_params[list(way.runs)].max() < 6e5


def test_more_money_never_gives_a_wider_interval() -> None:
    best = [best_way(tried(pool(), budget, RUNS)) for budget in (5e5, 2e6, 8e6)]
    widths = [way.log_width[-1] for way in best if way]
    assert len(widths) == 3
    assert widths == sorted(widths, reverse=True)
    points = frontier(tried(pool(), 8e6, RUNS))
    assert [sd for _, sd in points] == sorted((sd for _, sd in points), reverse=True)


def test_fewer_than_eight_shapes_are_no_way() -> None:
    assert tried(pool((1e4,)), 1e9, None) == []
    assert best_way([]) is None


def test_sizes_that_nearly_agree_are_one_end() -> None:
    here = pool((1e4, 1.1e4, 4e4))
    np.testing.assert_allclose(ends_of(here, 0.0), [1.1e4, 4e4])
    np.testing.assert_allclose(ends_of(here, 2e4), [2e4, 4e4])
    np.testing.assert_allclose(ends_of(here, 5e4), [5e4])


def test_batches_hold_each_run_once_and_the_first_can_be_fitted() -> None:
    here = pool()
    way = best_way(tried(here, 8e6, None))
    assert way
    parts = batches(way, here, Places.none(), 8e6, least=2, fitted=False)
    assert sorted(run for part in parts for run in part) == sorted(way.runs)
    first = sorted(set(parts[0]))
    assert len(first) >= 8
    assert len(set(here.places.depth[first])) >= 3
    fitted = batches(way, here, Places.of(RUNS), 8e6, least=3, fitted=True)
    costs = [here.cost[run] for part in fitted for run in part]
    assert costs == sorted(costs), "cheapest first"
    assert all(len(part) >= 3 for part in fitted[:-1])


def test_on_a_ladder_depths_of_one_size_have_lengths_of_their_own_and_begin_together() -> None:
    """Tokens = 20·total: deep and narrow shapes have fewer embeddings, so fewer tokens."""
    L, N = (column.ravel() for column in np.meshgrid([4.0, 8, 16, 32], [1e7, 1e8, 1e9]))
    total = N + 50_000 * np.sqrt(N / (12 * L))
    here = Pool(Places(L, N, total, 20 * total, np.ones(len(N))), 120 * total**2, np.full(len(N), 4))
    nothing, ends = Places.none(), ends_of(here, 0.0)
    cov = outlook_of(None, nothing, here.places, draws=6).covariances(nothing, here.places, "depth", 1e10, ends, 0.0)
    largest = [way for way in ways(cov, here, ends, 4 * here.cost.max(), nothing) if N[list(way.runs)].max() > 9e8]
    assert largest
    assert all(len(set(L[[run for run in way.runs if N[run] > 9e8]])) > 1 for way in largest)
