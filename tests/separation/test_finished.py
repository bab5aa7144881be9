"""Finished blocks are used for the very same measurement, and for no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation import finished
from deepwide.separation.case import Case
from deepwide.separation.finished import FinishedBlocks
from deepwide.separation.route import choose_route
from separation.builders import is_one_sentence, save_weights


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "_SECONDS_BETWEEN", 0)


def blocks(folder: Path, case: Case = Case(2, 3), prime: int = 101, full_grid: bool = False) -> FinishedBlocks:
    return FinishedBlocks(folder / "c.json", choose_route(case), prime, full_grid, "dgemm")


@pytest.mark.usefixtures("at_once")
def test_what_was_added_is_read_again_until_it_is_removed(tmp_path: Path) -> None:
    first = blocks(tmp_path)
    first.add(2, 21)
    first.add(0, 1)
    assert blocks(tmp_path).ranks == {2: 21, 0: 1}
    assert [file.name for file in tmp_path.iterdir()] == [".c.json.dgemm.part"]
    first.remove()
    assert blocks(tmp_path).ranks == {}


def test_a_quick_measurement_writes_nothing(tmp_path: Path) -> None:
    blocks(tmp_path).add(2, 21)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("at_once")
def test_blocks_of_another_measurement_are_refused(tmp_path: Path) -> None:
    blocks(tmp_path).add(2, 21)
    for other in (
        {"case": Case(2, 3, seed=1)}, {"case": Case(2, 4)}, {"case": Case(2, 3, 3)}, {"prime": 103},
        {"full_grid": True},
    ):  # fmt: skip
        with pytest.raises(DeepwideError, match="another measurement"):
            blocks(tmp_path, **other)
    route = replace(choose_route(Case(2, 3)), bounds=(1, 6, 20, 18, 3))
    with pytest.raises(DeepwideError, match="another measurement"):
        FinishedBlocks(tmp_path / "c.json", route, 101, False, "dgemm")


@pytest.mark.usefixtures("at_once")
def test_blocks_of_changed_weights_are_refused(tmp_path: Path) -> None:
    case = Case(2, 2, weights=str(save_weights(tmp_path / "w.npz", 0)))
    blocks(tmp_path, case).add(0, 1)
    assert blocks(tmp_path, case).ranks == {0: 1}
    save_weights(tmp_path / "w.npz", 1)
    with pytest.raises(DeepwideError, match="another measurement"):
        blocks(tmp_path, case)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b"[" * 5000, b'{"ranks": 3}', None])
def test_a_torn_file_stops_the_run(tmp_path: Path, damage: bytes | None) -> None:
    blocks(tmp_path).add(2, 21)
    part = tmp_path / ".c.json.dgemm.part"
    part.write_bytes(part.read_bytes().replace(b'"2": 21', b'"2": 20') if damage is None else damage)
    with pytest.raises(DeepwideError, match="torn") as stopped:
        blocks(tmp_path)
    assert is_one_sentence(str(stopped.value))
