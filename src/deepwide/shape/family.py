"""Family: how one `model_type` of Hugging Face writes a Shape in its `config.json`.

A family is data: which keys hold which fields, which fields all its members share, what a missing key means
(transformers leaves out keys equal to the class default). The few families with rules of their own add two
functions. Whether a family can express a shape is not guessed: it is written, read back and compared.

Rules of single families follow: `read_x` gives the Shape fields that keys of an x config decide, `write_x` the keys.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deepwide.errors import DeepwideError, quoted
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
    fused: tuple[str, ...] = ()  # Shape fields that no key holds: kv_heads = heads, head_dim = width / heads
    free_kv: bool = True  # False: one key/value head per head
    has_experts: bool = False
    shared_experts: bool = False  # beside the routed ones
    needs: tuple[str, ...] = ()  # keys without a default that the rules of the family read
    ff_may_be_absent: bool = False  # then it is 4·width
    square: bool = False  # transformers insists that heads divide width
    prepares: Callable[[Config], Config] | None = None  # what older or nested files have under other keys
    reads: Callable[[Config, Fields], Fields] | None = None
    writes: Callable[[Shape], Fields] | None = None

    def read(self, config: Config, given: Config | None = None) -> Shape:
        """The shape a config of this family describes; `given` are Shape fields that fill what it lacks."""
        if self.prepares:
            config = self.prepares(config)
        # An absent key means the default; an explicit null means none, as in transformers.
        known = {key: value for key, value in (self.defaults | dict(config)).items() if value is not None}
        fields: Fields = dict(self.fixed)
        for name, key in self.keys.items():
            # transformers' own names are accepted beside the family's, as its attribute_map does
            aliases = (STANDARD[name], "n_embed") if name == "width" else (STANDARD[name],)
            value = next((config[k] for k in (key, *aliases) if config.get(k) is not None), known.get(key))
            if value is not None and name not in self.fused:
                fields[name] = value
        for name, value in (given or {}).items():
            if name in self.keys and name not in self.fused:
                fields.setdefault(name, value)
        required = REQUIRED if self.ff_may_be_absent else (*REQUIRED, "ff_width")
        lacking = [name for name in required if name not in fields]
        missing = [f"{name} ({self.keys[name]})" for name in lacking]
        missing += [key for key in self.needs if key not in known]
        if missing:
            raise DeepwideError(f"this {self.name} config lacks {', '.join(missing)}.", remedies=lacking)
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
            reread = self.read(config)
        except DeepwideError as error:
            raise DeepwideError(f"the {self.name} family cannot express this shape: {error}") from None
        wrong = [
            f"{name} is {getattr(shape, name)!r}, {self.name} has {getattr(reread, name)!r}"
            for name in Shape.model_fields
            if getattr(reread, name) != getattr(shape, name)
        ]
        if self.square and shape.width % shape.heads:
            wrong.append(f"heads ({shape.heads}) do not divide width ({shape.width}), as {self.name} needs")
        if wrong:
            raise DeepwideError(f"the {self.name} family cannot express this shape: {'; '.join(wrong)}.")
        return config


def flag(known: Config, key: str) -> bool:
    """A key that is true or false; absent means false."""
    value = known.get(key, False)
    if not isinstance(value, bool):
        raise DeepwideError(f"{key} must be true or false, not {quoted(value)}.")
    return value


def whole(value: Any, name: str, most: int = 10**9, *, zero: int = 0) -> int:
    """A whole number; `zero` is what 0 stands for."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise DeepwideError(f"{name} must be a whole number from 0 to {most}, not {quoted(value)}.")
    return value or zero


def layers(fields: Fields) -> int:
    """How many layers a config has."""
    return whole(fields["depth"], "the number of layers", most=100_000)


def read_attention_bias(known: Config, _: Fields) -> Fields:
    bias = flag(known, "attention_bias")
    return {"qkv_bias": bias, "out_bias": bias}


def read_llama(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields) | {"ff_bias": flag(known, "mlp_bias")}


def write_attention_bias(shape: Shape) -> Fields:
    return {"attention_bias": shape.qkv_bias}


def write_llama(shape: Shape) -> Fields:
    return {"attention_bias": shape.qkv_bias, "mlp_bias": shape.ff_bias}


def read_window(known: Config, fields: Fields) -> Fields:
    """Mistral, Mixtral, Phi-3: one window for every layer."""
    window = known.get("sliding_window")
    return {"window": window, "sliding_layers": tuple(range(layers(fields)))} if window else {}


