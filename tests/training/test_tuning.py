"""What the hardware decides, unless the config does."""

from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.training import tune, tuning
from deepwide.training.tuning import Trial

RUN: dict[str, Any] = {"model": {"depth": 1, "width": 16}, "steps": 1000}


def test_compiling_pays_only_for_runs_long_enough() -> None:
    trial = Trial(plain=0.010, compiled=0.006, compiling=30.0)
    assert not trial.pays(1000)
    assert trial.pays(10_000)
    assert not Trial(plain=0.010, compiled=0.011, compiling=0.0).pays(10**9)


def test_a_config_that_sets_precision_or_compile_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "has_fast_bf16", lambda _: True)
    assert tune(RUN, device="cpu").config.precision == "bf16"
    assert tune(RUN, device="cpu", precision="fp32").config.precision == "fp32"
    assert tune(RUN | {"precision": "fp32"}, device="cpu", precision="bf16").config.precision == "fp32"
    assert tune(RUN, device="cpu", compiled="on").config.compile
    assert not tune(RUN | {"compile": False}, device="cpu", compiled="on").config.compile


def test_compiling_is_measured_and_the_note_has_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "try_compile", lambda *_: Trial(plain=0.010, compiled=0.006, compiling=3.0))
    config, (note,) = tune(RUN, device="cpu", compiled="auto")
    assert config.compile
    assert note.code == "compile"
    assert note.data["plain"] == 0.010
    assert not tune(RUN | {"steps": 10}, device="cpu", compiled="auto").config.compile


@pytest.mark.parametrize(("option", "sentence"), [("compiled", "off, on or auto"), ("precision", "no precision")])
def test_what_cannot_be_chosen_gets_a_sentence(option: str, sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        tune(RUN, device="cpu", **{option: "perhaps"})
