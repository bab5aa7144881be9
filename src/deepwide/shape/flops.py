"""FLOPs of a Shape under a named convention, as exact integers.

A multiply and an add are two FLOPs. Only matrix products are counted, as torch's counter and the literature do;
norms, activations and softmax are memory-bound. The backward pass costs twice the forward.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.errors import DeepwideError, at_least_one, did_you_mean
from deepwide.shape.params import attention_matrices, expert_layers
from deepwide.shape.shape import Shape


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
    """FLOPs of one sequence, part by part for the forward pass."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    convention: str
    sequence: int
    projections: int  # query, key, value, output
    attention: int  # QKᵀ and AV
    feed_forward: int
    head: int
    embedding: int
    recomputed: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def forward(self) -> int:
        """One forward pass over the sequence."""
        return self.projections + self.attention + self.feed_forward + self.head + self.embedding

    @computed_field  # type: ignore[prop-decorator]
    @property
    def training(self) -> int:
        """Forward and backward, and what is recomputed."""
        return 3 * self.forward + self.recomputed

    @computed_field  # type: ignore[prop-decorator]
    @property
    def forward_per_token(self) -> float:
        """`forward` over the sequence length."""
        return self.forward / self.sequence

    @computed_field  # type: ignore[prop-decorator]
    @property
    def training_per_token(self) -> float:
        """`training` over the sequence length."""
        return self.training / self.sequence


def flops(shape: Shape, sequence: int | None = None, convention: str | FlopConvention = "torch") -> Flops:
    """FLOPs of `shape` on one sequence (its full context unless told).

    >>> gpt2 = Shape(depth=12, width=768, heads=12, context=1024)
    >>> flops(gpt2, convention="kaplan").training_per_token == 6 * 12 * 12 * 768**2
    True
    """
    if isinstance(convention, str):
        if convention not in CONVENTIONS:
            raise DeepwideError(f"no FLOP convention '{convention}': {did_you_mean(convention, CONVENTIONS)}")
        convention = CONVENTIONS[convention]
    at_least_one(sequence=sequence)
    return Flops.model_construct(
        convention=convention.name, sequence=sequence or shape.context, **_parts(shape, sequence, convention)
    )


def causal_training_flops(shape: Shape) -> Any:
    """Training FLOPs of a token under the causal convention; like `params.count`, also of shapes held as arrays."""
    parts = _parts(shape, None, CONVENTIONS["causal"])
    return 3 * sum(parts.values()) / shape.context


def _parts(shape: Shape, sequence: int | None, convention: FlopConvention) -> dict[str, Any]:
    T = sequence or shape.context
    values = shape.latent.value_dim if shape.latent else shape.head_dim
    pairs = _pairs(shape, T, convention.attention)
    narrow = shape.width if shape.embedding_width is None else shape.embedding_width
    lookup = narrow * shape.vocab
    projection_in_out = 0 if shape.embedding_width is None else 2 * narrow * shape.width
    projections = 2 * T * shape.depth * attention_matrices(shape)
    attention = 2 * pairs * shape.heads * (shape.head_dim + values)
    feed_forward = 2 * T * _feed_forward_matrices(shape)
    again = {"none": 0, "attention": attention, "full": projections + attention + feed_forward}
    return {
        "projections": projections,
        "attention": attention,
        "feed_forward": feed_forward,
        "head": 2 * T * (lookup + projection_in_out) if convention.head else 0,
        "embedding": 2 * T * lookup if convention.embedding else 0,
        "recomputed": again[convention.recompute],
    }


def _feed_forward_matrices(shape: Shape) -> int:
    matrices = 3 if shape.ff == "gated" else 2
    routed = expert_layers(shape)
    total = (shape.depth - routed) * matrices * shape.width * shape.ff_width
    if moe := shape.experts:
        total += routed * shape.width * (matrices * moe.width * (moe.active + moe.shared) + moe.experts)
    return total


def _pairs(shape: Shape, T: int, attention: str) -> int:
    """Query–key pairs of one head, summed over layers."""
    if attention == "none":
        return 0
    if attention == "full":
        return shape.depth * T * T
    sliding = len(shape.sliding_layers)
    w = min(T, shape.window or T)
    triangle = T * (T + 1) // 2
    return (shape.depth - sliding) * triangle + sliding * (triangle - (T - w) * (T - w + 1) // 2)
