"""Which rows a fit uses."""

import math
from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import fit, fit_transition, read_runs, simulate
from deepwide.laws import TransitionLaw
from fitting.builders import codes, noted, write_csv


def test_the_best_learning_rate_of_each_shape_is_kept_by_its_mean(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv",
        "depth,width,lr,seed,loss",
        "1,8,0.1,0,2.0", "1,8,0.1,1,2.2", "1,8,0.2,0,1.9", "1,8,0.2,1,2.6",
        "2,8,0.1,0,1.5", "2,8,0.2,0,1.4",
    )  # fmt: skip
    runs = read_runs(path)
    assert sorted(runs.loss) == [1.4, 2.0, 2.2]
    assert "best-rates" in codes(runs.notes)


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
    assert noted("best-rates", runs.notes) == {"left_out": 4, "diverged": 3}
    assert noted("runs-diverged", runs.notes) == {"count": 1}, "those that are left out are not fitted"


def test_of_rates_that_all_lost_a_seed_the_one_that_lost_fewest_is_the_best(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,lr,seed,loss",
        "1,8,0.2,0,nan", "1,8,0.2,1,nan", "1,8,0.1,0,2.3", "1,8,0.1,1,nan", "1,8,0.3,0,2.2", "1,8,0.3,1,nan",
    )  # fmt: skip
    runs = read_runs(path)
    assert runs.loss[~runs.diverged].tolist() == [2.2]
    assert len(runs) == 2


