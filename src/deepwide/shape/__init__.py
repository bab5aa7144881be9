"""Shape and what can be said about it: parameters, FLOPs, memory, and Hugging Face configs in and out."""

from deepwide.shape.config import Reading, config_path, read_config, write_config
from deepwide.shape.devices import DeviceMemory, device_memory
from deepwide.shape.families import FAMILIES, family_named
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
from deepwide.shape.shape import Experts, Head, Kind, LatentAttention, Params, Shape
from deepwide.shape.shape import count as count_params

__all__ = [
    "CONVENTIONS",
    "FAMILIES",
    "INFERENCE_BYTES",
    "DeviceMemory",
    "Experts",
    "Family",
    "FlopConvention",
    "Flops",
    "Head",
    "InferenceMemory",
    "Kind",
    "LatentAttention",
    "Params",
    "Reading",
    "Shape",
    "TrainingMemory",
    "cache_elements",
    "causal_training_flops",
    "config_path",
    "count_params",
    "device_memory",
    "family_named",
    "flops",
    "inference_memory",
    "read_config",
    "training_memory",
    "write_config",
]
