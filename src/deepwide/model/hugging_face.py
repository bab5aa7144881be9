"""Weights in Hugging Face layout: GPT-2, Llama and BERT state dicts, from safetensors and never from a pickle.

A BERT reads one segment: its type embedding 0 is added to its positions. Its pooler and its head for masked tokens,
where a checkpoint has them, are left out; `Transformer.hidden` is what `BertModel` calls the last hidden state.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from deepwide.errors import DeepwideError
from deepwide.files import read_json
from deepwide.model.architecture import Architecture
from deepwide.model.transformer import Transformer
from deepwide.shape import read_config

Weights = Mapping[str, Tensor]
ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
}


def load_folder(folder: str | Path) -> Transformer:
    """A Transformer from a folder with config.json and *.safetensors, as `save_pretrained` writes it."""
    from safetensors.torch import load_file

    folder = Path(folder)
    files = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not files:
        raise DeepwideError(f"{folder} must hold config.json and *.safetensors (pickled .bin files are not read).")
    config = read_json(folder / "config.json", "a model's config")
    if not isinstance(config, dict):
        raise DeepwideError(f"{folder / 'config.json'} is not a model's config: it must be an object.")
    try:
        weights = {name: tensor for file in files for name, tensor in load_file(file).items()}
    except Exception as error:  # safetensors has an exception class of its own, not derived from ValueError
        reason = " ".join(str(error).split())[:200]
        raise DeepwideError(f"the weights in {folder} cannot be read: {reason}.") from None
    return from_hugging_face(config, weights)


def from_hugging_face(config: Mapping[str, object], weights: Weights) -> Transformer:
    """A Transformer that gives the same logits (of a BERT: hidden states) as `transformers` does for this config and
    state dict."""
    kind = str(config.get("model_type"))
    if kind not in LAYOUTS:
        raise DeepwideError(f"weights of model_type '{kind}' cannot be loaded; it must be gpt2, llama or bert.")
    if kind == "bert":
        design = _bert_design(config)
    else:
        reading = read_config(dict(config))
        fields = {name: getattr(reading.shape, name) for name in type(reading.shape).model_fields}
        design = Architecture.of("levine" if kind == "gpt2" else "llama", **fields, **_choices(kind, config))
    model = Transformer(design)
    renamed = LAYOUTS[kind](weights, design)
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in own.items():
            if name not in renamed:
                raise DeepwideError(f"the {kind} weights lack what our '{name}' needs.")
            if renamed[name].shape != parameter.shape:
                sizes = f"{tuple(renamed[name].shape)}, the config says {tuple(parameter.shape)}"
                raise DeepwideError(f"the {kind} weights for '{name}' are {sizes}.")
            parameter.copy_(renamed[name])
    return model


def _activation(config: Mapping[str, object], key: str, usual: str) -> str:
    activation = config.get(key) or usual
    if activation not in ACTIVATIONS:
        raise DeepwideError(f"{key} '{activation}' is not known; it must be one of {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[str(activation)]


def _choices(kind: str, config: Mapping[str, object]) -> dict[str, object]:
    key, usual = ("activation_function", "gelu_new") if kind == "gpt2" else ("hidden_act", "silu")
    eps = config.get("layer_norm_epsilon" if kind == "gpt2" else "rms_norm_eps")
    choices: dict[str, object] = {"activation": _activation(config, key, usual)}
    choices["norm_eps"] = float(str(eps)) if eps is not None else (1e-5 if kind == "gpt2" else 1e-6)
    if kind == "llama":
        # transformers 5 keeps rotary settings in rope_parameters, earlier versions beside the rest
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        assert isinstance(rope, Mapping)
        if rope.get("rope_type", rope.get("type", "default")) != "default":
            raise DeepwideError("Llama weights with scaled rotary positions cannot be loaded yet.")
        choices["rotary_base"] = float(str(rope.get("rope_theta") or config.get("rope_theta") or 10000.0))
    return choices


def _gpt2(weights: Weights, design: Architecture) -> dict[str, Tensor]:
    w = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    ours = {"embedding.weight": "wte.weight", "positions": "wpe.weight", "head.weight": "lm_head.weight"}
    ours |= {f"final_norm.{part}": f"ln_f.{part}" for part in ("weight", "bias")}
    modules = {
        "attention.qkv": "attn.c_attn",
        "attention.out": "attn.c_proj",
        "feed_forward.up": "mlp.c_fc",
        "feed_forward.down": "mlp.c_proj",
        "attention_norm": "ln_1",
        "feed_forward_norm": "ln_2",
    }
    for layer in range(design.shape.depth):
        for our, their in modules.items():
            for part in ("weight", "bias"):
                ours[f"blocks.{layer}.{our}.{part}"] = f"h.{layer}.{their}.{part}"
    # GPT-2's Conv1D keeps its matrices (in, out)
    return {
        our: w[their].T if "blocks." in our and w[their].ndim == 2 else w[their]
        for our, their in ours.items()
        if their in w
    }


def _llama(weights: Weights, design: Architecture) -> dict[str, Tensor]:
    w = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    ours: dict[str, tuple[str, ...]] = {
        "embedding.weight": ("embed_tokens.weight",),
        "final_norm.weight": ("norm.weight",),
        "head.weight": ("lm_head.weight",),
    }
    for layer in range(design.shape.depth):
        here, there = f"blocks.{layer}", f"layers.{layer}"
        for part in ("weight", "bias"):
            ours |= {
                f"{here}.attention.qkv.{part}": tuple(f"{there}.self_attn.{x}_proj.{part}" for x in "qkv"),
                f"{here}.attention.out.{part}": (f"{there}.self_attn.o_proj.{part}",),
                f"{here}.feed_forward.gate_up.{part}": (f"{there}.mlp.gate_proj.{part}", f"{there}.mlp.up_proj.{part}"),
                f"{here}.feed_forward.down.{part}": (f"{there}.mlp.down_proj.{part}",),
            }
        ours[f"{here}.attention_norm.weight"] = (f"{there}.input_layernorm.weight",)
        ours[f"{here}.feed_forward_norm.weight"] = (f"{there}.post_attention_layernorm.weight",)
    return {our: torch.cat([w[name] for name in theirs]) for our, theirs in ours.items() if all(n in w for n in theirs)}


def _bert_design(config: Mapping[str, object]) -> Architecture:
    names = {
        "depth": "num_hidden_layers",
        "width": "hidden_size",
        "heads": "num_attention_heads",
        "ff_width": "intermediate_size",
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
    }
    if missing := [name for name in names.values() if type(config.get(name)) is not int]:
        raise DeepwideError(f"the config of a BERT needs {missing[0]}, a whole number.")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise DeepwideError("BERT weights with relative positions cannot be loaded; they must be absolute.")
    eps = config.get("layer_norm_eps")
    return Architecture.of(
        "levine",
        **{ours: config[theirs] for ours, theirs in names.items()},
        kind="encoder",
        norm_place="post",
        embedding_norm=True,
        norm_eps=1e-12 if eps is None else float(str(eps)),
        activation=_activation(config, "hidden_act", "gelu"),
    )


def _bert(weights: Weights, design: Architecture) -> dict[str, Tensor]:
    w = {name.removeprefix("bert."): tensor for name, tensor in weights.items()}
    ours: dict[str, tuple[str, ...]] = {"embedding.weight": ("embeddings.word_embeddings.weight",)}
    modules = {
        "attention.out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "feed_forward.up": "intermediate.dense",
        "feed_forward.down": "output.dense",
        "feed_forward_norm": "output.LayerNorm",
    }
    for part in ("weight", "bias"):
        ours[f"embedding_norm.{part}"] = (f"embeddings.LayerNorm.{part}",)
        for layer in range(design.shape.depth):
            here, there = f"blocks.{layer}", f"encoder.layer.{layer}"
            ours[f"{here}.attention.qkv.{part}"] = tuple(
                f"{there}.attention.self.{name}.{part}" for name in ("query", "key", "value")
            )
            ours |= {f"{here}.{our}.{part}": (f"{there}.{their}.{part}",) for our, their in modules.items()}
    renamed = {
        our: torch.cat([w[name] for name in theirs]) for our, theirs in ours.items() if all(n in w for n in theirs)
    }
    places, types = (w.get(f"embeddings.{name}_embeddings.weight") for name in ("position", "token_type"))
    if places is not None and types is not None:
        renamed["positions"] = places + types[0]
    return renamed


LAYOUTS: Mapping[str, Callable[[Weights, Architecture], dict[str, Tensor]]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "bert": _bert,
}