def test_rows_that_repeat_are_noted_and_that_errors_do_not_shrink(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("depth,width,loss\n2,64,1.5\n2,64,1.5\n2,64,1.4\n")
    assert noted("rows-repeated", read_runs(path).notes) == {"count": 1, "left_out": False}
    assert len(read_runs(path)) == 3, "another seed may have a loss of so few digits"
    path.write_text("depth,width,loss\n2,64,1.5127\n2,64,1.5127\n2,64,1.4\n")
    assert len(read_runs(path)) == 3
    path.write_text("depth,width,loss\n2,64,1.5127\n2,64,1.5127\n2,64,1.4038\n")
    assert noted("rows-repeated", read_runs(path).notes) == {"count": 1, "left_out": True}
    assert sorted(read_runs(path).loss) == [1.4038, 1.5127]
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
    notes = read_runs(path, where={"depth": 1, "width": 100, "train_flops": 20}).notes
    assert [str(note) for note in notes if note.code == "rows-left-out"] == [
        "2 of 5 rows left out as asked: width not within 1% of 100",
        "2 of 3 rows left out as asked: train_flops not the nearest of its run to 20, within 1%",
    ]
    with pytest.raises(DeepwideError, match="within 1% of inf"):
        read_runs(path, where={"width": np.inf})


@pytest.mark.parametrize(
    ("sign", "kept", "note"),
    [
        ("<", [1], "3 of 4 rows left out as asked: depth of 2 or more, or none"),
        ("<=", [1, 2], "2 of 4 rows left out as asked: depth above 2, or none"),
        (">", [4], "3 of 4 rows left out as asked: depth of 2 or less, or none"),
        (">=", [2, 4], "2 of 4 rows left out as asked: depth below 2, or none"),
        ("!=", [1, 4, math.nan], "1 of 4 rows left out as asked: depth 2"),
    ],
)
def test_limits_are_strict_or_not_as_written(tmp_path: Path, sign: str, kept: list[int], note: str) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,block_params,loss", "1,100,2.0", "2,100,1.9", "4,100,1.8", ",100,1.7")
    runs = read_runs(path, limits=[("depth", sign, 2)])
    assert runs.depth.tolist() == pytest.approx(kept, nan_ok=True)
    assert [str(n) for n in runs.notes] == [note]
    every = read_runs(path, limits=[("block_params", "<=", 100)])
    assert (len(every), every.notes) == (4, ()), "nothing was left out, so nothing is noted"
    with pytest.raises(DeepwideError, match="it must be one of <, <=, >, >= with a number, != with any value"):
        read_runs(path, limits=[("depth", "==", 2)])
    with pytest.raises(DeepwideError, match="no run is left that has block_params != 100"):
        read_runs(path, limits=[("block_params", "!=", 100.0)])


def test_unlike_leaves_out_that_very_value_and_no_neighbour(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,block_params,loss", "1,100,3.99", "2,100,3.98", "4,100,3.97")
    assert read_runs(path, limits=[("loss", "!=", 3.99)]).loss.tolist() == [3.98, 3.97]


@pytest.mark.parametrize("word", ["done", "FINISHED", " Completed ", "complete", "success", "Succeeded", "OK", ""])
def test_usual_words_for_a_run_that_finished(tmp_path: Path, word: str) -> None:
    path = write_csv(
        tmp_path / "t.csv", "depth,width,loss,status", f"1,8,2.0,{word}", f"1,9,nan,{word}", f"1,10,inf,{word}"
    )
    runs = read_runs(path)
    assert runs.diverged.tolist() == [False, True, True]
    assert noted("runs-diverged", runs.notes) == {"count": 2}


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
    assert noted("status-unknown", runs.notes) == {"count": 3, "words": {"preempted": 2, "queued": 1}}
    assert noted("runs-failed", runs.notes) == {"count": 1}
    path = write_csv(tmp_path / "t.csv", "depth,width,loss,status", *lines)
    with pytest.raises(
        DeepwideError, match=r"no finished run: 1 run failed or has no loss.*\('preempted' 2, 'queued' 1\)"
    ):
        read_runs(path)


def test_embedding_rows_turn_totals_into_blocks(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", "depth,width,total_params,loss", "1,8,1000,2.0", "2,8,1200,1.9")
    assert list(read_runs(path, embedding_rows=20).block_params) == [840, 1040]
    with pytest.raises(DeepwideError, match="above 0"):
        read_runs(path, embedding_rows=200)


def test_embedding_rows_or_a_vocabulary_give_totals_to_a_table_without() -> None:
    rows = [{"depth": 2, "width": 8, "loss": 2.0}, {"depth": 4, "width": 8, "loss": 1.9}]
    runs = read_runs(rows, embedding_rows=20)
    assert runs.total_params.tolist() == [12 * 2 * 64 + 160, 12 * 4 * 64 + 160]
    assert noted("embeddings-added", runs.notes) == {"rows": "20"}
    with_vocabulary = [row | {"vocab_size": 100 * row["depth"], "block_params": 5000} for row in rows]
    runs = read_runs(with_vocabulary)
    assert runs.total_params.tolist() == [5000 + 1600, 5000 + 3200]
    assert runs.block_params.tolist() == [5000, 5000]
    assert noted("embeddings-added", runs.notes) == {"rows": "'vocab_size'"}
    assert read_runs(with_vocabulary, embedding_rows=20).total_params.tolist() == [5160, 5160]
    given = read_runs([row | {"params": 7000} for row in with_vocabulary])
    assert given.total_params.tolist() == [7000, 7000], "what is given is not assumed"
    assert np.isnan(read_runs(with_vocabulary, {"total_params": None}).total_params).all()
    assert np.isnan(read_runs([row | {"vocab": "bytes"} for row in rows]).total_params).all()


def test_a_column_of_embedding_parameters_gives_the_count_that_is_missing() -> None:
    rows = [{"depth": 2, "width": 8, "loss": 2.0, "Embedding params (k)": 1}, {"depth": 4, "width": 8, "loss": 1.9}]
    runs = read_runs(rows)
    assert runs.total_params[0] == 12 * 2 * 64 + 1000
    assert np.isnan(runs.total_params[1])
    blocks = read_runs([row | {"block_params": 5000} for row in rows])
    assert blocks.total_params[0] == 6000
    assert noted("embeddings-read", blocks.notes) == {"name": "Embedding params (k)", "total": False}
    totals = [row | {"params": 5000, "embed_params": 400} for row in rows]
    del totals[0]["Embedding params (k)"]
    assert read_runs([row | {"vocab": 7} for row in totals]).block_params.tolist() == [4600, 4600]
    assert read_runs(totals, embedding_rows=20).block_params.tolist() == [4840, 4840], "what is asked for comes first"
    assert read_runs([r | {"block_params": 100} for r in totals]).block_params.tolist() == [100, 100]
    assert read_runs([r | {"embed_params": 40} for r in rows], embedding_rows=20).total_params[0] == 12 * 2 * 64 + 160


GRID = [
    {"depth": d, "width": w, "loss": 2 + d / w + off, "warmup": warmup, "optimizer": optimizer, "seed": 0}
    for d in (1, 2)
    for w in (8, 16)
    for warmup, optimizer, off in ((100, "Adam", 0.1), (200, "Adam", 0.0), (100, "Lion", 0.3))
]


def test_the_best_of_any_column_counts() -> None:
    runs = read_runs(GRID, best_of=["warmup", "optimizer"])
    assert runs.loss.tolist() == [2 + d / w for d in (1, 2) for w in (8, 16)]
    texts = [str(note) for note in runs.notes if note.code == "best-settings"]
    assert len(texts) == 1
    assert texts[0].startswith("of each shape the best warmup and optimizer, by the mean over its seeds: 8 other")


def test_a_rate_that_never_varies_was_not_chosen() -> None:
    same = [row | {"lr": 0.1} for row in GRID]
    assert noted("best-settings", read_runs(same, best_of=["warmup", "optimizer"]).notes)["names"] == [
        "warmup", "optimizer",
    ]  # fmt: skip
    both = [row | {"lr": lr, "loss": float(row["loss"]) + lr} for row in GRID for lr in (0.1, 0.2)]
    assert noted("best-settings", read_runs(both, best_of=["warmup", "optimizer"]).notes)["names"][0] == "lr"
    of_one = read_runs(GRID, best_of=["warmup"], where={"optimizer": "Adam"})
    assert noted("best-settings", of_one.notes)["names"] == ["warmup"]


def test_the_best_rate_is_chosen_at_each_length_also_where_flops_state_it() -> None:
    best = {1e16: 0.2, 4e16: 0.1}
    rows = [
        {
            "depth": d,
            "width": 64,
            "params": 1e6 * d,
            "train_flops": flops,
            "lr": lr,
            "loss": 2 + d / 10 + abs(lr - rate),
        }
        for d in (1, 2)
        for flops, rate in best.items()
        for lr in (0.1, 0.2)
    ]
    runs = read_runs(rows)
    assert runs.loss.tolist() == [2.1, 2.1, 2.2, 2.2]
    assert len(set(runs.tokens)) == 4


SAME_SHAPES = [
    {
        "depth": d,
        "width": w,
        "total_params": 12 * d * w**2 + 1000 * w + extra,
        "norm": norm,
        "seed": seed,
        "loss": 2 + d / w,
    }
    for d, w in ((2, 64), (4, 64), (4, 128))
    for norm, extra in (("none", 0), ("pre", 128 * d), ("post", 64 * d))
    for seed in (0, 1)
]


def test_counts_of_one_depth_and_width_within_a_percent_are_one_shape() -> None:
    runs = read_runs(SAME_SHAPES)
    assert len(set(runs.shapes)) == len(set(runs.groups)) == 3
    assert runs.total_params[0] == 12 * 2 * 64**2 + 64_000 + 64 * 2, "the median"
    data = noted("counts-merged", runs.notes)
    assert data["shapes"] == 3
    assert data["share"] == pytest.approx(128 * 4 / (12 * 4 * 64**2 + 64_000))
    assert noted("settings-differ", runs.notes) == {"names": ["norm"]}
    chosen = read_runs(SAME_SHAPES, where={"norm": "pre"})
    assert "counts-merged" not in codes(chosen.notes), "it is about the rows that are left"
    assert chosen.total_params[0] == 12 * 2 * 64**2 + 64_000 + 128 * 2


def test_counts_that_differ_by_more_or_of_unknown_widths_are_other_shapes() -> None:
    rows = [
        {"depth": 2, "width": 64, "total_params": count, "loss": 2.0}
        for count in (100_000, 100_900, 101_100, 101_500, 103_000)
    ]
    runs = read_runs(rows)
    assert runs.total_params.tolist() == [100_900, 100_900, 101_500, 101_500, 103_000], "not chained"
    without = [{name: value for name, value in row.items() if name != "width"} for row in rows]
    assert read_runs(without).total_params.tolist() == [row["total_params"] for row in rows]
    with pytest.raises(DeepwideError, match="total_params is -5"):
        read_runs([rows[0] | {"total_params": -5}, rows[0] | {"total_params": -6}])


def test_rows_are_chosen_by_any_column_and_by_text() -> None:
    assert read_runs(GRID, where={"optimizer": "lion"}).loss.tolist() == [2.3 + d / w for d in (1, 2) for w in (8, 16)]
    adam = read_runs(GRID, where={"optimizer": "Adam", "warmup": 200})
    assert len(adam) == 4
    assert "4 of 12 rows left out as asked: optimizer not 'Adam'" in map(str, adam.notes)
    assert len(read_runs(GRID, where={"optimizer": "adam"}, limits=[("warmup", "<", 150)])) == 4
    assert len(read_runs(GRID, limits=[("optimizer", "!=", "Lion")], best_of=["warmup"])) == 4
    with pytest.raises(DeepwideError, match="'< adam': it must be one of"):
        read_runs(GRID, limits=[("optimizer", "<", "adam")])
    with pytest.raises(DeepwideError, match="no run has optimizer 'sgd'"):
        read_runs(GRID, where={"optimizer": "sgd"})
    with pytest.raises(DeepwideError, match="did you mean 'warmup'"):
        read_runs(GRID, where={"warmups": 100})


def test_settings_that_nobody_chose_are_not_silently_seeds() -> None:
    with pytest.raises(DeepwideError, match="differ by warmup and optimizer"):
        read_runs(GRID)
    few = [row for row in GRID if row["depth"] == 1]
    assert "settings-differ" in [note.code for note in read_runs(few).notes]
    assert "settings-differ" not in [note.code for note in read_runs(GRID, best_of=["warmup", "optimizer"]).notes]
    assert "settings-differ" not in [note.code for note in read_runs(GRID[::3]).notes]


def _two_losses(apart: float, noise: float, **more: list[str]) -> list[dict[str, object]]:
    draw = np.random.default_rng(2)
    shapes = [(depth, width) for depth in (1, 2, 4) for width in (16, 32, 64)]
    return [
        {"depth": d, "width": w, "loss": 3 / w + 2 + i * apart + draw.normal(0, noise)}
        | {name: values[i] for name, values in more.items()}
        for d, w in shapes
        for i in range(2)
    ]


def test_two_losses_per_run_are_refused_and_repeats_are_not() -> None:
    with pytest.raises(DeepwideError, match=r"2 losses that differ by set \(c4, wiki\).*where set=c4"):
        read_runs(_two_losses(0.2, 0.01, set=["c4", "wiki"]))
    assert len(read_runs(_two_losses(0.2, 0.01, set=["c4", "wiki"]), where={"set": "wiki"})) == 9
    with pytest.raises(
        DeepwideError, match=r"differ by steps \(500, 2000\).*where steps=500\).* if the table has tokens"
    ):
        read_runs(_two_losses(0.2, 0.01, steps=[500.0, 2000.0]))  # type: ignore[list-item]
    with pytest.raises(DeepwideError, match=r"each run has 2 losses, which differ by 8\.7%"):
        read_runs(_two_losses(0.2, 0.01))
    assert len(read_runs(_two_losses(0.0, 0.05))) == 18
    assert len(read_runs(_two_losses(0.0, 0.05, set=["c4", "wiki"]))) == 18


def test_a_column_may_be_ignored() -> None:
    rows = [{"depth": d, "width": w, "loss": 3 / w + 2, "tokens": 1e6 * w, "train_flops": 1e12 * w, "total_params": 1e4}
            for d in (1, 2) for w in (16, 32)]  # fmt: skip
    assert not np.isnan(read_runs(rows).tokens).any()
    without = read_runs(rows, {"tokens": None})
    assert np.isnan(without.tokens).all()
    assert "column-ignored" in [note.code for note in without.notes]
    with pytest.raises(DeepwideError, match="did you mean 'tokens'"):
        read_runs(rows, {"token": None})


def test_a_table_without_sizes_is_not_taken_for_several_losses_per_run() -> None:
    rows = [{"depth": L, "loss": 2 + L / 10 + k / 5} for k in range(5) for L in (1, 2, 4, 8)]
    with pytest.raises(DeepwideError, match="block_params"):
        fit(rows)
