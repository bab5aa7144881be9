"""Which columns of somebody's table are settings, and where these differ."""

import re
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import read_runs
from deepwide.fitting.settings import sort_of
from fitting.builders import codes, noted

Rows = list[dict[str, Any]]
SHAPES = [(2, 64), (4, 64), (8, 64), (2, 128), (4, 128), (8, 128)]


def _table(**columns: list[Any]) -> Rows:
    """Six shapes with a run per value: the first of each shape has the first values, and so on."""
    count = len(next(iter(columns.values())))
    return [
        {"depth": d, "width": w, "loss": 2 + d / w + (0.01 + 0.02 * (d > 2)) * ((7 * i + d) % 5)}
        | {name: values[i] for name, values in columns.items()}
        for d, w in SHAPES
        for i in range(count)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "batch", "bs", "config.data.global_batch_size", "per_device_train_batch_size", "local bsz", "warmup",
        "warmup_steps", "min_lr", "peak_lr", "learning rate decay", "weight_decay", "wd", "optimizer", "optimizer.name",
        "dataset_name", "dropout", "max_grad_norm", "grad_clip_norm", "use_x_norm", "seq_len", "context_length",
        "block_size", "lr_schedule",
    ],
)  # fmt: skip
def test_names_of_settings(name: str) -> None:
    assert sort_of(name) == "setting"


@pytest.mark.parametrize(
    "name",
    [
        "step", "steps", "_step", "summary._step", "iters", "max_iters", "iteration", "num_train_steps", "epochs",
        "total_gflops", "compute_budget", "throughput/total_tokens", "D", "tokens seen", "samples",
    ],
)  # fmt: skip
def test_names_of_lengths(name: str) -> None:
    assert sort_of(name) == "length"


@pytest.mark.parametrize(
    "name",
    [
        "", "name", "run_name", "exp_name", "id", "wandb.id", "group", "log_path", "data_seed", "run_num", "date",
        "created_at", "wall_time", "wall_clock", "runtime_s", "step_time", "average_iter_time", "tok / sec",
        "tokens_per_second", "throughput/tokens", "steps_per_sec", "mfu", "gpu_mem_gb", "num GPUs", "accuracy",
        "val/c4_loss", "smooth loss", "eval/hellaswag_acc", "hellaswag", "train_loss", "grad_norm", "param_norm",
        "summary.train/.optimizer/lr", "summary.model/.num_params", "n_params", "eval_steps",
    ],
)  # fmt: skip
def test_names_of_outcomes_and_labels(name: str) -> None:
    assert sort_of(name) == "other"


@pytest.mark.parametrize("name", ["n_heads", "d_ff", "k", "router_type", "ti", "flop_increase", "num_experts"])
def test_names_that_say_nothing(name: str) -> None:
    assert sort_of(name) == "unknown"


def test_a_text_is_no_metric_and_no_length() -> None:
    assert (sort_of("eval_set", numeric=False), sort_of("step", numeric=False)) == ("unknown", "unknown")


@pytest.mark.parametrize("count", [3, 13])
@pytest.mark.parametrize("name", ["bs", "warmup", "trainer.train_batch_size", "heads"])
def test_a_setting_is_named_however_many_values_it_has(name: str, count: int) -> None:
    runs = read_runs(_table(**{name: [8 * (i + 1) for i in range(count)]}))
    assert noted("settings-differ", runs.notes) == {"names": [name]}


def test_what_was_measured_and_labels_are_not_named() -> None:
    rows = [
        row
        | {
            "wall": 100 + i,
            "gpu_mem": i % 3,
            "accuracy": (i % 4) / 10,
            "name": f"run{i}",
            "foo": 0.1 * i,
            "host": "ab"[i % 2],
        }
        for i, row in enumerate(_table(batch=list(range(1, 13))))
    ]
    assert noted("settings-differ", read_runs(rows).notes) == {"names": ["batch"]}


