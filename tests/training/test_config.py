"""One config is the truth about a run: complete, stable, and explained when it is wrong."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape import Shape
from deepwide.training import RunConfig, override, resolve, stored_config

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
