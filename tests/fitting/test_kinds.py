"""One function for three kinds of fit, and back from JSON."""

from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import TransitionFit, fit_transition, load_fit
from fitting.builders import sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "deepwide-fit-1", "fit": {"kind": "transition"}}'])
def test_a_file_that_is_no_fit_gets_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "fit.json").write_text(text)
    with pytest.raises(DeepwideError):
        load_fit(tmp_path / "fit.json")


def test_settings_that_make_no_sense_get_a_sentence(fitted: TransitionFit) -> None:
    for settings in ({"bootstrap": -1}, {"slope": 0.0}, {"slope": -1.0}):
        with pytest.raises(DeepwideError):
            fit_transition(sweep(), **settings)
    with pytest.raises(DeepwideError, match="by likelihood or bootstrap"):
        fitted.interval("b", "boot")  # type: ignore[arg-type]
