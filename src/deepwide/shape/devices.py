"""Memory of the fullest device when a decoder is split by tensor, pipeline and data parallelism.

Legend: t tensor, p pipeline, z data parallel ranks; P parameters of one device, V vocabulary, d width.

    tensor     Megatron: heads and feed-forward columns are split, rows of the vocabulary too (padded to a multiple of
               t); norms, learned positions and the biases after a row-split product are on every rank. Fewer key/value
               heads than ranks are replicated. With sequence parallelism (the default) all activations are split;
               without it the inputs of norms and of sublayers are whole on every rank.
    pipeline   depth / p layers per stage; the embedding on the first, final norm and head on the last, which has a copy
               of a tied embedding. One forward, one backward: stage i keeps p − i micro-batches (i from 0).
    data       ZeRO 1 splits the optimiser's state over z ranks, 2 gradients too, 3 weights too (rounded up).

Buffers of collectives and of gathered weights are left out.
"""

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, at_least_one
from deepwide.shape.memory import PRECISIONS, cache_elements, training_memory
from deepwide.shape.shape import NORM_VECTORS, Shape


class DeviceMemory(BaseModel):
    """Bytes on the fullest device: of the stage that needs most for training."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    tensor_parallel: int
    pipeline_stages: int
    data_parallel: int
    zero: int
    batch: int  # sequences of one micro-batch on one data-parallel rank
    sequence: int
    stage: int  # the fullest, from 0
    stage_params: tuple[int, ...]  # parameters of one device of each stage
    weights: int
    gradients: int
    optimiser: int
    activations: int
    logits: int
    inference_weights: int  # in bf16, of the stage with most parameters; data parallel ranks each have them all
    cache: int  # of `batch` sequences, in bf16

    @computed_field  # type: ignore[prop-decorator]
    @property
    def training(self) -> int:
        """All that training needs there."""
        return self.weights + self.gradients + self.optimiser + self.activations + self.logits

    @computed_field  # type: ignore[prop-decorator]
    @property
    def inference(self) -> int:
        """All that serving needs there."""
        return self.inference_weights + self.cache


def device_memory(
    shape: Shape,
    *,
    tensor_parallel: int = 1,
    pipeline_stages: int = 1,
    data_parallel: int = 1,
    zero: int = 0,
    batch: int = 1,
    sequence: int | None = None,
    precision: str = "mixed",
    recompute: bool = False,
    sequence_parallel: bool = True,
) -> DeviceMemory:
    """Memory per device of training with Adam and of serving, exact by the rules above.

    >>> device_memory(Shape(depth=12, width=768, heads=12), tensor_parallel=4, pipeline_stages=3).stage_params
    (18324480, 7101696, 16753152)
    """
    t, p, z = tensor_parallel, pipeline_stages, data_parallel
    at_least_one(tensor_parallel=t, pipeline_stages=p, data_parallel=z)
    _check(shape, t, p, zero)
    whole = training_memory(shape, batch=batch, sequence=sequence, precision=precision, recompute=recompute)
    size, T, layers = PRECISIONS[precision], whole.sequence, shape.depth // p
    params = tuple(stage_params(shape, t, p, stage) for stage in range(p))
    per_element = size.activation * batch * T
    stream = shape.width if sequence_parallel is False else _up(shape.width, t)
    split = _layer(shape, batch, T, precision, t, sequence_parallel=sequence_parallel)
    ends = (int(shape.final_norm and shape.norm != "none") + 1) * stream * per_element

    def needed(stage: int) -> tuple[int, int, int, int, int]:
        P, flight = params[stage], p - stage
        activations = flight * (layers * stream * per_element + split if recompute else layers * split)
        if recompute and flight > 1:
            activations -= (flight - 1) * split  # one layer at a time is computed again
        logits = 0
        if stage == p - 1:
            activations += ends
            logits = (size.activation + 4) * batch * T * _up(shape.vocab, t)
        held = (_up(P, z if zero >= level else 1) for level in (3, 2, 1))
        weights, gradients, optimiser = (
            n * each for n, each in zip(held, (size.weights, size.gradients, size.optimiser), strict=True)
        )
        return weights, gradients, optimiser, activations, logits

    stage = max(range(p), key=lambda stage: sum(needed(stage)))
    weights, gradients, optimiser, activations, logits = needed(stage)
    kv = cache_elements(shape) * max(1, shape.kv_heads // t) // shape.kv_heads
    return DeviceMemory.model_construct(
        tensor_parallel=t,
        pipeline_stages=p,
        data_parallel=z,
        zero=zero,
        batch=batch,
        sequence=T,
        stage=stage,
        stage_params=params,
        weights=weights,
        gradients=gradients,
        optimiser=optimiser,
        activations=activations,
        logits=logits,
        inference_weights=2 * max(params),
        cache=2 * batch * T * layers * kv,
    )


def stage_params(shape: Shape, t: int, p: int, stage: int) -> int:
    """Parameters of one device of a stage."""
    d, norm = shape.width, NORM_VECTORS[shape.norm]
    q, kv = shape.heads // t * shape.head_dim, max(1, shape.kv_heads // t) * shape.head_dim
    f, into = shape.ff_width // t, 2 if shape.ff == "gated" else 1
    own_norms = {"none": 0, "head": 2 * shape.head_dim, "full": q + kv}[shape.qk_norm]
    attention = d * (2 * q + 2 * kv) + shape.qkv_bias * (q + 2 * kv) + shape.out_bias * d + norm * own_norms
    feed_forward = (into + 1) * d * f + shape.ff_bias * (into * f + d)
    layer = attention + feed_forward + shape.block_norms * norm * d + shape.residual_scales
    rows, total = _up(shape.vocab, t), shape.depth // p * layer
    if stage == 0:
        positions = (shape.context + shape.extra_positions) * d if shape.positions == "learned" else 0
        total += rows * d + positions + shape.embedding_norm * norm * d
    if stage == p - 1:
        copy = rows * d if not shape.tied or p > 1 else 0
        total += shape.final_norm * norm * d + copy + shape.head_bias * rows
    return total


def _layer(shape: Shape, batch: int, T: int, precision: str, t: int, *, sequence_parallel: bool) -> int:
    """Bytes that one layer keeps on one rank: a layer more in the whole network's count, split."""
    one, two = (
        training_memory(shape.but(depth=depth), batch=batch, sequence=T, precision=precision).activations
        for depth in (1, 2)
    )
    layer = two - one
    if sequence_parallel or t == 1:
        return _up(layer, t)
    sublayers, norms = shape.sublayers, shape.block_norms
    tensors = sublayers if shape.norm == "none" else norms + min(sublayers, norms)
    whole = PRECISIONS[precision].activation * batch * T * tensors * shape.width
    return whole + _up(layer - whole, t)


def _check(shape: Shape, t: int, p: int, zero: int) -> None:
    if not isinstance(shape, Shape) or shape.kind != "decoder" or shape.head != "tokens":
        raise DeepwideError("memory per device is counted of decoders with a head for tokens.")
    if shape.experts or shape.latent or shape.embedding_width or shape.window:
        raise DeepwideError(
            "memory per device is counted of dense decoders: without experts, latent attention, windows and embeddings "
            "of another width."
        )
    if zero not in (0, 1, 2, 3) or isinstance(zero, bool):
        raise DeepwideError(f"zero must be 0, 1, 2 or 3, not {str(zero)[:20]!r}.")
    if shape.depth % p:
        raise DeepwideError(f"{shape.depth} layers do not divide over {p} pipeline stages.")
    if shape.heads % t or shape.ff_width % t or (shape.kv_heads % t and t % shape.kv_heads):
        raise DeepwideError(
            f"{shape.heads} heads, {shape.kv_heads} key/value heads and a feed-forward of {shape.ff_width:,} do not "
            f"divide over {t} tensor parallel ranks."
        )


def _up(amount: int, parts: int) -> int:
    return -(-amount // parts)
