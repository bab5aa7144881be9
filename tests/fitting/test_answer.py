"""What all fits share."""

import math
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import (
    TransitionFit,
    fit_surface,
    fit_transition,
    load_fit,
)
from fitting.builders import chinchilla_like, gemstones_like, sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


def test_a_fit_goes_through_json_unchanged(fitted: TransitionFit, tmp_path: Path) -> None:
    again = load_fit(fitted.save(tmp_path / "fit.json"))
    assert again == fitted
    assert again.summary() == fitted.summary()
    assert again.law() == fitted.law()


@pytest.mark.parametrize("place", [(0, 1e5), (2, -1.0), (2, math.nan), (2, [1e4, 1e5])])
def test_only_a_size_can_be_predicted(fitted: TransitionFit, place: tuple[int, float]) -> None:
    with pytest.raises(DeepwideError):
        fitted.predict(*place)


def test_a_fit_reads_back_as_it_was_saved(tmp_path: Path) -> None:
    for runs, terms in ((chinchilla_like(0.01), "tokens"), (gemstones_like(0.01), "shape")):
        fit = fit_surface(runs, terms=terms, bootstrap=25)  # type: ignore[arg-type]
        back = load_fit(fit.save(tmp_path / f"{terms}.json"))
        assert back == fit
        assert back.summary() == fit.summary()
