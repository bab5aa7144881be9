"""Ways to make deep networks trainable, each as the choices of a model: where norms stand, residuals, initial weights.

Xavier weights where a scheme does not say otherwise. An embedding norm gives the stream the unit variance that the
originals get by multiplying embeddings by √width. ReZero and T-Fixup have no norm at all; GPT-2's start serves
CompleteP too, which also needs a base width and a base depth.
"""

from collections.abc import Mapping
from typing import Any, Literal

from deepwide.errors import DeepwideError

Scheme = Literal[
    "post-LN", "ADMIN", "ADMIN by rule", "DeepNorm", "ReZero", "T-Fixup", "pre-LN", "LayerNorm scaling", "LayerScale",
    "GPT-2", "CompleteP",
]  # fmt: skip
NORMED = {"initialisation": "xavier", "embedding_norm": True}
NO_NORM = {"norm": "none", "final_norm": False}
SCHEMES: Mapping[Scheme, Mapping[str, Any]] = {
    "post-LN": {**NORMED, "norm_place": "post"},
    "ADMIN": {**NORMED, "norm_place": "post", "residual": "admin_profiled"},
    "ADMIN by rule": {**NORMED, "norm_place": "post", "residual": "admin"},
    "DeepNorm": {**NORMED, "norm_place": "post", "residual": "deepnorm"},
    "ReZero": {**NO_NORM, "initialisation": "xavier", "residual": "rezero"},
    "T-Fixup": {**NO_NORM, "initialisation": "tfixup"},
    "pre-LN": {**NORMED, "norm_place": "pre"},
    "LayerNorm scaling": {**NORMED, "norm_place": "pre_scaled"},
    "LayerScale": {**NORMED, "norm_place": "pre", "residual": "layerscale"},
    "GPT-2": {"norm_place": "pre", "initialisation": "gpt2"},
    "CompleteP": {"norm_place": "pre", "initialisation": "gpt2", "parametrisation": "completep"},
}
PLAIN = {"residual": "plain", "parametrisation": "standard", "norm": "layernorm"}  # where a scheme says nothing


def scheme_of(model: Mapping[str, Any]) -> Scheme:
    """The scheme whose choices a model's settings are."""
    for scheme, choices in SCHEMES.items():
        if all(model.get(name, PLAIN.get(name)) == value for name, value in (PLAIN | dict(choices)).items()):
            return scheme
    raise DeepwideError(f"these settings of a model are those of no scheme: it must be one of {', '.join(SCHEMES)}.")
