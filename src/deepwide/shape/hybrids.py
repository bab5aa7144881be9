"""Hybrids, read and counted exactly: layers with a state space, linear attention, a recurrence or a convolution.

A mixer is an Extra whose numbers follow from a few sizes. Legend: d width, c inner channels, n state per channel, k
taps of the convolution, h heads, g groups, r rank of the step size; K and V the numbers of a token's keys and values.

FLOPs of a state are those of the recurrence: per number of the state three products for a state space (decay, input,
output) and four for a delta rule (decay, look-up, correction, output). A chunked kernel does more. What a mixer keeps
for the backward pass is what its products and its convolution read, with states computed again.
"""

from collections.abc import Mapping
from typing import Any

from deepwide.errors import DeepwideError, quoted
from deepwide.shape.family import (
    LLAMA_LIKE,
    STANDARD,
    Config,
    Family,
    Fields,
    flag,
    layers,
    read_attention_bias,
    read_llama,
    read_qwen3_moe,
    whole,
)
from deepwide.shape.shape import Extra

UNTIED, TIED = {"tie_word_embeddings": False}, {"tie_word_embeddings": True}
# Names of kinds of layers, as newer and older files have them.
ATTENTION = ("full_attention", "attention", "sliding_attention", "hybrid")
OLD_NAMES = {"mamba": "linear_attention", "attention": "full_attention", "recurrent": "linear_attention"}


def size(known: Config, key: str) -> int:
    """A size that a config has under this key."""
    return whole(known.get(key), key)


def kinds(known: Config, fields: Fields, *keys: str, usual: Any = None) -> list[str]:
    """What each layer is, by the first of these keys that the config has, else by `usual` of its number."""
    listed = next((known[key] for key in keys if known.get(key) is not None), None)
    if listed is None and usual is not None:
        listed = [usual(i) for i in range(layers(fields))]
    if not isinstance(listed, list) or not all(isinstance(kind, str) for kind in listed):
        raise DeepwideError(f"{keys[0]} must list what each layer is, not {quoted(listed)}.")
    if len(listed) != layers(fields):
        raise DeepwideError(f"{keys[0]} names {len(listed)} layers, but there are {layers(fields)}.")
    return [OLD_NAMES.get(str(kind), str(kind)) for kind in listed]


def where(listed: list[str], *wanted: str) -> tuple[int, ...]:
    """The numbers of the layers that are of these kinds."""
    return tuple(i for i, kind in enumerate(listed) if kind in wanted)


def mamba(d: int, c: int, n: int, k: int, r: int, *, bias: bool, conv_bias: bool, norms: int = 0) -> Fields:
    """The mixer of Mamba 1, with `norms` numbers of norms of its own (Jamba)."""
    matrices = 2 * d * c + c * (r + 2 * n) + r * c + c * d
    params = matrices + bias * (2 * c + d) + c * k + conv_bias * c + c + c * n + c + norms
    return {
        "name": "mamba", "params": params, "matrices": matrices, "products": c * k + 3 * c * n,
        "state": c * n + c * (k - 1), "stored": 6 * c + r + 2 * n,
    }  # fmt: skip


def mamba2(
    d: int, c: int, h: int, g: int, n: int, k: int, *, bias: bool, conv_bias: bool, norm: bool, out_bias: bool
) -> Fields:
    """The mixer of Mamba 2."""
    mixed = c + 2 * g * n  # numbers that pass the convolution
    into = c + mixed + h
    matrices = d * into + c * d
    params = matrices + bias * into + out_bias * d + mixed * k + conv_bias * mixed + 3 * h + norm * c
    return {
        "name": "mamba2", "params": params, "matrices": matrices, "products": mixed * k + 3 * c * n,
        "state": c * n + mixed * (k - 1), "stored": into + mixed + (3 if norm else 2) * c,
    }  # fmt: skip


