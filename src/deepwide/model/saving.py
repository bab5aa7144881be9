"""Networks of ours in a folder: config.json with the architecture, model.safetensors with the weights. No pickle."""

import json
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.files import read_json, write_bytes, write_text
from deepwide.model.architecture import Architecture
from deepwide.model.transformer import Transformer
from deepwide.settings import explain

FORMAT = "deepwide"
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save_model(model: Transformer, folder: str | Path, **about: Any) -> Path:
    """Write a network to a folder; `about` is stored beside its architecture. The config is written last."""
    from safetensors.torch import save

    folder = Path(folder)
    weights = {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}
    write_bytes(folder / WEIGHTS, save(weights))
    config = {"format": FORMAT, "architecture": model.design.model_dump(mode="json"), "about": about}
    write_text(folder / CONFIG, json.dumps(config, indent=1) + "\n")
    return folder


def load_model(folder: str | Path) -> tuple[Transformer, dict[str, Any]]:
    """A network that `save_model` wrote, and what was stored beside it."""
    from safetensors.torch import load

    folder = Path(folder)
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        raise DeepwideError(f"{folder} must hold {CONFIG} and {WEIGHTS}, as a saved network does.")
    config = read_json(folder / CONFIG, "a network's config")
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise DeepwideError(f"{folder / CONFIG} is not a config of a saved network: its format must be '{FORMAT}'.")
    try:
        design = Architecture.model_validate(config.get("architecture"), strict=False)
    except ValidationError as error:
        raise DeepwideError(f"{folder / CONFIG}: {explain(error, Architecture)}") from None
    try:
        weights = load((folder / WEIGHTS).read_bytes())
    except Exception as error:  # safetensors has an exception class of its own, not derived from ValueError
        reason = " ".join(str(error).split())[:200]
        raise DeepwideError(f"the weights in {folder} cannot be read: {reason}.") from None
    model = Transformer(design)
    own = dict(model.named_parameters())
    sizes = {name: tuple(parameter.shape) for name, parameter in own.items()}
    if sizes != {name: tuple(tensor.shape) for name, tensor in weights.items()}:
        wrong = sorted(name for name in sizes.keys() | weights.keys() if sizes.get(name) != _size(weights.get(name)))
        raise DeepwideError(f"the weights in {folder} are not those of its config: see {', '.join(wrong[:3])}.")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])
    about = config.get("about")
    return model.eval(), about if isinstance(about, dict) else {}


def _size(tensor: torch.Tensor | None) -> tuple[int, ...] | None:
    return None if tensor is None else tuple(tensor.shape)
