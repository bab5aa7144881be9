"""The transformer, laid out so that its parts are chosen by name. Architecture needs no torch; the rest is loaded
when first used."""

from typing import Any

from deepwide.doors import offered
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
    "Transformer": "transformer",
    "factors": "parametrisation",
    "from_hugging_face": "hugging_face",
    "generator_for": "initialisation",
    "load_folder": "hugging_face",
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
    return offered(__name__, _HOME, name)
