"""A store knows where the certificate of a case is, and never takes another for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.certificates import Certificate
from deepwide.separation.measurement import choose_route, measure
from deepwide.separation.network import Case
from deepwide.separation.store import FinishedBlocks, Store
from separation.builders import PUBLISHED, is_one_sentence, save_weights

PRIME = 1_048_573


def test_a_folder_has_a_file_per_case_and_a_json_file_has_one(tmp_path: Path) -> None:
    assert Store(tmp_path).path(Case(2, 3)) == tmp_path / "L2-d3-H1-seed0.json"
    assert Store(tmp_path / "c.json").path(Case(2, 3)) == tmp_path / "c.json"
    assert (Store(tmp_path).holds_one, Store(tmp_path / "c.json").holds_one) == (False, True)


def test_what_was_written_is_found_and_nothing_else_is(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    assert store.find(Case(2, 2), PRIME) is None
    certificate = Certificate.of(measure(Case(2, 2)))
    store.write(certificate)
    assert store.find(Case(2, 2), PRIME) == certificate
    assert store.certificates() == [certificate]
    assert store.find(Case(2, 2, seed=1), PRIME) is None


@pytest.mark.parametrize(
    "other", [(Case(2, 2, seed=1), PRIME, False), (Case(2, 2), 65_521, False), (Case(2, 2), PRIME, True)]
)
def test_a_certificate_of_another_measurement_is_refused(tmp_path: Path, other: tuple[Case, int, bool]) -> None:
    store = Store(tmp_path / "c.json")
    store.write(Certificate.of(measure(Case(2, 2))))
    with pytest.raises(DeepwideError, match="another measurement"):
        store.find(*other)


def test_changed_weights_are_noticed(tmp_path: Path) -> None:
    case = Case(2, 2, weights=str(save_weights(tmp_path / "w.npz", 0)))
    store = Store(tmp_path / "ranks")
    store.write(Certificate.of(measure(case)))
    assert store.find(case, PRIME) is not None
    save_weights(tmp_path / "w.npz", 1)
    with pytest.raises(DeepwideError, match="has changed"):
        store.find(case, PRIME)


def test_parts_go_only_after_the_certificate_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    part = store.finished_blocks(choose_route(Case(2, 2)), PRIME, False, "dgemm")
    part.path.write_text("finished blocks")
    certificate = Certificate.of(measure(Case(2, 2)))

    def full(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Certificate, "write", full)
        with pytest.raises(OSError, match="disk full"):
            store.write(certificate, [part])
    assert part.path.exists()
    store.write(certificate, [part])
    assert [file.name for file in tmp_path.iterdir()] == ["L2-d2-H1-seed0.json"]


def test_a_folder_without_certificates_gets_a_sentence(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DeepwideError, match="no certificates in"):
            Store(place).certificates()
    assert len(Store(PUBLISHED).certificates()) > 50


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.separation.store._SECONDS_BETWEEN", 0)


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
