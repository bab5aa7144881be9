"""`verify` scrubs a whole folder: what is damaged, what to do, and everything else is whole."""

import shutil
from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.sweeping import cells_of, curves, table, verify, work
from sweeping.toys import toys


@pytest.fixture
def runs(memory: Path) -> Path:
    for cell in cells_of(toys(grid={"width": [2, 3]})):
        work([cell.folder(memory).path], owner="one")
    return memory


def test_a_sweep_as_it_was_written_is_whole(runs: Path) -> None:
    verification = verify(runs)
    assert (verification.runs, verification.whole, verification.findings) == (4, 4, ())
    assert verify(next(path for path in runs.iterdir())).runs == 1, "one run will do"


def test_results_that_changed_places_are_named_and_never_exported(runs: Path) -> None:
    cells = cells_of(toys(grid={"width": [2, 3]}))
    one, two = (runs / cell.id for cell in cells[:2])
    shutil.copy(one / "result.json", two / "result.json")
    verification = verify(runs)
    (damage,) = verification.damaged
    assert (damage.run, damage.file) == (cells[1].id, "result.json")
    assert damage.what == f"it belongs to run {cells[0].id}"
    assert "put it back from a copy" in damage.remedy
    assert verification.whole == 3
    assert verification.rows()[0]["kind"] == "damaged"
    for export in (table, curves):
        with pytest.raises(DeepwideError, match=f"{cells[1].id}.*belongs to run {cells[0].id}"):
            export(cells, runs)
    # The remedy, followed:
    (two / "result.json").unlink()
    work([two], owner="one")
    assert verify(runs).findings == ()
    assert len(table(cells, runs)) == 4


def test_a_folder_without_runs_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="holds no runs"):
        verify(tmp_path)
    with pytest.raises(DeepwideError, match="there is no folder"):
        verify(tmp_path / "nowhere")
