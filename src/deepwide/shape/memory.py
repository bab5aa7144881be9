"""Memory of a Shape: for training and for inference, with the formula that gave each number.

Legend of the formulas: P parameters, B batch (sequences), T sequence length, V vocabulary, d width, L depth,
q = heads·head_dim, kv = kv_heads·head_dim, f feed-forward width (in m, of one expert), k active experts.

Activations are those of a lean implementation: fused norms and attention that keep their input and what the next
product needs, nothing twice. Left out are a few numbers per token: each norm's mean and deviation, the
log-sum-exp of each head, the router's scores. A test measures this on a block in torch.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, at_least_one, did_you_mean
from deepwide.shape.params import expert_layers
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

    model_config = ConfigDict(frozen=True, defer_build=True)

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

    model_config = ConfigDict(frozen=True, defer_build=True)

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
    at_least_one(batch=batch, sequence=sequence)
    size, T = PRECISIONS[precision], sequence or shape.context
    tokens, P, routed = batch * T, shape.total_params, expert_layers(shape)
    # Softmax stays in 32 bits; its copy for the product with the values is a second tensor unless it is one too.
    scores = 0 if attention == "flash" else 1 if size.activation == 4 else 4 // size.activation + 1
    layers = [
        (name, number, _layer_elements(shape, T, scores, routed=r), _layer_formula(shape, scores, routed=r))
        for name, number, r in (("a", shape.depth - routed, False), ("m", routed, True))
        if number
    ]
    kept = sum(number * elements for _, number, elements, _ in layers)
    in_words = " + ".join(f"{number if len(layers) > 1 else 'L'}·{name}" for name, number, *_ in layers)
    if recompute:
        kept = shape.depth * shape.width + max(elements for _, _, elements, _ in layers)
        in_words = "L·d + " + ("max(a, m)" if len(layers) > 1 else layers[0][0])
    per_layer = ", ".join(f"{name} = {formula} = {elements:,}" for name, _, elements, formula in layers)
    return TrainingMemory.model_construct(
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
            "activations": f"{size.activation}·B·T·({in_words} + 2d), {per_layer}",
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
    at_least_one(batch=batch, sequence=sequence)
    T = sequence or shape.context
    size = INFERENCE_BYTES[cache_precision]
    sliding = len(shape.sliding_layers)
    positions = (shape.depth - sliding) * T + sliding * min(T, shape.window or T)
    per_position = cache_elements(shape)
    what = "kv_rank + rope_dim" if shape.latent else "2·kv"
    per_token = f"{what} = {per_position:,}"
    where = "Σ over layers of min(T, window)" if sliding else "L·T"
    return InferenceMemory.model_construct(
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


def _layer_elements(shape: Shape, T: int, scores: int, *, routed: bool) -> int:
    """Numbers one layer keeps per token for its backward pass."""
    d, q, kv = shape.width, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    norms = shape.block_norms + min(2, shape.block_norms)  # the input of each, and of the two sublayers
    kept = norms * d + scores * shape.heads * T
    if m := shape.latent:
        # Queries, keys and the output; the values are a view that keeps their whole projection. Each latent twice:
        # before and after its norm.
        ranks = m.kv_rank + (m.query_rank or 0)
        kept += 2 * q + shape.heads * (m.nope_dim + 2 * m.value_dim) + 2 * ranks
    else:
        kept += 2 * q + 2 * kv
        kept += q + kv if shape.qk_norm != "none" else 0
    steps = 4 if shape.ff == "gated" else 2
    if routed and (moe := shape.experts):
        # A token's input and output once per expert: gathered to be multiplied, kept to be weighted.
        return kept + steps * moe.width * (moe.active + moe.shared) + 2 * moe.active * d
    return kept + steps * shape.ff_width


def _layer_formula(shape: Shape, scores: int, *, routed: bool) -> str:
    parts = [f"{shape.block_norms + min(2, shape.block_norms)}d"]
    if shape.latent:
        parts.append("2q + heads·(nope + 2·value) + 2·ranks")
    else:
        parts.append("3q + 3kv" if shape.qk_norm != "none" else "2q + 2kv")
    steps = 4 if shape.ff == "gated" else 2
    parts.append(f"{steps}f·(k + shared) + 2k·d" if routed else f"{steps}f")
    if scores:
        parts.append("heads·T" if scores == 1 else f"{scores}·heads·T")
    return " + ".join(parts)