def delta_net(d: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int, k: int) -> Fields:
    """A gated delta rule (Qwen 3 Next, OLMo hybrid)."""
    K, V = key_heads * key_dim, value_heads * value_dim
    mixed = 2 * K + V
    matrices = d * (mixed + V + 2 * value_heads) + V * d
    state = value_heads * key_dim * value_dim
    return {
        "name": "gated delta net", "params": matrices + mixed * k + 2 * value_heads + value_dim, "matrices": matrices,
        "products": mixed * k + 4 * state, "state": state + mixed * (k - 1),
        "stored": 2 * mixed + 3 * V + 2 * value_heads,
    }  # fmt: skip


def short_convolution(d: int, k: int, *, bias: bool) -> Fields:
    """LFM's gated convolution."""
    matrices = 4 * d * d
    return {
        "name": "short convolution", "params": matrices + d * k + bias * 5 * d, "matrices": matrices,
        "products": d * k, "state": d * (k - 1), "stored": 6 * d,
    }  # fmt: skip


def hybrid(listed: list[str], mixer: Fields, *attention: str) -> Fields:
    """Layers with attention where a config says so, and with a mixer elsewhere."""
    free = tuple(i for i, kind in enumerate(listed) if kind not in (attention or ATTENTION))
    return {"attention_free": free, "extras": (Extra(**mixer, layers=len(free)),) if free else ()}


