"""Rules of the families with experts: Mixtral, Qwen 3 MoE, DeepSeek."""

from typing import Any

from deepwide.errors import DeepwideError
from deepwide.shape.families.family import Config, Fields, flag, layers, whole
from deepwide.shape.families.rules import read_attention_bias, read_window, write_attention_bias, write_window
from deepwide.shape.shape import Shape


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
