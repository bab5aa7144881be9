"""Reading runs: folders of ours, tables of anybody's."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.fit import Runs, read_runs
from deepwide.run import RunFolder
from deepwide.sweep import cells_of, make_spec

SPEC = {"name": "s", "seeds": [0, 1], "run": {"trainer": "toy", "steps": 4}, "grid": {"depth": [1, 2], "width": [4]}}


def write_csv(path: Path, header: str, *lines: str) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def end(folder: RunFolder, status: str, **fields: object) -> None:
    with folder.lease("test") as lease:
        lease.finish(status, **fields)


def make_sweep(home: Path, **endings: dict[str, object]) -> list[RunFolder]:
    """The cells of a sweep with results; on one corpus, unlike the toy's, whose data is its seed."""
    cells = cells_of(make_spec(SPEC))
    folders = [RunFolder.create(home, cell.config, data_fingerprint="corpus", numerics="1") for cell in cells]
    for number, folder in enumerate(folders):
        result = endings.get(f"run{number}", {"status": "done", "validation_loss": 1.0 + number})
        if result:
            end(folder, **result)  # type: ignore[arg-type]
    return folders


def test_a_sweep_folder_gives_one_row_a_run_with_its_counts(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    runs = read_runs(tmp_path)
    assert sorted(zip(runs.depth, runs.seed, runs.loss, strict=True)) == [(1, 0, 1), (1, 1, 2), (2, 0, 3), (2, 1, 4)]
    assert set(runs.block_params) == {16, 32}
    assert len(set(runs.cells)) == 2


def test_runs_that_are_not_over_are_left_out_and_said(tmp_path: Path) -> None:
    make_sweep(tmp_path, run1={})
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert any("1 runs" in note and "not over" in note for note in runs.notes)


def test_a_diverged_run_is_kept_without_a_loss_and_failed_ones_are_said(tmp_path: Path) -> None:
    make_sweep(tmp_path, run0={"status": "diverged", "step": 3}, run3={"status": "failed", "note": "x"})
    runs = read_runs(tmp_path)
    assert len(runs) == 3
    assert runs.diverged.sum() == 1
    assert np.isnan(runs.loss[runs.diverged]).all()
    assert any("1 runs diverged" in note for note in runs.notes)
    assert any("1 runs failed" in note for note in runs.notes)


def test_runs_on_different_data_are_not_mixed(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    config = {"trainer": "toy", "depth": 1, "width": 4, "steps": 4, "seed": 9}
    end(RunFolder.create(tmp_path, config, data_fingerprint="other", numerics="1"), "done", validation_loss=1.0)
    with pytest.raises(DeepwideError, match="different data"):
        read_runs(tmp_path)


def test_other_peoples_columns_are_mapped_or_guessed(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", "n_layer,d_model,final,seed", "2,64,1.5,0", "4,64,1.4,0")
    runs = read_runs(path, {"loss": "final"})
    assert list(runs.depth) == [2, 4]
    assert list(runs.block_params) == [12 * 2 * 64**2, 12 * 4 * 64**2]
    assert any("12·depth·width²" in note for note in runs.notes)
    assert any("depth is the column 'n_layer'" in note for note in runs.notes)


def test_csv_jsonl_and_parquet_say_the_same(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = [{"depth": d, "width": 8 * d, "loss": 1 / d, "seed": 0} for d in (1, 2, 3)]
    frame = polars.DataFrame(rows)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    read = [read_runs(tmp_path / f"t.{kind}") for kind in ("csv", "jsonl", "parquet")]
    for runs in read[1:]:
        for name in ("depth", "width", "loss", "block_params"):
            np.testing.assert_array_equal(getattr(runs, name), getattr(read[0], name))


def test_the_best_learning_rate_of_each_shape_is_kept_by_its_mean(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv",
        "depth,width,lr,seed,loss",
        "1,8,0.1,0,2.0", "1,8,0.1,1,2.2", "1,8,0.2,0,1.9", "1,8,0.2,1,2.6",
        "2,8,0.1,0,1.5", "2,8,0.2,0,1.4",
    )  # fmt: skip
    runs = read_runs(path)
    assert sorted(runs.loss) == [1.4, 2.0, 2.2]
    assert any("best" in note for note in runs.notes)


def test_a_rate_at_which_a_seed_diverged_is_not_the_best(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,lr,seed,loss,status",
        "1,8,0.1,0,2.0,done", "1,8,0.1,1,2.2,done", "1,8,0.2,0,1.0,done", "1,8,0.2,1,,diverged",
    )  # fmt: skip
    assert sorted(read_runs(path).loss) == [2.0, 2.2]


def test_rows_that_repeat_are_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("depth,width,loss\n2,64,1.5\n2,64,1.5\n2,64,1.4\n")
    assert any("1 rows repeat another row exactly" in note for note in read_runs(path).notes)


def test_where_cuts_learning_curves_at_one_length(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,tokens,loss",
        "1,8,1000,2.0", "1,8,2010,1.8", "1,8,2001,1.7", "2,8,1990,1.6", "2,8,3000,1.5",
    )  # fmt: skip
    assert sorted(read_runs(path, where={"tokens": 2000}).loss) == [1.6, 1.7]
    with pytest.raises(DeepwideError, match="within 1% of 2100"):
        read_runs(path, where={"tokens": 2100})
    with pytest.raises(DeepwideError, match="within 1% of 5000"):
        read_runs(path, where={"tokens": 5000})
    with pytest.raises(DeepwideError, match="did you mean 'tokens'"):
        read_runs(path, where={"token": 5000})


def test_embedding_rows_turn_totals_into_blocks(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,width,total_params,loss", "1,8,1000,2.0", "2,8,1200,1.9")
    assert list(read_runs(path, embedding_rows=20).block_params) == [840, 1040]
    with pytest.raises(DeepwideError, match="above 0"):
        read_runs(path, embedding_rows=200)


def test_flops_and_totals_give_tokens() -> None:
    runs = Runs.of(total_params=[10.0], train_flops=[600.0], loss=[1.0])
    assert list(runs.tokens) == [10.0]
    with pytest.raises(DeepwideError, match="--column depth="):
        runs.need("depth")


@pytest.mark.parametrize(
    ("header", "line", "complaint"),
    [
        ("depth,width", "1,8", "no column that is called a loss"),
        ("depth,width,loss", "1,8,abc", "'abc' is not a number"),
        ("depth,width,loss", "0,8,1.0", "depth is 0"),
        ("depth,width,loss", "1,8,-1.0", "loss is -1"),
        ("depth,width,loss", "1,-8,1.0", "width is -8"),
        ("depth,width,loss,seed", "1,8,1.0,", "some runs have a seed and some have none|has no"),
        ("depth,width,loss,status", "1,8,1.0,failed", "no run that is over"),
    ],
)
def test_bad_tables_get_a_sentence(tmp_path: Path, header: str, line: str, complaint: str) -> None:
    path = write_csv(tmp_path / "t.csv", header, line, *(["2,8,1.0,1"] if "seed" in header else []))
    with pytest.raises(DeepwideError, match=complaint):
        read_runs(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"depth,loss\n", b"{}", b"[1]\n", b'{"loss": 1}\n{"loss'])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".txt"])
def test_files_that_are_no_tables_get_a_sentence(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    path.write_bytes(content)
    with pytest.raises(DeepwideError):
        read_runs(path)


def test_a_missing_path_and_an_empty_folder_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match="there is no folder or table"):
        read_runs(tmp_path / "nothing")
    with pytest.raises(DeepwideError, match="no run folders"):
        read_runs(tmp_path)


def test_a_mapping_to_nothing_names_the_nearest() -> None:
    with pytest.raises(DeepwideError, match="no column 'depht'"):
        Runs.of(loss=[1.0], depht=[1])


def test_what_a_diverged_run_exceeds_is_the_worst_that_finished_near_its_size() -> None:
    runs = Runs.of(
        depth=[1, 1, 1, 2],
        block_params=[100.0, 110.0, 1000.0, 105.0],
        loss=[2.0, 2.5, 1.0, np.nan],
        diverged=[0, 0, 0, 1],
    )
    np.testing.assert_array_equal(runs.bounds(), [np.nan, np.nan, np.nan, 2.5])
    paired = Runs.of(
        depth=[1, 1, 4], block_params=[100.0] * 3, loss=[2.0, np.nan, 9.0], seed=[0, 1, 0], diverged=[0, 1, 0]
    )
    assert paired.bounds()[1] == 2.0, "its own shape's other seed finished: that is what is known"
    alone = Runs.of(block_params=[100.0, 1e6], loss=[2.0, np.nan], diverged=[0, 1])
    assert alone.bounds()[1] == 2.0, "where nothing near finished, the nearest that did"


@given(st.permutations(range(6)))
def test_cells_do_not_depend_on_the_order(order: list[int]) -> None:
    depth, width = np.array([1, 1, 2, 2, 4, 4]), np.array([8, 8, 8, 8, 8, 16])
    runs = Runs.of(depth=depth, width=width, loss=np.ones(6), seed=[0, 1, 0, 1, 0, 1])
    mixed = runs.select(np.array(order))
    pairs = {(a, b) for a in range(6) for b in range(6) if runs.cells[order[a]] == runs.cells[order[b]]}
    assert pairs == {(a, b) for a in range(6) for b in range(6) if mixed.cells[a] == mixed.cells[b]}
