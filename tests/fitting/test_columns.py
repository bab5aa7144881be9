"""What other people's columns are taken to mean."""

import math

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import read_runs
from deepwide.fitting.columns import NAMES, guess_columns, meaning
from fitting.builders import codes, noted

SHAPES = [(2, 64), (4, 64), (8, 64), (2, 128)]


def test_every_usual_name_means_its_column() -> None:
    for ours, names in NAMES.items():
        for name in names:
            guess = meaning(name)
            assert guess is not None
            assert (guess.column, guess.scale, guess.perplexity, guess.bits) == (ours, 1.0, False, False)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Number of layers", "depth"), ("config.model.n_layers", "depth"), ("numLayers", "depth"), ("Depth", "depth"),
        ("depth (layers)", "depth"), ("Depth in layers", "depth"),
        ("model/d_model", "width"), ("Hidden dim", "width"), ("embed_dim", "width"), ("dim", "width"),
        ("non-embedding parameters", "block_params"), ("N_non_emb_params", "block_params"),
        ("params_non_embedding", "block_params"), ("nonembedding_params", "block_params"),
        ("Parameters", "total_params"), ("num_parameters", "total_params"), ("Total params", "total_params"),
        ("tokens_seen", "tokens"), ("Training tokens", "tokens"), ("total_tokens", "tokens"),
        ("throughput/total_tokens", "tokens"), ("perf/total_train_tokens", "tokens"), ("cumulative_tokens", "tokens"),
        ("Training FLOPs", "train_flops"), ("total_flops", "train_flops"),
        ("eval/loss", "loss"), ("summary.val/loss", "loss"), ("Final Validation Loss", "loss"), ("mlm_loss", "loss"),
        ("cross_entropy", "loss"), ("train_loss", "loss"), ("State", "status"), ("config.seed", "seed"),
        ("peak_lr", "lr"), ("config.optim.lr", "lr"),
    ],
)  # fmt: skip
def test_names_are_read_as_words(name: str, ours: str) -> None:
    guess = meaning(name)
    assert guess is not None
    assert guess.column == ours


@pytest.mark.parametrize(
    "name",
    [
        "val/c4_loss", "loss_std", "aux_loss", "block_size", "layer_norm", "tokens_per_second", "tokens_per_param",
        "batch_tokens", "flops_per_token", "embedding_params", "vocab_size", "n_heads", "d_ff", "intermediate_size",
        "lr_schedule", "data_seed", "weight_decay", "head_dim", "step", "m", "", "()", "params_per_layer", "x_B",
        "L", "d", "block_depth", "layer_depth", "throughput/tokens", "throughput/total_tokens_per_second",
    ],
)  # fmt: skip
def test_names_that_say_something_else_are_not_guessed(name: str) -> None:
    assert meaning(name) is None


@pytest.mark.parametrize(
    ("name", "ours", "scale"),
    [
        ("Params (M)", "total_params", 1e6), ("params_m", "total_params", 1e6), ("Tokens (B)", "tokens", 1e9),
        ("tokens_billions", "tokens", 1e9), ("tokens in millions", "tokens", 1e6), ("train tokens [T]", "tokens", 1e12),
        ("Non-Embedding Params (M)", "block_params", 1e6), ("params_bn", "total_params", 1e9),
    ],
)  # fmt: skip
def test_a_unit_in_the_name_counts(name: str, ours: str, scale: float) -> None:
    guess = meaning(name)
    assert guess is not None
    assert (guess.column, guess.scale) == (ours, scale)
    runs = read_runs([{name: 7.0, "loss": 2.0}, {name: 9.5, "loss": 1.9}])
    assert getattr(runs, ours).tolist() == [7 * scale, 9.5 * scale]
    assert noted("column-unit", runs.notes)["name"] == name


def test_counts_may_be_written_as_people_write_them() -> None:
    rows = [
        {"depth": 12, "width": 768, "params": "124M", "tokens": "2.5B", "loss": "3.1"},
        {"depth": 24, "width": 1024, "params": "354,823,168", "tokens": "7e9", "loss": "2.9"},
        {"depth": 36, "width": 1280, "params": 774e6, "tokens": "n/a", "loss": "-"},
    ]
    runs = read_runs(rows)
    assert runs.total_params.tolist() == [124e6, 354_823_168]
    assert runs.tokens.tolist() == [2.5e9, 7e9]
    with pytest.raises(DeepwideError, match=r"column 'params': 'many' is not a number: write 12345\.6 or 125M"):
        read_runs([rows[0] | {"params": "many"}])
    with pytest.raises(DeepwideError, match="is a list: write a row for each of its values, or the last one alone"):
        read_runs([{"depth": 1, "width": 8, "loss": "[3.1, 2.9]"}])
    with pytest.raises(DeepwideError, match="column 'depth': '12M' is not a number"):
        read_runs([rows[0] | {"depth": "12M"}])


