"""The transformer's trainer as a sweep sees it: counts by hand, one fingerprint for all cells on the same data."""

from typing import Any
from unittest import mock

import pytest

import deepwide.training
from deepwide.sweeping.trainers.transformer import TransformerTrainer

CONFIG: dict[str, Any] = {
    "model": {"depth": 2, "width": 32, "heads": 2},
    "data": {"source": "python"},
    "batch": 4,
    "context": 16,
    "steps": 10,
}


def test_the_counts_are_those_of_the_built_network() -> None:
    torch = pytest.importorskip("torch")
    from deepwide.model.transformer import Transformer

    resolved = TransformerTrainer().resolve(CONFIG)
    model = Transformer(deepwide.training.resolve(CONFIG).architecture, seed=0)
    assert resolved.cost.total_params == sum(parameter.numel() for parameter in model.parameters())
    assert torch.is_tensor(next(iter(model.parameters())))
    assert (resolved.cost.depth, resolved.cost.width) == (2, 32)
    assert (resolved.cost.steps, resolved.cost.tokens) == (10, 4 * 16 * 10)


def test_data_is_fingerprinted_once_for_all_cells_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = mock.Mock(side_effect=deepwide.training.data_fingerprint)
    monkeypatch.setattr(deepwide.training, "data_fingerprint", spy)
    trainer = TransformerTrainer()
    for seed in range(3):
        resolved = trainer.resolve(CONFIG | {"seed": seed})
        assert trainer.identity(resolved.config)["data_fingerprint"]
    assert spy.call_count == 1


def test_the_name_of_the_trainer_is_no_setting_of_the_run() -> None:
    assert TransformerTrainer().resolve(CONFIG | {"trainer": "transformer"}) == TransformerTrainer().resolve(CONFIG)
