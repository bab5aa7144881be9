"""Tables of anybody's."""

import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import read_runs
from deepwide.run import RunFolder
from deepwide.sweeping import export
from fitting.builders import codes, end, make_sweep, noted, write_csv


def test_csv_json_jsonl_and_parquet_say_the_same(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = [{"depth": d, "width": 8 * d, "loss": 1 / d, "seed": 0} for d in (1, 2, 3)]
    frame = polars.DataFrame(rows)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    export(frame, tmp_path / "t.json")
    read = [read_runs(tmp_path / f"t.{kind}") for kind in ("csv", "json", "jsonl", "parquet")]
    for runs in read[1:]:
        for name in ("depth", "width", "loss", "block_params"):
            np.testing.assert_array_equal(getattr(runs, name), getattr(read[0], name))


def test_other_peoples_columns_are_mapped_or_guessed(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", "n_layer,d_model,final,seed", "2,64,1.5,0", "4,64,1.4,0")
    runs = read_runs(path, {"loss": "final"})
    assert list(runs.depth) == [2, 4]
    assert list(runs.block_params) == [12 * 2 * 64**2, 12 * 4 * 64**2]
    assert "block-params-assumed" in codes(runs.notes)
    assert noted("column-guessed", runs.notes) == {"column": "depth", "name": "n_layer", "table": "t.csv"}


def test_a_length_that_all_runs_share_can_be_stated(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", "depth,width,loss", "1,8,3.1", "2,16,3.0", "3,24,2.9")
    assert read_runs(tmp_path / "t.csv", {"tokens": "20B"}).tokens.tolist() == [2e10] * 3
    for text in ("2x", "lengths", "0", "1e999"):
        with pytest.raises(DeepwideError) as caught:
            read_runs(tmp_path / "t.csv", {"tokens": text})
        assert "\n" not in str(caught.value)


def test_what_pandas_writes_for_a_blank_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"depth": 1, "loss": 2.0, "status": NaN, "width": NaN}, {"depth": 1, "loss": NaN, "width": 8}]')
    runs = read_runs(path)
    assert runs.diverged.tolist() == [False, True]
    assert np.isnan(runs.width[0])
    path = write_csv(tmp_path / "t.csv", "depth,lr,seed,loss", "1,nan,0,2.0", "1,nan,1,1.9")
    assert len(read_runs(path)) == 2, "two seeds at an unknown rate are not two rates"


@pytest.mark.parametrize(
    ("header", "line", "complaint"),
    [
        ("depth,width", "1,8", "no column that is called a loss"),
        ("depth,width,loss", "1,8,abc", "'abc' is not a number"),
        ("depth,width,loss", "0,8,1.0", "depth is 0"),
        ("depth,width,loss", "1,8,-1.0", "loss is -1"),
        ("depth,width,loss", "1,-8,1.0", "width is -8"),
        ("depth,width,loss", "1,8,-inf", "loss is -inf"),
        ("depth,width,loss", "1,8,−1.0", "'−1.0' is not a number"),
        ("depth,width,loss", '1,"1,02",2.0', "'1,02' is not a number: write 12345.6, without separators"),
        ("depth,width,loss", "1,1,024,2.0", "row 1 has 4 values for 3 columns: is there a separator inside"),
        ("depth,width,foo", "1,8,2.0,9,9", "row 1 has 5 values for 3 columns"),
        ("depth,loss,width,loss", "1,2.0,8,2.0", "2 columns called 'loss'"),
        ("depth,width,loss", "1,1e200,1.0", "block_params is inf"),
        ("total_params,train_flops,loss", "0,1e9,1.0", "total_params is 0"),
        ("depth,width,loss,seed", "1,8,1.0,0.5", "seed is 0.5; it must be a whole number"),
        ("depth,width,loss,seed", "1,8,1.0,1e300", r"seed is 1e\+300; it must be a whole number"),
        ("depth,width,loss,seed", "1,8,1.0,", "some runs have a seed and some have none|has no"),
        ("depth,width,loss,status", "1,8,1.0,failed", "no finished run"),
    ],
)
def test_bad_tables_get_a_sentence(tmp_path: Path, header: str, line: str, complaint: str) -> None:
    path = write_csv(tmp_path / "t.csv", header, line, *(["2,8,1.0,1"] if "seed" in header else []))
    with pytest.raises(DeepwideError, match=complaint):
        read_runs(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"depth,loss\n", b"{}", b"[1]\n", b'{"loss": 1}\n{"loss'])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet", ".txt"])
