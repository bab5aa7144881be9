"""Memory of the fullest device when a decoder is split by tensor, pipeline and data parallelism.

Legend: t tensor, p pipeline, z data parallel ranks; P parameters of one device, V vocabulary, d width.

    tensor     Megatron: heads and feed-forward columns are split, rows of the vocabulary too (padded to a multiple of
               t); norms, learned positions and the biases after a row-split product are on every rank. Fewer key/value
               heads than ranks are replicated. With sequence parallelism (the default) all activations are split;
               without it the inputs of norms and of sublayers are whole on every rank.
    pipeline   depth / p layers per stage; the embedding on the first, final norm and head on the last, which has a copy
               of a tied embedding. One forward, one backward: stage i keeps p − i micro-batches (i from 0).
    data       ZeRO 1 splits the optimiser's state over z ranks, 2 gradients too, 3 weights too (rounded up).
    experts    e of the z data parallel ranks share the routed experts, E / e each, and ZeRO then splits those over the
               z / e ranks that have the same ones. Tensor ranks split each expert, and the shared one, as a
               feed-forward; the router is on every rank. Tokens are spread evenly over experts.

Buffers of collectives and of gathered weights are left out.
"""

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, at_least_one
from deepwide.shape.memory import PRECISIONS, training_memory
from deepwide.shape.shape import NORM_VECTORS, Shape, feed_forward_params


