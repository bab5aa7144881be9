"""Families that are read and counted exactly but not written, as data: dense ones and mixtures of experts.

Each follows what transformers builds from a config; `tests/shape/test_readable.py` holds that to the parameter.
"""

from collections.abc import Mapping
from typing import Any

from deepwide.errors import DeepwideError, quoted
from deepwide.shape.family import (
    GPT2_KEYS,
    LLAMA_LIKE,
    STANDARD,
    Config,
    Family,
    Fields,
    flag,
    layers,
    read_attention_bias,
    read_deepseek,
    read_layer_types,
    read_llama,
    read_mixtral,
    read_qwen,
    read_qwen3_moe,
    read_window,
    whole,
)
from deepwide.shape.hybrids import HYBRIDS, kinds, shared_expert, size, where
from deepwide.shape.shape import Extra

UNTIED: dict[str, Any] = {"tie_word_embeddings": False}
TIED: dict[str, Any] = {"tie_word_embeddings": True}
PLAIN = {"positions": "rotary", "norm": "layernorm"}
WHOLE = ("kv_heads", "head_dim")


def biased(known: Config, key: str) -> Fields:
    """One key for the biases of attention and feed-forward."""
    bias = flag(known, key)
    return {"qkv_bias": bias, "out_bias": bias, "ff_bias": bias}


def windows(known: Config, fields: Fields, every: int) -> Fields:
    """Windows in all layers but each so many-th one, unless `layer_types` says otherwise."""
    if not known.get("sliding_window"):
        return {}
    return read_layer_types(known, fields, lambda i: bool((i + 1) % every))


def read_helium(known: Config, _: Fields) -> Fields:
    return {"qkv_bias": flag(known, "attention_bias"), "ff_bias": flag(known, "mlp_bias")}


def read_smollm3(known: Config, fields: Fields) -> Fields:
    windowed = windows(known, fields, 4) if flag(known, "use_sliding_window") else {}
    return read_llama(known, fields) | windowed


def read_ernie(known: Config, _: Fields) -> Fields:
    return biased(known, "use_bias")


def read_cwm(known: Config, fields: Fields) -> Fields:
    return {"ff_bias": flag(known, "mlp_bias")} | read_layer_types(known, fields, lambda i: i % 4 > 0)


def read_ministral(known: Config, fields: Fields) -> Fields:
    if known.get("layer_types") is None:
        return read_window(known, fields)
    return read_layer_types(known, fields, lambda _: True)


def read_cohere(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields) | {"qk_norm": "full" if flag(known, "use_qk_norm") else "none"}


def read_cohere2(known: Config, fields: Fields) -> Fields:
    every = whole(known.get("sliding_window_pattern", 4), "sliding_window_pattern", zero=1)
    return read_attention_bias(known, fields) | windows(known, fields, every)


def read_glm(known: Config, _: Fields) -> Fields:
    return {"qkv_bias": flag(known, "attention_bias")}


def read_olmo3(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields) | windows(known, fields, 4)


def read_seed_oss(known: Config, _: Fields) -> Fields:
    return {"qkv_bias": flag(known, "attention_bias"), "out_bias": flag(known, "attention_out_bias"),
            "ff_bias": flag(known, "mlp_bias")}  # fmt: skip


def read_exaone4(known: Config, fields: Fields) -> Fields:
    pattern = known.get("sliding_window_pattern", 4)
    if isinstance(pattern, str):  # such as LLLG
        return windows({"layer_types": None} | dict(known), fields, len(pattern) or 1)
    return windows(known, fields, whole(pattern, "sliding_window_pattern", zero=1))


def read_hyperclovax(known: Config, fields: Fields) -> Fields:
    return read_llama(known, fields) | {"block_norms": 4 if flag(known, "use_post_norm") else 2}


def norms(name: str, number: int, params: int) -> tuple[Extra, ...]:
    """Norms of another width than the stream's, or further learned vectors, in so many layers."""
    return (Extra(name=name, part="norms", layers=number, params=params, stored=params),)


