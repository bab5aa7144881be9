"""Permutations and draws are functions of key and index alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deepwide.data.shuffling import draws, permuted


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_every_index_appears_once(size: int, key: int) -> None:
    assert sorted(permuted(np.arange(size, dtype=np.uint64), size, key).tolist()) == list(range(size))


def test_orders_of_other_seeds_differ_and_do_not_follow_the_index() -> None:
    index = np.arange(1000, dtype=np.uint64)
    one, two = permuted(index, 1000, 1), permuted(index, 1000, 2)
    assert (one == two).mean() < 0.02
    assert abs(np.corrcoef(index, one)[0, 1]) < 0.15


@given(st.integers(0, 2**64 - 1), st.integers(0, 10**12), st.integers(1, 20), st.integers(1, 9))
def test_a_draw_does_not_depend_on_the_rows_drawn_with_it(key: int, first: int, rows: int, columns: int) -> None:
    index = np.arange(first, first + rows, dtype=np.uint64)
    whole = draws(key, index, columns)
    assert whole.shape == (rows, columns)
    for row in range(rows):
        assert (whole[row] == draws(key, index[row : row + 1], columns)[0]).all()


def test_draws_are_uniform_and_independent() -> None:
    """Against chi-squared's own quantiles: 9 degrees of freedom exceed 33.7 once in 10,000 times."""
    digits = (draws(5, np.arange(20_000, dtype=np.uint64), 4) % np.uint64(10)).astype(np.int64)
    for column in digits.T:
        expected = len(column) / 10
        assert ((np.bincount(column, minlength=10) - expected) ** 2 / expected).sum() < 33.7
    correlations = np.corrcoef(digits.T) - np.eye(4)
    assert np.abs(correlations).max() < 0.03
    assert np.abs(np.corrcoef(digits[:-1, 0], digits[1:, 0])[0, 1]) < 0.03
    assert (draws(6, np.arange(1000, dtype=np.uint64), 4) != draws(5, np.arange(1000, dtype=np.uint64), 4)).all()
