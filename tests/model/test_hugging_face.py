"""Weights in Hugging Face layout give the logits of `transformers`; what does not fit is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.model import from_hugging_face, load_folder
from model.builders import hugging_face, seeded


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gpt2", {}),
        ("gpt2", {"n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-3}),
        ("gpt2", {"tie_word_embeddings": False}),
        ("llama", {}),
        ("llama", {"num_key_value_heads": 1, "rms_norm_eps": 1e-3, "tie_word_embeddings": True}),
        ("llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ],
)
def test_weights_in_hugging_face_layout_give_the_logits_of_transformers(
    kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    theirs = hugging_face(kind, **changes)
    theirs.save_pretrained(tmp_path)
    ours = load_folder(tmp_path)
    assert ours.design.shape.total_params == theirs.num_parameters()
    tokens_BT = torch.randint(29, (2, 12), generator=seeded(2))
    with torch.no_grad():
        assert torch.allclose(ours(tokens_BT), theirs(tokens_BT).logits, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("changes", [{}, {"hidden_act": "relu", "layer_norm_eps": 1e-3, "type_vocab_size": 3}])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_bert_gives_the_hidden_states_and_patterns_of_transformers(changes: dict[str, Any], prefix: str) -> None:
    theirs = hugging_face("bert", **changes)
    weights = {f"{prefix}{name}": tensor for name, tensor in theirs.state_dict().items()}
    ours = from_hugging_face(theirs.config.to_dict(), weights)
    pooler = sum(p.numel() for name, p in theirs.named_parameters() if "pooler" in name)
    types = theirs.embeddings.token_type_embeddings.weight.numel()
    assert ours.design.shape.total_params == theirs.num_parameters() - pooler - types
    tokens_BT = torch.randint(29, (2, 12), generator=seeded(2))
    real_BT = torch.arange(12) < torch.tensor([[12], [7]])
    with torch.no_grad():
        whole = theirs(tokens_BT, output_attentions=True)
        assert torch.allclose(ours.hidden(tokens_BT), whole.last_hidden_state, rtol=1e-4, atol=1e-4)
        _, seen = ours.run_with_cache(tokens_BT, ["blocks.*.attention.pattern"])
        for layer, pattern in enumerate(whole.attentions):
            assert torch.allclose(seen[f"blocks.{layer}.attention.pattern"], pattern, atol=1e-5)
        padded = theirs(tokens_BT, attention_mask=real_BT.long()).last_hidden_state
        mine = ours.hidden(tokens_BT, padding_BT=real_BT)
        assert torch.allclose(mine[real_BT], padded[real_BT], rtol=1e-4, atol=1e-4)


def test_a_bert_that_cannot_be_loaded_costs_a_sentence() -> None:
    theirs = hugging_face("bert")
    config, weights = theirs.config.to_dict(), dict(theirs.state_dict())
    with pytest.raises(DeepwideError, match="relative positions cannot be loaded"):
        from_hugging_face(config | {"position_embedding_type": "relative_key"}, weights)
    with pytest.raises(DeepwideError, match="the config of a BERT needs hidden_size, a whole number"):
        from_hugging_face(config | {"hidden_size": "wide"}, weights)
    with pytest.raises(DeepwideError, match="hidden_act 'mish' is not known"):
        from_hugging_face(config | {"hidden_act": "mish"}, weights)
    del weights["embeddings.token_type_embeddings.weight"]
    with pytest.raises(DeepwideError, match="lack what our 'positions' needs"):
        from_hugging_face(config, weights)


def test_weights_that_do_not_fit_their_config_are_refused_with_a_sentence(tmp_path: Path) -> None:
    theirs = hugging_face("gpt2")
    weights = dict(theirs.state_dict())
    config = theirs.config.to_dict()
    with pytest.raises(DeepwideError, match=r"the config says \(48, 24\)"):
        from_hugging_face(config | {"vocab_size": 48}, weights)
    del weights["transformer.h.1.mlp.c_fc.bias"]
    with pytest.raises(DeepwideError, match=r"lack what our 'blocks\.1\.feed_forward\.up\.bias' needs"):
        from_hugging_face(config, weights)
    with pytest.raises(DeepwideError, match="model_type 't5' cannot be loaded"):
        from_hugging_face({"model_type": "t5"}, {})
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04evil")
    with pytest.raises(DeepwideError, match=r"pickled \.bin files are not read"):
        load_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x80\x04evil")
    with pytest.raises(DeepwideError, match="cannot be read"):
        load_folder(tmp_path)


@pytest.mark.parametrize("written", ["[1, 2]", "{", "[" * 100_000, "null"])
def test_a_config_that_is_none_gets_one_sentence(written: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text(written)
    with pytest.raises(DeepwideError, match=r"config\.json is not a model's config: .*\.$") as complaint:
        load_folder(tmp_path)
    assert "\n" not in str(complaint.value)
