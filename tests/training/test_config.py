"""One config is the truth about a run: complete, stable, and explained when it is wrong.

Ids name what determines a run's numbers, and do not change when deepwide grows.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.run import run_id
from deepwide.shape import Shape
from deepwide.training import NUMERICS, RunConfig, override, resolve, stored_config, train
from deepwide.training.config import OptimiserConfig
from training.builders import MakeRun, finish

SMALL: dict[str, Any] = {"model": {"depth": 2, "width": 64}, "steps": 10}


def test_a_resolved_config_leaves_nothing_open_and_survives_json() -> None:
    for preset in ("levine", "llama", "linear"):
        run = resolve({**SMALL, "model": {"depth": 2, "width": 64, "preset": preset}})
        stored = stored_config(run)
        assert "null" not in json.dumps(stored)
        assert resolve(json.loads(json.dumps(stored))) == run == resolve(run)
        assert run.architecture.shape.vocab == 256


def test_tokens_are_whole_steps() -> None:
    run = resolve({"model": SMALL["model"], "tokens": 100_000, "batch": 8, "context": 100})
    assert (run.steps, run.tokens) == (125, 100_000)
    assert resolve({"model": SMALL["model"], "tokens": 100_001, "batch": 8, "context": 100}).tokens == 100_800


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"modle": {}}, "there is no setting 'modle': did you mean 'model'"),
        ({"lrr": 1.0}, "there is no setting 'lrr': did you mean 'lr'?"),
        ({"optimiser": {"learning_rate": 1}}, "there is no setting 'optimiser.learning_rate'"),
        ({"optimiser": {"lr": "fast"}}, "optimiser.lr: input should be a valid number"),
        ({"optimiser": {"lr": float("nan")}}, "optimiser.lr"),
        ({"model": {"width": 4}}, "model.depth: field required"),
        ({"model": {"depth": 2, "width": 64, "heads": 3}}, "not a multiple of heads"),
        ({"model": [1]}, "model"),
        ({"steps": None}, "a run needs a budget"),
        ({"tokens": 5}, "tokens and steps disagree"),
        ({"batch": 4, "micro_batch": 3}, "must divide batch"),
        ({"data": {"tokeniser": "bytes", "vocab": 300}}, "bytes have a vocabulary of 256"),
        ({"data": {"tokeniser": "bpe", "vocab": 100}}, "at least 257"),
        ({"schedule": {"warmup": 20}}, "longer than the run of 10 steps"),
        ({"schedule": {"kind": "sine"}}, "schedule.kind"),
        ({"data": {"path": "file"}}, "there is no setting 'data.path': did you mean 'data.source'?"),
        ({"data": 3}, "data.source: input should be a valid string, not '3'."),
        ({"lr": 1.0, "optimiser": {"lr": 2.0}}, "both 'lr' and 'optimiser.lr' are set"),
        ({"task": "sortin"}, "there is no task 'sortin': did you mean 'sorting'?"),
        ({"task": {"name": "sorting", "lenght": 3}}, "there is no setting 'task.lenght': did you mean 'length'?"),
        ({"task": {"name": "sorting", "length": 0}}, "task.length: input should be greater than or equal to 1"),
        ({"task": {"name": "reversing", "length": 3, "shortest": 4}}, "must not exceed length"),
        ({"task": {"length": 3}}, "the task 'language' has no setting 'task.length'"),
        ({"task": "sorting", "data": "file.txt"}, "leave data out"),
        ({"task": "sorting", "context": 5}, "has 8 positions, and context is 5"),
        ({"task": "sorting", "model": {"depth": 2, "width": 64, "encoder_depth": 2}}, "encoder_depth"),
        ({"task": 3}, "task.name"),
    ],
)
def test_a_wrong_config_gets_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence) as error:
        resolve(SMALL | changes)
    assert "\n" not in str(error.value)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from([*RunConfig.model_fields, "junk"])
PARTS = st.dictionaries(
    st.sampled_from(["depth", "width", "heads", "lr", "every", "source", "vocab", "kind"]), JUNK, max_size=3
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, JUNK | PARTS, max_size=4))
def test_any_config_gives_a_run_or_a_sentence(fields: dict[str, Any]) -> None:
    try:
        resolve(fields)
    except DeepwideError as complaint:
        sentence = str(complaint)
        assert "\n" not in sentence
        assert len(sentence) < 1000
        assert sentence.endswith((".", "?"))


def test_settings_go_over_a_config_and_say_when_they_make_no_sense() -> None:
    assert override(SMALL, ["model.depth=3", "tokens=2M", 'data.source="a b"']) == {
        "model": {"depth": 3, "width": 64}, "steps": 10, "tokens": "2M", "data": {"source": "a b"},
    }  # fmt: skip
    assert SMALL["model"]["depth"] == 2
    assert override({}, ["lr=3e-4", "depth=2", "task=sorting", "task.length=4", "data=a.txt"]) == {
        "optimiser": {"lr": 3e-4}, "model": {"depth": 2}, "task": {"name": "sorting", "length": 4},
        "data": {"source": "a.txt"},
    }  # fmt: skip
    assert override({"lr": 1.0}, ["lr=2.0"]) == {"optimiser": {"lr": 2.0}}
    for wrong in ("lr", "=3", ".x=1", "steps.x=1"):
        with pytest.raises(DeepwideError):
            override(SMALL, [wrong])
    with pytest.raises(DeepwideError, match=r"model\.a"):
        resolve(override(SMALL, ["model.a.b=1"]))


def test_tokens_are_read_as_people_write_them_in_files_too() -> None:
    assert resolve({"model": {"depth": 1, "width": 16}, "tokens": "2M"}).tokens == 2_000_896
    with pytest.raises(DeepwideError, match="not a number of tokens"):
        resolve({"model": {"depth": 1, "width": 16}, "tokens": "many"})


def test_short_names_work_in_files_as_in_sweeps() -> None:
    short = resolve({"depth": 2, "width": 64, "lr": 3e-4, "steps": 10, "data": "python"})
    full = {"model": {"depth": 2, "width": 64}, "optimiser": {"lr": 3e-4}, "steps": 10, "data": {"source": "python"}}
    assert short == resolve(full)


def test_a_task_gives_the_network_its_kind_head_vocabulary_and_length() -> None:
    def shape(**task: Any) -> Shape:
        return resolve(SMALL | {"task": task}).architecture.shape

    copying, reversing, majority = shape(name="copying"), shape(name="reversing"), shape(name="majority", symbols=5)
    assert (copying.kind, copying.head, copying.vocab, copying.context) == ("decoder", "tokens", 17, 32)
    assert (reversing.kind, reversing.depth, reversing.encoder_depth) == ("encoder-decoder", 2, 2)
    assert (majority.kind, majority.head, majority.classes) == ("encoder", "class", 5)
    deeper = resolve(SMALL | {"task": "reversing", "model": SMALL["model"] | {"encoder_depth": 6}})
    assert deeper.architecture.shape.encoder_depth == 6
    assert resolve(SMALL | {"task": "copying"}).tokens == 10 * 16 * 32


def test_configs_and_plans_of_runs_do_not_load_torch() -> None:
    code = (
        "import sys; from deepwide.training import resolve, data_fingerprint; from deepwide.model import Architecture;"
        "run = {'model': {'depth': 2, 'width': 64}, 'steps': 5}; resolve(run); resolve(run | {'task': 'sorting'});"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Made by deepwide at c2e663e, before there were tasks: id, first and last validation loss, bits per byte.
BEFORE_TASKS: dict[str, tuple[dict[str, Any], str, float, float, float]] = {
    "levine": (
        {"model": {"depth": 2, "width": 32}, "steps": 12, "batch": 4, "context": 32},
        "bf1dc15d7386e260", 5.544055290222168, 5.036856670379638, 7.294000642434329,
    ),
    "llama": (
        {"model": {"preset": "llama", "depth": 2, "width": 32}, "steps": 9, "batch": 4, "context": 32}
        | {"micro_batch": 2, "seed": 3},
        "39676b8b2828f486", 5.565406951904297, 5.177547302246094, 7.49773833567726,
    ),
    "byte pairs": (
        {"model": {"depth": 1, "width": 16, "residual": "deepnorm", "norm_place": "post"}, "steps": 6, "batch": 2}
        | {"context": 16, "data": {"tokeniser": "bpe", "vocab": 300}},
        "ca73a5740d341118", 5.703742682933807, 5.6373671889305115, 2.6388446538756556,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BEFORE_TASKS)
def test_runs_of_the_first_release_keep_their_ids_and_losses(
    name: str, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, run, first, last, bits = BEFORE_TASKS[name]
    monkeypatch.chdir(text.parent)
    config = config | {"data": {"source": "docs"} | config.get("data", {})}
    trained = train(config, device="cpu", threads=1)
    assert trained.id == run
    assert trained.records[0]["loss"] == pytest.approx(first, rel=1e-5)
    assert trained.validation_loss == pytest.approx(last, rel=1e-5)
    assert trained.metrics == {"bits_per_byte": pytest.approx(bits, rel=1e-5)}


def named(run: RunConfig) -> str:
    return run_id(stored_config(run), data_fingerprint="text", numerics=NUMERICS)


BASE: dict[str, Any] = {"model": {"depth": 2, "width": 32}, "steps": 12, "batch": 4, "context": 32}


class WiderOptimiser(OptimiserConfig):
    """Today's, with a setting of tomorrow."""

    amsgrad: bool = False


