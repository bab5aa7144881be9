"""Hugging Face `config.json` in and out: a file, a folder, or a hub id when the network is allowed.

Only JSON is ever read; no code that comes with a model is run.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deepwide.answers import Note
from deepwide.errors import DeepwideError, quoted
from deepwide.shape.families import NO_TRANSFORMERS, family_named, known_families, known_family
from deepwide.shape.family import LLAMA_LIKE, Fields, layers, whole
from deepwide.shape.shape import Shape

HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
LARGEST_BYTES = 10 * 2**20
ALIASES: dict[str, tuple[str, ...]] = {
    "depth": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "width": ("hidden_size", "n_embd", "d_model", "n_embed", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "ff_width": ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", "d_ff", "hidden_dim"),
    "vocab": ("vocab_size", "n_vocab"),
}
EXPERT_ALIASES: dict[str, tuple[str, ...]] = {
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "active": ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k", "top_k_experts"),
    "width": ("moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "shared": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"),
    "dense": ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"),
}
LATENT_ALIASES: dict[str, tuple[str, ...]] = {
    "kv_rank": ("kv_lora_rank",),
    "query_rank": ("q_lora_rank",),
    "rope_dim": ("qk_rope_head_dim",),
    "nope_dim": ("qk_nope_head_dim",),
    "value_dim": ("v_head_dim",),
}
ACTIVATION_KEYS = ("hidden_act", "activation_function", "hidden_activation", "mlp_hidden_act")
PLAIN_ACTIVATIONS = ("relu", "relu2", "gelu", "gelu_new", "xielu")  # of feed-forwards that have no gate
BIAS_KEYS = {"attention_bias": ("qkv_bias", "out_bias"), "qkv_bias": ("qkv_bias",), "mlp_bias": ("ff_bias",),
             "use_bias": ("qkv_bias", "out_bias", "ff_bias")}  # fmt: skip
QK_NORM_KEYS = ("use_qk_norm", "qk_layernorm")
SAME_FAMILY = {"kimi_k2": "deepseek_v3", "gpt-sw3": "gpt2", "qwen3_5": "qwen3_5_text", "llama4": "llama4_text",
               "qwen3_5_moe": "qwen3_5_moe_text", "gemma3": "gemma3_text"}  # fmt: skip
NOT_LLAMA_LIKE: dict[str, tuple[str, ...]] = {
    "an encoder": ("num_decoder_layers", "decoder_layers", "encoder_layers", "type_vocab_size", "is_encoder_decoder"),
    "state-space layers": ("ssm_cfg", "mamba_d_state", "state_size"),
    "linear-attention layers": ("linear_num_key_heads", "linear_key_head_dim", "linear_attn_config"),
    "recurrent layers": ("lru_width", "attention_hidden_size", "rescale_every"),
    "convolution layers": ("conv_L_cache", "conv_dim"),
}
LAYER_KINDS = ("layer_types", "block_types", "layers_block_type", "_block_types", "hybrid_layer_ids")
ATTENTION = ("attention", "full_attention", "sliding_attention", "chunked_attention")
OPTIONAL_ALIASES: dict[str, tuple[str, ...]] = {
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_kv_heads"),
    "head_dim": ("head_dim", "d_kv"),
    "context": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    "tied": ("tie_word_embeddings",),
}


class Reading(NamedTuple):
    """A shape read from a config, with its family (None if unknown) and what a reader should know."""

    shape: Shape
    family: str | None
    notes: tuple[Note, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the family is known, so that every count of parameters is exact."""
        return self.family is not None


def read_config(source: str | Path | Mapping[str, Any], *, network: bool = False, **options: Any) -> Reading:
    """Read a config: a parsed mapping, a file, a folder that holds `config.json`, or (`network=True`) a hub id.

    `options` are Shape fields that override what the config says, or supply what it lacks.
    """
    if isinstance(source, Mapping):
        return _read(source, options)
    config = load_config(source, network)
    try:
        return _read(config, options)
    except DeepwideError as error:
        raise DeepwideError(f"{str(source)[:200]}: {error}", remedies=error.remedies) from None


