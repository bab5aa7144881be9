"""Shape and what can be said about it: parameters, FLOPs, memory, and Hugging Face configs in and out.

Memory per device, and counting by building, are loaded when first asked for: a plan does without them.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.shape.config import Reading, config_path, read_config, write_config
from deepwide.shape.families import FAMILIES, family_named, known_families
from deepwide.shape.family import Family
from deepwide.shape.flops import CONVENTIONS, FlopConvention, Flops, causal_training_flops, flops
from deepwide.shape.memory import (
    INFERENCE_BYTES,
    InferenceMemory,
    TrainingMemory,
    cache_elements,
    inference_memory,
    training_memory,
)
from deepwide.shape.shape import Experts, Extra, Head, Kind, LatentAttention, Mixing, MixingKind, Params, Shape
from deepwide.shape.shape import count as count_params

if TYPE_CHECKING:
    from deepwide.shape.building import BuiltCount as BuiltCount
    from deepwide.shape.building import build_count as build_count
    from deepwide.shape.devices import DeviceMemory as DeviceMemory
    from deepwide.shape.devices import device_memory as device_memory
    from deepwide.shape.devices import serving_share as serving_share

__all__ = [
    "CONVENTIONS",
    "FAMILIES",
    "INFERENCE_BYTES",
    "BuiltCount",
    "DeviceMemory",
    "Experts",
    "Extra",
    "Family",
    "FlopConvention",
    "Flops",
    "Head",
    "InferenceMemory",
    "Kind",
    "LatentAttention",
    "Mixing",
    "MixingKind",
    "Params",
    "Reading",
    "Shape",
    "TrainingMemory",
    "build_count",
    "cache_elements",
    "causal_training_flops",
    "config_path",
    "count_params",
    "device_memory",
    "family_named",
    "flops",
    "inference_memory",
    "known_families",
    "read_config",
    "serving_share",
    "training_memory",
    "write_config",
]
_LATER = {"BuiltCount": "building", "build_count": "building", "DeviceMemory": "devices", "device_memory": "devices",
          "serving_share": "devices"}  # fmt: skip
__getattr__ = partial(offered, __name__, _LATER)
