"""How each family of public models writes a Shape in its Hugging Face `config.json`.

A family is data: which keys hold which fields, which fields all its members share, what a missing key means
(transformers leaves out keys equal to the class default). The few families with rules of their own add two
functions. Whether a family can express a shape is not guessed: it is written, read back and compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.shape.shape import Shape

Config = Mapping[str, Any]
Fields = dict[str, Any]

STANDARD: dict[str, str] = {
    "depth": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ff_width": "intermediate_size",
    "vocab": "vocab_size",
    "context": "max_position_embeddings",
    "tied": "tie_word_embeddings",
}
GPT2_KEYS = STANDARD | {
    "depth": "n_layer",
    "width": "n_embd",
    "heads": "n_head",
    "ff_width": "n_inner",
    "context": "n_positions",
}
REQUIRED = ("depth", "width", "heads", "vocab")

LLAMA_LIKE: Fields = {
    "ff": "gated",
    "positions": "rotary",
    "norm": "rmsnorm",
    "qkv_bias": False,
    "out_bias": False,
    "ff_bias": False,
}


@dataclass(frozen=True)
class Family:
    """One `model_type`."""

    name: str
    architecture: str
    about: str
    fixed: Fields  # Shape fields all members share
    defaults: Fields  # config keys a file may leave out
    keys: Mapping[str, str] = field(default_factory=lambda: STANDARD)
    fused: tuple[str, ...] = ()  # Shape fields the family cannot vary: kv_heads = heads, head_dim = width / heads
    ff_may_be_absent: bool = False  # then it is 4·width
    square: bool = False  # transformers insists that heads divide width
    reads: Callable[[Config, Fields], Fields] | None = None
    writes: Callable[[Shape], Fields] | None = None

    def read(self, config: Config) -> Shape:
        """The shape a config of this family describes."""
        # An absent key means the default; an explicit null means none, as in transformers.
        known = {key: value for key, value in (self.defaults | dict(config)).items() if value is not None}
        fields: Fields = dict(self.fixed)
        for name, key in self.keys.items():
            # transformers' own names are accepted beside the family's, as its attribute_map does
            aliases = (STANDARD[name], "n_embed") if name == "width" else (STANDARD[name],)
            value = next((config[k] for k in (key, *aliases) if config.get(k) is not None), known.get(key))
            if value is not None and name not in self.fused:
                fields[name] = value
        required = REQUIRED if self.ff_may_be_absent else (*REQUIRED, "ff_width")
        missing = [f"{name} ({self.keys[name]})" for name in required if name not in fields]
        if missing:
            raise DeepwideError(f"this {self.name} config lacks {', '.join(missing)}.")
        if self.reads:
            fields |= self.reads(known, fields)
        return Shape.of(**fields)

    def write(self, shape: Shape) -> Fields:
        """The config of `shape` in this family; refuses a shape the family cannot express."""
        config: Fields = {"architectures": [self.architecture], "model_type": self.name}
        config |= {key: getattr(shape, name) for name, key in self.keys.items() if name not in self.fused}
        if self.writes:
            config |= self.writes(shape)
        try:
            back = self.read(config)
        except DeepwideError as error:
            raise DeepwideError(f"the {self.name} family cannot express this shape: {error}") from None
        wrong = [
            f"{name} is {getattr(shape, name)!r}, {self.name} has {getattr(back, name)!r}"
            for name in Shape.model_fields
            if getattr(back, name) != getattr(shape, name)
        ]
        if self.square and shape.width % shape.heads:
            wrong.append(f"heads ({shape.heads}) do not divide width ({shape.width}), as {self.name} needs")
        if wrong:
            raise DeepwideError(f"the {self.name} family cannot express this shape: {'; '.join(wrong)}.")
        return config


def _flag(known: Config, key: str) -> bool:
    value = known.get(key, False)
    if not isinstance(value, bool):
        raise DeepwideError(f"{key} must be true or false, not {quoted(value)}.")
    return value


def _attention_bias(known: Config, _: Fields) -> Fields:
    bias = _flag(known, "attention_bias")
    return {"qkv_bias": bias, "out_bias": bias}


def _read_llama(known: Config, fields: Fields) -> Fields:
    return _attention_bias(known, fields) | {"ff_bias": _flag(known, "mlp_bias")}


def _write_attention_bias(shape: Shape) -> Fields:
    return {"attention_bias": shape.qkv_bias}


def _write_llama(shape: Shape) -> Fields:
    return {"attention_bias": shape.qkv_bias, "mlp_bias": shape.ff_bias}


def _read_window(known: Config, fields: Fields) -> Fields:
    """Mistral, Mixtral, Phi-3: one window for every layer."""
    window = known.get("sliding_window")
    return {"window": window, "sliding_layers": tuple(range(_layers(fields)))} if window else {}


def _write_window(shape: Shape) -> Fields:
    return {"sliding_window": shape.window}


def _write_phi3(shape: Shape) -> Fields:
    # transformers' default padding token, 32000, lies outside a smaller vocabulary and stops the model from loading
    return _write_window(shape) | {"pad_token_id": None}


def _read_layer_types(known: Config, fields: Fields, sliding: Callable[[int], bool]) -> Fields:
    """Qwen and Gemma: `layer_types` names each layer, or a rule of the family does."""
    kinds = known.get("layer_types")
    if kinds is None:
        kinds = ["sliding_attention" if sliding(i) else "full_attention" for i in range(_layers(fields))]
    if not isinstance(kinds, list) or any(kind not in ("sliding_attention", "full_attention") for kind in kinds):
        raise DeepwideError("layer_types must list 'sliding_attention' or 'full_attention' for each layer.")
    if len(kinds) != _layers(fields):
        raise DeepwideError(f"layer_types names {len(kinds)} layers, but there are {_layers(fields)}.")
    layers = tuple(i for i, kind in enumerate(kinds) if kind == "sliding_attention")
    if not layers:
        return {}
    return {"window": known.get("sliding_window"), "sliding_layers": layers}


def _write_layer_types(shape: Shape) -> Fields:
    sliding = set(shape.sliding_layers)
    kinds = ["sliding_attention" if i in sliding else "full_attention" for i in range(shape.depth)]
    return {"layer_types": kinds, "sliding_window": shape.window}


def _read_qwen(known: Config, fields: Fields) -> Fields:
    if not _flag(known, "use_sliding_window"):
        return {}
    first = known.get("max_window_layers", 28)
    return _read_layer_types(known, fields, lambda i: i >= _integer(first, "max_window_layers"))


def _write_qwen(shape: Shape) -> Fields:
    return _write_layer_types(shape) | {"use_sliding_window": True} if shape.sliding_layers else {}


def _read_qwen3(known: Config, fields: Fields) -> Fields:
    return _attention_bias(known, fields) | _read_qwen(known, fields)


def _write_qwen3(shape: Shape) -> Fields:
    return _write_attention_bias(shape) | _write_qwen(shape)


def _read_gemma2(known: Config, fields: Fields) -> Fields:
    return _attention_bias(known, fields) | _read_layer_types(known, fields, lambda i: i % 2 == 0)


def _read_gemma3(known: Config, fields: Fields) -> Fields:
    every = _integer(known.get("sliding_window_pattern", 6), "sliding_window_pattern")
    return _attention_bias(known, fields) | _read_layer_types(known, fields, lambda i: (i + 1) % every != 0)


def _write_gemma(shape: Shape) -> Fields:
    return _write_attention_bias(shape) | _write_layer_types(shape)


def _read_mixtral(known: Config, fields: Fields) -> Fields:
    experts = {
        "experts": known.get("num_local_experts"),
        "active": known.get("num_experts_per_tok"),
        "width": fields["ff_width"],
    }
    return _read_window(known, fields) | {"experts": experts}


def _write_mixtral(shape: Shape) -> Fields:
    moe = _experts(shape)
    return _write_window(shape) | {"num_local_experts": moe.experts, "num_experts_per_tok": moe.active}


def _read_qwen3_moe(known: Config, fields: Fields) -> Fields:
    step = _integer(known.get("decoder_sparse_step"), "decoder_sparse_step")
    listed = known.get("mlp_only_layers") or []
    if not isinstance(listed, list) or not all(isinstance(layer, int) for layer in listed):
        raise DeepwideError("mlp_only_layers must be a list of layer numbers.")
    dense = set(listed)
    experts = {
        "experts": known.get("num_experts", known.get("num_local_experts", 128)),
        "active": known.get("num_experts_per_tok"),
        "width": known.get("moe_intermediate_size"),
        "dense_layers": tuple(i for i in range(_layers(fields)) if i in dense or (i + 1) % step),
    }
    # transformers gives every layer of this family the one window, or none
    windowed = _flag(known, "use_sliding_window")
    return _attention_bias(known, fields) | {"experts": experts} | (_read_window(known, fields) if windowed else {})


def _write_qwen3_moe(shape: Shape) -> Fields:
    moe = _experts(shape)
    config = {
        "num_experts": moe.experts,
        "num_experts_per_tok": moe.active,
        "moe_intermediate_size": moe.width,
        "mlp_only_layers": list(moe.dense_layers),
    }
    window = {"use_sliding_window": True, "sliding_window": shape.window} if shape.window else {}
    return _write_attention_bias(shape) | config | window


def _read_deepseek(known: Config, fields: Fields) -> Fields:
    if _flag(known, "mlp_bias"):
        raise DeepwideError("mlp_bias is not supported for DeepSeek configs: no published model has it.")
    first = min(_integer(known.get("first_k_dense_replace"), "first_k_dense_replace"), _layers(fields))
    latent = {
        "kv_rank": known.get("kv_lora_rank"),
        "query_rank": known.get("q_lora_rank"),
        "rope_dim": known.get("qk_rope_head_dim"),
        "nope_dim": known.get("qk_nope_head_dim"),
        "value_dim": known.get("v_head_dim"),
    }
    experts = {
        "experts": known.get("n_routed_experts"),
        "active": known.get("num_experts_per_tok"),
        "width": known.get("moe_intermediate_size"),
        "shared": known.get("n_shared_experts"),
        "dense_layers": tuple(range(first)),
    }
    head_dim = _integer(latent["nope_dim"], "qk_nope_head_dim") + _integer(latent["rope_dim"], "qk_rope_head_dim")
    return _attention_bias(known, fields) | {"latent": latent, "experts": experts, "head_dim": head_dim}


def _write_deepseek(shape: Shape) -> Fields:
    moe, m = _experts(shape), shape.latent
    if m is None:
        raise DeepwideError("DeepSeek has latent attention, this shape does not.")
    return _write_attention_bias(shape) | {
        "num_key_value_heads": shape.kv_heads,
        "first_k_dense_replace": len(moe.dense_layers),
        "n_routed_experts": moe.experts,
        "num_experts_per_tok": moe.active,
        "moe_intermediate_size": moe.width,
        "n_shared_experts": moe.shared,
        "kv_lora_rank": m.kv_rank,
        "q_lora_rank": m.query_rank,
        "qk_rope_head_dim": m.rope_dim,
        "qk_nope_head_dim": m.nope_dim,
        "v_head_dim": m.value_dim,
        "n_group": 1,
        "topk_group": 1,
    }


def _read_neox(known: Config, fields: Fields) -> Fields:
    return _attention_bias(known, fields)


def _read_opt(known: Config, fields: Fields) -> Fields:
    bias = _flag(known, "enable_bias")
    narrow = known.get("word_embed_proj_dim")
    return {
        "qkv_bias": bias,
        "out_bias": bias,
        "ff_bias": bias,
        "norm": "layernorm" if _flag(known, "layer_norm_elementwise_affine") else "none",
        "final_norm": _flag(known, "do_layer_norm_before") and not _flag(known, "_remove_final_layer_norm"),
        "embedding_width": None if narrow == fields["width"] else narrow,
    }


def _write_opt(shape: Shape) -> Fields:
    return {
        "enable_bias": shape.qkv_bias,
        "layer_norm_elementwise_affine": shape.norm != "none",
        "do_layer_norm_before": shape.final_norm,
        "word_embed_proj_dim": shape.embedding_width or shape.width,
    }


def _read_falcon(known: Config, fields: Fields) -> Fields:
    bias = _flag(known, "bias")
    new, parallel = _flag(known, "new_decoder_architecture"), _flag(known, "parallel_attn")
    norms = known.get("num_ln_in_parallel_attn") or (2 if new else 1)
    if new:
        kv_heads = known.get("num_kv_heads", fields["heads"])
    else:
        kv_heads = 1 if _flag(known, "multi_query") else fields["heads"]
    return {
        "kv_heads": kv_heads,
        "block_norms": norms if parallel else 2,
        "positions": "alibi" if _flag(known, "alibi") else "rotary",
        "qkv_bias": bias,
        "out_bias": bias,
        "ff_bias": bias,
    }


def _write_falcon(shape: Shape) -> Fields:
    multi_query = shape.kv_heads == 1 and shape.block_norms == 1  # Falcon-7B; the larger ones are "new"
    return {
        "new_decoder_architecture": not multi_query,
        "multi_query": multi_query,
        "num_kv_heads": shape.heads if multi_query else shape.kv_heads,
        "num_ln_in_parallel_attn": shape.block_norms,
        "parallel_attn": True,
        "alibi": shape.positions == "alibi",
        "bias": shape.qkv_bias,
    }


def _write_gptj(shape: Shape) -> Fields:
    return {"rotary_dim": min(64, shape.head_dim)}  # the default, 64, does not fit narrower heads


def _read_phi(known: Config, _: Fields) -> Fields:
    return {"qk_norm": "head" if _flag(known, "qk_layernorm") else "none"}


def _write_phi(shape: Shape) -> Fields:
    return {"qk_layernorm": shape.qk_norm == "head"}


def _read_stablelm(known: Config, _: Fields) -> Fields:
    if _flag(known, "qk_layernorm"):
        raise DeepwideError("qk_layernorm is not supported for StableLM configs.")
    return {
        "qkv_bias": _flag(known, "use_qkv_bias"),
        "block_norms": 1 if _flag(known, "use_parallel_residual") else 2,
    }


def _write_stablelm(shape: Shape) -> Fields:
    return {"use_qkv_bias": shape.qkv_bias, "use_parallel_residual": shape.block_norms == 1}


def _layers(fields: Fields) -> int:
    return _integer(fields["depth"], "the number of layers", most=100_000)


def _integer(value: Any, name: str, most: int = 10**9) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise DeepwideError(f"{name} must be a whole number from 0 to {most}, not {quoted(value)}.")
    return value or (1 if name in ("decoder_sparse_step", "sliding_window_pattern") else 0)


def _experts(shape: Shape) -> Any:
    if shape.experts is None:
        raise DeepwideError("the family has experts, this shape does not.")
    return shape.experts


_WHOLE = ("kv_heads", "head_dim")  # attention with one key/value head a head, width split among them
_UNTIED = {"tie_word_embeddings": False}
_TIED = {"tie_word_embeddings": True}
_PLAIN = {"positions": "rotary", "norm": "layernorm"}

FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("llama", "LlamaForCausalLM", "Llama 1–3, SmolLM, TinyLlama, Yi, DeepSeek-LLM", LLAMA_LIKE,
               _UNTIED | {"max_position_embeddings": 2048}, square=True, reads=_read_llama, writes=_write_llama),
        Family("mistral", "MistralForCausalLM", "Mistral", LLAMA_LIKE,
               _UNTIED | {"num_key_value_heads": 8, "sliding_window": 4096, "max_position_embeddings": 131072},
               reads=_read_window, writes=_write_window),
        Family("mixtral", "MixtralForCausalLM", "Mixtral", LLAMA_LIKE,
               _UNTIED | {"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2,
                          "intermediate_size": 14336, "max_position_embeddings": 131072},
               reads=_read_mixtral, writes=_write_mixtral),
        Family("qwen2", "Qwen2ForCausalLM", "Qwen 1.5, 2, 2.5", LLAMA_LIKE | {"qkv_bias": True},
               _UNTIED | {"num_key_value_heads": 32, "max_position_embeddings": 32768},
               reads=_read_qwen, writes=_write_qwen),
        Family("qwen3", "Qwen3ForCausalLM", "Qwen 3", LLAMA_LIKE | {"qk_norm": "head"},
               _UNTIED | {"num_key_value_heads": 32, "head_dim": 128, "max_position_embeddings": 32768},
               reads=_read_qwen3, writes=_write_qwen3),
        Family("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen 3 with experts", LLAMA_LIKE | {"qk_norm": "head"},
               _UNTIED | {"num_key_value_heads": 4, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
                          "decoder_sparse_step": 1, "max_position_embeddings": 32768},
               reads=_read_qwen3_moe, writes=_write_qwen3_moe),
        Family("gemma", "GemmaForCausalLM", "Gemma 1", LLAMA_LIKE,
               _TIED | {"num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192},
               reads=_attention_bias, writes=_write_attention_bias),
        Family("gemma2", "Gemma2ForCausalLM", "Gemma 2", LLAMA_LIKE | {"block_norms": 4},
               _TIED | {"num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
                        "max_position_embeddings": 8192},
               square=True, reads=_read_gemma2, writes=_write_gemma),
        Family("gemma3_text", "Gemma3ForCausalLM", "Gemma 3 (the language model)",
               LLAMA_LIKE | {"block_norms": 4, "qk_norm": "head"},
               _TIED | {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
                        "vocab_size": 262208, "max_position_embeddings": 131072},
               square=True, reads=_read_gemma3, writes=_write_gemma),
        Family("olmo", "OlmoForCausalLM", "OLMo 1 (norms without parameters)", LLAMA_LIKE | {"norm": "none"},
               _UNTIED | {"max_position_embeddings": 2048}, reads=_attention_bias, writes=_write_attention_bias),
        Family("olmo2", "Olmo2ForCausalLM", "OLMo 2", LLAMA_LIKE | {"qk_norm": "full"},
               _UNTIED | {"max_position_embeddings": 2048}, reads=_attention_bias, writes=_write_attention_bias),
        Family("phi3", "Phi3ForCausalLM", "Phi-3, Phi-4", LLAMA_LIKE,
               _UNTIED | {"max_position_embeddings": 4096}, reads=_read_window, writes=_write_phi3),
        Family("deepseek_v2", "DeepseekV2ForCausalLM", "DeepSeek-V2", LLAMA_LIKE,
               _UNTIED | {"first_k_dense_replace": 0, "kv_lora_rank": 512, "n_routed_experts": 64,
                          "n_shared_experts": 2, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                          "moe_intermediate_size": 1407, "max_position_embeddings": 2048},
               fused=_WHOLE, square=True, reads=_read_deepseek, writes=_write_deepseek),
        Family("deepseek_v3", "DeepseekV3ForCausalLM", "DeepSeek-V3, R1", LLAMA_LIKE,
               _UNTIED | {"first_k_dense_replace": 3, "kv_lora_rank": 512, "n_routed_experts": 256,
                          "n_shared_experts": 1, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                          "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "max_position_embeddings": 4096},
               fused=_WHOLE, reads=_read_deepseek, writes=_write_deepseek),
        Family("stablelm", "StableLmForCausalLM", "StableLM 2, 3B-4E1T",
               LLAMA_LIKE | {"norm": "layernorm"},
               _UNTIED | {"num_key_value_heads": 32, "max_position_embeddings": 4096},
               fused=("head_dim",), reads=_read_stablelm, writes=_write_stablelm),
        Family("gpt2", "GPT2LMHeadModel", "GPT-2, GPT-3's shapes", {}, _TIED | {"n_positions": 1024},
               keys=GPT2_KEYS, fused=_WHOLE, square=True, ff_may_be_absent=True),
        Family("gptj", "GPTJForCausalLM", "GPT-J",
               _PLAIN | {"block_norms": 1, "qkv_bias": False, "out_bias": False, "head_bias": True},
               _UNTIED | {"n_positions": 2048}, keys=GPT2_KEYS, fused=_WHOLE, square=True, ff_may_be_absent=True,
               writes=_write_gptj),
        Family("gpt_neox", "GPTNeoXForCausalLM", "GPT-NeoX, Pythia", _PLAIN,
               _UNTIED | {"attention_bias": True, "max_position_embeddings": 2048},
               fused=_WHOLE, square=True, reads=_read_neox, writes=_write_attention_bias),
        Family("opt", "OPTForCausalLM", "OPT", {"extra_positions": 2},
               _TIED | {"enable_bias": True, "layer_norm_elementwise_affine": True, "do_layer_norm_before": True,
                        "max_position_embeddings": 2048},
               keys=STANDARD | {"ff_width": "ffn_dim"}, fused=_WHOLE, square=True,
               reads=_read_opt, writes=_write_opt),
        Family("bloom", "BloomForCausalLM", "BLOOM", {"positions": "alibi", "embedding_norm": True},
               _TIED | {"seq_length": 2048},
               keys=STANDARD | {"depth": "n_layer", "heads": "n_head", "context": "seq_length"},
               fused=(*_WHOLE, "ff_width"), square=True, ff_may_be_absent=True),
        Family("falcon", "FalconForCausalLM", "Falcon 7B, 40B, 180B",
               {"positions": "rotary", "qkv_bias": False, "out_bias": False, "ff_bias": False},
               _TIED | {"bias": False, "new_decoder_architecture": False, "parallel_attn": True, "multi_query": True,
                        "alibi": False, "max_position_embeddings": 2048},
               keys=STANDARD | {"ff_width": "ffn_hidden_size"}, fused=_WHOLE, square=True, ff_may_be_absent=True,
               reads=_read_falcon, writes=_write_falcon),
        Family("phi", "PhiForCausalLM", "Phi-1, 1.5, 2", _PLAIN | {"block_norms": 1, "head_bias": True},
               _UNTIED | {"max_position_embeddings": 2048}, fused=("head_dim",), reads=_read_phi, writes=_write_phi),
    )
}  # fmt: skip


def family_named(name: str) -> Family:
    """The family with this `model_type`."""
    if name not in FAMILIES:
        raise DeepwideError(f"no family '{name}': {did_you_mean(name, FAMILIES)}")
    return FAMILIES[name]
