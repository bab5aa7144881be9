"""Memory of a Shape: for training and for inference, with the formula that gave each number.

Legend of the formulas: P parameters, B batch (sequences), T sequence length, V vocabulary, d width, L depth,
q = heads·head_dim, kv = kv_heads·head_dim, f feed-forward width.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.shape.shape import Shape


class Precision(NamedTuple):
    """Bytes per parameter of each kind, and per stored activation."""

    weights: int
    gradients: int
    optimiser: int
    activation: int


PRECISIONS: Mapping[str, Precision] = {
    "mixed": Precision(2, 2, 12, 2),  # bf16 copies; fp32 master weights and Adam's two moments
    "bf16": Precision(2, 2, 4, 2),
    "fp32": Precision(4, 4, 8, 4),
}
INFERENCE_BYTES: Mapping[str, float] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5}


class TrainingMemory(BaseModel):
    """Bytes on one device that holds the whole model: divide by the sharding you use."""

    model_config = ConfigDict(frozen=True)

    batch: int
    sequence: int
    precision: str
    weights: int
    gradients: int
    optimiser: int
    activations: int
    logits: int
    formula: dict[str, str]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.gradients + self.optimiser + self.activations + self.logits


class InferenceMemory(BaseModel):
    """Bytes to serve: weights once, the key/value cache per sequence."""

    model_config = ConfigDict(frozen=True)

    batch: int
    sequence: int
    precision: str
    weights: int
    cache: int
    cache_bytes_per_token: int
    formula: dict[str, str]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        """Weights and cache."""
        return self.weights + self.cache


def training_memory(
    shape: Shape,
    *,
    batch: int = 1,
    sequence: int | None = None,
    precision: str = "mixed",
    attention: str = "flash",
    recompute: bool = False,
) -> TrainingMemory:
    """Memory of a training step with Adam.

    Attention is "flash", or "eager", which keeps its score matrices; `recompute` keeps only each layer's input
    (full checkpointing).
    """
    if precision not in PRECISIONS:
        raise DeepwideError(f"no training precision '{precision}': {did_you_mean(precision, PRECISIONS)}")
    if attention not in ("flash", "eager"):
        raise DeepwideError(f"no attention '{attention}': {did_you_mean(attention, ('flash', 'eager'))}")
    size, T = PRECISIONS[precision], sequence or shape.context
    tokens, layer, P = batch * T, _layer_elements(shape, T, attention), shape.total_params
    kept = shape.depth * shape.width + layer if recompute else shape.depth * layer
    per_layer = f"{_layer_formula(shape, attention)} = {layer:,}"
    return TrainingMemory(
        batch=batch,
        sequence=T,
        precision=precision,
        weights=size.weights * P,
        gradients=size.gradients * P,
        optimiser=size.optimiser * P,
        activations=size.activation * tokens * (kept + 2 * shape.width),
        logits=(size.activation + 4) * tokens * shape.vocab,
        formula={
            "weights": f"{size.weights}·P",
            "gradients": f"{size.gradients}·P",
            "optimiser": f"{size.optimiser}·P",
            "activations": f"{size.activation}·B·T·({'L·d + a' if recompute else 'L·a'} + 2d), a = {per_layer}",
            "logits": f"({size.activation} + 4)·B·T·V",
        },
    )


def inference_memory(
    shape: Shape,
    *,
    batch: int = 1,
    sequence: int | None = None,
    precision: str = "bf16",
    cache_precision: str = "bf16",
) -> InferenceMemory:
    """Memory to serve `batch` sequences of a length."""
    for name in (precision, cache_precision):
        if name not in INFERENCE_BYTES:
            raise DeepwideError(f"no inference precision '{name}': {did_you_mean(name, INFERENCE_BYTES)}")
    T = sequence or shape.context
    size = INFERENCE_BYTES[cache_precision]
    sliding = len(shape.sliding_layers)
    positions = (shape.depth - sliding) * T + sliding * min(T, shape.window or T)
    per_position = cache_elements(shape)
    what = "kv_rank + rope_dim" if shape.latent else "2·kv"
    per_token = f"{what} = {per_position:,}"
    where = "Σ over layers of min(T, window)" if sliding else "L·T"
    return InferenceMemory(
        batch=batch,
        sequence=T,
        precision=precision,
        weights=round(INFERENCE_BYTES[precision] * shape.total_params),
        cache=round(size * batch * positions * per_position),
        cache_bytes_per_token=round(size * shape.depth * per_position),
        formula={
            "weights": f"{INFERENCE_BYTES[precision]:g}·P",
            "cache": f"{size:g}·B·({where})·({per_token})",
        },
    )


def cache_elements(shape: Shape) -> int:
    """Numbers cached per token and layer."""
    if shape.latent:
        return shape.latent.kv_rank + shape.latent.rope_dim
    return 2 * shape.kv_heads * shape.head_dim


def _layer_elements(shape: Shape, T: int, attention: str) -> int:
    """Numbers one layer keeps per token for its backward pass."""
    values = shape.latent.value_dim if shape.latent else shape.head_dim
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    stored = (4 if shape.ff == "gated" else 2) * shape.ff_width
    if moe := shape.experts:
        stored = (4 if shape.ff == "gated" else 2) * moe.width * (moe.active + moe.shared)
        stored += (moe.active - 1) * shape.width  # a token's input, once per expert
    norms = (shape.block_norms + min(2, shape.block_norms)) * shape.width
    scores = 2 * shape.heads * T if attention == "eager" else 0
    latent = (shape.latent.kv_rank + (shape.latent.query_rank or 0)) * 2 if shape.latent else 0
    return norms + q + kv + shape.kv_heads * values + shape.heads * values + stored + scores + latent


def _layer_formula(shape: Shape, attention: str) -> str:
    norms = shape.block_norms + min(2, shape.block_norms)
    feed = ("4" if shape.ff == "gated" else "2") + "f"
    scores = " + 2·heads·T" if attention == "eager" else ""
    parts = f"{norms}d + 2q + 2kv + {feed}{scores}"
    return parts + (" (f over active experts)" if shape.experts else "") + (" + latent" if shape.latent else "")
