"""One curve of loss against size per depth."""

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, TransitionFit, fit_transition
from deepwide.fitting.regression import t95
from fitting.builders import SIZES, UNEVEN, sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


def test_lengths_are_not_mixed() -> None:
    runs = sweep()
    tokens = np.where(np.arange(len(runs)) % 2, 1e6, 2e6)
    mixed = Runs.of(depth=runs.depth, block_params=runs.block_params, loss=runs.loss, tokens=tokens)
    with pytest.raises(DeepwideError, match="different numbers of tokens"):
        fit_transition(mixed)


def test_too_little_gets_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="at least two depths with 3 finished sizes"):
        fit_transition(sweep(sizes=SIZES[:2]))
    with pytest.raises(DeepwideError, match="at least two depths"):
        fit_transition(sweep(depths=(4,)))


def test_with_its_own_noise_a_pairs_limits_are_welchs() -> None:
    fit = fit_transition(sweep(noise=UNEVEN, seeds=1), bootstrap=0, noise="depth")
    curves, (pair, *_) = fit.curves, fit.crossings[1:]
    assert curves.dofs == pytest.approx((5, 5, 5, 5))
    assert pair.high is not None
    parts = [g @ np.array(curves.covariance) @ g for g in (curves.gradient(d, pair.high)[0] for d in (2, 4))]
    welch = sum(parts) ** 2 / sum(v**2 / 5 for v in parts)
    delta, error = curves.difference(2, 4, pair.high)
    assert abs(delta[0]) / error[0] == pytest.approx(t95(welch), rel=0.02)
    assert error[0] ** 2 == pytest.approx(sum(parts))


def test_predicting_many_sizes_at_once_is_sent_to_the_curves(fitted: TransitionFit) -> None:
    with pytest.raises(DeepwideError, match=r"curves\.loss"):
        fitted.predict(2, [1e5, 1e6])  # type: ignore[arg-type]