def _read(config: Mapping[str, Any], options: Fields) -> Reading:
    notes: list[Note] = []
    if isinstance(config.get("text_config"), Mapping):
        text = f"only the language model of this {quoted(config.get('model_type'))} config is counted"
        notes.append(Note.of("language-model-only", text))
        config = {"tie_word_embeddings": config.get("tie_word_embeddings")} | dict(config["text_config"])
        if config["tie_word_embeddings"] is None:
            del config["tie_word_embeddings"]
    name = config.get("model_type")
    given = {field: value for field, value in options.items() if value is not None}
    name = SAME_FAMILY.get(name, name) if isinstance(name, str) else name
    family = known_family(name) if isinstance(name, str) else None
    if family is not None:
        shape = family.read(config, given)
        other = {field: value for field, value in given.items() if getattr(shape, field, None) != value}
        return Reading(shape.but(**other) if other else shape, family.name, tuple(notes))
    if isinstance(name, str) and (what := NO_TRANSFORMERS.get(name.lower())):
        raise DeepwideError(_not_llama_like(f"has {what} (model_type {name})"), remedies=("build",))
    shape, assumed = _read_unknown(config, given)
    unknown = f"the family {quoted(name)} is unknown" if name else "the config names no family (model_type)"
    text = f"{unknown}: counted as a Llama-like decoder, which may be far off"
    about = Note.of("unknown-family", text, family=str(name)[:80] if isinstance(name, str) else None)
    return Reading(shape, None, (about, Note("assumed", f"assumed: {', '.join(assumed)}", {"parts": assumed}), *notes))


def write_config(shape: Shape, family: str, path: str | Path | None = None) -> Fields:
    """The `config.json` of `shape` in a family's format, saved when a path is given (in a folder as `config.json`)."""
    if not isinstance(shape, Shape):
        raise DeepwideError(f"a config is written of a Shape, not of {quoted(shape)}.")
    config = family_named(family).write(shape)
    if path is not None:
        from deepwide.files import write_text  # a plan does not wait for it

        write_text(config_path(path), json.dumps(config, indent=2) + "\n")
    return config


def config_path(path: str | Path) -> Path:
    """Where `write_config` writes: the file itself, or `config.json` in a folder that exists."""
    target = Path(path)
    return target / "config.json" if target.is_dir() else target


def _read_unknown(config: Mapping[str, Any], given: Fields) -> tuple[Shape, list[str]]:
    """The shape by the usual names of keys, and in words what was assumed."""
    for what, keys in NOT_LLAMA_LIKE.items():
        if key := next((key for key in keys if config.get(key)), None):
            raise DeepwideError(_not_llama_like(f"has {what} ({key})"), remedies=("build",))
    for key in LAYER_KINDS:
        kinds = config.get(key)
        listed = kinds if isinstance(kinds, list) else []
        if other := next((kind for kind in listed if kind not in ATTENTION), None):
            raise DeepwideError(_not_llama_like(f"has layers of the kind {quoted(other)} ({key})"), remedies=("build",))
    fields: Fields = dict(LLAMA_LIKE)
    for field, keys in (ALIASES | OPTIONAL_ALIASES).items():
        value = next((config[key] for key in keys if config.get(key) is not None), None)
        if isinstance(value, list) and field not in given:
            raise DeepwideError(_not_llama_like(f"gives {field} per layer, as a list"), remedies=("build",))
        if value is not None:
            fields[field] = value
    fields.setdefault("tied", False)
    fields |= given
    if fields.get("ff_width") is None and _first(config, EXPERT_ALIASES["width"]) is not None:
        fields["ff_width"] = _first(config, EXPERT_ALIASES["width"])
    missing = [field for field in ALIASES if field not in fields]
    if missing:
        raise DeepwideError(
            f"this config is of none of the {len(known_families())} families deepwide knows and lacks "
            f"{', '.join(missing)}: "
            f"give {'it' if len(missing) == 1 else 'them'} as well.",
            remedies=missing,
        )
    activation = _first(config, ACTIVATION_KEYS)
    if activation in PLAIN_ACTIVATIONS:
        fields["ff"] = "plain"
    for key, parts in BIAS_KEYS.items():
        if config.get(key) is True:
            fields |= dict.fromkeys(parts, True)
    if any(config.get(key) is True for key in QK_NORM_KEYS):
        fields["qk_norm"] = "head"
    fields |= _latent(config) | _experts(config, fields)
    return Shape.of(**fields), _assumptions(fields, activation)


def _assumptions(fields: Fields, activation: Any) -> list[str]:
    gate = f", by its activation {quoted(activation)}" if isinstance(activation, str) else ""
    biased = [name for name in ("qkv_bias", "out_bias", "ff_bias") if fields[name]]
    words = [
        f"{fields['ff']} feed-forward{gate}",
        "two RMSNorms per layer",
        f"biases {', '.join(biased)}" if biased else "no biases",
        "rotary positions",
        "attention in every layer",
    ]
    if fields.get("experts"):
        words.append("experts in every layer but the first few dense ones, with a router and no gate of shared ones")
    if fields.get("latent"):
        words.append("latent attention as DeepSeek's")
    return words


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((config[key] for key in keys if config.get(key) is not None), None)