def read_diffllama(known: Config, fields: Fields) -> Fields:
    head = fields.get("head_dim") or size(fields, "width") // max(1, size(fields, "heads"))
    return read_attention_bias(known, fields) | {
        "extras": (Extra(name="lambdas", part="attention", layers=layers(fields), params=4 * whole(head, "head_dim")),)
    }


def read_bitnet(known: Config, fields: Fields) -> Fields:
    width = size(fields, "width") + size(fields, "ff_width")
    return read_attention_bias(known, fields) | {"extras": norms("sub-norms", layers(fields), width)}


def read_starcoder2(known: Config, fields: Fields) -> Fields:
    return biased(known, "use_bias") | read_window(known, fields)


def read_nanochat(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields)


def read_persimmon(known: Config, _: Fields) -> Fields:
    return {"qk_norm": "head" if flag(known, "qk_layernorm") else "none"}


def read_gpt_bigcode(known: Config, fields: Fields) -> Fields:
    return {"kv_heads": 1 if flag(known, "multi_query") else fields["heads"]}


def read_gpt_neo(known: Config, fields: Fields) -> Fields:
    given = known.get("attention_types")
    try:
        listed = [kind for cycle, times in given for _ in range(times) for kind in cycle]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise DeepwideError(f"attention_types must be pairs of kinds and a number, not {quoted(given)}.") from None
    local = where(listed, "local")
    if len(listed) != layers(fields):
        raise DeepwideError(f"attention_types names {len(listed)} layers, but there are {layers(fields)}.")
    return {"window": known.get("window_size"), "sliding_layers": local} if local else {}


def read_hunyuan(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields)


def read_latent(known: Config, fields: Fields) -> Fields:
    """DeepSeek's attention with a dense feed-forward."""
    read = read_deepseek({**known, "first_k_dense_replace": 0, "mlp_bias": False}, fields)
    return {name: value for name, value in read.items() if name != "experts"} | {"ff_bias": flag(known, "mlp_bias")}


def moe(known: Config, width: Any, dense: tuple[int, ...] = (), *, experts: str = "num_experts",
        active: str = "num_experts_per_tok", shared: Any = 0) -> Fields:  # fmt: skip
    """Experts by the keys that hold their number and how many are active."""
    if lacking := [key for key in (experts, active) if known.get(key) is None]:
        raise DeepwideError(f"this config lacks {', '.join(lacking)}.")
    return {"experts": known.get(experts), "active": known.get(active), "width": width, "shared": shared,
            "dense_layers": dense}  # fmt: skip


def read_gpt_oss(known: Config, fields: Fields) -> Fields:
    depth, heads = layers(fields), size(fields, "heads")
    experts = moe(known, fields["ff_width"], experts="num_local_experts")
    extras = (
        Extra(name="sinks", part="attention", layers=depth, params=heads),
        Extra(name="biases of the router", part="feed_forward", layers=depth,
              params=whole(experts["experts"], "num_local_experts")),
    )  # fmt: skip
    windowed = read_layer_types(known, fields, lambda i: i % 2 == 0) if known.get("sliding_window") else {}
    return read_attention_bias(known, fields) | windowed | {"experts": experts, "extras": extras}


def read_qwen2_moe(known: Config, fields: Fields) -> Fields:
    experts = read_qwen3_moe({**known, "use_sliding_window": False}, fields)["experts"]
    routed = layers(fields) - len(experts["dense_layers"])
    extras = shared_expert(known, fields, "shared_expert_intermediate_size", routed, gate=True)
    return {"qkv_bias": flag(known, "qkv_bias"), "experts": experts if routed else None, "extras": extras} | (
        read_qwen(known, fields)
    )


def read_olmoe(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields) | {"experts": moe(known, fields["ff_width"])}


def read_granitemoe(known: Config, fields: Fields) -> Fields:
    experts = moe(known, fields["ff_width"], experts="num_local_experts")
    more = {}
    if known.get("shared_intermediate_size"):
        more = {"extras": shared_expert(known, fields, "shared_intermediate_size", layers(fields), gate=False)}
    return read_attention_bias(known, fields) | {"experts": experts} | more