def test_files_that_are_no_tables_get_a_sentence(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    path.write_bytes(content)
    with pytest.raises(DeepwideError):
        read_runs(path)


@pytest.mark.parametrize("text", ['[{"loss": %s}]' % ("9" * 5000), "[" * 100_000, '{"loss": {"0": 1.0}}', "3"])
def test_json_that_is_no_list_of_objects_gets_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(DeepwideError, match=r"t\.json (cannot be read as a table|must have one object per run)"):
        read_runs(path)


@pytest.mark.parametrize("separator", [",", ";", "\t", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tables_as_spreadsheets_write_them(tmp_path: Path, separator: str, end: str) -> None:
    lines = ["", "depth,width,loss", "1,8,2.0", "", ",,", "2,8,1.9,", ""]
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(lines).replace(",", separator).encode())
    runs = read_runs(path)
    assert list(runs.loss) == [2.0, 1.9]
    assert "runs-failed" not in codes(runs.notes), "blank lines are no runs"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("total_params", "N"), ("tokens", "D"), ("total_params", "parameter_count"), ("depth", "num_layers"),
        ("block_params", "n_params_no_embed"),
    ],
)  # fmt: skip
def test_names_that_published_tables_use_are_recognised(ours: str, theirs: str) -> None:
    runs = read_runs([{theirs: 7.0, "loss": 2.0}, {theirs: 9.0, "loss": 1.9}])
    assert getattr(runs, ours).tolist() == [7, 9]
    assert noted("column-guessed", runs.notes) == {"column": ours, "name": theirs, "table": "the table"}


@pytest.mark.parametrize("end", [".csv.gz", ".CSV.gz", ".jsonl.gz"])
def test_a_packed_table_is_unpacked(tmp_path: Path, end: str) -> None:
    text = "depth,width,loss\n1,8,2.0\n" if "csv" in end.lower() else '{"depth": 1, "width": 8, "loss": 2.0}\n'
    path = tmp_path / f"t{end}"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_runs(path).loss.tolist() == [2.0]