class WiderRun(RunConfig):
    """Today's, with two settings of tomorrow."""

    dropout: float = 0.0
    optimiser: WiderOptimiser = WiderOptimiser()


def test_a_new_setting_at_its_default_renames_no_run_and_another_value_does() -> None:
    today = named(resolve(BASE))
    for same in ({}, {"dropout": 0.0}, {"optimiser": {"amsgrad": False}}):
        assert named(resolve(WiderRun.of(BASE | same))) == today
    dropped, other = resolve(WiderRun.of(BASE | {"dropout": 0.1})), resolve(WiderRun.of(BASE | {"dropout": 0.2}))
    nested = resolve(WiderRun.of(BASE | {"optimiser": {"amsgrad": True}}))
    assert len({today, named(dropped), named(other), named(nested)}) == 4
    for run in (dropped, nested):
        assert resolve(WiderRun.of(json.loads(json.dumps(stored_config(run))))) == run


def test_how_many_checkpoints_stay_renames_no_run_that_does_not_say() -> None:
    assert named(resolve(BASE | {"keep_checkpoints": 2})) == named(resolve(BASE))
    assert "keep_checkpoints" not in stored_config(resolve(BASE))
    assert stored_config(resolve(BASE | {"keep_checkpoints": 3}))["keep_checkpoints"] == 3
    with pytest.raises(DeepwideError, match="keep_checkpoints"):  # one may turn out damaged
        resolve(BASE | {"keep_checkpoints": 1})