def read_llama4(known: Config, fields: Fields) -> Fields:
    depth, step = layers(fields), whole(known.get("interleave_moe_layer_step"), "interleave_moe_layer_step", zero=1)
    listed = known.get("moe_layers")
    routed = listed if isinstance(listed, list) else list(range(step - 1, depth, step))
    dense = tuple(i for i in range(depth) if i not in routed)
    experts = moe(known, fields["ff_width"], dense, experts="num_local_experts", shared=1)
    kind = known.get("layer_types")
    chunked = where(kind, "chunked_attention") if isinstance(kind, list) else ()
    windowed = {"window": known.get("attention_chunk_size"), "sliding_layers": chunked} if chunked else {}
    return (
        read_attention_bias(known, fields)
        | {"ff_width": known.get("intermediate_size_mlp"), "experts": experts if len(dense) < depth else None}
        | (windowed if known.get("attention_chunk_size") else {})
    )


def sparse(known: Config, fields: Fields, first: str = "first_k_dense_replace", usual: int = 0) -> tuple[int, ...]:
    """The dense layers: the first few, or those that `mlp_layer_types` names."""
    listed = known.get("mlp_layer_types")
    if listed is not None:
        return where(kinds(known, fields, "mlp_layer_types"), "dense")
    return tuple(range(min(whole(known.get(first, usual), first), layers(fields))))


def read_deepseek_like(known: Config, fields: Fields) -> Fields:
    """DeepSeek's attention and experts, the dense layers listed."""
    read = read_deepseek({"first_k_dense_replace": 0} | dict(known), fields)
    dense = sparse(known, fields, usual=len(read["experts"]["dense_layers"]))
    experts = read["experts"] | {"dense_layers": dense}
    return read | {"experts": experts if len(dense) < layers(fields) else None}


def read_deepseek_v32(known: Config, fields: Fields) -> Fields:
    d, h, head = size(fields, "width"), size(known, "index_n_heads"), size(known, "index_head_dim")
    matrices = size(known, "q_lora_rank") * h * head + d * head + d * h
    index = Extra(name="indexer", part="attention", layers=layers(fields), params=matrices + 2 * head,
                  matrices=matrices, stored=(h + 2) * head + h)  # fmt: skip
    return read_deepseek_like(known, fields) | {"extras": (index,)}


def read_ernie_moe(known: Config, fields: Fields) -> Fields:
    depth, experts = layers(fields), size(known, "moe_num_experts")
    start, last = size(known, "moe_layer_start_index"), known.get("moe_layer_end_index")
    end = depth - 1 if last == -1 else whole(last, "moe_layer_end_index")
    step = whole(known.get("moe_layer_interval"), "moe_layer_interval", zero=1)
    routed = [i for i in range(depth) if (i + 1) % step == 0 and start <= i <= end]
    dense = tuple(i for i in range(depth) if i not in routed)
    shared = known.get("moe_num_shared_experts", 0)
    mixture = moe(known, known.get("moe_intermediate_size"), dense, experts="moe_num_experts", active="moe_k",
                  shared=shared)  # fmt: skip
    bias = biased(known, "use_bias")
    if bias["ff_bias"] and routed:
        raise DeepwideError("use_bias is not supported for Ernie configs with experts: no published model has it.")
    statics = Extra(name="correction of the router", part="feed_forward", layers=len(routed), params=experts)
    return bias | ({"experts": mixture, "extras": (statics,)} if routed else {})


def read_dots1(known: Config, fields: Fields) -> Fields:
    dense = tuple(range(min(size(known, "first_k_dense_replace"), layers(fields))))
    experts = moe(known, known.get("moe_intermediate_size"), dense, experts="n_routed_experts",
                  shared=known.get("n_shared_experts", 0))  # fmt: skip
    kind = known.get("layer_types")
    windowed = read_layer_types(known, fields, lambda _: False) if isinstance(kind, list) else {}
    return read_attention_bias(known, fields) | windowed | {"experts": experts if len(dense) < layers(fields) else None}