def test_a_table_that_unpacks_to_very_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.fitting.tables.LARGEST_TABLE", 2**20)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"depth,loss\n" + b"1,2.0\n" * 2**21))
    tracemalloc.start()
    with pytest.raises(DeepwideError, match="larger than 1 MiB"):
        read_runs(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * 2**20, "it was unpacked no further than that"


def test_parquet_on_which_its_library_panics_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by fuzzing: a damaged page ends in a panic of Rust, which is no Exception."""
    polars = pytest.importorskip("polars")

    def panic(*_: object, **__: object) -> None:
        raise polars.exceptions.PanicException("assertion failed: offset + length <= self.length")

    monkeypatch.setattr(polars, "read_parquet", panic)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DeepwideError, match="is not Parquet: assertion failed"):
        read_runs(tmp_path / "t.parquet")


@pytest.mark.parametrize("table", [5, {"depth": [1]}, [1, 2], [[1, 2]], object()])
def test_what_is_no_table_gets_a_sentence(table: object) -> None:
    with pytest.raises(DeepwideError, match=r"runs must be a folder, a table"):
        read_runs(table)


def test_a_sweep_folder_gives_one_row_per_run_with_its_counts(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    runs = read_runs(tmp_path)
    assert sorted(zip(runs.depth, runs.seed, runs.loss, strict=True)) == [(1, 0, 1), (1, 1, 2), (2, 0, 3), (2, 1, 4)]
    assert set(runs.block_params) == {16, 32}
    assert len(set(runs.groups)) == 2


def test_unfinished_runs_are_left_out_and_noted(tmp_path: Path) -> None:
    make_sweep(tmp_path, run1={})
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert noted("runs-unfinished", runs.notes)["count"] == 1


def test_a_diverged_run_is_kept_without_a_loss_and_failed_ones_are_noted(tmp_path: Path) -> None:
    make_sweep(tmp_path, run0={"status": "diverged", "step": 3}, run3={"status": "failed", "note": "x"})
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert runs.diverged.sum() == 1
    assert np.isnan(runs.loss[runs.diverged]).all()
    assert noted("runs-diverged", runs.notes)["count"] == 1
    assert noted("runs-failed", runs.notes)["count"] == 1


def test_runs_on_different_data_are_not_mixed(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    config = {"trainer": "toy", "depth": 1, "width": 4, "steps": 4, "seed": 9}
    end(RunFolder.create(tmp_path, config, data_fingerprint="other", numerics="1"), "done", validation_loss=1.0)
    with pytest.raises(DeepwideError, match="different data"):
        read_runs(tmp_path)


def test_a_missing_path_and_an_empty_folder_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="there is no folder or table"):
        read_runs(tmp_path / "nothing")
    with pytest.raises(DeepwideError, match="no run folders"):
        read_runs(tmp_path)


def test_a_damaged_folder_is_a_note_and_the_others_are_fitted(tmp_path: Path) -> None:
    folders = make_sweep(tmp_path)
    (folders[1].path / "config.json").write_text("{")
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert noted("run-unreadable", runs.notes)["folder"] == folders[1].path.name


def test_an_old_folder_whose_config_is_no_longer_valid_is_a_note(tmp_path: Path) -> None:
    folders = make_sweep(tmp_path)
    path = folders[0].path / "config.json"
    document = json.loads(path.read_text())
    document.pop("counts", None)
    document["config"]["width"] = "as it was called once"
    path.write_text(json.dumps(document))
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert "run-unreadable" in codes(runs.notes)


def test_depth_and_counts_are_those_that_a_folder_states(tmp_path: Path) -> None:
    """The config is not resolved again: a folder of a later or earlier version says what it is."""
    (folder, *_) = make_sweep(tmp_path)
    path = folder.path / "config.json"
    document = json.loads(path.read_text())
    del document["run"], document["check"]  # as before configs carried a checksum
    document["counts"] = {"depth": 3, "width": 5, "block_params": 900, "total_params": 1000, "tokens": 77}
    path.write_text(json.dumps(document))
    runs = read_runs(tmp_path)
    assert 900 in runs.block_params


def test_folders_and_tables_can_be_fitted_together(tmp_path: Path) -> None:
    make_sweep(tmp_path / "runs")
    table = write_csv(
        tmp_path / "t.csv", "depth,width,block_params,total_params,tokens,seed,loss", "4,8,64,80,100,0,0.5"
    )
    assert len(read_runs([tmp_path / "runs", table])) == 5


def test_a_folder_without_a_finished_run_says_so(tmp_path: Path) -> None:
    make_sweep(tmp_path, run0={}, run1={}, run2={}, run3={})
    with pytest.raises(DeepwideError, match="no finished run: 4 runs in"):
        read_runs(tmp_path)


def test_what_cannot_be_read_names_the_line_or_the_encoding(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"depth": 2, "loss": 3.1}\n\n{"depth": 4 "loss": 3.0}\n')
    with pytest.raises(DeepwideError, match=r"line 3: Expecting ',' delimiter at column 13"):
        read_runs(path)
    for name in ("runs.json", "empty.jsonl"):
        (tmp_path / name).write_text(" \n")
        with pytest.raises(DeepwideError, match="has no rows"):
            read_runs(tmp_path / name)
    (tmp_path / "runs.csv").write_bytes("depth,loss\n2,3.1\n".encode("utf-16"))
    with pytest.raises(DeepwideError, match="is no text in UTF-8"):
        read_runs(tmp_path / "runs.csv")


def test_thousands_in_a_width_are_read_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text('depth,width,loss\n2,"1,280",3.1\n4,"2,560",3.0\n')
    assert read_runs(path).width.tolist() == [1280, 2560]
    path.write_text('depth,width,loss\n2,"12,80",3.1\n')
    with pytest.raises(DeepwideError, match="is not a number"):
        read_runs(path)
