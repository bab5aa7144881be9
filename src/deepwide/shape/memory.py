"""Memory of a Shape: for training and for inference, with the formula that gave each number.

Legend of the formulas: P parameters, B batch (sequences), T sequence length, S length of the source or of the other
sequence of a pair, V vocabulary, C classes, d width, L depth, E encoder_depth, q = heads·head_dim,
kv = kv_heads·head_dim, f feed-forward width (in m, of one expert), k active experts. Per token, a layer with
self-attention keeps a numbers, one with experts m, one with cross-attention c.

Activations are those of a lean implementation: fused norms and attention that keep their input and what the next
product needs, nothing twice. Left out are a few numbers per token: each norm's mean and deviation, the
log-sum-exp of each head, the router's scores; and what a learned residual scale keeps. Tests measure this on a block
in torch and on whole networks.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, at_least_one, did_you_mean
from deepwide.shape.flops import lengths
from deepwide.shape.shape import Shape, attention_layers, cross_norms, expert_layers


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
    source: int | None = None,
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
    at_least_one(batch=batch)
    T, S = lengths(shape, sequence, source)
    size, P = PRECISIONS[precision], shape.total_params
    # Softmax stays in 32 bits; its copy for the product with the values is a second tensor unless it is one too.
    scores = 0 if attention == "flash" else 1 if size.activation == 4 else 4 // size.activation + 1
    elements, formula = _activation_elements(shape, T, S, scores, recompute=recompute)
    per_token = shape.head == "tokens"
    return TrainingMemory.model_construct(
        batch=batch,
        sequence=T,
        precision=precision,
        weights=size.weights * P,
        gradients=size.gradients * P,
        optimiser=size.optimiser * P,
        activations=size.activation * batch * elements,
        logits=(size.activation + 4) * batch * (T * shape.vocab if per_token else shape.classes),
        formula={
            "weights": f"{size.weights}·P",
            "gradients": f"{size.gradients}·P",
            "optimiser": f"{size.optimiser}·P",
            "activations": f"{size.activation}·B·{formula}",
            "logits": f"({size.activation} + 4)·B·{'T·V' if per_token else 'C'}",
        },
    )


def inference_memory(
    shape: Shape,
    *,
    batch: int = 1,
    sequence: int | None = None,
    source: int | None = None,
    precision: str = "bf16",
    cache_precision: str = "bf16",
) -> InferenceMemory:
    """Memory to serve `batch` sequences of a length; only a decoder that generates tokens has a cache."""
    for name in (precision, cache_precision):
        if name not in INFERENCE_BYTES:
            raise DeepwideError(f"no inference precision '{name}': {did_you_mean(name, INFERENCE_BYTES)}")
    at_least_one(batch=batch)
    T, S = lengths(shape, sequence, source)
    size = INFERENCE_BYTES[cache_precision]
    sliding, layers = len(shape.sliding_layers), attention_layers(shape)
    positions = (layers - sliding) * T + sliding * min(T, shape.window or T)
    where = "L·T" if layers == shape.depth else f"{layers}·T"
    if sliding:
        where = "Σ over layers of min(T, window)"
    if shape.kind == "encoder-decoder":  # the keys and values of the source are kept by every decoder layer
        positions, where = positions + shape.depth * S, "L·T + L·S"
    per_position = _cached_per_layer(shape)
    what = "kv_rank + rope_dim" if shape.latent else "2·kv"
    cache_formula = f"{size:g}·B·({where})·({what} = {per_position:,})"
    if shape.kind == "encoder" or shape.head != "tokens":
        per_position, cache_formula = 0, "0, as one pass answers"
    state = sum(extra.layers * extra.state for extra in shape.extras)
    if state:
        states = f"{size:g}·B·(states = {state:,})"
        cache_formula = f"{cache_formula} + {states}" if layers else states
    return InferenceMemory.model_construct(
        batch=batch,
        sequence=T,
        precision=precision,
        weights=round(INFERENCE_BYTES[precision] * shape.total_params),
        cache=round(size * batch * (positions * per_position + state)),
        cache_bytes_per_token=round(size * layers * per_position),
        formula={
            "weights": f"{INFERENCE_BYTES[precision]:g}·P",
            "cache": cache_formula,
        },
    )


def cache_elements(shape: Shape) -> int:
    """Numbers cached per token in all layers of `depth`."""
    return attention_layers(shape) * _cached_per_layer(shape)


def _cached_per_layer(shape: Shape) -> int:
    if shape.latent:
        return shape.latent.kv_rank + shape.latent.rope_dim
    return 2 * shape.kv_heads * shape.head_dim


def _activation_elements(shape: Shape, T: int, S: int, scores: int, *, recompute: bool) -> tuple[int, str]:
    """Numbers kept for the backward pass of one sequence (with its source or its pair), and the formula."""
    if shape.kind == "encoder-decoder":
        return _encoder_decoder_elements(shape, T, S, scores, recompute=recompute)
    first, in_words, per_layer = _elements_per_token(shape, T, scores, recompute=recompute)
    d, final = shape.width, _final_norms(shape)
    if shape.head == "tokens":
        return T * (first + (final + 1) * d), f"T·({in_words} + {_times(final + 1, 'd')}), {per_layer}"
    words = f"{in_words} + d" if final else in_words  # pooling needs no position to go back
    if shape.head == "class":
        return T * (first + final * d) + d, f"(T·({words}) + d), {per_layer}"
    second, _, other_layer = _elements_per_token(shape, S, scores, recompute=recompute)
    if other_layer != per_layer:
        per_layer += f" at T, {other_layer} at S"
    # a, b, the four features and the hidden layer
    return T * (first + final * d) + S * (second + final * d) + 7 * d, f"((T + S)·({words}) + 7d), {per_layer}"


def _final_norms(shape: Shape) -> int:
    """1 where a final norm keeps its input, else 0."""
    return int(shape.final_norm and shape.norm != "none")


def _times(number: int, name: str) -> str:
    return name if number == 1 else f"{number}{name}"


def _elements_per_token(shape: Shape, T: int, scores: int, *, recompute: bool) -> tuple[int, str, str]:
    """Numbers that all layers of a decoder or encoder keep per token, in numbers and as a formula."""
    if shape.attention_free or shape.ff_free or shape.extras:
        return _hybrid_elements(shape, T, scores, recompute=recompute)
    routed = expert_layers(shape)
    layers = [
        (name, number, _layer_elements(shape, T, scores, routed=r), _layer_formula(shape, scores, routed=r, mixed=T))
        for name, number, r in (("a", shape.depth - routed, False), ("m", routed, True))
        if number
    ]
    per_layer = ", ".join(f"{name} = {formula} = {elements:,}" for name, _, elements, formula in layers)
    if recompute:
        largest = max(elements for _, _, elements, _ in layers)
        in_words = "L·d + " + ("max(a, m)" if len(layers) > 1 else layers[0][0])
        return shape.depth * shape.width + largest, in_words, per_layer
    in_words = " + ".join(f"{number if len(layers) > 1 else 'L'}·{name}" for name, number, *_ in layers)
    return sum(number * elements for _, number, elements, _ in layers), in_words, per_layer


def _hybrid_elements(shape: Shape, T: int, scores: int, *, recompute: bool) -> tuple[int, str, str]:
    """The same of layers of several kinds: each part times the layers that have it."""
    d, routed = shape.width, expert_layers(shape)
    stream = _stream_tensors(shape, shape.sublayers, shape.block_norms) * d
    parts = [
        ("attention", attention_layers(shape), _attention_elements(shape, T, scores)),
        ("feed-forward", shape.depth - len(shape.ff_free) - routed, _feed_forward_elements(shape, routed=False)),
        ("experts", routed, _feed_forward_elements(shape, routed=True)),
        *((extra.name, extra.layers, extra.stored) for extra in shape.extras),
    ]
    present = [(name, number, elements) for name, number, elements in parts if number and elements]
    per_layer = ", ".join(
        [f"norms' and sublayers' inputs {stream:,}", *(f"{name} {each:,}" for name, _, each in present)]
    )
    if recompute:
        return shape.depth * d + stream + _largest_layer(shape, T, scores), "L·d + the largest layer", per_layer
    in_words = " + ".join([f"L·{stream:,}", *(f"{number}·{each:,}" for _, number, each in present)])
    return shape.depth * stream + sum(number * each for _, number, each in present), in_words, per_layer


def _largest_layer(shape: Shape, T: int, scores: int) -> int:
    """What the fullest layer of a hybrid keeps beside the stream: kinds that fit into the depth exclude each other."""
    routed, extras = expert_layers(shape), shape.extras
    more = {part: sum(e.stored for e in extras if e.part == part) for part in ("attention", "feed_forward", "norms")}
    attention, mixers = attention_layers(shape), [e for e in extras if e.part == "mixer" and e.layers]
    mixing = [e.stored for e in mixers]
    if attention:
        mixing.append(_attention_elements(shape, T, scores) + more["attention"])
    mixing_layers = attention + sum(e.layers for e in mixers)
    one = max(mixing, default=0) if mixing_layers <= shape.depth else sum(mixing)
    ff_layers = shape.depth - len(shape.ff_free)
    inner = [_feed_forward_elements(shape, routed=False)] if ff_layers > routed else []
    inner += [_feed_forward_elements(shape, routed=True) + more["feed_forward"]] if routed else []
    other = max(inner, default=0)
    return (max(one, other) if mixing_layers + ff_layers <= shape.depth else one + other) + more["norms"]


def _encoder_decoder_elements(shape: Shape, T: int, S: int, scores: int, *, recompute: bool) -> tuple[int, str]:
    """An encoder-decoder: decoder layers keep numbers per token and, for their cross-attention, per source token."""
    d, q, kv = shape.width, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    L, E, copies = shape.depth, shape.encoder_depth, 2 if shape.qk_norm == "none" else 3
    ends = _final_norms(shape) + 1  # and the input of the head, or of all the keys and values of the source
    stream = _stream_tensors(shape, 1, cross_norms(shape))
    source_layer = _layer_elements(shape, S, scores, routed=False)
    layer = _layer_elements(shape, T, scores, routed=False) + stream * d + copies * q + scores * shape.heads * S
    words = [_layer_formula(shape, scores, routed=False), f"{stream}d", f"{copies}q"]
    words += ["heads·S" if scores == 1 else f"{scores}·heads·S"] if scores else []
    a = f"a = {_layer_formula(shape, scores, 'S', routed=False)} = {source_layer:,}"
    c = f"c = {' + '.join(words)} = {layer:,}"
    if recompute:
        most = max(T * layer + S * copies * kv, S * source_layer)
        elements = T * (L + ends) * d + S * (E + ends) * d + most
        return elements, f"(T·(L + {ends})·d + S·(E + {ends})·d + max(T·c + S·{copies}kv, S·a)), {c}, {a}"
    elements = T * (L * layer + ends * d) + S * (E * source_layer + L * copies * kv + ends * d)
    return elements, f"(T·(L·c + {_times(ends, 'd')}) + S·(E·a + L·{copies}kv + {_times(ends, 'd')})), {c}, {a}"


def _stream_tensors(shape: Shape, sublayers: int, norms: int) -> int:
    """Tensors of a token's width that sublayers keep: the input of each norm, and of each sublayer.

    Sublayers that share a norm share their input; without norms, sublayers keep their inputs alone.
    """
    return sublayers if shape.norm == "none" else norms + min(sublayers, norms)


def _layer_elements(shape: Shape, T: int, scores: int, *, routed: bool) -> int:
    """Numbers one layer keeps per token for its backward pass, cross-attention aside."""
    stream = _stream_tensors(shape, shape.sublayers, shape.block_norms) * shape.width
    return stream + _attention_elements(shape, T, scores) + _feed_forward_elements(shape, routed=routed)


def _attention_elements(shape: Shape, T: int, scores: int) -> int:
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    elements = scores * shape.heads * T
    if m := shape.latent:
        # Queries, keys and the output; the values are a view that keeps their whole projection. Each latent twice:
        # before and after its norm.
        ranks = m.kv_rank + (m.query_rank or 0)
        elements += 2 * q + shape.heads * (m.nope_dim + 2 * m.value_dim) + 2 * ranks
    elif shape.mixing:
        from deepwide.shape.mixing import mixing_elements

        elements = mixing_elements(shape, T)
        elements += q + kv if shape.qk_norm != "none" else 0
    else:
        elements += 2 * q + 2 * kv
        elements += q + kv if shape.qk_norm != "none" else 0
    return elements


def _feed_forward_elements(shape: Shape, *, routed: bool) -> int:
    steps = 4 if shape.ff == "gated" else 2
    if routed and (moe := shape.experts):
        # A token's input and output once per expert: gathered to be multiplied, kept to be weighted.
        return steps * moe.width * (moe.active + moe.shared) + 2 * moe.active * shape.width
    return steps * shape.ff_width


def _layer_formula(shape: Shape, scores: int, length: str = "T", *, routed: bool, mixed: int = 1) -> str:
    parts = [f"{_stream_tensors(shape, shape.sublayers, shape.block_norms)}d"]
    if shape.latent:
        parts.append("2q + heads·(nope + 2·value) + 2·ranks")
    elif shape.mixing:
        parts.append(f"{_attention_elements(shape, mixed, 0):,}")
    else:
        parts.append("3q + 3kv" if shape.qk_norm != "none" else "2q + 2kv")
    steps = 4 if shape.ff == "gated" else 2
    parts.append(f"{steps}f·(k + shared) + 2k·d" if routed else f"{steps}f")
    if scores and not shape.mixing:
        parts.append(f"heads·{length}" if scores == 1 else f"{scores}·heads·{length}")
    return " + ".join(parts)