def read_hunyuan_moe(known: Config, fields: Fields) -> Fields:
    top, experts = known.get("moe_topk"), known.get("num_experts")
    if isinstance(top, list) or isinstance(experts, list):
        raise DeepwideError("moe_topk and num_experts per layer, as lists, are not supported for Hunyuan configs.")
    mixture = moe(known, fields["ff_width"], active="moe_topk", shared=1)
    return read_attention_bias(known, fields) | {"experts": mixture}


def read_exaone_moe(known: Config, fields: Fields) -> Fields:
    dense = sparse(known, fields, usual=1)
    experts = moe(known, known.get("moe_intermediate_size"), dense, shared=known.get("num_shared_experts", 0))
    return read_exaone4(known, fields) | {"experts": experts if len(dense) < layers(fields) else None}


def read_solar_open(known: Config, _: Fields) -> Fields:
    experts = moe(known, known.get("moe_intermediate_size"), experts="n_routed_experts",
                  shared=known.get("n_shared_experts", 0))  # fmt: skip
    return {"qkv_bias": flag(known, "attention_bias"), "experts": experts}


def read_phimoe(known: Config, fields: Fields) -> Fields:
    bias = read_attention_bias(known, fields)
    return bias | read_mixtral(known, fields) | {"head_bias": flag(known, "lm_head_bias")}


def _like(name: str, architecture: str, about: str, reads: Any = read_llama, /, fixed: Fields | None = None,
          **defaults: Any) -> Family:  # fmt: skip
    """A family that differs from Llama in a few fields and defaults."""
    return Family(name, architecture, about, LLAMA_LIKE | (fixed or {}), UNTIED | defaults, reads=reads)


HEAD_NORM, FULL_NORM, PLAIN_FF = {"qk_norm": "head"}, {"qk_norm": "full"}, {"ff": "plain"}
_LATENT: dict[str, Any] = {"kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128,
           "qk_nope_head_dim": 128}  # fmt: skip

