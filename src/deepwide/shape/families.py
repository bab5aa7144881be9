"""The families that are read and written, as data. A new one is an entry here and a strategy in its test.

Families that are only read are in readable.py and hybrids.py.
"""

from collections.abc import Mapping

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.shape.family import (
    GPT2_KEYS,
    LLAMA_LIKE,
    STANDARD,
    Family,
    read_attention_bias,
    read_deepseek,
    read_falcon,
    read_gemma2,
    read_gemma3,
    read_glm4_moe,
    read_llama,
    read_mixtral,
    read_opt,
    read_phi,
    read_qwen,
    read_qwen3,
    read_qwen3_moe,
    read_stablelm,
    read_window,
    write_attention_bias,
    write_deepseek,
    write_falcon,
    write_gemma,
    write_glm4_moe,
    write_gptj,
    write_llama,
    write_mixtral,
    write_opt,
    write_phi,
    write_phi3,
    write_qwen,
    write_qwen3,
    write_qwen3_moe,
    write_stablelm,
    write_window,
)

EXPERT_KEYS = ("num_experts_per_tok",)
_WHOLE = ("kv_heads", "head_dim")  # one key/value head per head, the width split among them
_UNTIED = {"tie_word_embeddings": False}
_TIED = {"tie_word_embeddings": True}
_PLAIN = {"positions": "rotary", "norm": "layernorm"}

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("llama", "LlamaForCausalLM", "Llama 1–3, SmolLM, TinyLlama, Yi, DeepSeek-LLM", LLAMA_LIKE,
               _UNTIED | {"max_position_embeddings": 2048}, square=True, reads=read_llama, writes=write_llama),
        Family("mistral", "MistralForCausalLM", "Mistral", LLAMA_LIKE,
               _UNTIED | {"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072},
               reads=read_window, writes=write_window),
        Family("mixtral", "MixtralForCausalLM", "Mixtral", LLAMA_LIKE,
               _UNTIED | {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
                          "intermediate_size": 14336, "max_position_embeddings": 131072},
               has_experts=True, needs=EXPERT_KEYS, reads=read_mixtral, writes=write_mixtral),
        Family("qwen2", "Qwen2ForCausalLM", "Qwen 1.5, 2, 2.5", LLAMA_LIKE | {"qkv_bias": True},
               _UNTIED | {"num_key_value_heads": 32, "max_position_embeddings": 32768},
               reads=read_qwen, writes=write_qwen),
        Family("qwen3", "Qwen3ForCausalLM", "Qwen 3", LLAMA_LIKE | {"qk_norm": "head"},
               _UNTIED | {"num_key_value_heads": 32, "head_dim": 128, "max_position_embeddings": 32768},
               reads=read_qwen3, writes=write_qwen3),
        Family("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen 3 with experts", LLAMA_LIKE | {"qk_norm": "head"},
               _UNTIED | {"num_key_value_heads": 4, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
                          "decoder_sparse_step": 1, "max_position_embeddings": 32768},
               has_experts=True, needs=EXPERT_KEYS, reads=read_qwen3_moe, writes=write_qwen3_moe),
        Family("gemma", "GemmaForCausalLM", "Gemma 1", LLAMA_LIKE,
               _TIED | {"num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192},
               reads=read_attention_bias, writes=write_attention_bias),
        Family("gemma2", "Gemma2ForCausalLM", "Gemma 2", LLAMA_LIKE | {"block_norms": 4},
               _TIED | {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
                        "max_position_embeddings": 8192},
               square=True, reads=read_gemma2, writes=write_gemma),
        Family("gemma3_text", "Gemma3ForCausalLM", "Gemma 3 (the language model)",
               LLAMA_LIKE | {"block_norms": 4, "qk_norm": "head"},
               _TIED | {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
                        "vocab_size": 262208, "max_position_embeddings": 131072},
               square=True, reads=read_gemma3, writes=write_gemma),
        Family("olmo", "OlmoForCausalLM", "OLMo 1 (norms without parameters)", LLAMA_LIKE | {"norm": "none"},
               _UNTIED | {"max_position_embeddings": 2048}, reads=read_attention_bias, writes=write_attention_bias),
        Family("olmo2", "Olmo2ForCausalLM", "OLMo 2", LLAMA_LIKE | {"qk_norm": "full"},
               _UNTIED | {"max_position_embeddings": 2048}, reads=read_attention_bias, writes=write_attention_bias),
        Family("phi3", "Phi3ForCausalLM", "Phi-3, Phi-4", LLAMA_LIKE,
               _UNTIED | {"max_position_embeddings": 4096}, reads=read_window, writes=write_phi3),
        Family("glm4_moe", "Glm4MoeForCausalLM", "GLM 4.5 (experts, some of them shared)", LLAMA_LIKE,
               _UNTIED | {"num_key_value_heads": 8, "n_routed_experts": 128, "n_shared_experts": 1,
                          "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
                          "intermediate_size": 10944, "max_position_embeddings": 131072},
               has_experts=True, shared_experts=True, needs=EXPERT_KEYS, reads=read_glm4_moe, writes=write_glm4_moe),
        Family("deepseek_v2", "DeepseekV2ForCausalLM", "DeepSeek-V2", LLAMA_LIKE,
               _UNTIED | {"first_k_dense_replace": 0, "kv_lora_rank": 512, "n_routed_experts": 64,
                          "n_shared_experts": 2, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                          "moe_intermediate_size": 1407, "max_position_embeddings": 2048},
               fused=_WHOLE, free_kv=False, has_experts=True, shared_experts=True, needs=EXPERT_KEYS, square=True,
               reads=read_deepseek, writes=write_deepseek),
        Family("deepseek_v3", "DeepseekV3ForCausalLM", "DeepSeek-V3, R1", LLAMA_LIKE,
               _UNTIED | {"first_k_dense_replace": 3, "kv_lora_rank": 512, "n_routed_experts": 256,
                          "n_shared_experts": 1, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                          "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "max_position_embeddings": 4096},
               fused=_WHOLE, free_kv=False, has_experts=True, shared_experts=True, needs=EXPERT_KEYS,
               reads=read_deepseek, writes=write_deepseek),
        Family("stablelm", "StableLmForCausalLM", "StableLM 2, 3B-4E1T",
               LLAMA_LIKE | {"norm": "layernorm"},
               _UNTIED | {"num_key_value_heads": 32, "max_position_embeddings": 4096},
               fused=("head_dim",), reads=read_stablelm, writes=write_stablelm),
        Family("gpt2", "GPT2LMHeadModel", "GPT-2, GPT-3's shapes", {}, _TIED | {"n_positions": 1024},
               keys=GPT2_KEYS, free_kv=False, fused=_WHOLE, square=True, ff_may_be_absent=True),
        Family("gptj", "GPTJForCausalLM", "GPT-J",
               _PLAIN | {"block_norms": 1, "qkv_bias": False, "out_bias": False, "head_bias": True},
               _UNTIED | {"n_positions": 2048}, keys=GPT2_KEYS, free_kv=False, fused=_WHOLE, square=True,
               ff_may_be_absent=True, writes=write_gptj),
        Family("gpt_neox", "GPTNeoXForCausalLM", "GPT-NeoX, Pythia", _PLAIN,
               _UNTIED | {"attention_bias": True, "max_position_embeddings": 2048},
               free_kv=False, fused=_WHOLE, square=True, reads=read_attention_bias, writes=write_attention_bias),
        Family("opt", "OPTForCausalLM", "OPT", {"extra_positions": 2},
               _TIED | {"enable_bias": True, "layer_norm_elementwise_affine": True, "do_layer_norm_before": True,
                        "max_position_embeddings": 2048},
               keys=STANDARD | {"ff_width": "ffn_dim"}, free_kv=False, fused=_WHOLE, square=True,
               reads=read_opt, writes=write_opt),
        Family("bloom", "BloomForCausalLM", "BLOOM", {"positions": "alibi", "embedding_norm": True},
               _TIED | {"seq_length": 2048},
               keys=STANDARD | {"depth": "n_layer", "heads": "n_head", "context": "seq_length"},
               free_kv=False, fused=(*_WHOLE, "ff_width"), square=True, ff_may_be_absent=True),
        Family("falcon", "FalconForCausalLM", "Falcon 7B, 40B, 180B",
               {"positions": "rotary", "qkv_bias": False, "out_bias": False, "ff_bias": False},
               _TIED | {"bias": False, "new_decoder_architecture": False, "parallel_attn": True, "multi_query": True,
                        "alibi": False, "max_position_embeddings": 2048},
               keys=STANDARD | {"ff_width": "ffn_hidden_size"}, fused=_WHOLE, square=True, ff_may_be_absent=True,
               reads=read_falcon, writes=write_falcon),
        Family("phi", "PhiForCausalLM", "Phi-1, 1.5, 2", _PLAIN | {"block_norms": 1, "head_bias": True},
               _UNTIED | {"max_position_embeddings": 2048}, fused=("head_dim",), reads=read_phi, writes=write_phi),
    )
}  # fmt: skip


def known_family(name: str) -> Family | None:
    """The family with this `model_type`, if it is counted exactly."""
    if name in FAMILIES:
        return FAMILIES[name]
    from deepwide.shape.readable import READABLE  # a plan does without them

    return READABLE.get(name)


# Known by name: a config of theirs may look like a decoder's in every key.
NO_TRANSFORMERS: dict[str, str] = {
    name: what
    for what, names in {
        "state-space layers": ("zamba zamba2 plamo2 hymba stripedhyena"),
        "recurrent layers": "rwkv rwkv5 rwkv6 rwkv7 xlstm",
        "linear-attention layers": "retnet gla delta_net gated_deltanet hgrn hgrn2",
        "an encoder": "albert bart bert big_bird camembert clip deberta deberta-v2 distilbert electra ernie esm "
        "longformer m2m_100 marian mbart modernbert mpnet mt5 nllb-moe nomic_bert pegasus roberta siglip t5 umt5 vit "
        "wav2vec2 whisper xlm-roberta",
    }.items()
    for name in names.split()
}


def known_families() -> list[str]:
    """Every family that is counted exactly."""
    from deepwide.shape.readable import READABLE

    return [*FAMILIES, *READABLE]


def family_named(name: str) -> Family:
    """The family with this `model_type` that configs are written in."""
    if name not in FAMILIES:
        if isinstance(name, str) and known_family(name):
            raise DeepwideError(
                f"the family {name} is read and counted, but not written or planned: choose one of "
                f"{', '.join(FAMILIES)}."
            )
        if isinstance(name, str) and (what := NO_TRANSFORMERS.get(name.lower())):
            raise DeepwideError(f"{name} has {what}, and a family here is one of decoders: {', '.join(FAMILIES)}.")
        raise DeepwideError(f"no family '{name}': {did_you_mean(name, FAMILIES)}")
    return FAMILIES[name]
