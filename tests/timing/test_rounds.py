"""Rounds are kept as they are finished, and continued only where they belong."""

from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.timing.rounds import Rounds

SETTINGS = {"threads": 1, "shapes": ((1, 64), (2, 32))}


def test_a_finished_round_is_there_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "machine.json.rounds"
    rounds = Rounds.of(SETTINGS, path, (2, 3))
    assert path.exists()  # a folder that cannot be written to would have been found out
    rounds.add(np.arange(1, 7).reshape(2, 3) / 7, 12.5, 1e11, 1e10)
    again = Rounds.of(SETTINGS, path, (2, 3))
    assert again.took == [12.5]
    assert np.array_equal(again.seconds[0], rounds.seconds[0])
    again.add(np.ones((2, 3)), 10.0, 9e10, 2e10)
    last = Rounds.of(SETTINGS, path, (2, 3))
    assert (last.took, last.peak, last.rate) == ([12.5, 10.0], 1e11, 2e10)


def test_rounds_of_other_settings_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "rounds"
    Rounds.of(SETTINGS, path, (2, 3)).add(np.ones((2, 3)), 1.0, 1.0, 1.0)
    assert Rounds.of(SETTINGS | {"threads": 2}, path, (2, 3)).took == []


@pytest.mark.parametrize("content", ["[]", '{"format": "something else"}', "no JSON"])
def test_another_file_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rounds"
    path.write_text(content)
    with pytest.raises(DeepwideError):
        Rounds.of(SETTINGS, path, (2, 3))
    assert path.read_text() == content


def test_half_a_round_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rounds"
    Rounds.of(SETTINGS, path, (2, 3)).add(np.ones((2, 3)), 1.0, 1.0, 1.0)
    with pytest.raises(DeepwideError, match="delete it to measure anew"):
        Rounds.of(SETTINGS, path, (3, 3))


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    Rounds.of(SETTINGS, None, (2, 3)).add(np.ones((2, 3)), 1.0, 1.0, 1.0)
    assert list(tmp_path.iterdir()) == []
