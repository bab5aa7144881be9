"""Parameters of a Shape, part by part, exact to the last bias.

The functions use only +, × and comparisons on the fields that may vary together in a grid (depth, width, heads,
kv_heads, ff_width), so that the planner can hand them numpy integer arrays in place of integers.

Legend: d width, q = heads·head_dim, kv = kv_heads·head_dim, f feed-forward width.
"""

from pydantic import BaseModel, ConfigDict, computed_field

from deepwide.shape.parts import Parts

NORM_VECTORS = {"layernorm": 2, "rmsnorm": 1, "none": 0}


class Params(BaseModel):
    """How many parameters each part of a shape has.

    Block parameters are the non-embedding parameters: attention (cross-attention included), feed-forward and norms of
    all layers, encoder and decoder. Embeddings, positions and heads, also those for classes, are not among them.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    embedding: int  # token embedding, with its projections and its norm where a model has them
    positions: int
    attention: int  # with cross-attention
    feed_forward: int
    norms: int  # with what the residual scheme learns
    head: int  # for tokens, 0 when tied, but for a bias; for classes, all of it
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


def count(shape: Parts) -> Params:
    """Count every part of `shape`."""
    d, layers = shape.width, shape.depth + shape.encoder_depth
    crossing = shape.kind == "encoder-decoder"
    cross, stacks = (shape.depth, 2) if crossing else (0, 1)
    norm, norms, scales = NORM_VECTORS[shape.norm], layers * shape.block_norms, layers * shape.residual_scales
    if crossing:
        norms += cross * cross_norms(shape)
        scales += cross * (shape.residual_scales // shape.sublayers)
    narrow = d if shape.embedding_width is None else shape.embedding_width
    projections = 0 if shape.embedding_width is None else 2 * narrow * d
    moe, moe_layers = shape.experts, expert_layers(shape)
    expert = feed_forward_params(shape, moe.width) if moe else 0
    return Params.model_construct(
        embedding=shape.vocab * narrow + projections + stacks * shape.embedding_norm * norm * d,
        positions=stacks * (shape.context + shape.extra_positions) * d if shape.positions == "learned" else 0,
        attention=(layers + cross) * attention_params(shape),
        feed_forward=(layers - moe_layers) * feed_forward_params(shape, shape.ff_width)
        + (moe_layers * expert_block_params(shape, expert) if moe else 0),
        norms=(norms + stacks * shape.final_norm) * norm * d + scales,
        head=head_params(shape),
        inactive=moe_layers * (moe.experts - moe.active) * expert if moe else 0,
    )


def cross_norms(shape: Parts) -> int:
    """Norms of a cross-attention sublayer: as many as the other sublayers have."""
    return shape.block_norms // shape.sublayers


def head_matrices(shape: Parts) -> int:
    """Weights of a head for classes that multiply one pooled sequence, or one pair of them."""
    d, C = shape.width, shape.classes
    return {"tokens": 0, "class": d * C, "pair": 4 * d * d + d * C}[shape.head]


def head_params(shape: Parts) -> int:
    """The head with its biases: logits over the vocabulary, or over classes."""
    if shape.head != "tokens":
        return head_matrices(shape) + shape.classes + (shape.width if shape.head == "pair" else 0)
    narrow = shape.width if shape.embedding_width is None else shape.embedding_width
    return (0 if shape.tied else shape.vocab * narrow) + shape.head_bias * shape.vocab


def expert_layers(shape: Parts) -> int:
    """How many layers have experts in place of the feed-forward."""
    return shape.depth - len(shape.experts.dense_layers) if shape.experts else 0


def expert_block_params(shape: Parts, expert: int) -> int:
    """One mixture: its experts, the shared ones as a single wider feed-forward, and the router."""
    moe = shape.experts
    assert moe is not None
    shared = feed_forward_params(shape, moe.shared * moe.width) if moe.shared else 0
    return moe.experts * expert + shared + shape.width * moe.experts


def attention_matrices(shape: Parts) -> int:
    """Weights that multiply a token in one layer's attention."""
    d, h = shape.width, shape.heads
    if shape.latent is None:
        q, kv = h * shape.head_dim, shape.kv_heads * shape.head_dim
        return d * (q + 2 * kv) + q * d
    m = shape.latent
    query = m.query_rank * (d + h * shape.head_dim) if m.query_rank else d * h * shape.head_dim
    key_value = d * (m.kv_rank + m.rope_dim) + m.kv_rank * h * (m.nope_dim + m.value_dim)
    return query + key_value + h * m.value_dim * d


def attention_params(shape: Parts) -> int:
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


def feed_forward_params(shape: Parts, f: int) -> int:
    """One feed-forward of width f: two matrices if plain, three if gated."""
    into = 2 if shape.ff == "gated" else 1
    return (into + 1) * shape.width * f + shape.ff_bias * (into * f + shape.width)
