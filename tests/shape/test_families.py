"""Every family against the models transformers builds from the config we write, to the parameter."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape import FAMILIES, Shape, flops, read_config, write_config

torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")

FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
WINDOW_FOR_ALL = {"mistral", "mixtral", "phi3", "qwen3_moe"}
WITH_EXPERTS = {name for name, family in FAMILIES.items() if family.has_experts}
WINDOW_BY_LAYER = {"qwen2", "qwen3", "gemma2", "gemma3_text"}


@st.composite
def shapes(draw: st.DrawFn, family: str) -> Shape:
    """A random small shape of the family, every option it has exercised."""
    fam = FAMILIES[family]
    depth, kv_heads, groups = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    half = 4 * draw(st.integers(1, 3))  # a quarter of a head turns in some families, and it must be even
    heads, head_dim = kv_heads * groups, 2 * half
    width = heads * head_dim
    fields: dict[str, Any] = dict(fam.fixed)
    fields |= {"depth": depth, "width": width, "heads": heads, "vocab": draw(st.integers(7, 99))}
    fields |= {"context": draw(st.integers(4, 40)), "tied": draw(st.booleans())}
    if "kv_heads" not in fam.fused:
        fields["kv_heads"] = kv_heads
    if "head_dim" not in fam.fused:
        fields["head_dim"] = 2 * draw(st.integers(2, 12))
    if "ff_width" not in fam.fused:
        fields["ff_width"] = draw(st.integers(3, 80))
    bias = draw(st.booleans())
    if family in {"llama", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3_text", "olmo", "olmo2", "gpt_neox"}:
        fields |= {"qkv_bias": bias, "out_bias": bias}
    if family == "llama":
        fields["ff_bias"] = draw(st.booleans())
    if family in WINDOW_FOR_ALL | WINDOW_BY_LAYER and draw(st.booleans()):
        chosen = draw(st.sets(st.integers(0, depth - 1), min_size=1)) if family in WINDOW_BY_LAYER else range(depth)
        fields |= {"window": draw(st.integers(2, 20)), "sliding_layers": tuple(sorted(chosen))}
    if family in WITH_EXPERTS:
        experts = draw(st.integers(2, 6))
        moe = {"experts": experts, "active": draw(st.integers(1, experts)), "width": fields["ff_width"]}
        if family == "qwen3_moe":
            moe |= {"width": draw(st.integers(3, 30))}
            moe |= {"dense_layers": tuple(sorted(draw(st.sets(st.integers(0, depth - 1)))))}
        if family.startswith("deepseek") or family == "glm4_moe":
            moe |= {"width": draw(st.integers(3, 30)), "shared": draw(st.integers(1, 3))}
            moe |= {"dense_layers": tuple(range(draw(st.integers(0, depth))))}
        fields["experts"] = moe
    if family.startswith("deepseek"):
        latent: dict[str, Any] = {
            "kv_rank": draw(st.integers(2, 20)),
            "query_rank": draw(st.none() | st.integers(2, 20)),
        }
        latent |= {"rope_dim": 2 * half, "nope_dim": draw(st.integers(2, 16)), "value_dim": draw(st.integers(2, 16))}
        fields |= {"latent": latent, "head_dim": latent["rope_dim"] + latent["nope_dim"]}
        fields |= {"qkv_bias": bias, "out_bias": bias}
    if family == "opt":
        fields |= {"qkv_bias": bias, "out_bias": bias, "ff_bias": bias, "final_norm": draw(st.booleans())}
        fields |= {
            "embedding_width": draw(st.none() | st.just(width + 3)),
            "norm": draw(st.sampled_from(["layernorm", "none"])),
        }
    if family == "falcon":
        fields |= {"kv_heads": kv_heads, "block_norms": draw(st.integers(1, 2))}
        fields |= {"qkv_bias": bias, "out_bias": bias, "ff_bias": bias}
        fields |= {"positions": draw(st.sampled_from(["rotary", "alibi"]))}
    if family == "glm4_moe":
        fields |= {"qkv_bias": bias, "qk_norm": draw(st.sampled_from(["none", "head"]))}
    if family == "phi":
        fields["qk_norm"] = draw(st.sampled_from(["none", "head"]))
    if family == "stablelm":
        fields |= {"qkv_bias": bias, "block_norms": draw(st.integers(1, 2))}
    return Shape.of(**fields)


def build(config: dict[str, Any], **more: Any) -> Any:
    """The transformers model of a config, without memory."""
    loaded = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if k != "architectures"})
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(loaded, **more)


def count(model: Any, *, blocks_only: bool = False) -> int:
    outside = set()
    if blocks_only:
        words = ("embed", "wte", "wpe", "lm_head", "project_in", "project_out", "word_embeddings")
        outside = {id(p) for name, p in model.named_parameters() if any(word in name for word in words)}
    return sum(p.numel() for p in model.parameters() if id(p) not in outside)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_shapes_count_as_transformers_builds_them(family: str) -> None:
    @FEW
    @given(shape=shapes(family))
    def check(shape: Shape) -> None:
        config = write_config(shape, family)
        model = build(config)
        assert type(model).__name__ == config["architectures"][0]
        assert count(model) == shape.total_params
        assert count(model, blocks_only=True) == shape.block_params

    check()


@pytest.mark.parametrize("family", FAMILIES)
def test_write_read_write_is_the_identity(family: str) -> None:
    @FEW
    @given(shape=shapes(family))
    def check(shape: Shape) -> None:
        config = write_config(shape, family)
        reading = read_config(json.loads(json.dumps(config)))
        assert reading.shape == shape
        assert reading.family == family
        assert write_config(reading.shape, family) == config

    check()


@pytest.mark.parametrize("family", FAMILIES)
def test_what_transformers_writes_reads_back_to_the_same_shape(family: str) -> None:
    """transformers' own config.json, with all its other keys and its own defaults, is the file users have."""

    @FEW
    @given(shape=shapes(family))
    def check(shape: Shape) -> None:
        config = write_config(shape, family)
        loaded = transformers.AutoConfig.for_model(**{k: v for k, v in config.items() if k != "architectures"})
        assert read_config(json.loads(loaded.to_json_string(use_diff=False))).shape == shape
        # The hub's files leave out keys equal to the class default.
        assert read_config(json.loads(loaded.to_json_string(use_diff=True)) | _needed(config)).shape == shape

    check()