def _latent(config: Mapping[str, Any]) -> Fields:
    latent = {field: _first(config, keys) for field, keys in LATENT_ALIASES.items()}
    if latent["kv_rank"] is None:
        return {}
    rope, nope = (whole(latent[field], LATENT_ALIASES[field][0]) for field in ("rope_dim", "nope_dim"))
    return {"latent": latent, "head_dim": nope + rope, "kv_heads": None}


def _experts(config: Mapping[str, Any], fields: Fields) -> Fields:
    moe = {field: _first(config, keys) for field, keys in EXPERT_ALIASES.items()}
    if config.get("is_moe") is False or (not moe["experts"] and not moe["active"]):
        return {}
    moe["width"] = moe["width"] or fields["ff_width"]
    for field, what in (("experts", "how many"), ("active", "how many are active"), ("width", "how wide they are")):
        if not moe[field]:
            text = f"this config has experts and does not say {what} ({EXPERT_ALIASES[field][0]})."
            raise DeepwideError(text, remedies=("build",))
    first = min(whole(moe.pop("dense") or 0, "first_k_dense_replace"), layers(fields))
    if first == layers(fields):
        return {}
    shared = moe["shared"] or 0
    return {"experts": moe | {"shared": shared, "dense_layers": tuple(range(first))}}


def _not_llama_like(why: str) -> str:
    return (
        f"this config is of none of the {len(known_families())} families deepwide knows and {why}, so it cannot be "
        "counted as a Llama-like decoder."
    )


def load_config(source: str | Path, network: bool = False) -> Mapping[str, Any]:
    """The JSON of a config: a file, a folder that holds `config.json`, or with `network` a hub id."""
    try:
        path = Path(source).expanduser()
    except RuntimeError:  # no such user
        path = Path(source)
    try:
        if path.is_dir():
            path = path / "config.json"
        if path.is_file():
            if path.stat().st_size > LARGEST_BYTES:
                raise DeepwideError(f"{path} is too large for a config ({path.stat().st_size:,} bytes).")
            return _parse(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:  # not allowed, too long for a name, a NUL in it
        if isinstance(error, DeepwideError):
            raise
        raise DeepwideError(f"cannot read {str(path)[:200]!r}: {getattr(error, 'strerror', error)}.") from None
    if not HUB_ID.fullmatch(str(source)) or str(source).endswith(".json"):
        raise DeepwideError(f"there is no config at {path}.")
    if not network:
        raise DeepwideError(f"there is no folder {source}, and without network access the hub was not asked.")
    return _parse(_fetch(str(source)), str(source))


def _fetch(hub_id: str) -> bytes:
    from http.client import HTTPException  # loaded only when asked for: they cost a plan 10 ms
    from urllib.error import HTTPError
    from urllib.parse import urlsplit
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class KeepTheTokenHome(HTTPRedirectHandler):
        """The hub answers with redirects: the token may follow within the host, and never leaves it."""

        def redirect_request(self, req: Request, *rest: Any) -> Request | None:
            following = super().redirect_request(req, *rest)
            if following and urlsplit(following.full_url)[:2] != urlsplit(req.full_url)[:2]:
                following.remove_header("Authorization")
            return following

    base = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN")
    headers = {"User-Agent": "deepwide"} | ({"Authorization": f"Bearer {token}"} if token else {})
    url = f"{base}/{hub_id}/resolve/main/config.json"
    if not url.startswith(("https://", "http://")):
        raise DeepwideError(f"HF_ENDPOINT must be an http address, not {base!r}.")
    try:
        with build_opener(KeepTheTokenHome).open(Request(url, headers=headers), timeout=20) as answer:
            raw = bytes(answer.read(LARGEST_BYTES + 1))
    except (OSError, HTTPException, ValueError) as error:
        hint = ""
        if isinstance(error, HTTPError):
            error.close()
            hint = " (a gated model needs HF_TOKEN)" if error.code in (401, 403) else ""
        raise DeepwideError(f"could not fetch {url}: {str(error)[:200] or type(error).__name__}{hint}.") from None
    if len(raw) > LARGEST_BYTES:
        raise DeepwideError(f"{url} is too large for a config.")
    return raw


def _parse(raw: bytes, where: str) -> Mapping[str, Any]:
    try:
        config = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DeepwideError(f"{where} is not JSON: {str(error)[:120]}.") from None
    if not isinstance(config, dict):
        raise DeepwideError(f"{where} must hold a JSON object, not {type(config).__name__}.")
    return config
