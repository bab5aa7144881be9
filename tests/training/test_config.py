"""One config is the truth about a run: complete, stable, and explained when it is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.training import RunConfig, override, resolve

SMALL: dict[str, Any] = {"model": {"depth": 2, "width": 64}, "steps": 10}


def test_a_resolved_config_leaves_nothing_open_and_survives_json() -> None:
    for preset in ("levine", "llama", "linear"):
        run = resolve({**SMALL, "model": {"depth": 2, "width": 64, "preset": preset}})
        dumped = run.model_dump(mode="json")
        assert "null" not in json.dumps(dumped)
        assert RunConfig.of(json.loads(json.dumps(dumped))) == run == resolve(run)
        assert run.architecture.shape.vocab == 256


def test_tokens_are_whole_steps() -> None:
    run = resolve({"model": SMALL["model"], "tokens": 100_000, "batch": 8, "context": 100})
    assert (run.steps, run.tokens) == (125, 100_000)
    assert resolve({"model": SMALL["model"], "tokens": 100_001, "batch": 8, "context": 100}).tokens == 100_800


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"modle": {}}, "there is no setting 'modle': did you mean 'model'"),
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
        assert "\n" not in str(complaint)  # noqa: PT017 - either outcome is right


def test_settings_go_over_a_config_and_say_when_they_make_no_sense() -> None:
    assert override(SMALL, ["model.depth=3", "tokens=2M", 'data.source="a b"']) == {
        "model": {"depth": 3, "width": 64}, "steps": 10, "tokens": "2M", "data": {"source": "a b"},
    }  # fmt: skip
    assert SMALL["model"]["depth"] == 2
    for wrong in ("lr", "=3", ".x=1", "steps.x=1"):
        with pytest.raises(DeepwideError):
            override(SMALL, [wrong])
    with pytest.raises(DeepwideError, match=r"model\.a"):
        resolve(override(SMALL, ["model.a.b=1"]))


def test_tokens_are_read_as_people_write_them_in_files_too() -> None:
    assert resolve({"model": {"depth": 1, "width": 16}, "tokens": "2M"}).tokens == 2_000_896
    with pytest.raises(DeepwideError, match="not a number of tokens"):
        resolve({"model": {"depth": 1, "width": 16}, "tokens": "many"})