def test_settings_come_before_what_nothing_says_to_be_one() -> None:
    runs = read_runs(_table(k=[1, 2, 1], steps=[1, 2, 2], batch=[1, 1, 2], tokens=[5, 5, 5]))
    assert noted("settings-differ", runs.notes) == {"names": ["batch", "steps", "k"]}


def test_lengths_that_nobody_reads_are_pointed_out() -> None:
    steps = [1000 * i for i in range(12)]
    notes = read_runs(_table(step=steps, loss_scale=steps)).notes
    assert noted("lengths-unread", notes) == {"names": ["step"], "low": 0, "high": 11000}
    (text,) = [str(note) for note in notes if note.code == "lengths-unread"]
    assert re.search(r"'step' \(0 to 11000\), and tokens are not known.*\(where step=NUMBER\).*map tokens$", text)
    assert "lengths-unread" not in codes(read_runs(_table(step=steps, tokens=[*steps[1:], 12000])).notes)
    assert "lengths-unread" not in codes(read_runs(_table(step=steps), where={"step": 3000}).notes)
    assert "lengths-unread" not in codes(read_runs(_table(step=steps), {"tokens": None}).notes)


def test_the_note_is_about_the_rows_that_are_left() -> None:
    rows = _table(k=[1, 2, 2, 1], router=["dense", "top", "top", "top"])
    assert noted("settings-differ", read_runs(rows).notes)["names"] == ["k", "router"]
    assert "settings-differ" not in codes(read_runs(rows, where={"router": "dense"}).notes)
    assert noted("settings-differ", read_runs(rows, limits=[("router", "!=", "dense")]).notes)["names"] == ["k"]
    assert "settings-differ" not in codes(read_runs(rows, best_of=["router", "k"]).notes)


def _by_shape(values: list[Any], name: str = "batch") -> Rows:
    return [row | {name: value} for row, value in zip(_table(seed=[0]), values, strict=True)]


def test_a_setting_that_differs_between_shapes_of_similar_sizes_is_mentioned() -> None:
    data = noted("settings-by-shape", read_runs(_by_shape([8, 16, 64, 16, 64, 64])).notes)
    assert data == {"settings": {"batch": [8.0, 16.0, 64.0]}}, "8 layers of 64 are as large as 2 of 128"
    texts = _by_shape(["adam", "lion", "adam", "adam", "adam", "lion"], "optimizer")
    assert noted("settings-by-shape", read_runs(texts).notes) == {"settings": {"optimizer": ["adam", "lion"]}}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("batch", [8, 8, 16, 16, 64, 64]), ("batch", [64, 64, 16, 16, 8, 8]), ("batch", [8] * 6),
        ("n_heads", [8, 16, 64, 16, 64, 64]), ("d_ff", [8, 16, 64, 16, 64, 64]), ("accuracy", [8, 16, 64, 16, 64, 64]),
        ("step", [8, 16, 64, 16, 64, 64]), ("optimizer", ["a", "a", "b", "b", "c", "c"]),
    ],
)  # fmt: skip
def test_a_setting_that_follows_the_size_and_other_columns_are_not(name: str, values: list[Any]) -> None:
    assert "settings-by-shape" not in codes(read_runs(_by_shape(values, name)).notes)


def test_a_setting_of_which_the_best_was_chosen_is_not() -> None:
    rows = [
        row | {"batch": b, "loss": row["loss"] + abs(b - best)}
        for row, best in zip(_table(seed=[0]), [8, 16, 64, 16, 64, 64], strict=True)
        for b in (8, 16, 64)
    ]
    notes = read_runs(rows, best_of=["batch"]).notes
    assert "best-settings" in codes(notes)
    assert not {"settings-by-shape", "settings-differ"} & set(codes(notes))


def test_which_loss_a_row_has_may_be_said_by_any_column() -> None:
    rows = [
        row | {"metric": kind, "loss": row["loss"] + off}
        for row in _table(seed=[0])
        for kind, off in (("c4", 0), ("wiki", 1))
    ]
    with pytest.raises(DeepwideError, match=r"2 losses that differ by metric \(c4, wiki\)"):
        read_runs(rows)
