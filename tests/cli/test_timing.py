"""`deepwide time` renders and saves a profile that `plan` reads."""

from pathlib import Path

import pytest

from cli.calling import ask, call
from deepwide.timing import measuring

SHAPES = ((1, 64), (2, 32), (4, 16), (2, 64), (4, 32), (8, 16))


def test_a_measured_profile_is_shown_saved_and_planned_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measuring.measure_machine.__kwdefaults__ or {}, "shapes", SHAPES)
    monkeypatch.setattr(measuring, "MOST_ROUNDS", 3)
    path = tmp_path / "machine.json"
    done = call("time", "--seconds", "60", "--threads", "1", "--device", "cpu", "--name", "tiny", "--save", str(path))
    assert done.returncode == 0, done.stderr
    assert "Time on tiny" in done.stdout
    assert "roofline" in done.stdout
    assert done.stderr.splitlines()[0] == "a short trial, to say how long it will take"
    assert "3 rounds of about " in done.stderr.splitlines()[1]
    assert " s left" in done.stderr.splitlines()[1]
    assert "round 1, 0% of the time" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["machine.json"]
    assert f"Saved the profile: {path}" in done.stdout.replace("\n", "")
    answer = ask("plan", "10M", "--machine", str(path))
    assert answer["speed"]["machine"] == "tiny"
    assert answer["speed"]["train_step_seconds"]["value"] > 0


def test_an_interrupted_measurement_says_where_its_rounds_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measuring, "measure_machine", interrupted)
    path = tmp_path / "machine.json"
    done = call("time", "--save", str(path))
    assert done.returncode == 130
    assert f"finished rounds are in {path}.rounds, and the same command continues" in done.stderr
    assert "nothing was saved" in call("time").stderr


def test_presets_are_listed_with_their_sources() -> None:
    assert [preset["name"] for preset in ask("time", "--presets")][:2] == ["captured", "eager"]
    assert "worked out from the decode times" in call("time", "--presets").stdout


def test_a_bad_time_is_one_sentence() -> None:
    done = call("time", "--seconds", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("deepwide: seconds must be from 1")
