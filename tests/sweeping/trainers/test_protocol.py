"""What both trainers promise a sweep."""

from typing import Any

import pytest

from deepwide.sweeping import trainer_of

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
