"""FLOPs of a Shape under a named convention, as exact integers.

A multiply and an add are two FLOPs. Only matrix products are counted, as torch's counter and the literature do;
norms, activations and softmax are memory-bound. The backward pass costs twice the forward.

An encoder-decoder reads a source of S tokens beside its sequence of T, and a head for pairs reads two sequences, of T
and S tokens. Every position is scored; a loss over some of them skips the head's products at the others.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, at_least_one, did_you_mean, quoted
from deepwide.shape.shape import Shape, attention_layers, attention_matrices, expert_layers, head_matrices


class FlopConvention(BaseModel):
    """What is counted: conventions differ, so every number carries its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    about: str
    attention: Literal["full", "causal", "none"] = "full"  # QKᵀ and AV: all pairs, only those the mask leaves, none
    head: bool = True
    embedding: bool = False  # count the look-up as a product with a one-hot matrix
    recompute: Literal["none", "full", "attention"] = "none"  # what the backward pass computes again


CONVENTIONS: Mapping[str, FlopConvention] = {
    convention.name: convention
    for convention in (
        FlopConvention(
            name="torch", about="every product a kernel without masking does; equals torch's FlopCounterMode"
        ),
        FlopConvention(name="causal", about="attention only where the mask and windows leave it", attention="causal"),
        FlopConvention(name="kaplan", about="6N: block matrices only (Kaplan 2020)", attention="none", head=False),
        FlopConvention(
            name="chinchilla",
            about="torch, with the embedding as a product too (after Hoffmann 2022; no softmax)",
            embedding=True,
        ),
        FlopConvention(name="recompute", about="torch, with every block computed again in backward", recompute="full"),
        FlopConvention(name="selective", about="torch, with attention products computed again", recompute="attention"),
    )
}