def test_lists_in_cells_are_named_together_and_a_loss_must_be_read() -> None:
    with pytest.raises(DeepwideError, match=r"or the last one alone\.$"):
        read_runs([{"depth": 1, "width": 8, "loss": "[3.1, 2.9]"}])
    with pytest.raises(DeepwideError, match=r"'tokens'.*or do not read this column; 'val_loss' is a list too\.$"):
        read_runs([{"depth": 1, "width": 8, "tokens": [5, 6], "val_loss": [3.1, 2.9]}])
    with pytest.raises(DeepwideError, match=r"write 2\.345, or nan for a run that diverged\.$"):
        read_runs([{"depth": 1, "width": 8, "loss": "bad"}])


def test_a_count_that_is_that_of_plain_blocks_in_every_row_is_no_total() -> None:
    rows = [{"depth": d, "width": w, "num_params": 12 * d * w**2, "loss": 2.0} for d, w in SHAPES]
    runs = read_runs(rows)
    assert runs.block_params.tolist() == [12 * d * w**2 for d, w in SHAPES]
    assert np.isnan(runs.total_params).all()
    assert noted("total-is-blocks", runs.notes) == {"name": "num_params"}
    assert noted("column-guessed", runs.notes)["column"] == "block_params"
    rounded = read_runs([row | {"num_params": row["num_params"] * 1.004} for row in rows])
    assert "total-is-blocks" in codes(rounded.notes)
    assert read_runs([row | {"vocab": 100} for row in rows]).total_params[0] == 12 * 2 * 64**2 + 6400
    one_off = [rows[0] | {"num_params": 1.01 * rows[0]["num_params"]}, *rows[1:]]
    for total in (read_runs(one_off), read_runs(rows, {"total_params": "num_params"})):
        assert not np.isnan(total.total_params).any()
    named = read_runs([{"depth": d, "width": w, "total_params": 12 * d * w**2, "loss": 2.0} for d, w in SHAPES])
    assert not np.isnan(named.total_params).any(), "a name that says total is believed"
    flops = read_runs([row | {"train_flops": 6e15} for row in rows])
    assert flops.tokens[0] == pytest.approx(1e15 / (12 * 2 * 64**2))
    assert codes(flops.notes).count("tokens-from-flops") == 1


def test_a_perplexity_is_turned_into_a_loss_guessed_or_given() -> None:
    rows = [{"depth": d, "width": w, "val_ppl": math.exp(3.0 + d / 10)} for d, w in SHAPES]
    for runs in (read_runs(rows), read_runs(rows, {"loss": "val_ppl"})):
        assert runs.loss.tolist() == pytest.approx([3.2, 3.4, 3.8, 3.2])
        assert noted("loss-from-perplexity", runs.notes) == {"name": "val_ppl"}
    both = read_runs([row | {"eval_loss": 2.0} for row in rows])
    assert both.loss.tolist() == [2.0] * 4, "a loss is taken before a perplexity"
    assert "losses-several" not in codes(both.notes), "these are no two losses"
    two = read_runs([row | {"eval_loss": 2.0, "test_loss": 3.0, "train_loss": 1.0} for row in rows])
    assert noted("losses-several", two.notes) == {"name": "eval_loss", "others": ["test_loss"]}
    trained = read_runs([row | {"train_loss": 1.0, "c4_ppl": 3.0} for row in [{"depth": 2, "width": 8}]])
    assert noted("losses-unread", trained.notes) == {"name": "train_loss", "others": ["c4_ppl"]}
    with pytest.raises(DeepwideError, match=r"a perplexity must be above 1, not 0\.5"):
        read_runs([rows[0] | {"val_ppl": 0.5}])


def test_bits_per_byte_are_a_loss_and_said_to_be_bits() -> None:
    runs = read_runs([{"depth": d, "width": w, "val_bpb": 1.0 + d / 10} for d, w in SHAPES])
    assert runs.loss.tolist() == pytest.approx([1.2, 1.4, 1.8, 1.2])
    assert noted("loss-in-bits", runs.notes) == {"name": "val_bpb"}


