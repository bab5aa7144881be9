"""Hybrids: what their configs say, states and mixers by hand. Their parameters are tested in test_readable.py."""

from typing import Any

import pytest

from deepwide import audit, count
from deepwide.errors import DeepwideError
from deepwide.shape import flops, inference_memory, read_config, training_memory

SIZES: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
         "intermediate_size": 96, "num_hidden_layers": 4, "max_position_embeddings": 128}  # fmt: skip
JAMBA = SIZES | {"model_type": "jamba", "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 4,
                 "num_experts_per_tok": 2, "mamba_dt_rank": 4}  # fmt: skip
NEMOTRON = SIZES | {"model_type": "nemotron_h", "head_dim": 16, "ssm_state_size": 8, "mamba_num_heads": 4,
                    "mamba_head_dim": 16, "n_groups": 2, "moe_intermediate_size": 24, "num_experts_per_tok": 2,
                    "moe_shared_expert_intermediate_size": 40,
                    "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"]}  # fmt: skip
NEXT = SIZES | {
    "model_type": "qwen3_next",
    "head_dim": 16,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
}
MAMBA = {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 100, "state_size": 8}
CONFIGS: dict[str, dict[str, Any]] = {
    "jamba": JAMBA, "nemotron_h": NEMOTRON, "qwen3_next": NEXT, "mamba": MAMBA,
    "gpt_neo": {"model_type": "gpt_neo", "hidden_size": 64, "num_layers": 4, "num_heads": 4, "vocab_size": 100},
    "bamba": SIZES | {"model_type": "bamba"},
}  # fmt: skip


def test_a_state_space_has_a_state_and_no_cache() -> None:
    shape = read_config(MAMBA).shape
    inner, state, taps, rank = 128, 8, 4, 4
    (mixer,) = shape.extras
    assert mixer.layers == 3
    assert mixer.matrices == 64 * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * 64
    assert mixer.state == inner * state + inner * (taps - 1)
    short, long = (inference_memory(shape, sequence=T) for T in (1, 1000))
    assert short.cache == long.cache == 2 * 3 * mixer.state
    assert short.cache_bytes_per_token == 0
    one, two = (flops(shape, T, "causal").forward for T in (50, 100))
    assert two == 2 * one  # linear in the length


def test_only_layers_with_attention_have_a_cache_and_pairs() -> None:
    shape = read_config(JAMBA).shape
    assert shape.attention_free == (0, 2)
    memory = inference_memory(shape, sequence=10)
    states = 2 * sum(extra.layers * extra.state for extra in shape.extras)
    assert memory.cache == 2 * 10 * 2 * (2 * 2 * 16) + states
    assert flops(shape, 10).attention == 2 * 2 * 10 * 10 * 4 * (16 + 16)
    whole, less = training_memory(shape), training_memory(shape, recompute=True)
    assert less.activations < whole.activations
    assert "mamba" in whole.formula["activations"]


def test_every_layer_of_nemotron_h_is_one_thing() -> None:
    shape = read_config(NEMOTRON).shape
    assert (shape.attention_free, shape.ff_free) == ((0, 1, 3), (0, 2))
    p = shape.params
    assert p.attention == 64 * 4 * 16 * 2 + 64 * 2 * 16 * 2
    assert p.feed_forward == 2 * 64 * 96 + 8 * 2 * 64 * 24 + 64 * 8 + 2 * 64 * 40
    assert p.inactive == 6 * 2 * 64 * 24


def test_a_hybrid_is_counted_and_judged_with_a_note() -> None:
    shape = read_config(JAMBA).shape
    answer = audit(shape)
    assert answer.instead is None
    (note,) = [note for note in answer.notes if note.code == "hybrid"]
    assert note.data == {"attention_layers": 2, "depth": 4}
    assert "mamba in 2 layers" in shape.describe()
    rows = {(row["what"], row["part"]): row["amount"] for row in count(shape).rows()}
    assert rows["parameters", "mixers"] == shape.params.mixers > 0


def test_sizes_of_a_hybrid_cannot_be_changed_alone() -> None:
    config = JAMBA
    shape = read_config(config).shape
    assert read_config(config, vocab=5000).shape.vocab == 5000
    assert read_config(config, depth=shape.depth).shape == shape
    with pytest.raises(DeepwideError, match="width cannot be changed alone"):
        read_config(config, width=2 * shape.width)


@pytest.mark.parametrize(
    ("family", "changes", "sentence"),
    [
        ("qwen3_next", {"layer_types": ["full_attention"]}, "layer_types names 1 layers"),
        ("qwen3_next", {"layer_types": "full"}, "layer_types must list what each layer is"),
        ("nemotron_h", {"layers_block_type": ["mlp", "lstm"]}, "unknown kind 'lstm'"),
        ("nemotron_h", {"layers_block_type": None, "hybrid_override_pattern": "M?"}, "unknown letter"),
        ("jamba", {"attn_layer_period": 0}, "attn_layer_period and expert_layer_period must be at least 1"),
        ("jamba", {"mamba_d_state": "16"}, "mamba_d_state must be a whole number"),
        ("gpt_neo", {"attention_types": 3}, "attention_types must be pairs"),
        ("mamba", {"state_size": -1}, "state_size must be a whole number"),
        ("bamba", {"attn_layer_indices": 4}, "attn_layer_indices must be a list"),
    ],
)
def test_a_bad_config_of_a_readable_family_is_refused_with_a_sentence(
    family: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(DeepwideError, match=sentence):
        read_config(CONFIGS[family] | changes)


def test_the_older_spelling_of_nemotron_h_means_the_same() -> None:
    config = NEMOTRON
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    word = "".join(letters[kind] for kind in config["layers_block_type"])
    old = {key: value for key, value in config.items() if key not in ("layers_block_type", "layer_types")}
    assert read_config(old | {"hybrid_override_pattern": word}).shape == read_config(config).shape