def test_dropout_renames_no_run_that_has_none() -> None:
    assert named(resolve(BASE | {"dropout": 0.0})) == named(resolve(BASE)) != named(resolve(BASE | {"dropout": 0.1}))
    assert "dropout" not in stored_config(resolve(BASE))
    with pytest.raises(DeepwideError, match="dropout: input should be less than 1"):
        resolve(BASE | {"dropout": 1.0})


def test_every_setting_of_the_first_release_is_stored_whatever_its_value() -> None:
    """The ids of old runs are hashes of all of them."""
    stored = stored_config(resolve(BASE))
    assert stored == json.loads(FIRST_RELEASE)


def test_a_task_is_part_of_the_id_and_its_parameters_at_their_defaults_are_not() -> None:
    task, language = named(resolve(BASE | {"task": "sorting", "context": None})), named(resolve(BASE))
    assert named(resolve(BASE | {"task": {"name": "sorting", "length": 8}, "context": None})) == task != language
    assert named(resolve(BASE | {"task": {"name": "sorting", "length": 9}, "context": None})) not in (task, language)
    assert named(resolve(BASE | {"task": "language"})) == language


def test_the_encoder_s_depth_is_stored_when_it_is_not_the_default() -> None:
    reversing = BASE | {"task": "reversing", "context": None}
    same = resolve(reversing | {"model": {"depth": 2, "width": 32, "encoder_depth": 2}})
    deeper = resolve(reversing | {"model": {"depth": 2, "width": 32, "encoder_depth": 3}})
    assert "encoder_depth" not in stored_config(same)["model"]
    assert stored_config(deeper)["model"]["encoder_depth"] == 3
    assert named(same) == named(resolve(reversing)) != named(deeper)


