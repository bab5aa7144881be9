"""Families that are only read: random configs against the models that transformers builds from them, to the parameter.

The configs are those of transformers' own classes, with sizes, flags and kinds of layers drawn anew.
"""

import json
import random
import warnings
from typing import Any

import pytest

from deepwide.errors import DeepwideError
from deepwide.shape import FAMILIES, Shape, flops, inference_memory, read_config, training_memory, write_config
from deepwide.shape.readable import READABLE

torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")

Config = dict[str, Any]
EACH = 8  # configs per family
FLAGS = ("attention_bias", "mlp_bias", "attention_out_bias", "use_bias", "use_conv_bias", "mamba_conv_bias",
         "mamba_proj_bias", "projectors_bias", "mamba_rms_norm", "conv_bias", "qkv_bias", "use_qk_norm",
         "qk_layernorm", "use_post_norm", "multi_query", "lm_head_bias", "block_auto_adjust_ff_dim")  # fmt: skip
SMALL = ("moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size", "state_size",
         "mamba_d_state", "ssm_state_size", "moe_shared_expert_intermediate_size", "intermediate_size_mlp",
         "linear_key_head_dim", "linear_value_head_dim", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim",
         "v_head_dim", "linear_head_dim", "time_step_rank", "mamba_dt_rank", "index_n_heads")  # fmt: skip
TAPS = ("conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim", "conv_L_cache", "conv1d_width")
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk")
NO_BIAS = {"ernie4_5_moe": ("use_bias",), "deepseek_v32": ("mlp_bias",)}  # with experts


def drawn(family: str, seed: int) -> Config:
    """A small config of the family."""
    draw = random.Random(f"{family} {seed}")
    config = json.loads(transformers.CONFIG_MAPPING[family]().to_json_string(use_diff=False))
    keys = dict(READABLE[family].keys)
    depth, kv, groups, head = draw.randint(2, 5), draw.randint(1, 3), draw.randint(1, 3), 4 * draw.randint(1, 4)
    heads = kv * groups
    width = heads * head
    new: Config = {keys["depth"]: depth, keys["width"]: width, keys["heads"]: heads, keys["vocab"]: draw.randint(9, 99)}
    new |= {"num_key_value_heads": kv, "tie_word_embeddings": draw.random() < 0.5, keys["context"]: draw.randint(8, 99)}
    new |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
    if "head_dim" not in READABLE[family].fused and draw.random() < 0.5 and config.get("head_dim") is not None:
        head = 4 * draw.randint(1, 5)
    if "kv_lora_rank" not in config:  # there it is a name of the rotary part
        new["head_dim"] = width // heads if family == "helium" else head  # whose output is square
    if "ff_width" in keys:
        new[keys["ff_width"]] = draw.randint(8, 99)
    new |= {key: draw.random() < 0.5 for key in FLAGS if key in config and key not in NO_BIAS.get(family, ())}
    new |= {key: 2 * draw.randint(2, 12) for key in SMALL if key in config}
    new |= {key: draw.randint(2, 5) for key in TAPS if key in config}
    for key in EXPERTS:
        if key in config:
            new[key] = draw.randint(3, 6)
    new |= {key: draw.randint(1, 3) for key in ACTIVE if key in config}
    new |= {key: draw.randint(1, 2) for key in ("n_shared_experts", "num_shared_experts") if key in config}
    if "first_k_dense_replace" in config:
        new |= {"first_k_dense_replace": draw.randint(0, depth - 1), "mlp_layer_types": None}
    if "qk_rope_head_dim" in config:
        new["qk_rope_head_dim"] = 2 * draw.randint(1, 6)
    if "mlp_layer_types" in config and "first_k_dense_replace" not in config:
        new["mlp_layer_types"] = [draw.choice(["dense", "sparse"]) for _ in range(depth)]
    if "linear_num_key_heads" in config:
        few = draw.randint(1, 3)
        new |= {"linear_num_key_heads": few, "linear_num_value_heads": few * draw.randint(1, 2)}
        if family == "olmo_hybrid":
            new["linear_num_value_heads"] = few
    if "layer_types" in config and family != "nemotron_h":
        new["layer_types"] = None
        if config["layer_types"] is not None:
            named = set(config["layer_types"]) | ({"full_attention"} if family != "deepseek_v32" else set())
            new["layer_types"] = [draw.choice(sorted(named)) for _ in range(depth)]
        if family == "lfm2_moe":
            new["layer_types"] = [draw.choice(["conv", "full_attention"]) for _ in range(depth)]
    new |= own(family, draw, depth, width, heads)
    dropped = {key for key, value in config.items() if value is None} - new.keys()
    dropped |= {"time_step_limit", "attention_layers"}
    return {key: value for key, value in (config | new).items() if key not in dropped}


