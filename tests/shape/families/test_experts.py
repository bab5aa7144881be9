"""Which layers have experts, and what a config of such a family must say."""

from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import Experts, Shape, family_named, read_config

SIZES = {
    "num_hidden_layers": 6,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 99,
}


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
