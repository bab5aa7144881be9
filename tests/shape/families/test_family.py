"""Family: what a config lacks is named, what a family cannot express is refused."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import FAMILIES, Shape, family_named
from deepwide.shape.families.family import flag, layers, whole


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
    assert experts == {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"}
    grouped = {name for name, family in FAMILIES.items() if family.free_kv}
    assert {"llama", "falcon", "qwen3", "stablelm", "phi"} <= grouped
    assert not grouped & {"gpt2", "gptj", "gpt_neox", "opt", "bloom"}


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(DeepwideError, match=r"no family 'lama': did you mean 'llama'\?$"):
        family_named("lama")
