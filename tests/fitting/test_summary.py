"""Fits in words."""

import pytest

from deepwide.fitting import TransitionFit, fit_transition
from deepwide.quantities import show_count
from fitting.builders import sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


def test_the_summary_says_where_more_layers_pay_and_what_embeddings_are(fitted: TransitionFit) -> None:
    text = fitted.summary()
    size = fitted.transition(4)
    said = [show_count(round(value or 0)) for value in (size.value, size.low, size.high)]
    assert f"{said[0]} ({said[1]} to {said[2]}) for 4" in text
    assert "between seeds" in text
    assert fitted.seed_noise == pytest.approx(0.002, rel=0.3)
    assert fitted.crossings[1].resampled is not None
    low, high = fitted.crossings[1].resampled
    assert low < (fitted.crossings[1].size or 0) < high
