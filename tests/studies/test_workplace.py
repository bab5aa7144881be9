"""Parts of a measurement: stored when finished, read only where nothing has changed, the same bytes either way."""

from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.studies import Workplace
from deepwide.studies.workplace import Parts

THIRDS = [1 / 3, -0.1, 1e-310, 2**60]


def never() -> None:
    pytest.fail("computed again")


def test_what_a_part_returns_goes_through_json_whether_it_is_stored_or_not(tmp_path: Path) -> None:
    computed = Workplace().part("thirds", lambda: {1: (1 / 3, None)})
    assert computed == {"1": [1 / 3, None]}
    stored = Workplace(parts=Parts(tmp_path, "a"))
    assert stored.part("thirds", lambda: {1: (1 / 3, None)}) == computed
    again = Workplace(parts=Parts(tmp_path, "a"))
    assert again.part("thirds", never) == computed


def test_numbers_are_read_as_they_were_written(tmp_path: Path) -> None:
    Parts(tmp_path, "a").get("numbers", lambda: THIRDS)
    assert Parts(tmp_path, "a").get("numbers", never) == THIRDS


def test_another_fingerprint_or_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    Parts(tmp_path, "a").get("x", lambda: 1)
    assert Parts(tmp_path, "b").get("x", lambda: 2) == 2
    [path] = tmp_path.iterdir()
    whole = path.read_text()
    for damage in ("", whole[:-9], "[]", "{}", "[" * 100_000):
        path.write_text(damage)
        assert Parts(tmp_path, "b").get("x", lambda: 3) == 3
        assert Parts(tmp_path, "b").get("x", never) == 3


def test_names_that_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    names = ["a b", "a-b", "A b", "a/b", "../a b", "x" * 500, "x" * 501, "é", ""]
    parts = Parts(tmp_path, "a")
    for number, name in enumerate(names):
        assert parts.get(name, lambda number=number: number) == number  # type: ignore[misc]
    again = Parts(tmp_path, "a")
    assert [again.get(name, never) for name in names] == list(range(len(names)))
    assert len(list(tmp_path.iterdir())) == len(names)


def test_one_name_for_two_parts_is_a_mistake_of_the_study() -> None:
    place = Workplace()
    place.part("x", lambda: 1)
    with pytest.raises(AssertionError, match="two parts"):
        place.part("x", lambda: 2)


def test_a_part_is_reported_when_it_begins_and_not_when_it_is_read(tmp_path: Path) -> None:
    seen: list[str] = []
    for _ in range(2):
        Workplace(report=seen.append, parts=Parts(tmp_path, "a")).part("x", lambda: seen.append("work"))
    assert seen == ["x", "work"]


def test_a_study_that_is_to_stop_begins_no_part(tmp_path: Path) -> None:
    place = Workplace(stop=lambda: True, parts=Parts(tmp_path, "a"))
    with pytest.raises(DeepwideError, match="resumes"):
        place.part("x", never)


def test_the_time_of_parts_that_are_read_is_counted(tmp_path: Path) -> None:
    Parts(tmp_path, "a").get("x", lambda: 1)
    [path] = tmp_path.iterdir()
    path.write_text(path.read_text().replace('"seconds": 0.0', '"seconds": 7.5'))
    parts = Parts(tmp_path, "a")
    parts.get("x", never)
    assert parts.seconds_before == 7.5
    parts.remove()
    assert not tmp_path.exists()
    parts.remove()
