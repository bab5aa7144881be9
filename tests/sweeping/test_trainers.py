"""What both trainers promise a sweep, and what each of them is by itself."""

from typing import Any
from unittest import mock

import pytest

import deepwide.training
from deepwide.errors import DeepwideError
from deepwide.sweeping import trainer_of
from deepwide.sweeping.trainers import ToyTrainer, TransformerTrainer

CONFIGS: dict[str, dict[str, Any]] = {
    "toy": {"trainer": "toy", "depth": 3, "width": 8, "steps": 5},
    "transformer": {"model": {"depth": 3, "width": 16}, "data": {"source": "python"}, "steps": 5},
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_resolved_config_resolves_to_itself_at_the_same_cost(config: dict[str, Any]) -> None:
    trainer = trainer_of(config)
    resolved = trainer.resolve(config)
    assert trainer.resolve(resolved.config) == resolved
    assert trainer.cost(resolved.config) == resolved.cost
    assert trainer.identity(resolved.config).keys() == {"data_fingerprint", "numerics"}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_keys_are_where_the_settings_are(config: dict[str, Any]) -> None:
    trainer = trainer_of(config)
    resolved = trainer.resolve(config)
    for name in ("depth", "width", "seed", "lr", "tokens"):
        value: Any = resolved.config
        for step in trainer.keys[name].split("."):
            value = value[step]
        if name in ("depth", "width", "tokens"):
            assert value == getattr(resolved.cost, name)
    assert set(trainer.required) <= set(trainer.keys)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_longest_run_is_a_run(config: dict[str, Any]) -> None:
    trainer = trainer_of(config)
    short = {key: value for key, value in config.items() if key != "steps"}
    longest = trainer.longest(short)
    assert trainer.resolve(short | {trainer.keys["tokens"]: longest}).cost.tokens == longest


TRANSFORMER: dict[str, Any] = {
    "model": {"depth": 2, "width": 32, "heads": 2},
    "data": {"source": "python"},
    "batch": 4,
    "context": 16,
    "steps": 10,
}


def test_a_transformer_s_counts_are_those_of_the_built_network() -> None:
    torch = pytest.importorskip("torch")
    from deepwide.model.transformer import Transformer

    resolved = TransformerTrainer().resolve(TRANSFORMER)
    model = Transformer(deepwide.training.resolve(TRANSFORMER).architecture, seed=0)
    assert resolved.cost.total_params == sum(parameter.numel() for parameter in model.parameters())
    assert torch.is_tensor(next(iter(model.parameters())))
    assert (resolved.cost.depth, resolved.cost.width) == (2, 32)
    assert (resolved.cost.steps, resolved.cost.tokens) == (10, 4 * 16 * 10)


def test_data_is_fingerprinted_once_for_all_cells_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = mock.Mock(side_effect=deepwide.training.data_fingerprint)
    monkeypatch.setattr(deepwide.training, "data_fingerprint", spy)
    trainer = TransformerTrainer()
    for seed in range(3):
        resolved = trainer.resolve(TRANSFORMER | {"seed": seed})
        assert trainer.identity(resolved.config)["data_fingerprint"]
    assert spy.call_count == 1


def test_the_name_of_the_trainer_is_no_setting_of_the_run() -> None:
    assert TransformerTrainer().resolve(TRANSFORMER | {"trainer": "transformer"}) == TransformerTrainer().resolve(
        TRANSFORMER
    )


def test_a_toy_s_cost_is_one_square_matrix_per_layer() -> None:
    cost = ToyTrainer().resolve({"depth": 3, "width": 10, "steps": 7}).cost
    assert (cost.depth, cost.width, cost.steps, cost.block_params) == (3, 10, 7, 300)


@pytest.mark.parametrize("config", [{"stesp": 3}, {"steps": 0}, {"width": "wide"}])
def test_a_mistake_in_a_toy_s_config_is_one_sentence(config: dict[str, object]) -> None:
    with pytest.raises(DeepwideError, match=r"^.*run\..*[.?]$"):
        ToyTrainer().resolve(config)