def own(family: str, draw: random.Random, depth: int, width: int, heads: int) -> Config:
    """What a family wants beside sizes: heads that divide, kinds of layers, its own flags."""
    mamba_heads = draw.choice([n for n in (1, 2, 4) if 2 * width % n == 0])
    groups = draw.choice([n for n in (1, 2) if mamba_heads % n == 0])
    ssm = {"mamba_n_heads": mamba_heads, "mamba_d_head": 2 * width // mamba_heads, "mamba_n_groups": groups}
    some = sorted(draw.sample(range(depth), draw.randint(0, depth)))
    few, several, expand = draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 3)
    sparse = {"decoder_sparse_step": few, "mlp_only_layers": [draw.randint(0, depth)]}
    match family:
        case "mamba" | "falcon_mamba":
            return {"intermediate_size": expand * width, "expand": expand}
        case "mamba2":
            return {"num_heads": mamba_heads, "n_groups": groups, "head_dim": 2 * width // mamba_heads}
        case "bamba":
            return ssm | {"attn_layer_indices": some}
        case "falcon_h1":
            return {"mamba_d_ssm": 48, "mamba_n_heads": mamba_heads, "mamba_d_head": "auto", "mamba_n_groups": 1}
        case "granitemoehybrid":
            return ssm | {"num_local_experts": draw.choice([0, 4])}
        case "jamba":
            attention = {"attn_layer_period": several, "attn_layer_offset": draw.randint(0, several - 1)}
            experts = {"expert_layer_period": expand, "expert_layer_offset": draw.randint(0, expand - 1)}
            return attention | experts | {"num_experts": draw.choice([1, 4])}
        case "nemotron_h":
            listed = [draw.choice(["linear_attention", "moe", "full_attention", "mlp"]) for _ in range(depth)]
            bias = {"mlp_bias": "moe" not in listed and few == 1, "use_bias": several == 1}
            return bias | {
                "layers_block_type": listed,
                "mamba_num_heads": 2 * few,
                "mamba_head_dim": 8,
                "n_groups": few,
            }
        case "recurrent_gemma":
            kinds = ["recurrent", "recurrent", "attention"][draw.randint(0, 2) :]
            return {"lru_width": 4 * heads * several, "block_types": kinds}
        case "diffllama":
            return {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 4 * width}
        case "olmo_hybrid":
            linear = draw.randint(1, depth - 1)
            return {"layer_types": ["linear_attention"] * linear + ["full_attention"] * (depth - linear)}
        case "gpt_neo":
            return {"attention_types": [[["global", "local"], depth // 2], [["local"], depth % 2]]}
        case "ernie4_5_moe":
            where = {"moe_layer_start_index": few - 1, "moe_layer_end_index": draw.choice([-1, depth - 2])}
            return where | {"moe_layer_interval": draw.randint(1, 2), "moe_num_shared_experts": draw.randint(0, 2)}
        case "qwen2_moe" | "qwen3_next":
            return sparse
        case "llama4_text":
            return {"moe_layers": some, "no_rope_layers": None}
        case "smollm3":
            return {"no_rope_layers": [1] * depth}
        case "lfm2":
            return {"full_attn_idxs": None, "block_multiple_of": draw.choice([4, 16])}
        case "lfm2_moe":
            return {"num_dense_layers": draw.randint(0, depth - 1)}
        case "deepseek_v32":
            return {"index_head_dim": 32, "layer_types": None, "qk_rope_head_dim": 8}
        case "dots1":
            return {"n_routed_experts": 5, "num_experts_per_tok": 2, "n_shared_experts": few}
        case "kimi_linear":
            return {"linear_num_heads": several, "num_experts_per_token": 2}
        case "mpt":
            return {"tie_word_embeddings": True}
    return {}


def build(config: Config) -> Any:
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")
        loaded = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(config)
        return transformers.AutoModelForCausalLM.from_config(loaded)


@pytest.mark.parametrize("family", READABLE)
def test_random_configs_count_as_transformers_builds_them(family: str) -> None:
    seen = set()
    for seed in range(EACH):
        config = drawn(family, seed)
        model = build(config)
        assert type(model).__name__ == READABLE[family].architecture
        written = json.loads(model.config.to_json_string(use_diff=False))
        for one in (config, written):
            reading = read_config(json.loads(json.dumps(one)))
            assert (reading.family, reading.exact) == (family, True)
            shape = reading.shape
            assert shape.total_params == sum(p.numel() for p in model.parameters()), (seed, one)
        routed = sum(p.numel() for name, p in model.named_parameters() if _is_routed(name))
        assert shape.params.inactive == (routed * (e.experts - e.active) // e.experts if (e := shape.experts) else 0)
        embedding = sum(p.numel() for p in model.get_input_embeddings().parameters())
        assert shape.params.embedding == embedding
        assert matrices(model) == multiplied(shape), seed
        seen.add(shape.total_params)
        assert flops(shape, 7, "causal").training > 0
        assert training_memory(shape, recompute=True).total <= training_memory(shape).total
        assert inference_memory(shape).total > 0
    assert len(seen) > EACH // 2


def _is_routed(name: str) -> bool:
    return ".experts." in name and "shared" not in name


def matrices(model: Any) -> int:
    """Weights of products in the blocks: parameters of two axes and more that are no look-up, convolution or head."""
    skipped = {id(p) for kind in (torch.nn.Embedding, torch.nn.Conv1d) for m in model.modules() if isinstance(m, kind)
               for p in m.parameters()}  # fmt: skip
    skipped |= {id(p) for p in model.get_output_embeddings().parameters()}
    words = ("A_log", "_bias", "e_score", "q_norm", "k_norm")
    return sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if parameter.dim() > 1 and id(parameter) not in skipped and not any(word in name for word in words)
    )


def multiplied(shape: Shape) -> int:
    """The same by our count: FLOPs of one token without attention's, the head's and states' products."""
    one = flops(shape, 1, "kaplan")
    states = sum(extra.layers * extra.products for extra in shape.extras)
    idle = shape.params.inactive
    if shape.experts and shape.ff_bias:  # gpt-oss: biases of experts are not multiplied
        into = 2 if shape.ff == "gated" else 1
        each = into * shape.experts.width + shape.width
        layers = shape.depth - len(shape.experts.dense_layers)
        idle -= layers * (shape.experts.experts - shape.experts.active) * each
    return one.forward // 2 - states + idle


def test_no_family_is_in_both_tables() -> None:
    assert not FAMILIES.keys() & READABLE.keys()
    assert len(READABLE) >= 60


def test_a_family_that_is_only_read_is_not_written_or_planned() -> None:
    shape = Shape(depth=2, width=64, heads=2)
    with pytest.raises(DeepwideError, match="granite is read and counted, but not written or planned"):
        write_config(shape, "granite")
