"""Parameters of a Shape, part by part, exact to the last bias.

The functions use only +, × and comparisons on the fields that may vary together in a grid (depth, width, heads,
kv_heads, ff_width), so that the planner can hand them numpy integer arrays in place of integers.

Legend: d width, q = heads·head_dim, kv = kv_heads·head_dim, f feed-forward width.
"""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, computed_field

if TYPE_CHECKING:
    from deepwide.shape.shape import Shape

NORM_VECTORS = {"layernorm": 2, "rmsnorm": 1, "none": 0}


class Params(BaseModel):
    """How many parameters each part of a shape has."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    embedding: int  # token embedding, with its projections and its norm where a model has them
    positions: int
    attention: int
    feed_forward: int
    norms: int  # with what the residual scheme learns
    head: int  # 0 when tied, but for a bias
    inactive: int  # experts a token is not sent to

    @computed_field  # type: ignore[prop-decorator]
    @property
    def block(self) -> int:
        """Attention, feed-forward and norms, the final one included: what the laws call N."""
        return self.attention + self.feed_forward + self.norms

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        """All trainable parameters."""
        return self.embedding + self.positions + self.block + self.head

    @computed_field  # type: ignore[prop-decorator]
    @property
    def active(self) -> int:
        """Parameters one token passes through."""
        return self.total - self.inactive


def count(shape: "Shape") -> Params:
    """Count every part of `shape`."""
    d, L = shape.width, shape.depth
    norm = NORM_VECTORS[shape.norm]
    narrow = d if shape.embedding_width is None else shape.embedding_width
    projections = 0 if shape.embedding_width is None else 2 * narrow * d
    moe, moe_layers = shape.experts, expert_layers(shape)
    expert = feed_forward_params(shape, moe.width) if moe else 0
    return Params.model_construct(
        embedding=shape.vocab * narrow + projections + shape.embedding_norm * norm * d,
        positions=(shape.context + shape.extra_positions) * d if shape.positions == "learned" else 0,
        attention=L * attention_params(shape),
        feed_forward=(L - moe_layers) * feed_forward_params(shape, shape.ff_width)
        + (moe_layers * expert_block_params(shape, expert) if moe else 0),
        norms=(L * shape.block_norms + shape.final_norm) * norm * d + L * shape.residual_scales,
        head=(0 if shape.tied else shape.vocab * narrow) + shape.head_bias * shape.vocab,
        inactive=moe_layers * (moe.experts - moe.active) * expert if moe else 0,
    )


def expert_layers(shape: "Shape") -> int:
    """How many layers have experts in place of the feed-forward."""
    return shape.depth - len(shape.experts.dense_layers) if shape.experts else 0


def expert_block_params(shape: "Shape", expert: int) -> int:
    """One mixture: its experts, the shared ones as a single wider feed-forward, and the router."""
    moe = shape.experts
    assert moe is not None
    shared = feed_forward_params(shape, moe.shared * moe.width) if moe.shared else 0
    return moe.experts * expert + shared + shape.width * moe.experts


def attention_matrices(shape: "Shape") -> int:
    """Weights that multiply a token in one layer's attention."""
    d, h = shape.width, shape.heads
    if shape.latent is None:
        q, kv = h * shape.head_dim, shape.kv_heads * shape.head_dim
        return d * (q + 2 * kv) + q * d
    m = shape.latent
    query = m.query_rank * (d + h * shape.head_dim) if m.query_rank else d * h * shape.head_dim
    key_value = d * (m.kv_rank + m.rope_dim) + m.kv_rank * h * (m.nope_dim + m.value_dim)
    return query + key_value + h * m.value_dim * d


def attention_params(shape: "Shape") -> int:
    """One layer's attention with its biases and its own norms."""
    norm = NORM_VECTORS[shape.norm]
    if shape.latent is not None:
        m = shape.latent
        ranks = (m.query_rank or 0) + m.kv_rank
        biases = shape.qkv_bias * (ranks + m.rope_dim) + shape.out_bias * shape.width
        return attention_matrices(shape) + biases + norm * ranks
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    biases = shape.qkv_bias * (q + 2 * kv) + shape.out_bias * shape.width
    own_norms = {"none": 0, "head": 2 * shape.head_dim, "full": q + kv}[shape.qk_norm]
    return attention_matrices(shape) + biases + norm * own_norms


def feed_forward_params(shape: "Shape", f: int) -> int:
    """One feed-forward of width f: two matrices if plain, three if gated."""
    into = 2 if shape.ff == "gated" else 1
    return (into + 1) * shape.width * f + shape.ff_bias * (into * f + shape.width)