def read_mamba(known: Config, fields: Fields) -> Fields:
    d = size(fields, "width")
    c = size(known, "intermediate_size") if known.get("intermediate_size") else size(known, "expand") * d
    rank = known.get("time_step_rank", "auto")
    r = -(-d // 16) if rank == "auto" else whole(rank, "time_step_rank")
    bias, conv_bias = flag(known, "use_bias"), flag(known, "use_conv_bias")
    mixer = mamba(d, c, size(known, "state_size"), size(known, "conv_kernel"), r, bias=bias, conv_bias=conv_bias)
    return {"ff_width": 0} | hybrid(["mamba"] * layers(fields), mixer)


def read_mamba2(known: Config, fields: Fields) -> Fields:
    d = size(fields, "width")
    bias = flag(known, "use_bias")
    mixer = mamba2(
        d, size(known, "expand") * d, size(known, "num_heads"), size(known, "n_groups"), size(known, "state_size"),
        size(known, "conv_kernel"), bias=bias, conv_bias=flag(known, "use_conv_bias"), norm=True, out_bias=bias,
    )  # fmt: skip
    return {"ff_width": 0, "head_dim": None} | hybrid(["mamba"] * layers(fields), mixer)


def read_jamba(known: Config, fields: Fields) -> Fields:
    d, depth = size(fields, "width"), layers(fields)
    rank = known.get("mamba_dt_rank", "auto")
    n, r = size(known, "mamba_d_state"), -(-d // 16) if rank == "auto" else whole(rank, "mamba_dt_rank")
    mixer = mamba(
        d, size(known, "mamba_expand") * d, n, size(known, "mamba_d_conv"), r, norms=r + 2 * n,
        bias=flag(known, "mamba_proj_bias"), conv_bias=flag(known, "mamba_conv_bias"),
    )  # fmt: skip
    period, offset = (whole(known.get(f"attn_layer_{key}"), f"attn_layer_{key}") for key in ("period", "offset"))
    every, first = (whole(known.get(f"expert_layer_{key}"), f"expert_layer_{key}") for key in ("period", "offset"))
    if not period or not every:
        raise DeepwideError("attn_layer_period and expert_layer_period must be at least 1.")
    kind = ["attention" if i % period == offset else "mamba" for i in range(depth)]
    experts = size(known, "num_experts")
    moe = None
    if experts > 1:
        dense = tuple(i for i in range(depth) if i % every != first)
        moe = {"experts": experts, "active": known.get("num_experts_per_tok"), "width": fields["ff_width"],
               "dense_layers": dense}  # fmt: skip
    if moe is not None and len(moe["dense_layers"]) == depth:
        moe = None
    return hybrid(kind, mixer) | {"experts": moe}


def mamba2_of(known: Config, fields: Fields, *, norm: bool, inner: int | None = None, out: str = "") -> Fields:
    """The mixer by the keys that Bamba, Falcon-H1 and Granite 4 share."""
    d = size(fields, "width")
    bias = flag(known, "mamba_proj_bias")
    return mamba2(
        d, inner or size(known, "mamba_expand") * d, size(known, "mamba_n_heads"), size(known, "mamba_n_groups"),
        size(known, "mamba_d_state"), size(known, "mamba_d_conv"), bias=bias,
        conv_bias=flag(known, "mamba_conv_bias"), norm=norm, out_bias=flag(known, out) if out else bias,
    )  # fmt: skip


def read_bamba(known: Config, fields: Fields) -> Fields:
    listed = known.get("attn_layer_indices") or []
    if not isinstance(listed, list):
        raise DeepwideError(f"attn_layer_indices must be a list of layer numbers, not {quoted(listed)}.")
    kind = ["attention" if i in listed else "mamba" for i in range(layers(fields))]
    return read_llama(known, fields) | hybrid(kind, mamba2_of(known, fields, norm=True))


def read_falcon_h1(known: Config, fields: Fields) -> Fields:
    inner = known.get("mamba_d_ssm")
    mixer = mamba2_of(
        known, fields, norm=flag(known, "mamba_rms_norm"), out="projectors_bias",
        inner=None if inner is None else whole(inner, "mamba_d_ssm"),
    )  # fmt: skip
    return read_llama(known, fields) | {"extras": (Extra(**mixer, layers=layers(fields)),)}  # beside attention


def shared_expert(known: Config, fields: Fields, key: str, number: int, *, gate: bool) -> tuple[Extra, ...]:
    """An expert of a width of its own that every token passes, in so many layers, with or without a gate."""
    d, f = size(fields, "width"), size(known, key)
    if not number or not (f or gate):
        return ()
    matrices = 3 * d * f + gate * d
    return (Extra(name="shared expert", part="feed_forward", layers=number, params=matrices, matrices=matrices,
                  stored=4 * f),)  # fmt: skip


def read_granite_hybrid(known: Config, fields: Fields) -> Fields:
    kind = kinds(known, fields, "layer_types", "layers_block_type", usual=lambda _: "mamba")
    read = read_attention_bias(known, fields) | hybrid(kind, mamba2_of(known, fields, norm=True))
    experts = size(known, "num_local_experts")
    shared = size(known, "shared_intermediate_size")
    if experts:
        moe = {"experts": experts, "active": known.get("num_experts_per_tok"), "width": fields["ff_width"]}
        more = shared_expert(known, fields, "shared_intermediate_size", layers(fields), gate=False)
        return read | {"experts": moe, "extras": read["extras"] + more}
    return read | {"ff_width": shared}  # without experts the shared one is the feed-forward


def read_gated_attention(known: Config, fields: Fields) -> Fields:
    """Qwen 3 Next and 3.5: linear layers, and attention whose output has a gate as wide as its queries."""
    d = size(fields, "width")
    interval = whole(known.get("full_attention_interval", 4), "full_attention_interval", zero=1)
    usual = lambda i: "linear_attention" if (i + 1) % interval else "full_attention"  # noqa: E731
    kind = kinds(known, fields, "layer_types", usual=usual)
    mixer = delta_net(
        d, *(size(known, f"linear_{key}") for key in ("num_key_heads", "num_value_heads", "key_head_dim",
                                                       "value_head_dim", "conv_kernel_dim"))
    )  # fmt: skip
    read = read_attention_bias(known, fields) | hybrid(kind, mixer)
    with_attention = layers(fields) - len(read["attention_free"])
    q = size(fields, "heads") * size(fields, "head_dim")
    gate = Extra(
        name="gate of attention", part="attention", layers=with_attention, matrices=d * q, stored=q,
        params=d * q + flag(known, "attention_bias") * q,
    )  # fmt: skip
    return read | {"extras": (*read["extras"], *((gate,) if with_attention else ()))}


def read_qwen3_next(known: Config, fields: Fields) -> Fields:
    read, moe = read_gated_attention(known, fields), read_qwen3_moe(known, fields)["experts"]
    routed = layers(fields) - len(moe["dense_layers"])
    shared = shared_expert(known, fields, "shared_expert_intermediate_size", routed, gate=True)
    return read | {"experts": moe if routed else None, "extras": read["extras"] + shared}


def read_qwen3_5_moe(known: Config, fields: Fields) -> Fields:
    return read_qwen3_next({**known, "decoder_sparse_step": 1, "mlp_only_layers": []}, fields)


def read_olmo_hybrid(known: Config, fields: Fields) -> Fields:
    keys = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")

    def usual(i: int) -> str:
        return "linear_attention" if (i + 1) % 4 else "full_attention"

    kind = kinds(known, fields, "layer_types", usual=usual)
    if known.get("layer_types") is None and "full_attention" not in kind:
        kind[-1] = "full_attention"
    heads = size(fields, "heads")
    key_heads, value_heads, key_dim, value_dim = (
        whole(known.get(f"linear_{key}", heads if "num" in key else None), f"linear_{key}") for key in keys
    )
    taps = size(known, "linear_conv_kernel_dim")
    mixer = delta_net(size(fields, "width"), key_heads, value_heads, key_dim, value_dim, taps)
    return read_attention_bias(known, fields) | hybrid(kind, mixer)


def read_lfm2(known: Config, fields: Fields) -> Fields:
    listed = known.get("full_attn_idxs")
    listed = range(layers(fields)) if listed is None else listed
    kind = kinds(known, fields, "layer_types", usual=lambda i: "full_attention" if i in listed else "conv")
    mixer = short_convolution(size(fields, "width"), size(known, "conv_L_cache"), bias=flag(known, "conv_bias"))
    read = hybrid(kind, mixer)
    given = known.get("block_ff_dim", fields["ff_width"])
    f = whole(given, "intermediate_size")
    if flag(known, "block_auto_adjust_ff_dim"):
        f = int(2 * f / 3)
        if known.get("block_ffn_dim_multiplier") is not None:
            multiple = whole(known.get("block_multiple_of"), "block_multiple_of", zero=1)
            f = multiple * -(-int(float(known["block_ffn_dim_multiplier"]) * f) // multiple)
    return read | {"ff_width": f}


def read_lfm2_moe(known: Config, fields: Fields) -> Fields:
    dense = tuple(range(min(size(known, "num_dense_layers"), layers(fields))))
    moe = {"experts": size(known, "num_experts"), "active": known.get("num_experts_per_tok"),
           "width": known.get("moe_intermediate_size"), "dense_layers": dense}  # fmt: skip
    kind = kinds(known, fields, "layer_types", "layers_block_type", usual=lambda _: "full_attention")
    mixer = short_convolution(size(fields, "width"), size(known, "conv_L_cache"), bias=flag(known, "conv_bias"))
    return hybrid(kind, mixer) | {"experts": moe if len(dense) < layers(fields) else None}


PATTERN = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}


def prepare_nemotron_h(config: Config) -> Config:
    """The number of layers follows from the list of their kinds, which older files write as one word."""
    listed = config.get("layers_block_type") or config.get("layer_types")
    word = config.get("hybrid_override_pattern")
    if listed is None and isinstance(word, str):
        if unknown := sorted(set(word) - PATTERN.keys()):
            raise DeepwideError(f"hybrid_override_pattern has an unknown letter {quoted(unknown[0])}.")
        listed = [PATTERN[letter] for letter in word]
    if isinstance(listed, list):
        return {**config, "layers_block_type": listed, "num_hidden_layers": len(listed)}
    return config


def read_nemotron_h(known: Config, fields: Fields) -> Fields:
    """Every layer is one thing: a state space, attention, a feed-forward or experts."""
    kind = kinds(known, fields, "layers_block_type")
    if strange := set(kind) - set(PATTERN.values()):
        raise DeepwideError(f"layers_block_type has an unknown kind {quoted(min(strange))}.")
    if known.get("moe_latent_size"):
        raise DeepwideError("moe_latent_size is not supported for Nemotron-H configs.")
    bias = flag(known, "use_bias")
    h, head = size(known, "mamba_num_heads"), size(known, "mamba_head_dim")
    mixer = mamba2(
        size(fields, "width"), h * head, h, size(known, "n_groups"), size(known, "ssm_state_size"),
        size(known, "conv_kernel"), bias=bias, conv_bias=flag(known, "use_conv_bias"), norm=True, out_bias=bias,
    )  # fmt: skip
    ff_bias = flag(known, "mlp_bias")
    mamba_layers, routed, dense = where(kind, "linear_attention"), where(kind, "moe"), where(kind, "mlp")
    extras: list[Extra] = [Extra(**mixer, layers=len(mamba_layers))] if mamba_layers else []
    moe = None
    if routed:
        if ff_bias:
            raise DeepwideError("mlp_bias is not supported for Nemotron-H configs with experts.")
        d, f = size(fields, "width"), size(known, "moe_shared_expert_intermediate_size")
        extras.append(Extra(name="shared expert", part="feed_forward", layers=len(routed), params=2 * d * f,
                            matrices=2 * d * f, stored=2 * f))  # fmt: skip
        moe = {"experts": known.get("n_routed_experts"), "active": known.get("num_experts_per_tok"),
               "width": known.get("moe_intermediate_size"), "dense_layers": dense}  # fmt: skip
    return {
        "tied": False,  # transformers never ties this family's head
        "attention_free": tuple(i for i, each in enumerate(kind) if each != "full_attention"),
        "ff_free": where(kind, "linear_attention", "full_attention"),
        "ff_bias": ff_bias,
        "experts": moe,
        "extras": tuple(extras),
    }


def read_recurrent_gemma(known: Config, fields: Fields) -> Fields:
    d, depth = size(fields, "width"), layers(fields)
    given = known.get("block_types", known.get("_block_types"))
    if not isinstance(given, list) or not given:
        raise DeepwideError(f"block_types must list kinds of layers, not {quoted(given)}.")
    kind = [given[i % len(given)] for i in range(depth)]
    w, k = whole(known.get("lru_width", d), "lru_width"), size(known, "conv1d_width")
    blocks = w // size(fields, "heads")
    matrices = 3 * d * w + 2 * w * blocks
    mixer = {
        "name": "recurrence", "params": matrices + 2 * w + d + w * k + w + w + 2 * w, "matrices": matrices,
        "products": w * k + 3 * w, "state": w + w * (k - 1), "stored": 6 * w,
    }  # fmt: skip
    read = hybrid(kind, mixer) | {"qkv_bias": flag(known, "attention_bias"), "ff_width": size(fields, "ff_width") // 2}
    with_attention = where(kind, "attention")
    window = known.get("attention_window_size")
    return read | ({"window": window, "sliding_layers": with_attention} if with_attention and window else {})


def prepare_kimi_linear(config: Config) -> Config:
    """Older files number the layers of each kind from 1, and name other keys."""
    old = config.get("linear_attn_config")
    if not isinstance(old, Mapping):
        return config
    renamed = {"linear_head_dim": old.get("head_dim"), "linear_num_heads": old.get("num_heads"),
               "linear_conv_kernel_dim": old.get("short_conv_kernel_size")}  # fmt: skip
    full, depth = old.get("full_attn_layers"), config.get("num_hidden_layers")
    listed = config.get("layer_types")
    if listed is None and isinstance(full, list) and isinstance(depth, int):
        listed = ["full_attention" if i + 1 in full else "linear_attention" for i in range(depth)]
    return {**config, **{k: v for k, v in renamed.items() if v is not None}, "layer_types": listed}


def read_kimi_linear(known: Config, fields: Fields) -> Fields:
    d, h, head = size(fields, "width"), size(known, "linear_num_heads"), size(known, "linear_head_dim")
    q, k = h * head, size(known, "linear_conv_kernel_dim")
    matrices = 3 * d * q + d * h + 2 * (d * head + head * q) + q * d
    mixer = {
        "name": "delta attention", "params": matrices + 3 * q * k + q + h + head, "matrices": matrices,
        "products": 3 * q * k + 4 * q * head, "state": q * head + 3 * q * (k - 1), "stored": 9 * q + 2 * head + h,
    }  # fmt: skip

    def usual(i: int) -> str:
        return "full_attention" if (i + 1) % 4 == 0 else "linear_attention"

    kind = kinds(known, fields, "layer_types", usual=usual)
    first = min(whole(known.get("first_k_dense_replace", 1), "first_k_dense_replace"), layers(fields))
    listed = known.get("mlp_layer_types") or ["dense" if i < first else "sparse" for i in range(layers(fields))]
    dense = where(kinds({"mlp_layer_types": listed}, fields, "mlp_layer_types"), "dense")
    nope, rope = size(known, "qk_nope_head_dim"), size(known, "qk_rope_head_dim")
    latent = {"kv_rank": known.get("kv_lora_rank"), "query_rank": known.get("q_lora_rank"), "rope_dim": rope,
              "nope_dim": nope, "value_dim": known.get("v_head_dim")}  # fmt: skip
    moe = {"experts": known.get("num_experts"), "active": known.get("num_experts_per_token"),
           "width": known.get("moe_intermediate_size"), "shared": known.get("num_shared_experts", 0),
           "dense_layers": dense}  # fmt: skip
    # transformers never ties this family's head
    more = {
        "tied": False,
        "latent": latent,
        "head_dim": nope + rope,
        "experts": moe if len(dense) < layers(fields) else None,
    }
    return read_attention_bias(known, fields) | hybrid(kind, mixer) | more


_NO_HEADS = {"num_attention_heads": 1}  # the key is absent where no layer has attention
_MAMBA2 = {"mamba_n_heads": 128, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4,
           "mamba_expand": 2, "mamba_conv_bias": True, "num_key_value_heads": 8,
           "intermediate_size": 14336}  # fmt: skip
_LINEAR = {"linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
           "linear_num_key_heads": 16, "linear_num_value_heads": 32, "head_dim": 256,
           "max_position_embeddings": 32768}  # fmt: skip
_MAMBA1 = _NO_HEADS | {"state_size": 16, "expand": 2, "conv_kernel": 4, "use_conv_bias": True}
ONE_NORM = LLAMA_LIKE | {"positions": "none", "block_norms": 1}

HYBRIDS: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("mamba", "MambaForCausalLM", "Mamba", ONE_NORM, TIED | _MAMBA1, ff_may_be_absent=True,
               fused=("kv_heads", "head_dim"), reads=read_mamba),
        Family("falcon_mamba", "FalconMambaForCausalLM", "Falcon Mamba", ONE_NORM, TIED | _MAMBA1,
               ff_may_be_absent=True, fused=("kv_heads", "head_dim"), reads=read_mamba),
        Family("mamba2", "Mamba2ForCausalLM", "Mamba 2", ONE_NORM,
               UNTIED | _NO_HEADS | {"num_heads": 128, "state_size": 128, "expand": 2, "conv_kernel": 4,
                                     "n_groups": 8, "use_conv_bias": True},
               ff_may_be_absent=True, fused=("kv_heads", "head_dim"), reads=read_mamba2),
        Family("jamba", "JambaForCausalLM", "Jamba", LLAMA_LIKE | {"positions": "none"},
               UNTIED | {"num_key_value_heads": 8, "num_experts_per_tok": 2, "num_experts": 16,
                         "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8,
                         "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
                         "mamba_conv_bias": True, "max_position_embeddings": 262144},
               fused=("head_dim",), reads=read_jamba),
        Family("bamba", "BambaForCausalLM", "Bamba", LLAMA_LIKE, UNTIED | _MAMBA2, reads=read_bamba),
        Family("falcon_h1", "FalconH1ForCausalLM", "Falcon-H1", LLAMA_LIKE,
               UNTIED | _MAMBA2 | {"mamba_d_ssm": 1024, "mamba_d_head": "auto"}, reads=read_falcon_h1),
        Family("granitemoehybrid", "GraniteMoeHybridForCausalLM", "Granite 4", LLAMA_LIKE,
               UNTIED | _MAMBA2 | {"num_key_value_heads": None, "num_local_experts": 8, "num_experts_per_tok": 2,
                                   "shared_intermediate_size": 1024, "intermediate_size": 11008},
               reads=read_granite_hybrid),
        Family("qwen3_next", "Qwen3NextForCausalLM", "Qwen 3 Next", LLAMA_LIKE | {"qk_norm": "head"},
               UNTIED | _LINEAR | {"num_key_value_heads": 2, "num_experts": 512, "num_experts_per_tok": 10,
                                   "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
                                   "decoder_sparse_step": 1, "intermediate_size": 5632}, reads=read_qwen3_next),
        Family("qwen3_5_text", "Qwen3_5ForCausalLM", "Qwen 3.5 (the language model)",
               LLAMA_LIKE | {"qk_norm": "head"}, UNTIED | _LINEAR | {"num_key_value_heads": 4},
               reads=read_gated_attention),
        Family("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", "Qwen 3.5 with experts", LLAMA_LIKE | {"qk_norm": "head"},
               UNTIED | _LINEAR | {"num_key_value_heads": 2, "num_experts": 256, "num_experts_per_tok": 8,
                                   "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512},
               ff_may_be_absent=True, reads=read_qwen3_5_moe),
        Family("olmo_hybrid", "OlmoHybridForCausalLM", "OLMo hybrid", LLAMA_LIKE | {"qk_norm": "full"},
               UNTIED | {"linear_key_head_dim": 96, "linear_value_head_dim": 192, "linear_conv_kernel_dim": 4,
                         "max_position_embeddings": 65536}, reads=read_olmo_hybrid),
        Family("lfm2", "Lfm2ForCausalLM", "LFM 2", LLAMA_LIKE | {"qk_norm": "head"},
               TIED | {"num_key_value_heads": 8, "conv_L_cache": 3, "block_multiple_of": 256,
                       "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True,
                       "max_position_embeddings": 128000, "intermediate_size": 12288},
               fused=("head_dim",), reads=read_lfm2),
        Family("lfm2_moe", "Lfm2MoeForCausalLM", "LFM 2 with experts", LLAMA_LIKE | {"qk_norm": "head"},
               TIED | {"num_key_value_heads": 8, "conv_L_cache": 3, "num_dense_layers": 2, "num_experts": 32,
                       "num_experts_per_tok": 4, "moe_intermediate_size": 1792,
                       "max_position_embeddings": 128000}, fused=("head_dim",), reads=read_lfm2_moe),
        Family("nemotron_h", "NemotronHForCausalLM", "Nemotron-H",
               LLAMA_LIKE | {"ff": "plain", "block_norms": 1, "positions": "none"},
               UNTIED | {"num_key_value_heads": 8, "head_dim": 128, "ssm_state_size": 128, "mamba_num_heads": 128,
                         "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4, "use_conv_bias": True,
                         "n_routed_experts": 8, "moe_intermediate_size": 7688,
                         "moe_shared_expert_intermediate_size": 7688, "num_experts_per_tok": 2,
                         "intermediate_size": 21504, "max_position_embeddings": 4096},
               prepares=prepare_nemotron_h, reads=read_nemotron_h),
        Family("recurrent_gemma", "RecurrentGemmaForCausalLM", "RecurrentGemma",
               LLAMA_LIKE | {"out_bias": True, "ff_bias": True},
               TIED | {"attention_window_size": 2048, "conv1d_width": 4,
                       "block_types": ["recurrent", "recurrent", "attention"], "num_attention_heads": 10},
               reads=read_recurrent_gemma),
        Family("kimi_linear", "KimiLinearForCausalLM", "Kimi Linear", LLAMA_LIKE | {"positions": "none"},
               UNTIED | {"linear_head_dim": 128, "linear_num_heads": 32, "linear_conv_kernel_dim": 4,
                         "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
                         "num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1,
                         "moe_intermediate_size": 1024, "intermediate_size": 9216},
               keys=STANDARD | {"context": "model_max_length"},
               fused=("kv_heads", "head_dim"), prepares=prepare_kimi_linear, reads=read_kimi_linear),
    )
}  # fmt: skip
