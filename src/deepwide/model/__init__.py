"""The transformer, laid out so that its parts are chosen by name. Architecture needs no torch; the rest is loaded
when first used."""

from importlib import import_module
from typing import Any

from deepwide.model.architecture import (
    PRESETS,
    Activation,
    Architecture,
    AttentionKind,
    Initialisation,
    NormPlace,
    Parametrisation,
    Residual,
)

_HOME = {
    "Transformer": "deepwide.model.transformer",
    "factors": "deepwide.model.parametrisation",
    "from_hugging_face": "deepwide.model.hugging_face",
    "generator_for": "deepwide.model.initialisation",
    "load_folder": "deepwide.model.hugging_face",
}
__all__ = [
    "PRESETS",
    "Activation",
    "Architecture",
    "AttentionKind",
    "Initialisation",
    "NormPlace",
    "Parametrisation",
    "Residual",
    "Transformer",
    "factors",
    "from_hugging_face",
    "generator_for",
    "load_folder",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'deepwide.model' has no attribute {name!r}")