class DeviceMemory(BaseModel):
    """Bytes on the fullest device: of the stage that needs most for training."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    tensor_parallel: int
    pipeline_stages: int
    data_parallel: int
    zero: int
    expert_parallel: int
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
    expert_parallel: int = 1,
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
    t, p, z, e = tensor_parallel, pipeline_stages, data_parallel, expert_parallel
    at_least_one(tensor_parallel=t, pipeline_stages=p, data_parallel=z, expert_parallel=e)
    _check(shape, t, p, zero)
    _check_experts(shape, t, z, e)
    whole = training_memory(shape, batch=batch, sequence=sequence, precision=precision, recompute=recompute)
    size, T, layers = PRECISIONS[precision], whole.sequence, shape.depth // p
    routed = tuple(_routed_params(shape, t, p, e, stage) for stage in range(p))
    params = tuple(stage_params(shape, t, p, stage) + routed[stage] for stage in range(p))
    per_element = size.activation * batch * T
    stream = shape.width if sequence_parallel is False else _up(shape.width, t)
    moe = shape.experts
    each = (moe is None or bool(moe.dense_layers), moe is not None)
    dense, mixture = (
        _layer(kind, batch, T, precision, t, sequence_parallel=sequence_parallel) if present else 0
        for kind, present in zip((shape.but(experts=None), shape), each, strict=True)
    )
    ends = (int(shape.final_norm and shape.norm != "none") + 1) * stream * per_element

    def needed(stage: int) -> tuple[int, int, int, int, int]:
        flight = p - stage
        mixtures = _mixtures(shape, p, stage)
        if recompute:  # the input of every layer, and one layer at a time is computed again
            again = max(dense if layers > mixtures else 0, mixture if mixtures else 0)
            activations = flight * layers * stream * per_element + again
        else:
            activations = flight * ((layers - mixtures) * dense + mixtures * mixture)
        logits = 0
        if stage == p - 1:
            activations += ends
            logits = (size.activation + 4) * batch * T * _up(shape.vocab, t)
        everywhere, own = params[stage] - routed[stage], routed[stage]
        held = (_up(everywhere, z) + _up(own, z // e) if zero >= level else everywhere + own for level in (3, 2, 1))
        weights, gradients, optimiser = (
            n * each for n, each in zip(held, (size.weights, size.gradients, size.optimiser), strict=True)
        )
        return weights, gradients, optimiser, activations, logits

    stage = max(range(p), key=lambda stage: sum(needed(stage)))
    weights, gradients, optimiser, activations, logits = needed(stage)
    kv = 2 * _kv_of_a_rank(shape, t)
    sliding = [len([i for i in shape.sliding_layers if i // layers == stage]) for stage in range(p)]
    cached = max((layers - few) * T + few * min(T, shape.window or T) for few in sliding)
    return DeviceMemory.model_construct(
        tensor_parallel=t,
        pipeline_stages=p,
        data_parallel=z,
        zero=zero,
        expert_parallel=e,
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
        cache=2 * batch * cached * kv,
    )


def stage_params(shape: Shape, t: int, p: int, stage: int) -> int:
    """Parameters of one device of a stage, routed experts apart; sizes that are arrays of real numbers give those."""
    d, norm = shape.width, NORM_VECTORS[shape.norm]
    q, kv = _part(shape.heads, t) * shape.head_dim, _kv_of_a_rank(shape, t)
    f, into = _part(shape.ff_width, t), 2 if shape.ff == "gated" else 1
    own_norms = {"none": 0, "head": 2 * shape.head_dim, "full": q + kv}[shape.qk_norm]
    attention = d * (2 * q + 2 * kv) + shape.qkv_bias * (q + 2 * kv) + shape.out_bias * d + norm * own_norms
    feed_forward = (into + 1) * d * f + shape.ff_bias * (into * f + d)
    layer = attention + shape.block_norms * norm * d + shape.residual_scales
    mixtures = _mixtures(shape, p, stage)
    rows, total = _up(shape.vocab, t), _part(shape.depth, p) * layer + (_part(shape.depth, p) - mixtures) * feed_forward
    if moe := shape.experts:
        shared = feed_forward_params(shape, _part(moe.shared * moe.width, t)) if moe.shared else 0
        total += mixtures * (d * moe.experts + shared)
    if stage == 0:
        positions = (shape.context + shape.extra_positions) * d if shape.positions == "learned" else 0
        total += rows * d + positions + shape.embedding_norm * norm * d
    if stage == p - 1:
        copy = rows * d if not shape.tied or p > 1 else 0
        total += shape.final_norm * norm * d + copy + shape.head_bias * rows
    return total


def _mixtures(shape: Shape, p: int, stage: int) -> int:
    """How many layers of a stage have experts."""
    if shape.experts is None:
        return 0
    layers = _part(shape.depth, p)
    return layers - len([i for i in shape.experts.dense_layers if i // layers == stage])


def _routed_params(shape: Shape, t: int, p: int, e: int, stage: int) -> int:
    """Parameters of the routed experts on one device of a stage."""
    if shape.experts is None:
        return 0
    expert = feed_forward_params(shape, _part(shape.experts.width, t))
    return _mixtures(shape, p, stage) * (shape.experts.experts // e) * expert


def serving_share(shape: Shape, t: int, p: int) -> tuple[int, int]:
    """Parameters of the fullest device, and how many numbers it caches per token; of arrays of sizes, arrays.

    No stage has more than the first or the last, and layers are alike.
    """
    first, last = (stage_params(shape, t, p, stage) + _routed_params(shape, t, p, 1, stage) for stage in (0, p - 1))
    return first + (last > first) * (last - first), _part(shape.depth, p) * 2 * _kv_of_a_rank(shape, t)


def _kv_of_a_rank(shape: Shape, t: int) -> int:
    """Width of the keys of one tensor parallel rank: of one head where there are fewer heads than ranks."""
    heads = _part(shape.kv_heads, t)
    return (heads + (heads < 1) * (1 - heads)) * shape.head_dim


def _part(amount: int, parts: int) -> int:
    """A share of a whole number, rounded down; real numbers, or arrays of them, are divided as such."""
    return amount // parts if isinstance(amount, int) else amount / parts


def _layer(shape: Shape, batch: int, T: int, precision: str, t: int, *, sequence_parallel: bool) -> int:
    """Bytes that one layer keeps on one rank: a layer more in the whole network's count, split."""
    moe = shape.experts.model_copy(update={"dense_layers": ()}) if shape.experts else None
    one, two = (
        training_memory(
            shape.but(depth=depth, experts=moe, window=None, sliding_layers=()),
            batch=batch,
            sequence=T,
            precision=precision,
        ).activations
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
    if shape.latent or shape.embedding_width or shape.attention_free or shape.ff_free or shape.extras:
        raise DeepwideError(
            "memory per device is counted of decoders whose layers are all alike: without latent attention, state "
            "spaces and other mixers, and embeddings of another width."
        )
    if zero not in (0, 1, 2, 3) or isinstance(zero, bool):
        raise DeepwideError(f"zero must be 0, 1, 2 or 3, not {str(zero)[:20]!r}.")
    if shape.depth % p:
        raise DeepwideError(f"{shape.depth} layers do not divide over {p} pipeline stages.")
    dense = shape.experts is None or shape.experts.dense_layers  # else the feed-forward's width means nothing
    wrong = [f"{shape.heads} heads"] if shape.heads % t else []
    if shape.kv_heads % t and t % shape.kv_heads:
        wrong.append(f"{shape.kv_heads} key/value heads")
    if dense and shape.ff_width % t:
        wrong.append(f"a feed-forward of {shape.ff_width:,}")
    if wrong:
        verb = "does" if wrong[0].startswith("a ") else "do"
        raise DeepwideError(f"{' and '.join(wrong)} {verb} not divide over {t} tensor parallel ranks.")


def _check_experts(shape: Shape, t: int, z: int, e: int) -> None:
    moe = shape.experts
    if moe is None:
        if e > 1:
            raise DeepwideError("expert_parallel is for models with experts: this one has none.")
        return
    if moe.experts % e or z % e:
        raise DeepwideError(
            f"expert_parallel {e} must divide the {moe.experts} experts and the {z} data parallel ranks."
        )
    if moe.width % t:
        raise DeepwideError(f"experts of width {moe.width:,} do not divide over {t} tensor parallel ranks.")


def _up(amount: int, parts: int) -> int:
    return -(-amount // parts)
