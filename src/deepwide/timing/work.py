"""The work of one training step, prefill or decoded token: bytes moved, FLOPs done, layers passed one after another.

Bytes are a count of what must move when nothing stays in a cache, not a measurement:

    decode    every weight that multiplies a token once, and the cache of all sequences; of routed experts, as many as
              the tokens of a batch reach on average when each picks evenly: E·(1 − (1 − k/E)^batch)
    prefill   the weights, and twice what the layers keep of each token: written once, read once
    train     the weights 11 times (read forward and backward; gradients written, measured and read; AdamW reads and
              writes weights and moments), and 5 times what the layers keep (written, read forward and backward, and
              their gradients written and read)

FLOPs are those of the causal convention; a prefill multiplies only its last position by the head.
"""

from typing import Literal, NamedTuple, get_args

from deepwide.errors import DeepwideError, at_least_one, did_you_mean
from deepwide.shape import Shape, cache_elements, flops, training_memory

Phase = Literal["train", "prefill", "decode"]
PHASES: tuple[Phase, ...] = get_args(Phase)
TRAIN_WEIGHTS, TRAIN_ACTIVATIONS, PREFILL_ACTIVATIONS = 11, 5, 2


class Work(NamedTuple):
    """What a machine has to do."""

    bytes: int
    flops: int
    layers: int


def work(
    phase: str,
    shape: Shape,
    *,
    batch: int = 1,
    tokens: int | None = None,
    weight_bytes: int = 4,
    stored_bytes: float | None = None,
) -> Work:
    """The work of one step over `batch` sequences of so many tokens; of a decoded token, `tokens` are those cached.

    `stored_bytes` are those of a weight in memory where it is stored in another precision than it is multiplied in.

    >>> shape = Shape(depth=12, width=768, heads=12, context=1024)
    >>> work("decode", shape, tokens=1, weight_bytes=2).bytes / shape.total_params < 2.001
    True
    """
    if phase not in PHASES:
        raise DeepwideError(f"no phase '{phase}': {did_you_mean(str(phase), PHASES)}")
    if shape.kind != "decoder" or shape.head != "tokens":
        raise DeepwideError(f"times are those of decoders with a head for tokens, not of a {shape.kind}.")
    at_least_one(batch=batch, tokens=tokens)
    T = tokens or shape.context
    each = weight_bytes if stored_bytes is None else stored_bytes
    weights = round(each * multiplied_weights(shape, batch if phase == "decode" else batch * T))
    if phase == "decode":
        state = sum(extra.layers * extra.state for extra in shape.extras)
        cache = weight_bytes * batch * (T * cache_elements(shape) + state)
        one = flops(shape, 1)
        return Work(weights + cache, batch * (one.forward + (T - 1) * one.attention), shape.depth)
    counted = flops(shape, T, "causal")
    stored = training_memory(shape, batch=batch, sequence=T, precision="fp32" if weight_bytes == 4 else "bf16")
    if phase == "prefill":
        done = batch * (counted.forward - counted.head + counted.head // T)
        return Work(weights + PREFILL_ACTIVATIONS * stored.activations, done, shape.depth)
    moved = TRAIN_WEIGHTS * weight_bytes * shape.total_params
    return Work(moved + TRAIN_ACTIVATIONS * (stored.activations + stored.logits), batch * counted.training, shape.depth)


def multiplied_weights(shape: Shape, tokens: int = 1) -> int:
    """Weights that so many tokens are multiplied by: all but positions and an embedding that is not the head, too."""
    params = shape.params
    lookup = 0 if shape.tied else params.embedding
    weights = params.active - params.positions - lookup
    moe = shape.experts
    if moe is None or not params.inactive:
        return weights
    reached = moe.experts * (1 - (1 - moe.active / moe.experts) ** tokens)
    return weights + round(params.inactive * (reached - moe.active) / (moe.experts - moe.active))