def write_window(shape: Shape) -> Fields:
    return {"sliding_window": shape.window}


def write_phi3(shape: Shape) -> Fields:
    # transformers' default padding token, 32000, lies outside a smaller vocabulary and stops the model from loading
    return write_window(shape) | {"pad_token_id": None}


def read_layer_types(known: Config, fields: Fields, sliding: Callable[[int], bool]) -> Fields:
    """Qwen and Gemma: `layer_types` names each layer, or a rule of the family does."""
    kinds = known.get("layer_types")
    if kinds is None:
        kinds = ["sliding_attention" if sliding(i) else "full_attention" for i in range(layers(fields))]
    if not isinstance(kinds, list) or any(kind not in ("sliding_attention", "full_attention") for kind in kinds):
        raise DeepwideError("layer_types must list 'sliding_attention' or 'full_attention' for each layer.")
    if len(kinds) != layers(fields):
        raise DeepwideError(f"layer_types names {len(kinds)} layers, but there are {layers(fields)}.")
    windowed = tuple(i for i, kind in enumerate(kinds) if kind == "sliding_attention")
    if not windowed:
        return {}
    return {"window": known.get("sliding_window"), "sliding_layers": windowed}


def write_layer_types(shape: Shape) -> Fields:
    sliding = set(shape.sliding_layers)
    kinds = ["sliding_attention" if i in sliding else "full_attention" for i in range(shape.depth)]
    return {"layer_types": kinds, "sliding_window": shape.window}


def read_qwen(known: Config, fields: Fields) -> Fields:
    if not flag(known, "use_sliding_window"):
        return {}
    first = known.get("max_window_layers", 28)
    return read_layer_types(known, fields, lambda i: i >= whole(first, "max_window_layers"))


def write_qwen(shape: Shape) -> Fields:
    return write_layer_types(shape) | {"use_sliding_window": True} if shape.sliding_layers else {}


def read_qwen3(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields) | read_qwen(known, fields)


def write_qwen3(shape: Shape) -> Fields:
    return write_attention_bias(shape) | write_qwen(shape)


def read_gemma2(known: Config, fields: Fields) -> Fields:
    return read_attention_bias(known, fields) | read_layer_types(known, fields, lambda i: i % 2 == 0)


def read_gemma3(known: Config, fields: Fields) -> Fields:
    every = whole(known.get("sliding_window_pattern", 6), "sliding_window_pattern", zero=1)
    return read_attention_bias(known, fields) | read_layer_types(known, fields, lambda i: (i + 1) % every != 0)


def write_gemma(shape: Shape) -> Fields:
    return write_attention_bias(shape) | write_layer_types(shape)


def read_opt(known: Config, fields: Fields) -> Fields:
    bias = flag(known, "enable_bias")
    narrow = known.get("word_embed_proj_dim")
    return {
        "qkv_bias": bias,
        "out_bias": bias,
        "ff_bias": bias,
        "norm": "layernorm" if flag(known, "layer_norm_elementwise_affine") else "none",
        "final_norm": flag(known, "do_layer_norm_before") and not flag(known, "_remove_final_layer_norm"),
        "embedding_width": None if narrow == fields["width"] else narrow,
    }


def write_opt(shape: Shape) -> Fields:
    return {
        "enable_bias": shape.qkv_bias,
        "layer_norm_elementwise_affine": shape.norm != "none",
        "do_layer_norm_before": shape.final_norm,
        "word_embed_proj_dim": shape.embedding_width or shape.width,
    }


def read_falcon(known: Config, fields: Fields) -> Fields:
    bias = flag(known, "bias")
    new, parallel = flag(known, "new_decoder_architecture"), flag(known, "parallel_attn")
    norms = known.get("num_ln_in_parallel_attn") or (2 if new else 1)
    if new:
        kv_heads = known.get("num_kv_heads", fields["heads"])
    else:
        kv_heads = 1 if flag(known, "multi_query") else fields["heads"]
    return {
        "kv_heads": kv_heads,
        "block_norms": norms if parallel else 2,
        "positions": "alibi" if flag(known, "alibi") else "rotary",
        "qkv_bias": bias,
        "out_bias": bias,
        "ff_bias": bias,
    }


def write_falcon(shape: Shape) -> Fields:
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


def write_gptj(shape: Shape) -> Fields:
    return {"rotary_dim": min(64, shape.head_dim)}  # the default, 64, does not fit narrower heads


def read_phi(known: Config, _: Fields) -> Fields:
    return {"qk_norm": "head" if flag(known, "qk_layernorm") else "none"}


