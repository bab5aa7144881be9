"""Counting by building: any family of transformers, on the meta device."""

import json
from pathlib import Path
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import build_count, read_config

pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "intermediate_size": 96,
}  # fmt: skip


@pytest.mark.parametrize("tied", [True, False])
def test_a_known_family_is_built_to_what_is_counted(tied: bool, tmp_path: Path) -> None:
    config = LLAMA | {"tie_word_embeddings": tied}
    (tmp_path / "config.json").write_text(json.dumps(config))
    built, params = build_count(tmp_path), read_config(config).shape.params
    assert (built.total, built.embedding, built.head, built.experts) == (params.total, params.embedding, params.head, 0)
    assert built.architecture == "LlamaForCausalLM"
    assert sum(row["parameters"] for row in built.rows()[:-1]) == built.total


def test_experts_are_counted_apart() -> None:
    config = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_key_value_heads": 4}
    assert build_count(config).experts == 2 * 4 * 3 * 64 * 96


def test_a_family_that_deepwide_cannot_read_can_be_built() -> None:
    config = {"model_type": "zamba2", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
              "n_mamba_heads": 2, "vocab_size": 100, "mamba_d_state": 8, "intermediate_size": 128,
              "layers_block_type": ["mamba", "mamba", "hybrid", "mamba"]}  # fmt: skip
    with pytest.raises(DeepwideError, match="state-space"):
        read_config(config)
    assert build_count(config).total > 100_000


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"model_type": "no_such"}, "knows no family 'no_such': a newer version may"),
        ({"hidden_size": 3}, "knows no family 'None'"),
        ({"model_type": ["llama"]}, "knows no family a list"),
        (LLAMA | {"hidden_size": "many"}, "transformers cannot build this llama config: "),
        (LLAMA | {"model_type": "bert-no"}, "knows no family 'bert-no'"),
    ],
)
def test_what_cannot_be_built_gets_a_sentence(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        build_count(config)


def test_infinite_numbers_are_read_as_transformers_writes_them() -> None:
    config = {"model_type": "mamba2", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100, "num_heads": 8,
              "head_dim": 16, "time_step_limit": [0.0, {"__float__": "Infinity"}]}  # fmt: skip
    assert build_count(config).total == read_config(config).shape.total_params


def test_no_code_of_a_model_is_run(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    config = LLAMA | {"auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert build_count(tmp_path).architecture == "LlamaForCausalLM"
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "evil"}))
    with pytest.raises(DeepwideError, match="knows no family 'evil'"):
        build_count(tmp_path)
