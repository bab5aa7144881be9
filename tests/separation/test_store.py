"""A store knows where the certificate of a case is, and never takes another for it."""

from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.certificates import Certificate
from deepwide.separation.measurement import measure
from deepwide.separation.route import choose_route
from deepwide.separation.store import Store
from separation.builders import PUBLISHED, save_weights

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
