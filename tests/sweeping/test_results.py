"""The table of results: read from the folders, in the order of the spec, in three formats."""

from pathlib import Path

import polars
import pytest

from deepwide.errors import DeepwideError
from deepwide.sweeping import cells_of, curves, export, results, table, unfinished
from deepwide.sweeping.worker import work
from sweeping.toys import toys


@pytest.fixture
def runs(memory: Path) -> Path:
    """Seven of eight cells finished; in no particular order."""
    cells = cells_of(toys())
    for cell in reversed(cells[1:]):
        work([cell.folder(memory).path], owner="one")
    return memory


def test_one_row_per_finished_cell_in_the_order_of_the_spec(runs: Path) -> None:
    cells = cells_of(toys())
    frame = table(cells, runs)
    assert frame["id"].to_list() == [cell.id for cell in cells[1:]]
    assert frame.columns[:4] == ["id", "width", "lr", "seed"]
    assert frame["status"].to_list() == ["done"] * 7
    assert "seconds" not in frame.columns
    assert "seconds" in table(cells, runs, timings=True).columns
    assert table(toys(), runs).equals(frame), "a spec will do"
    assert unfinished(cells, runs) == 1


def test_the_seed_is_in_the_table_though_only_one_was_asked_for(runs: Path) -> None:
    cells = cells_of(toys(seeds=[1]))
    assert all("seed" not in cell.varied for cell in cells)
    assert table(cells, runs)["seed"].to_list() == [1] * len(cells)


def test_csv_parquet_and_json_say_the_same(runs: Path, tmp_path: Path) -> None:
    frame = table(cells_of(toys()), runs)
    for suffix in ("csv", "parquet", "json"):
        export(frame, tmp_path / f"t.{suffix}")
    assert polars.read_csv(tmp_path / "t.csv").equals(frame)
    assert polars.read_parquet(tmp_path / "t.parquet").equals(frame)
    assert polars.read_json(tmp_path / "t.json").rows() == frame.rows()
    with pytest.raises(DeepwideError, match=r"must end in \.csv"):
        export(frame, tmp_path / "t.xlsx")


def test_losses_come_back_to_the_bit(runs: Path, tmp_path: Path) -> None:
    cells = cells_of(toys())
    export(table(cells, runs), tmp_path / "t.csv")
    expected = [(cell.folder(runs).result() or {})["loss"] for cell in cells[1:]]
    assert polars.read_csv(tmp_path / "t.csv")["loss"].to_list() == expected


def test_curves_have_every_record_of_every_run(runs: Path) -> None:
    frame = curves(toys(), runs)
    assert len(frame) == 7 * 4
    assert set(frame.columns) == {"id", "step", "loss"}


def test_polars_reads_the_folders_without_us(runs: Path) -> None:
    """One JSON object per line, so that any tool can read all results with one pattern."""
    assert len(polars.scan_ndjson(str(runs / "*/result.json")).collect()) == 7
    assert len(polars.scan_ndjson(str(runs / "*/metrics.jsonl")).collect()) == 28


def test_an_unreadable_result_stops_the_table(runs: Path) -> None:
    cell = cells_of(toys())[2]
    (runs / cell.id / "result.json").write_text("{")
    with pytest.raises(DeepwideError, match=cell.id):
        table(cells_of(toys()), runs)
    (runs / cells_of(toys())[3].id / "config.json").write_text("{")
    with pytest.raises(DeepwideError, match="1 more like it"):
        table(cells_of(toys()), runs)


def test_curves_of_very_many_records_are_put_together_from_parts(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = curves(toys(), runs)
    assert len(whole) > 20
    monkeypatch.setattr(results, "ROWS_AT_ONCE", 5)
    assert curves(toys(), runs).equals(whole)
    assert curves(toys(), runs).columns == whole.columns


def test_what_depends_on_the_machine_is_in_the_table_only_if_asked_for(memory: Path) -> None:
    (cell,) = cells_of(toys(grid={}, seeds=[0]))
    with cell.folder(memory).lease("one") as writer:
        writer.finish("done", loss=0.5, tokens_per_second=123.0, micro_batch=4, step=6)
    assert not {"tokens_per_second", "micro_batch", "seconds"} & set(table([cell], memory).columns)
    assert table([cell], memory, timings=True)["tokens_per_second"].to_list() == [123.0]