def _needed(config: dict[str, Any]) -> dict[str, Any]:
    """Sizes are always in a real file; a random shape may happen to equal a default and be left out."""
    words = ("size", "num_", "n_", "vocab", "ffn_dim", "head_dim")
    return {k: v for k, v in config.items() if k.startswith(words) or k in ("hidden_size", "vocab_size", "ffn_dim")}


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - WITH_EXPERTS))
def test_flops_equal_torchs_counter_on_the_meta_device(family: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    @settings(FEW, max_examples=5)
    @given(shape=shapes(family), batch=st.integers(1, 3))
    def check(shape: Shape, batch: int) -> None:
        model = build(write_config(shape, family), attn_implementation="eager").train()
        T = math.ceil(shape.context / 2)
        tokens = torch.zeros(batch, T, dtype=torch.long, device="meta")
        # Without a ready mask most models look into position ids for packed sequences, which meta tensors cannot.
        mask = None if family in {"bloom", "falcon", "opt"} else torch.zeros(batch, 1, T, T, device="meta")
        with FlopCounterMode(display=False) as counter:
            out = model(tokens, use_cache=False, attention_mask=mask)
        assert counter.get_total_flops() == batch * flops(shape, T).forward
        with FlopCounterMode(display=False) as counter:
            out.logits.sum().backward()
        assert counter.get_total_flops() == batch * (flops(shape, T).training - flops(shape, T).forward)

    check()


@pytest.mark.parametrize(
    ("family", "shared"), [(None, 0), (None, 1), ("mixtral", 0), ("qwen3_moe", 0), ("glm4_moe", 2)]
)
def test_a_saved_plan_with_experts_is_built_to_the_counted_parameters(family: str | None, shared: int) -> None:
    from deepwide import plan

    for budget, experts, active, granularity in (("20M", 8, 2, None), ("1.3B", 64, 8, None), ("700M", 32, 4, 12.0)):
        options = {"experts": experts, "active": active, "shared": shared, "granularity": granularity}
        answer = plan(budget, family=family, kv_heads=2, **options)
        model = build(write_config(answer.shape, answer.family))
        assert count(model) == answer.params.total == answer.mixture.total_params
        assert count(model, blocks_only=True) == answer.params.block
        routed = sum(p.numel() for name, p in model.named_parameters() if ".experts." in name)
        assert routed == answer.mixture.routed_params
        assert answer.params.active == answer.params.total - routed * (experts - active) // experts


def test_a_shape_the_family_cannot_express_is_refused_with_the_reason() -> None:
    with pytest.raises(DeepwideError, match=r"gpt2 family cannot express.*positions is 'rotary'"):
        write_config(Shape(depth=2, width=64, heads=2, positions="rotary"), "gpt2")
    with pytest.raises(DeepwideError, match="no family 'lama': did you mean 'llama'"):
        write_config(Shape(depth=2, width=64, heads=2), "lama")
