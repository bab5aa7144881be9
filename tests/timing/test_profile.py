"""A profile answers by its law, and survives its file; anything else in the file is refused in a sentence."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from deepwide import DeepwideError, Interval, Shape
from deepwide.timing import MachineProfile, PhaseProfile, find_machine, save_machine, work

SHAPE = Shape(depth=4, width=64, vocab=100, context=32)


def profile(spread: float | None = 0.1) -> MachineProfile:
    law = PhaseProfile(
        per_byte=Interval(1e-10, 0.9e-10, 1.1e-10),
        per_flop=Interval(1e-11),
        per_layer=Interval(1e-5),
        constant=Interval(1e-6),
        error=0.05,
        roofline_error=0.4,
        spread=spread,
    )
    return MachineProfile(
        name="mine", source="a test", device="cpu", precision="fp32", weight_bytes=4, phases={"decode": law}
    )


def test_seconds_are_the_sum_of_four_terms_with_the_errors_of_shapes_left_out() -> None:
    amount = work("decode", SHAPE, batch=2, tokens=7)
    seconds = profile().seconds("decode", SHAPE, batch=2, tokens=7)
    assert seconds.value == pytest.approx(1e-10 * amount.bytes + 1e-11 * amount.flops + 4e-5 + 1e-6)
    assert seconds.low == pytest.approx(seconds.value / 1.2165, rel=1e-3)
    assert seconds.high == pytest.approx(seconds.value * 1.2165, rel=1e-3)
    assert profile(None).seconds("decode", SHAPE).low is None


def test_a_profile_says_what_it_does_not_know() -> None:
    with pytest.raises(DeepwideError, match="says nothing about train: it must be one of 'decode'"):
        profile().seconds("train", SHAPE)


def test_a_saved_profile_is_the_same(tmp_path: Path) -> None:
    path = save_machine(profile(), tmp_path / "new" / "machine.json")
    assert find_machine(path) == profile()
    assert find_machine(str(path)).rows() == []


def test_a_profile_is_frozen() -> None:
    with pytest.raises(ValidationError):
        profile().name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "x"}, "must be an object with"),
        ({"machine": {}}, "is not a machine profile: name"),
        ({"machine.weight_bytes": 0}, "weight_bytes"),
        ({"machine.phases.decode.per_layer": {"value": -1.0}}, "must not be negative"),
        ({"machine.phases.decode.error": -1}, "error"),
        ({"machine.phases.fly": {}}, "phases"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    path = save_machine(profile(), tmp_path / "machine.json")
    document = json.loads(path.read_text())
    for where, value in change.items():
        *outer, last = where.split(".")
        part = document
        for step in outer:
            part = part[step]
        part[last] = value
    path.write_text(json.dumps(document))
    with pytest.raises(DeepwideError, match=sentence):
        find_machine(path)
