"""Shape and what can be said about it: parameters, FLOPs, memory, and Hugging Face configs in and out."""

from deepwide.shape.config import Reading, read_config, write_config
from deepwide.shape.families import FAMILIES, Family, family_named
from deepwide.shape.flops import CONVENTIONS, FlopConvention, Flops, flops
from deepwide.shape.memory import InferenceMemory, TrainingMemory, inference_memory, training_memory
from deepwide.shape.params import Params
from deepwide.shape.shape import Experts, LatentAttention, Shape
from deepwide.shape.style import Style

__all__ = [
    "CONVENTIONS",
    "FAMILIES",
    "Experts",
    "Family",
    "FlopConvention",
    "Flops",
    "InferenceMemory",
    "LatentAttention",
    "Params",
    "Reading",
    "Shape",
    "Style",
    "TrainingMemory",
    "family_named",
    "flops",
    "inference_memory",
    "read_config",
    "training_memory",
    "write_config",
]
