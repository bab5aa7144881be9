"""Rules that one key decides: windows, layer kinds, Falcon's key/value heads, OPT's narrow embedding."""

from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import Shape, read_config

SIZES = {
    "num_hidden_layers": 6,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 99,
}


def shape(family: str, **more: Any) -> Shape:
    return read_config({"model_type": family} | SIZES | more).shape


def test_gemma_s_windows_follow_its_pattern() -> None:
    assert shape("gemma2").sliding_layers == (0, 2, 4)
    assert shape("gemma3_text").sliding_layers == (0, 1, 2, 3, 4)
    assert shape("gemma3_text", sliding_window_pattern=2).sliding_layers == (0, 2, 4)
    assert shape("gemma3_text", sliding_window_pattern=0).sliding_layers == ()  # 0 stands for 1: every layer is full


def test_qwen_s_windows_begin_at_a_layer() -> None:
    assert shape("qwen2", sliding_window=8).sliding_layers == ()
    windowed = shape("qwen2", sliding_window=8, use_sliding_window=True, max_window_layers=4)
    assert (windowed.sliding_layers, windowed.window) == ((4, 5), 8)


@pytest.mark.parametrize("kinds", ["full_attention", ["full_attention"], ["linear_attention"] * 6])
def test_layer_kinds_that_do_not_fit_are_refused(kinds: Any) -> None:
    with pytest.raises(DeepwideError, match="layer_types"):
        shape("gemma2", layer_types=kinds)


def test_falcon_s_key_value_heads_are_one_or_as_the_new_architecture_says() -> None:
    assert shape("falcon").kv_heads == 1
    assert shape("falcon", multi_query=False).kv_heads == 4
    assert shape("falcon", new_decoder_architecture=True, num_kv_heads=2).kv_heads == 2


def test_opt_s_embedding_may_be_narrower() -> None:
    assert shape("opt", ffn_dim=128, word_embed_proj_dim=32).embedding_width == 32
    assert shape("opt", ffn_dim=128, word_embed_proj_dim=64).embedding_width is None
