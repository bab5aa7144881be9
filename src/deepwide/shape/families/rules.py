"""Rules of single families: `read_x` gives the Shape fields that keys of an x config decide, `write_x` the keys."""

from collections.abc import Callable

from deepwide.errors import DeepwideError
from deepwide.shape.families.family import Config, Fields, flag, layers, whole
from deepwide.shape.shape import Shape


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
