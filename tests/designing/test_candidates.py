"""What may be run: the values that people write, exact costs, and seeds that were used."""

import math

import pytest

from deepwide.designing.candidates import Candidate, candidates, pool_of, seeds_used, share_at, tokens_key, values_of
from deepwide.errors import DeepwideError
from deepwide.fitting import Runs
from deepwide.sweeping import cells_of, make_spec
from designing.bases import REAL, TOY


def test_candidates_are_the_cells_of_the_base_with_their_costs() -> None:
    spec = make_spec(REAL)
    options = candidates(spec)
    cells = cells_of(spec)
    assert [(o.depth, o.width, o.train_flops) for o in options] == [
        (c.cost.depth, c.cost.width, c.cost.train_flops) for c in cells
    ]
    assert all(option.expected_seconds > 0 for option in options)


def test_a_grid_makes_a_candidate_dearer() -> None:
    one = candidates(make_spec(TOY))
    three = candidates(make_spec(TOY | {"grid": {"lr": [0.01, 0.02, 0.05]}}))
    assert [option.train_flops * 3 for option in one] == [option.train_flops for option in three]
    assert {option.cells for option in three} == {3}


def test_sizes_depths_and_lengths_replace_the_base_s() -> None:
    options = candidates(make_spec(REAL), sizes="10k:40k", depths=[2, 4], tokens="50k,100k")
    assert {option.size for option in options} == {10_000, 20_000, 40_000}
    assert {option.depth for option in options} == {2, 4}
    assert len({option.tokens for option in options}) == 2


@pytest.mark.parametrize(
    ("written", "what", "sentence"),
    [
        ("40k:10k", "sizes", "ends before it begins"),
        ("many", "depths", "is not one of the depths"),
        ("2,1.5", "depths", "depths are whole numbers of layers, not '1.5'"),
        ([2, 1.5], "depths", "depths are whole numbers of layers, not '1.5'"),
        ([], "tokens", "no tokens are given"),
        ("1:x", "depths", "is not an end of the range of depths"),
    ],
)
def test_a_choice_that_is_none_is_refused(written: str, what: str, sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        values_of(written, what)


def test_ranges_that_hold_one_value() -> None:
    assert values_of("4:4", "depths") == [4]
    assert values_of(7, "sizes") == [7]


def test_a_base_without_sizes_and_depths_asks_for_them() -> None:
    base = make_spec({"name": "x", "run": {"trainer": "toy"}})
    with pytest.raises(DeepwideError, match=r"no iso\.params: give the sizes"):
        candidates(base)
    assert candidates(base, sizes=[64], depths=[1], tokens=3)[0].width == 8
    with pytest.raises(DeepwideError, match="is the most: choose fewer"):
        candidates(base, sizes=list(range(1, 100)), depths=list(range(1, 50)))


def test_a_range_without_any_width_is_refused() -> None:
    with pytest.raises(DeepwideError, match="no depth has a width"):
        candidates(make_spec(REAL), sizes=[100])


def test_seeds_that_a_shape_was_run_with_are_known() -> None:
    option = Candidate(64, 1, 8, 4, 64, 64, 1536, 0.1, 1)
    runs = Runs.of(depth=[1, 1, 2], block_params=[64, 64, 64], tokens=[4, 4, 4], loss=[1, 1, 1], seed=[0, 1, 0])
    assert seeds_used(option, runs) == {0, 1}
    assert seeds_used(option, None) == set()
    twice = Runs.of(depth=[1, 1], block_params=[64, 64], tokens=[4, 4], loss=[1, 1])
    assert seeds_used(option, twice) == {0, 1}, "two runs without a seed are two"
    pool = pool_of([option], [5.0], [{0, 1}])
    assert (pool.cost[0], pool.repeats[0]) == (5.0, 6)


def test_embeddings_of_the_target_grow_like_its_width() -> None:
    option = Candidate(64, 1, 8, 4, 100, 150, 1, 0.1, 1)
    assert share_at([option], 400) == pytest.approx(math.log(1 + 100 / 400))
    assert tokens_key(make_spec(TOY)) == "steps"
    assert tokens_key(make_spec(REAL)) == "tokens"