def write_phi(shape: Shape) -> Fields:
    return {"qk_layernorm": shape.qk_norm == "head"}


def read_stablelm(known: Config, _: Fields) -> Fields:
    if flag(known, "qk_layernorm"):
        raise DeepwideError("qk_layernorm is not supported for StableLM configs.")
    return {
        "qkv_bias": flag(known, "use_qkv_bias"),
        "block_norms": 1 if flag(known, "use_parallel_residual") else 2,
    }


def write_stablelm(shape: Shape) -> Fields:
    return {"use_qkv_bias": shape.qkv_bias, "use_parallel_residual": shape.block_norms == 1}


def read_mixtral(known: Config, fields: Fields) -> Fields:
    experts = {
        "experts": known.get("num_local_experts"),
        "active": known.get("num_experts_per_tok"),
        "width": fields["ff_width"],
    }
    return read_window(known, fields) | {"experts": experts}


def write_mixtral(shape: Shape) -> Fields:
    moe = _experts(shape)
    return write_window(shape) | {"num_local_experts": moe.experts, "num_experts_per_tok": moe.active}


def read_qwen3_moe(known: Config, fields: Fields) -> Fields:
    step = whole(known.get("decoder_sparse_step"), "decoder_sparse_step", zero=1)
    listed = known.get("mlp_only_layers") or []
    if not isinstance(listed, list) or not all(isinstance(layer, int) for layer in listed):
        raise DeepwideError("mlp_only_layers must be a list of layer numbers.")
    dense = set(listed)
    experts = {
        "experts": known.get("num_experts", known.get("num_local_experts", 128)),
        "active": known.get("num_experts_per_tok"),
        "width": known.get("moe_intermediate_size"),
        "dense_layers": tuple(i for i in range(layers(fields)) if i in dense or (i + 1) % step),
    }
    # transformers gives every layer of this family the one window, or none
    windowed = flag(known, "use_sliding_window")
    return read_attention_bias(known, fields) | {"experts": experts} | (read_window(known, fields) if windowed else {})


def write_qwen3_moe(shape: Shape) -> Fields:
    moe = _experts(shape)
    config = {
        "num_experts": moe.experts,
        "num_experts_per_tok": moe.active,
        "moe_intermediate_size": moe.width,
        "mlp_only_layers": list(moe.dense_layers),
    }
    window = {"use_sliding_window": True, "sliding_window": shape.window} if shape.window else {}
    return write_attention_bias(shape) | config | window


def read_glm4_moe(known: Config, fields: Fields) -> Fields:
    first = min(whole(known.get("first_k_dense_replace"), "first_k_dense_replace"), layers(fields))
    experts = {
        "experts": known.get("n_routed_experts"),
        "active": known.get("num_experts_per_tok"),
        "width": known.get("moe_intermediate_size"),
        "shared": known.get("n_shared_experts"),
        "dense_layers": tuple(range(first)),
    }
    qk_norm = "head" if flag(known, "use_qk_norm") else "none"
    return {"qkv_bias": flag(known, "attention_bias"), "qk_norm": qk_norm, "experts": experts}


def write_glm4_moe(shape: Shape) -> Fields:
    moe = _experts(shape)
    return write_attention_bias(shape) | {
        "use_qk_norm": shape.qk_norm == "head",
        "first_k_dense_replace": len(moe.dense_layers),
        "n_routed_experts": moe.experts,
        "num_experts_per_tok": moe.active,
        "moe_intermediate_size": moe.width,
        "n_shared_experts": moe.shared,
    }


def read_deepseek(known: Config, fields: Fields) -> Fields:
    if flag(known, "mlp_bias"):
        raise DeepwideError("mlp_bias is not supported for DeepSeek configs: no published model has it.")
    first = min(whole(known.get("first_k_dense_replace"), "first_k_dense_replace"), layers(fields))
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
    head_dim = whole(latent["nope_dim"], "qk_nope_head_dim") + whole(latent["rope_dim"], "qk_rope_head_dim")
    return read_attention_bias(known, fields) | {"latent": latent, "experts": experts, "head_dim": head_dim}


def write_deepseek(shape: Shape) -> Fields:
    moe, m = _experts(shape), shape.latent
    if m is None:
        raise DeepwideError("DeepSeek has latent attention, this shape does not.")
    return write_attention_bias(shape) | {
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


def _experts(shape: Shape) -> Any:
    if shape.experts is None:
        raise DeepwideError("the family has experts, this shape does not.")
    return shape.experts
