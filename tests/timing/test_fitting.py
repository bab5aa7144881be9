"""The fit finds the law that made the times, agrees with SciPy, and never sees the shape it is judged on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.quantities import Floats
from deepwide.timing.fitting import least_squares, left_out, median_error, with_intervals

TRUTH = np.array([1e-10, 2e-11, 3e-3, 1e-4])


def cases(shapes: int = 8, noise: float = 0.0, rounds: int = 5) -> tuple[Floats, Floats, list[int]]:
    """Bytes, FLOPs, layers and 1 of three cases per shape, and seconds per round."""
    generator = np.random.default_rng(1)
    groups = [shape for shape in range(shapes) for _ in range(3)]
    features = np.stack(
        [
            10 ** generator.uniform(7, 9, len(groups)),
            10 ** generator.uniform(7, 10, len(groups)),
            np.array([2 ** (group % 6) for group in groups], dtype=float),
            np.ones(len(groups)),
        ],
        axis=1,
    )
    errors = np.exp(noise * generator.standard_normal((len(groups), rounds)))
    return features, (features @ TRUTH)[:, None] * errors, groups


def test_exact_times_give_back_their_law() -> None:
    features, seconds, groups = cases()
    assert least_squares(features, seconds[:, 0]) == pytest.approx(TRUTH, rel=1e-6)
    assert left_out(features, seconds[:, 0], groups) == pytest.approx(seconds[:, 0], rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_it_is_scipy_s_non_negative_least_squares(seed: int) -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="needs SciPy: pip install 'deepwide[fit]'")
    generator = np.random.default_rng(seed)
    features, seconds = generator.uniform(0, 1, (12, 4)), generator.uniform(0.5, 2, 12)
    theirs, residual = optimize.nnls(features / seconds[:, None], np.ones(12))
    ours = least_squares(features, seconds)
    assert ours.min() >= 0
    assert np.linalg.norm(features @ ours / seconds - 1) == pytest.approx(residual, rel=1e-6)
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_intervals_hold_the_law_under_noise() -> None:
    features, seconds, groups = cases(noise=0.05, rounds=9)
    intervals = with_intervals(features, seconds, groups)
    for interval, truth in zip(intervals[:3], TRUTH[:3], strict=True):
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low <= truth <= interval.high
        assert interval.high < 3 * interval.low


def test_a_shape_does_not_help_to_predict_itself() -> None:
    features, seconds, groups = cases()
    wrong = seconds[:, 0].copy()
    wrong[:3] *= 10  # every case of shape 0
    predicted = left_out(features, wrong, groups)
    assert predicted[:3] == pytest.approx(seconds[:3, 0], rel=1e-6)
    assert median_error(predicted[:3], wrong[:3]) == pytest.approx(0.9)
