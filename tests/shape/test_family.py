"""Family: what a config lacks is named, what a family cannot express is refused."""

from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import FAMILIES, Experts, Shape, family_named, read_config
from deepwide.shape.family import flag, layers, whole


def test_a_whole_number_is_one_within_its_limits() -> None:
    assert (whole(3, "n"), whole(0, "n"), whole(0, "n", zero=1)) == (3, 0, 1)
    for wrong in (-1, 1.0, True, "3", None, 10**10):
        with pytest.raises(DeepwideError, match="n must be a whole number from 0 to"):
            whole(wrong, "n")
    with pytest.raises(DeepwideError, match="the number of layers"):
        layers({"depth": 100_001})


def test_a_flag_is_true_or_false() -> None:
    assert (flag({"bias": True}, "bias"), flag({}, "bias")) == (True, False)
    with pytest.raises(DeepwideError, match="bias must be true or false, not '1'"):
        flag({"bias": 1}, "bias")


def test_a_shape_that_a_family_cannot_express_is_refused_with_the_reason() -> None:
    with pytest.raises(DeepwideError, match=r"the llama family cannot express this shape: .*norm is 'layernorm'"):
        family_named("llama").write(Shape(depth=2, width=128))


def test_what_a_family_is_is_data_and_not_a_word_in_its_description() -> None:
    experts = {name for name, family in FAMILIES.items() if family.has_experts}
    assert experts == {"mixtral", "qwen3_moe", "glm4_moe", "deepseek_v2", "deepseek_v3"}
    grouped = {name for name, family in FAMILIES.items() if family.free_kv}
    assert {"llama", "falcon", "qwen3", "stablelm", "phi"} <= grouped
    assert not grouped & {"gpt2", "gptj", "gpt_neox", "opt", "bloom"}


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(DeepwideError, match=r"no family 'lama': did you mean 'llama'\?$"):
        family_named("lama")


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


def experts(family: str, **more: Any) -> Experts:
    shape = read_config({"model_type": family} | SIZES | more).shape
    assert shape.experts is not None
    return shape.experts


def test_every_layer_of_mixtral_has_experts_as_wide_as_its_feed_forward() -> None:
    assert experts("mixtral") == Experts(experts=8, active=2, width=128)


def test_qwen_s_dense_layers_are_listed_or_come_in_steps() -> None:
    assert experts("qwen3_moe").dense_layers == ()
    assert experts("qwen3_moe", mlp_only_layers=[1, 3]).dense_layers == (1, 3)
    assert experts("qwen3_moe", decoder_sparse_step=2).dense_layers == (0, 2, 4)
    assert experts("qwen3_moe", decoder_sparse_step=0).dense_layers == ()  # 0 stands for 1


def test_deepseek_s_first_layers_are_dense() -> None:
    assert experts("deepseek_v3").dense_layers == (0, 1, 2)
    assert experts("deepseek_v3", first_k_dense_replace=99).dense_layers == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe", "deepseek_v3"])
def test_a_shape_without_experts_is_refused(family: str) -> None:
    with pytest.raises(DeepwideError, match=r"has experts, this shape does not|cannot express"):
        family_named(family).write(Shape(depth=2, width=128))