class Flops(BaseModel):
    """FLOPs of one sequence (and its source, or the other one of its pair), part by part for the forward pass."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    convention: str
    sequence: int
    source: int  # tokens of the source, or of the other sequence of a pair; 0 where one sequence is read
    projections: int  # query, key, value, output; with those of cross-attention
    attention: int  # QKᵀ and AV
    feed_forward: int
    mixers: int  # of hybrids; the state of a recurrence is updated and read once per token
    head: int
    embedding: int
    recomputed: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def forward(self) -> int:
        """One forward pass over the sequence."""
        return self.projections + self.attention + self.feed_forward + self.mixers + self.head + self.embedding

    @computed_field  # type: ignore[prop-decorator]
    @property
    def training(self) -> int:
        """Forward and backward, and what is recomputed."""
        return 3 * self.forward + self.recomputed

    @computed_field  # type: ignore[prop-decorator]
    @property
    def forward_per_token(self) -> float:
        """`forward` over the number of tokens read, source included."""
        return self.forward / (self.sequence + self.source)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def training_per_token(self) -> float:
        """`training` over the number of tokens read, source included."""
        return self.training / (self.sequence + self.source)


def flops(
    shape: Shape,
    sequence: int | None = None,
    convention: str | FlopConvention = "torch",
    *,
    source: int | None = None,
) -> Flops:
    """FLOPs of `shape` on one sequence (of its full context by default) and, where it reads one, a source.

    >>> gpt2 = Shape(depth=12, width=768, heads=12, context=1024)
    >>> flops(gpt2, convention="kaplan").training_per_token == 6 * 12 * 12 * 768**2
    True
    """
    if isinstance(convention, str):
        if convention not in CONVENTIONS:
            raise DeepwideError(f"no FLOP convention '{convention}': {did_you_mean(convention, CONVENTIONS)}")
        convention = CONVENTIONS[convention]
    T, S = lengths(shape, sequence, source)
    return Flops.model_construct(convention=convention.name, sequence=T, source=S, **_parts(shape, T, S, convention))


def causal_training_flops(shape: Shape) -> Any:
    """Training FLOPs of a token under the causal convention; like `params.count`, also of shapes held as arrays."""
    parts = _parts(shape, shape.context, 0, CONVENTIONS["causal"])
    return 3 * sum(parts.values()) / shape.context


def lengths(shape: Shape, sequence: int | None, source: int | None) -> tuple[int, int]:
    """The tokens of the sequence and of the source: by default the full context, and as many as the sequence."""
    if not isinstance(shape, Shape):
        raise DeepwideError(f"FLOPs and memory are counted of a Shape, not of {quoted(shape)}.")
    at_least_one(sequence=sequence, source=source)
    T = sequence or shape.context
    if not shape.reads_two:
        if source is not None:
            raise DeepwideError("source is for encoder-decoders and heads for pairs: this shape reads one sequence.")
        return T, 0
    return T, source or T


def _parts(shape: Shape, T: int, S: int, convention: FlopConvention) -> dict[str, Any]:
    values = shape.latent.value_dim if shape.latent else shape.head_dim
    pairs = _pairs(shape, T, S, convention.attention)
    narrow = shape.width if shape.embedding_width is None else shape.embedding_width
    lookup = narrow * shape.vocab
    projection_in_out = 0 if shape.embedding_width is None else 2 * narrow * shape.width
    crossing = shape.kind == "encoder-decoder"
    reads = T + S if shape.head == "pair" else T  # tokens that pass the layers of `depth`
    projections = 2 * (attention_layers(shape) * reads + shape.encoder_depth * S) * attention_matrices(shape)
    if crossing:
        q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        projections += 2 * shape.depth * shape.width * (2 * q * T + 2 * kv * S)
    attention = 2 * pairs * shape.heads * (shape.head_dim + values)
    if shape.mixing is not None:
        from deepwide.shape.mixing import mixing_flops

        attention = shape.depth * sum(mixing_flops(shape, length, convention.attention) for length in (T, S) if length)
    encoder = shape.encoder_depth * S * _dense_matrices(shape) if crossing else 0
    feed_forward = 2 * (reads * _feed_forward_matrices(shape) + encoder)
    mixers = 0
    for extra in shape.extras:
        done = 2 * reads * extra.layers * (extra.matrices + extra.products)
        projections += done if extra.part == "attention" else 0
        feed_forward += done if extra.part == "feed_forward" else 0
        mixers += done if extra.part not in ("attention", "feed_forward") else 0
    again = {"none": 0, "attention": attention, "full": projections + attention + feed_forward + mixers}
    head = 2 * (T * (lookup + projection_in_out) if shape.head == "tokens" else head_matrices(shape))
    return {
        "projections": projections,
        "attention": attention,
        "feed_forward": feed_forward,
        "mixers": mixers,
        "head": head if convention.head else 0,
        "embedding": 2 * (T + S) * lookup if convention.embedding else 0,
        "recomputed": again[convention.recompute],
    }


def _dense_matrices(shape: Shape) -> int:
    return (3 if shape.ff == "gated" else 2) * shape.width * shape.ff_width


def _feed_forward_matrices(shape: Shape) -> int:
    """Weights that multiply a token in the feed-forwards of the layers of `depth`."""
    matrices = 3 if shape.ff == "gated" else 2
    routed = expert_layers(shape)
    total = (shape.depth - len(shape.ff_free) - routed) * _dense_matrices(shape)
    if moe := shape.experts:
        total += routed * shape.width * (matrices * moe.width * (moe.active + moe.shared) + moe.experts)
    return total


def _pairs(shape: Shape, T: int, S: int, attention: str) -> int:
    """Query–key pairs of one head, summed over layers."""
    if attention == "none":
        return 0
    if shape.kind == "encoder-decoder":
        return shape.encoder_depth * S * S + _self_pairs(shape, T, attention) + shape.depth * T * S
    return _self_pairs(shape, T, attention) + (_self_pairs(shape, S, attention) if S else 0)


def _self_pairs(shape: Shape, T: int, attention: str) -> int:
    """Pairs within one sequence in the layers of `depth`; in an encoder the mask leaves all of them."""
    if attention == "full" or shape.kind == "encoder":
        return attention_layers(shape) * T * T
    sliding = len(shape.sliding_layers)
    w = min(T, shape.window or T)
    triangle = T * (T + 1) // 2
    return (attention_layers(shape) - sliding) * triangle + sliding * (triangle - (T - w) * (T - w + 1) // 2)
