"""Reading runs: folders of ours, tables of anybody's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.fitting import Runs, fit_transition, read_runs, simulate
from deepwide.laws import TransitionLaw
from deepwide.run import RunFolder
from deepwide.sweeping import cells_of, export, make_spec

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


def test_runs_that_diverged_at_worse_rates_are_counted_and_a_shape_that_only_diverged_stays(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,lr,seed,loss,status",
        "1,8,0.1,0,2.0,done", "1,8,0.2,0,2.1,done", "1,8,0.4,0,,diverged", "1,8,0.8,0,nan,done",
        "2,8,0.1,0,,failed", "2,8,0.4,0,,diverged", "2,8,0.8,0,,diverged",
    )  # fmt: skip
    runs = read_runs(path)
    assert list(zip(runs.depth, runs.diverged, strict=True)) == [(1, False), (2, True)]
    assert (
        "shapes trained at several learning rates: the best of each, by the mean over its seeds; 4 runs at other rates "
        "left out, of which 3 diverged"
    ) in runs.notes
    assert any(note.startswith("1 runs diverged") for note in runs.notes), "those that are left out are not fitted"


def test_of_rates_that_all_lost_a_seed_the_one_that_lost_fewest_is_the_best(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,lr,seed,loss",
        "1,8,0.2,0,nan", "1,8,0.2,1,nan", "1,8,0.1,0,2.3", "1,8,0.1,1,nan", "1,8,0.3,0,2.2", "1,8,0.3,1,nan",
    )  # fmt: skip
    runs = read_runs(path)
    assert runs.loss[~runs.diverged].tolist() == [2.2]
    assert len(runs) == 2


def test_rows_that_repeat_are_said_and_that_errors_do_not_shrink(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("depth,width,loss\n2,64,1.5\n2,64,1.5\n2,64,1.4\n")
    note = next(note for note in read_runs(path).notes if "1 rows repeat another row exactly" in note)
    assert "do not shrink" in note
    once = simulate(TransitionLaw(name="truth", a=3.2, b=0.25), depths=(1, 2, 4), sizes=np.geomspace(1e4, 1e6, 6))
    twice = once.select(np.tile(np.arange(len(once)), 2))
    errors = [fit_transition(runs, bootstrap=0).standard_errors["b"] for runs in (once, twice)]
    assert errors[0] == pytest.approx(errors[1])


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


def test_where_keeps_one_checkpoint_of_a_run_and_every_repeat(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,tokens,loss", "1,8,1990,2.0", "1,8,2010,1.9", "2,8,2000,1.6", "2,8,2000,1.5"
    )
    assert sorted(read_runs(path, where={"tokens": 2000}).loss) == [1.5, 1.6, 2.0]


def test_where_keeps_every_row_of_a_loss(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,width,loss", "1,8,2.0", "1,8,1.99", "1,8,1.9")
    assert sorted(read_runs(path, where={"loss": 2.0}).loss) == [1.99, 2.0]


def test_where_keeps_every_row_of_a_width(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,tokens,train_flops,loss",
        "1,100,1000,10,2.0", "1,100,2000,20,1.8", "1,101,3000,30,1.7", "1,102,3000,30,1.6", "1,,3000,30,1.5",
    )  # fmt: skip
    assert sorted(read_runs(path, where={"width": 100}).loss) == [1.7, 1.8, 2.0]
    assert sorted(read_runs(path, where={"depth": 1}).loss) == [1.5, 1.6, 1.7, 1.8, 2.0]
    assert sorted(read_runs(path, where={"width": 100, "train_flops": 20}).loss) == [1.8]
    with pytest.raises(DeepwideError, match="within 1% of inf"):
        read_runs(path, where={"width": np.inf})


@pytest.mark.parametrize(
    ("sign", "kept", "note"),
    [
        ("<", [1], "3 rows with depth of 2 or more, or none: left out as asked"),
        ("<=", [1, 2], "2 rows with depth above 2, or none: left out as asked"),
        (">", [4], "3 rows with depth of 2 or less, or none: left out as asked"),
        (">=", [2, 4], "2 rows with depth below 2, or none: left out as asked"),
    ],
)
def test_limits_are_strict_or_not_as_written(tmp_path: Path, sign: str, kept: list[int], note: str) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,block_params,loss", "1,100,2.0", "2,100,1.9", "4,100,1.8", ",100,1.7")
    runs = read_runs(path, limits=[("depth", sign, 2)])
    assert list(runs.depth) == kept
    assert runs.notes == (note,)
    every = read_runs(path, limits=[("block_params", "<=", 100)])
    assert (len(every), every.notes) == (4, ()), "nothing was left out, so nothing is said"
    with pytest.raises(DeepwideError, match="it must be one of <, <=, >, >="):
        read_runs(path, limits=[("depth", "==", 2)])


@pytest.mark.parametrize("word", ["done", "FINISHED", " Completed ", "complete", "success", "Succeeded", "OK", ""])
def test_usual_words_for_a_run_that_finished(tmp_path: Path, word: str) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,loss,status", f"1,8,2.0,{word}", f"1,9,nan,{word}", f"1,10,inf,{word}"
    )
    runs = read_runs(path)
    assert runs.diverged.tolist() == [False, True, True]
    assert "2 runs diverged" in runs.notes[0]


@pytest.mark.parametrize("word", ["diverged", "Diverged", "NaN", "exploded"])
def test_usual_words_for_a_run_that_diverged(tmp_path: Path, word: str) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,width,loss,status", "1,8,2.0,done", f"1,9,,{word}", f"1,10,9.0,{word}")
    runs = read_runs(path)
    assert runs.diverged.tolist() == [False, True, True]
    assert np.isnan(runs.loss[1:]).all()


def test_a_status_nobody_knows_is_named_and_counted(tmp_path: Path) -> None:
    lines = ("1,9,2.0,Preempted", "1,10,1.9,preempted", "1,11,1.8,queued", "1,12,1.8,crashed")
    path = write_csv(tmp_path / "t.csv", "depth,width,loss,status", "1,8,2.0,done", *lines)
    runs = read_runs(path)
    assert len(runs) == 1
    assert any("3 runs have a status that is not known ('preempted' 2, 'queued' 1)" in note for note in runs.notes)
    assert any("1 runs failed" in note for note in runs.notes)
    path = write_csv(tmp_path / "t.csv", "depth,width,loss,status", *lines)
    with pytest.raises(DeepwideError, match=r"no run that is over: 1 runs failed.*\('preempted' 2, 'queued' 1\)"):
        read_runs(path)


def test_what_pandas_writes_for_a_blank_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"depth": 1, "loss": 2.0, "status": NaN, "width": NaN}, {"depth": 1, "loss": NaN, "width": 8}]')
    runs = read_runs(path)
    assert runs.diverged.tolist() == [False, True]
    assert np.isnan(runs.width[0])
    path = write_csv(tmp_path / "t.csv", "depth,lr,seed,loss", "1,nan,0,2.0", "1,nan,1,1.9")
    assert len(read_runs(path)) == 2, "two seeds at an unknown rate are not two rates"


def test_seeds_that_do_not_link_the_shapes_are_repeats() -> None:
    law = TransitionLaw(name="truth", a=3.2, b=0.25)
    runs = simulate(law, depths=(1, 2, 4), sizes=np.geomspace(1e4, 1e6, 6), seeds=2)
    shapes: dict[str, Any] = {
        "depth": runs.depth,
        "width": runs.width,
        "block_params": runs.block_params,
        "loss": runs.loss,
    }
    each_its_own = Runs.of(**shapes, seed=np.arange(len(runs)))
    each_depth_its_own = Runs.of(**shapes, seed=10 * runs.depth + runs.seed)
    without = fit_transition(Runs.of(**shapes), bootstrap=0)
    for unlinked in (each_its_own, each_depth_its_own):
        assert any("seeds do not link all shapes" in note for note in unlinked.notes)
        assert fit_transition(unlinked, bootstrap=0).values == without.values
    chain = Runs.of(depth=[1, 2, 2, 4, 4], width=[8] * 5, loss=[2.0] * 5, seed=[0, 0, 1, 1, 2])
    assert chain.seed.tolist() == [0, 0, 1, 1, 2], "1 shares a seed with 2, which shares one with 4"


def test_tokens_that_are_partly_blank_are_refused_where_the_others_differ() -> None:
    shapes: dict[str, Any] = {"depth": [1, 2, 4], "width": [8, 8, 8], "loss": [2.0, 1.9, 1.8]}
    with pytest.raises(DeepwideError, match="1 runs have no tokens, and the others 2e"):
        Runs.of(**shapes, tokens=[np.nan, 2e6, 2.001e6])
    assert len(Runs.of(**shapes, tokens=[np.nan, 2e6, 2e6])) == 3


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
        ("depth,width,loss", "1,8,-inf", "loss is -inf"),
        ("depth,width,loss", "1,8,−1.0", "'−1.0' is not a number"),
        ("depth,width,loss", '1,"1,024",2.0', "'1,024' is not a number: write 12345.6, without separators"),
        ("depth,width,loss", "1,1,024,2.0", "row 1 has 4 values for 3 columns: is there a separator inside"),
        ("depth,width,foo", "1,8,2.0,9,9", "row 1 has 5 values for 3 columns"),
        ("depth,loss,width,loss", "1,2.0,8,2.0", "2 columns called 'loss'"),
        ("depth,width,loss", "1,1e200,1.0", "block_params is inf"),
        ("total_params,train_flops,loss", "0,1e9,1.0", "total_params is 0"),
        ("depth,width,loss,seed", "1,8,1.0,0.5", "seed is 0.5; it must be a whole number"),
        ("depth,width,loss,seed", "1,8,1.0,1e300", r"seed is 1e\+300; it must be a whole number"),
        ("depth,width,loss,seed", "1,8,1.0,", "some runs have a seed and some have none|has no"),
        ("depth,width,loss,status", "1,8,1.0,failed", "no run that is over"),
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
    with pytest.raises(DeepwideError, match=r"t\.json (cannot be read as a table|must have one object a run)"):
        read_runs(path)


@pytest.mark.parametrize("separator", [",", ";", "\t", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tables_as_spreadsheets_write_them(tmp_path: Path, separator: str, end: str) -> None:
    lines = ["", "depth,width,loss", "1,8,2.0", "", ",,", "2,8,1.9,", ""]
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(lines).replace(",", separator).encode())
    runs = read_runs(path)
    assert list(runs.loss) == [2.0, 1.9]
    assert not any("have no loss" in note for note in runs.notes), "blank lines are no runs"


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