def test_sizes_of_attention_rename_no_run_that_does_not_say_and_every_run_that_does() -> None:
    local = BASE | {"task": "parity", "context": None, "model": {"depth": 2, "width": 32, "attention": "local"}}
    usual, other = (local | {"model": local["model"] | {"attention_size": size}} for size in (50, 8))
    assert resolve(local).model.attention_size == 50
    assert named(resolve(usual)) == named(resolve(local)) != named(resolve(other))
    assert resolve(json.loads(json.dumps(stored_config(resolve(other))))) == resolve(other)


@pytest.mark.parametrize("changes", [{}, {"task": "reversing"}, {"task": {"name": "copying", "length": 5}}])
def test_a_stored_config_gives_its_run_back(changes: dict[str, Any]) -> None:
    run = resolve({**BASE, "context": None, **changes})
    assert resolve(json.loads(json.dumps(stored_config(run)))) == run


def test_an_old_run_folder_resumes(make_run: MakeRun) -> None:
    """Its config has no word about tasks."""
    run = make_run()
    record = json.loads((run.path / "config.json").read_text())
    assert "task" not in record["config"]
    left = iter([False] * 5)
    finish(run, stop=lambda: next(left, True))
    finish(run)
    assert run.result()["status"] == "done"  # type: ignore[index]


# config.json of BASE, as the first release wrote it.
FIRST_RELEASE = """
{"batch": 4, "checkpoint_every": 2, "compile": false, "context": 32, "data": {"column": "text", "source": "python",
"tokeniser": "bytes", "validation": 0.05, "vocab": 256}, "evaluation": {"every": 2, "sequences": 64}, "log_every": 1,
"micro_batch": 4, "model": {"activation": "gelu", "attention": "softmax", "base_depth": 4, "base_width": 256, "depth":
2, "embedding_norm": false, "ff": "plain", "ff_bias": true, "ff_width": 128, "final_norm": true, "head_bias": false,
"head_dim": 32, "heads": 1, "initialisation": "gpt2", "kv_heads": 1, "norm": "layernorm", "norm_eps": 1e-05,
"norm_place": "pre", "out_bias": true, "parametrisation": "standard", "positions": "learned", "preset": "levine",
"qk_norm": "none", "qkv_bias": true, "residual": "plain", "rotary_base": 10000.0, "tied": true, "width": 32},
"optimiser": {"beta1": 0.9, "beta2": 0.95, "clip": 1.0, "eps": 1e-08, "lr": 0.001, "weight_decay": 0.1}, "precision":
"fp32", "schedule": {"cooldown": 2, "final": 0.1, "kind": "cosine", "warmup": 1}, "seed": 0, "steps": 12, "tokens":
1536}
"""
