"""The transformer, laid out so that its parts are chosen by name. Architecture needs no torch; the rest is loaded
when first used."""

from functools import partial

from deepwide import offered
from deepwide.model.architecture import (
    PRESETS,
    Activation,
    Architecture,
    AttentionKind,
    Initialisation,
    Look,
    NormPlace,
    Parametrisation,
    Residual,
    factors,
)
from deepwide.model.schemes import SCHEMES, Scheme, scheme_of

_HOME = {
    "Decoder": "decoding",
    "Hypothesis": "decoding",
    "Recorder": "cache",
    "Transformer": "transformer",
    "beam_search": "decoding",
    "from_hugging_face": "hugging_face",
    "generate": "decoding",
    "generator_for": "initialisation",
    "load_folder": "hugging_face",
    "narrowed": "narrowing",
    "profile": "layers",
    "load_model": "saving",
    "save_model": "saving",
    "sized_groups": "narrowing",
}
__all__ = [
    "PRESETS",
    "SCHEMES",
    "Activation",
    "Architecture",
    "AttentionKind",
    "Decoder",
    "Hypothesis",
    "Initialisation",
    "Look",
    "NormPlace",
    "Parametrisation",
    "Recorder",
    "Residual",
    "Scheme",
    "Transformer",
    "beam_search",
    "factors",
    "from_hugging_face",
    "generate",
    "generator_for",
    "load_folder",
    "load_model",
    "narrowed",
    "profile",
    "save_model",
    "scheme_of",
    "sized_groups",
]
__getattr__ = partial(offered, __name__, _HOME)