@pytest.mark.parametrize(("unit", "words"), [(1e3, "thousands"), (1e6, "millions"), (1e9, "billions")])
def test_parameters_in_a_unit_that_nobody_states_are_seen_by_the_shape(unit: float, words: str) -> None:
    exact = [{"depth": d, "width": w, "params": 12 * d * w**2 + 50_000 * w, "loss": 2.0} for d, w in SHAPES]
    runs = read_runs([row | {"params": row["params"] / unit} for row in exact])
    assert runs.total_params.tolist() == pytest.approx([row["params"] for row in exact])
    assert noted("column-unit", runs.notes) | {"name": ""} == {
        "column": "total_params", "name": "", "unit": words, "seen": True,
    }  # fmt: skip
    assert "column-unit" not in codes(read_runs(exact).notes)


def test_of_a_mixture_of_experts_active_parameters_count() -> None:
    rows = [{"depth": d, "width": w, "total_params": 9e9, "active_params": 1e6 * d, "loss": 2.0} for d, w in SHAPES]
    runs = read_runs(rows)
    assert runs.total_params.tolist() == [2e6, 4e6, 8e6, 2e6]
    assert noted("experts-active", runs.notes) == {"name": "active_params"}
    assert read_runs(rows, {"total_params": "total_params"}).total_params.tolist() == [9e9] * 4


def test_a_table_of_several_losses_names_them() -> None:
    with pytest.raises(
        DeepwideError, match=r"no column that is called a loss .*; columns like it are val/c4_loss, val/pile_loss: "
    ):
        read_runs([{"depth": 2, "width": 64, "val/c4_loss": 2.0, "val/pile_loss": 2.1, "step": 5}])


def test_letters_are_depth_and_width_only_together() -> None:
    rows = [{"L": d, "d": w, "loss": 2.0} for d, w in SHAPES]
    runs = read_runs(rows)
    assert (runs.depth.tolist(), runs.width.tolist()) == ([2, 4, 8, 2], [64, 64, 64, 128])
    assert [note.data["name"] for note in runs.notes if note.code == "column-guessed"] == ["L", "d"]
    named = read_runs([row | {"layers": 7} for row in rows])
    assert named.depth.tolist() == [7] * 4, "a name comes before a letter"
    alone = read_runs([{"L": 2.5, "depth": d, "width": w, "loss": 2.0} for d, w in SHAPES])
    assert alone.depth.tolist() == [2, 4, 8, 2]
    with pytest.raises(DeepwideError, match="called a loss"):
        read_runs([{"N": 1e6, "D": 1e9, "L": 2.5}])


def test_objects_in_a_row_are_columns_of_their_own() -> None:
    rows = [
        {"config": {"model": {"n_layer": d, "d_model": w}, "betas": [0.9, 0.95]}, "summary": {"val_loss": 2.0}}
        for d, w in SHAPES
    ]
    runs = read_runs(rows)
    assert (runs.depth.tolist(), runs.width.tolist()) == ([2, 4, 8, 2], [64, 64, 64, 128])
    assert runs.loss.tolist() == [2.0] * 4
    assert len(read_runs(rows, where={"config.model.n_layer": 2})) == 2
    both = read_runs([{"config": {"depth": 3}, "config.depth": 5, "width": 8, "loss": 2.0}])
    assert both.depth.tolist() == [5], "a column comes before an object's"
    with pytest.raises(DeepwideError, match=r"did you mean 'config\.model\.n_layer'"):
        read_runs(rows, {"depth": "config.n_layer"})
    deep: dict[str, object] = {"depth": 3}
    for _ in range(2000):
        deep = {"x": deep}
    assert len(read_runs([{"depth": 2, "width": 8, "loss": 2.0} | deep])) == 1


def test_a_total_beside_the_blocks_is_that_of_parameters() -> None:
    beside, _ = guess_columns(["depth", "non_embedding_params", "total", "loss"], {}, (), "table.csv")
    assert beside["total_params"] == "total"
    for names in (["depth", "width", "total", "loss"], ["depth", "block_params", "params", "total", "loss"]):
        alone, _ = guess_columns(names, {}, (), "table.csv")
        assert alone.get("total_params") != "total"
