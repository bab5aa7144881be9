"""Networks in folders: what is saved is loaded, to the bit, and what is not a network costs a sentence."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from deepwide.errors import DeepwideError
from deepwide.model import Architecture, Transformer, load_model, save_model
from model.builders import SMALL, designs


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(designs())
def test_what_is_saved_is_loaded(tmp_path: Path, design: Architecture) -> None:
    model = Transformer(design, seed=3)
    again, about = load_model(save_model(model, tmp_path / "net", task="sorting", length=8))
    assert again.design == design
    assert about == {"task": "sorting", "length": 8}
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), again.parameters(), strict=True))


def test_a_folder_without_a_network_costs_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match=r"must hold config.json and model.safetensors"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "other"}, "its format must be 'deepwide'"),
        ({"architecture": None}, "config.json"),
        ({"architecture": {"shape": {"depth": 0, "width": 4}}}, "shape.depth"),
    ],
)
def test_a_config_that_is_none_costs_a_sentence(change: dict[str, object], sentence: str, tmp_path: Path) -> None:
    save_model(Transformer(Architecture.of(**SMALL)), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DeepwideError, match=sentence) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_weights_of_another_network_cost_a_sentence(tmp_path: Path) -> None:
    save_model(Transformer(Architecture.of(**SMALL)), tmp_path / "one")
    save_model(Transformer(Architecture.of(**(SMALL | {"depth": 3}))), tmp_path / "two")
    (tmp_path / "two" / "model.safetensors").rename(tmp_path / "one" / "model.safetensors")
    with pytest.raises(DeepwideError, match=r"are not those of its config: see blocks\.2"):
        load_model(tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DeepwideError, match="cannot be read"):
        load_model(tmp_path / "one")