READABLE: Mapping[str, Family] = {
    family.name: family
    for family in (
        _like("granite", "GraniteForCausalLM", "Granite 3"),
        _like("smollm3", "SmolLM3ForCausalLM", "SmolLM 3", read_smollm3, num_key_value_heads=4,
              tie_word_embeddings=True),
        _like("helium", "HeliumForCausalLM", "Helium", read_helium, head_dim=128, num_key_value_heads=20),
        _like("ernie4_5", "Ernie4_5ForCausalLM", "ERNIE 4.5", read_ernie, head_dim=128, num_key_value_heads=2,
              tie_word_embeddings=True),
        _like("cwm", "CwmForCausalLM", "CWM", read_cwm, head_dim=128, num_key_value_heads=8, sliding_window=8192),
        _like("ministral", "MinistralForCausalLM", "Ministral", read_ministral, num_key_value_heads=8,
              sliding_window=4096),
        _like("ministral3", "Ministral3ForCausalLM", "Ministral 3", read_window, num_key_value_heads=8, head_dim=128),
        _like("vaultgemma", "VaultGemmaForCausalLM", "VaultGemma", read_olmo3, num_key_value_heads=4, head_dim=256,
              tie_word_embeddings=True),
        _like("cohere", "CohereForCausalLM", "Command R", read_cohere, {"block_norms": 1}, tie_word_embeddings=True),
        _like("cohere2", "Cohere2ForCausalLM", "Command R7B, A", read_cohere2, {"block_norms": 1},
              tie_word_embeddings=True, sliding_window=4096),
        _like("glm", "GlmForCausalLM", "GLM 4 (2024)", read_glm, num_key_value_heads=2, head_dim=128,
              attention_bias=True),
        _like("glm4", "Glm4ForCausalLM", "GLM 4 (2025)", read_glm, {"block_norms": 4}, num_key_value_heads=2,
              head_dim=128, attention_bias=True),
        _like("olmo3", "Olmo3ForCausalLM", "OLMo 3", read_olmo3, FULL_NORM, sliding_window=4096),
        _like("seed_oss", "SeedOssForCausalLM", "Seed-OSS", read_seed_oss, num_key_value_heads=8, head_dim=128,
              attention_bias=True),
        _like("exaone4", "Exaone4ForCausalLM", "EXAONE 4", read_exaone4, HEAD_NORM, sliding_window=4096),
        _like("hyperclovax", "HyperCLOVAXForCausalLM", "HyperCLOVA X", read_hyperclovax, use_post_norm=True),
        _like("diffllama", "DiffLlamaForCausalLM", "DiffLlama", read_diffllama),
        _like("bitnet", "BitNetForCausalLM", "BitNet", read_bitnet, num_key_value_heads=5),
        _like("starcoder2", "Starcoder2ForCausalLM", "StarCoder 2", read_starcoder2,
              PLAIN_FF | {"norm": "layernorm"}, num_key_value_heads=2, use_bias=True, tie_word_embeddings=True),
        _like("arcee", "ArceeForCausalLM", "AFM", read_llama, PLAIN_FF),
        _like("apertus", "ApertusForCausalLM", "Apertus", read_attention_bias,
              PLAIN_FF | HEAD_NORM | {"residual_scales": 2}),
        _like("jais2", "Jais2ForCausalLM", "Jais 2", read_llama, PLAIN_FF | {"norm": "layernorm"},
              attention_bias=True, mlp_bias=True),
        _like("nanochat", "NanoChatForCausalLM", "nanochat (norms without parameters)", read_nanochat,
              PLAIN_FF | {"norm": "none"}),
        _like("nemotron", "NemotronForCausalLM", "Nemotron 4, Minitron", read_llama, PLAIN_FF | {"norm": "layernorm"}),
        Family("persimmon", "PersimmonForCausalLM", "Persimmon", PLAIN, UNTIED | {"qk_layernorm": True}, fused=WHOLE,
               reads=read_persimmon),
        Family("gpt_bigcode", "GPTBigCodeForCausalLM", "StarCoder, SantaCoder", {}, TIED | {"multi_query": True},
               keys=GPT2_KEYS, fused=WHOLE, ff_may_be_absent=True, reads=read_gpt_bigcode),
        Family("gpt_neo", "GPTNeoForCausalLM", "GPT-Neo", {"qkv_bias": False},
               TIED | {"window_size": 256, "max_position_embeddings": 2048,
                       "attention_types": [[["global", "local"], 12]]},
               keys=STANDARD | {"depth": "num_layers", "heads": "num_heads"}, fused=WHOLE, ff_may_be_absent=True,
               reads=read_gpt_neo),
        Family("codegen", "CodeGenForCausalLM", "CodeGen",
               PLAIN | {"block_norms": 1, "qkv_bias": False, "out_bias": False, "head_bias": True}, UNTIED,
               keys=GPT2_KEYS, fused=WHOLE, ff_may_be_absent=True),
        Family("mpt", "MptForCausalLM", "MPT",
               {"positions": "alibi", "qkv_bias": False, "out_bias": False, "ff_bias": False, "norm": "rmsnorm"},
               TIED | {"max_seq_len": 2048},
               keys=STANDARD | {"depth": "n_layers", "width": "d_model", "heads": "n_heads", "context": "max_seq_len"},
               fused=(*WHOLE, "ff_width"), ff_may_be_absent=True),
        Family("xglm", "XGLMForCausalLM", "XGLM", {"positions": "none"}, TIED,
               keys=STANDARD | {"depth": "num_layers", "width": "d_model", "heads": "attention_heads",
                                "ff_width": "ffn_dim"}, fused=WHOLE),
        Family("biogpt", "BioGptForCausalLM", "BioGPT", {"extra_positions": 2}, TIED, fused=WHOLE),
        _like("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", "Hunyuan (dense)", read_hunyuan, HEAD_NORM),
        _like("minicpm3", "MiniCPM3ForCausalLM", "MiniCPM 3", read_latent, kv_lora_rank=256, q_lora_rank=768,
              qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, tie_word_embeddings=True),
        _like("youtu", "YoutuForCausalLM", "Youtu", read_latent, **_LATENT | TIED),
        _like("gpt_oss", "GptOssForCausalLM", "gpt-oss", read_gpt_oss, {"ff_bias": True}, num_key_value_heads=8,
              head_dim=64, num_local_experts=128, num_experts_per_tok=4, sliding_window=128, attention_bias=True),
        _like("qwen2_moe", "Qwen2MoeForCausalLM", "Qwen 1.5 and 2 with experts", read_qwen2_moe,
              num_key_value_heads=16, num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
              shared_expert_intermediate_size=5632, decoder_sparse_step=1, qkv_bias=True),
        _like("olmoe", "OlmoeForCausalLM", "OLMoE", read_olmoe, FULL_NORM, num_experts=64, num_experts_per_tok=8,
              intermediate_size=2048),
        _like("flex_olmo", "FlexOlmoForCausalLM", "FlexOlmo", read_olmoe, FULL_NORM, num_experts=7,
              num_experts_per_tok=5),
        _like("granitemoe", "GraniteMoeForCausalLM", "Granite 3 with experts", read_granitemoe, num_local_experts=8,
              num_experts_per_tok=2),
        _like("granitemoeshared", "GraniteMoeSharedForCausalLM", "Granite with a shared expert", read_granitemoe,
              num_local_experts=8, num_experts_per_tok=2),
        _like("llama4_text", "Llama4ForCausalLM", "Llama 4 (the language model)", read_llama4, num_key_value_heads=8,
              head_dim=128, num_local_experts=16, num_experts_per_tok=1, intermediate_size=8192,
              intermediate_size_mlp=16384, interleave_moe_layer_step=1, attention_chunk_size=8192),
        _like("deepseek_v32", "DeepseekV32ForCausalLM", "DeepSeek-V3.2", read_deepseek_v32, index_head_dim=128,
              index_n_heads=64, first_k_dense_replace=3, n_routed_experts=256, n_shared_experts=1,
              num_experts_per_tok=8, moe_intermediate_size=2048, **_LATENT),
        _like("glm4_moe_lite", "Glm4MoeLiteForCausalLM", "GLM 4.7 Flash", read_deepseek_like,
              **_LATENT | {"q_lora_rank": 768, "qk_nope_head_dim": 192, "v_head_dim": 256},
              first_k_dense_replace=1, n_routed_experts=64, n_shared_experts=1, num_experts_per_tok=4,
              moe_intermediate_size=1536),
        _like("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", "ERNIE 4.5 with experts", read_ernie_moe,
              num_key_value_heads=4, moe_num_experts=64, moe_k=6, moe_num_shared_experts=2,
              moe_intermediate_size=1536, moe_layer_start_index=1, moe_layer_end_index=-1, moe_layer_interval=1,
              tie_word_embeddings=True),
        _like("dots1", "Dots1ForCausalLM", "dots.llm1", read_dots1, HEAD_NORM, num_key_value_heads=32,
              first_k_dense_replace=0, moe_intermediate_size=1408),
        _like("minimax_m2", "MiniMaxM2ForCausalLM", "MiniMax M2", read_mixtral, FULL_NORM, num_key_value_heads=8,
              head_dim=128, num_local_experts=256, num_experts_per_tok=8, intermediate_size=1536),
        _like("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", "Hunyuan with experts", read_hunyuan_moe, HEAD_NORM),
        _like("exaone_moe", "ExaoneMoeForCausalLM", "EXAONE with experts", read_exaone_moe, HEAD_NORM,
              sliding_window=4096, num_experts=64, num_experts_per_tok=8, num_shared_experts=1,
              moe_intermediate_size=1024),
        _like("solar_open", "SolarOpenForCausalLM", "Solar Open", read_solar_open, num_key_value_heads=8,
              head_dim=128, n_routed_experts=128, n_shared_experts=1, num_experts_per_tok=8,
              moe_intermediate_size=1280, intermediate_size=10240),
        _like("phimoe", "PhimoeForCausalLM", "Phi-3.5 with experts", read_phimoe, {"norm": "layernorm"},
              num_key_value_heads=8, num_local_experts=16, num_experts_per_tok=2, intermediate_size=6400),
        *HYBRIDS.values(),
    )
}  # fmt: skip
