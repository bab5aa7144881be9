"""Sweeps that never ran."""

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import simulate
from fitting.builders import LAW


def test_without_noise_the_loss_is_the_formula() -> None:
    runs = simulate(LAW, depths=(2, 8), sizes=[1e5, 1e6], seeds=1, noise=0.0, seed_effect=0.0, off_size=0.0)
    best = LAW.depth(runs.block_params).value
    expected = (0.9 + 8 * runs.block_params**-0.2) * np.exp(0.02 * np.log(runs.depth / best) ** 2)
    np.testing.assert_allclose(runs.loss, expected)
    assert sorted(set(runs.block_params)) == pytest.approx([1e5, 1e6])


def test_noise_may_differ_by_depth() -> None:
    runs = simulate(LAW, depths=(2, 8), sizes=[1e6] * 40, seeds=1, noise={2: 0.0, 8: 0.1}, off_size=0.0)
    scatter = [np.std(np.log(runs.loss[runs.depth == depth])) for depth in (2, 8)]
    assert scatter[0] == pytest.approx(0, abs=1e-12)
    assert scatter[1] == pytest.approx(0.1, rel=0.4)


def test_what_a_seed_shares_is_the_same_for_all_shapes() -> None:
    runs = simulate(LAW, depths=(2, 8), sizes=[1e5, 1e6], seeds=2, noise=0.0, seed_effect=0.1, off_size=0.0)
    gaps = np.log(runs.loss[runs.seed == 1] / runs.loss[runs.seed == 0])
    assert np.ptp(gaps) < 1e-12
    assert abs(gaps[0]) > 1e-3


@pytest.mark.parametrize("empty", [{"depths": ()}, {"sizes": []}, {"seeds": 0}])
def test_a_sweep_of_nothing_gets_a_sentence(empty: dict[str, object]) -> None:
    with pytest.raises(DeepwideError, match="needs depths, sizes"):
        simulate(LAW, **({"depths": (1, 2), "sizes": [1e5]} | empty))  # type: ignore[arg-type]
