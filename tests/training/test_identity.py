"""Ids name what determines a run's numbers, and do not change when deepwide grows."""

import json
from pathlib import Path
from typing import Any

import pytest

from deepwide.run import run_id
from deepwide.training import NUMERICS, RunConfig, resolve, stored_config, train
from deepwide.training.config import OptimiserConfig
from training.builders import MakeRun, finish

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
