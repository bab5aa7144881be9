"""A sweep before it runs."""

from pathlib import Path

from deepwide.sweeping import cells_of, expand, work
from sweeping.toys import toys


def test_every_cell_is_there_with_its_counts_and_time_and_nothing_is_written(memory: Path) -> None:
    expansion = expand(toys(), runs=memory / "runs", processes=4)
    assert not (memory / "runs").exists()
    cells = cells_of(toys())
    assert [cell.id for cell in expansion.cells] == [cell.id for cell in cells]
    assert expansion.train_flops == sum(6 * cell.config["width"] ** 2 * 4 for cell in cells)
    assert (expansion.workers, expansion.finished) == (4, 0)
    total = sum(cell.expected_seconds for cell in expansion.cells)
    assert 0 < expansion.expected_seconds == total / 4
    assert expansion.cells[0].config == cells[0].config


def test_only_what_is_left_is_expected(memory: Path) -> None:
    spec = toys(seeds=[0])
    for cell in cells_of(spec)[:3]:
        work([cell.folder(memory).path], owner="me")
    expansion = expand(spec, runs=memory, processes=1)
    assert expansion.finished == 3
    assert expansion.expected_seconds == expansion.cells[3].expected_seconds


def test_rows_are_a_table(memory: Path) -> None:
    frame = expand(toys(), runs=memory).to_polars()
    assert frame.height == 8
    assert {"id", "name", "depth", "width", "train_flops", "expected_seconds", "finished"} <= set(frame.columns)
