"""Shape: the depth, width and parts of one transformer. It knows itself and nothing about laws or training.

Parameters are counted part by part, exact to the last bias. The counting functions use only +, × and comparisons on the
fields that may vary together in a grid (depth, width, heads, kv_heads, ff_width), so that the planner can hand them
numpy integer arrays in place of integers.

Legend: d width, q = heads·head_dim, kv = kv_heads·head_dim, f feed-forward width.
"""

from typing import Annotated, Any, Literal, Self, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field, model_validator

from deepwide.errors import DeepwideError
from deepwide.quantities import plural
from deepwide.settings import LARGEST, Natural, Part, Positive, explain

Layers = tuple[Natural, ...]
Amount = Annotated[int, Field(ge=0)]
# Tells type checkers that the field may be left out; `Parts._fill_in` always gives it a value.
_FILLED_IN: Any = Field(default=None)
Kind = Literal["decoder", "encoder", "encoder-decoder"]
Head = Literal["tokens", "class", "pair"]


class Experts(Part):
    """A mixture of experts in place of the feed-forward of every layer not in `dense_layers`."""

    experts: Positive
    active: Positive
    width: Positive
    shared: Natural = 0
    dense_layers: Layers = ()

    @model_validator(mode="after")
    def _active_are_among_the_experts(self) -> Self:
        if self.active > self.experts:
            raise ValueError(f"{self.active} active experts of {self.experts}")
        return self


class LatentAttention(Part):
    """DeepSeek's attention: keys and values (and, with a rank, queries) pass through a narrow latent vector."""

    kv_rank: Positive
    query_rank: Positive | None = None
    rope_dim: Positive
    nope_dim: Positive
    value_dim: Positive


MixingKind = Literal[
    "bigbird", "linear_elu", "linformer", "local", "longformer", "performer", "sinkhorn", "sparse", "synthesizer"
]


class Mixing(Part):
    """Attention of an encoder that is not a softmax over all pairs of positions; mixing.py counts it."""

    kind: MixingKind
    size: Positive | None = None  # block; window of longformer, rank of linformer, random features of performer
    links: Positive | None = None  # random blocks of bigbird; last positions of every block that all see, of sparse


class Extra(Part):
    """Something else in some layers: a mixer in place of attention or beside it, a gate, one more norm.

    A mixer is what tokens pass instead of attention: a state space, linear attention, a recurrence, a convolution.
    """

    name: str
    part: Literal["mixer", "attention", "feed_forward", "norms", "embedding", "head"] = "mixer"
    layers: Natural = 1  # that have it
    params: Amount = 0  # of each
    matrices: Amount = 0  # weights that multiply a token in each, two FLOPs per weight
    products: Amount = 0  # further multiplications and additions per token: the state's, a convolution's
    state: Amount = 0  # numbers that each keeps of a sequence while decoding, however long it is
    stored: Amount = 0  # numbers per token that each keeps for the backward pass


class Parts(Part):
    """What one transformer is made of; `Shape` adds what can be asked about it.

    `kind`: a decoder's positions see what came before them, an encoder's see all; an encoder-decoder (Vaswani et al.
    2017) has `encoder_depth` encoder layers that read a source, and `depth` decoder layers that also attend to it. Both
    stacks share the token embedding and nothing else; each has its own learned positions and final norm. `block_norms`
    and `residual_scales` are those of an encoder layer; a decoder layer has one more sublayer with its share of both.

    `head`: `tokens` gives logits over the vocabulary at each position; `class` one of `classes` per sequence, by a
    linear map of the pooled positions; `pair` one of `classes` per pair of sequences, by one hidden layer of `width`.
    `tied` and `head_bias` describe the head for tokens and mean nothing for the other two.

    A hybrid has layers without attention (`attention_free`) or without a feed-forward (`ff_free`), and `extras`.
    """

    depth: Positive
    width: Positive
    heads: Positive = _FILLED_IN
    kv_heads: Positive = _FILLED_IN
    head_dim: Positive = _FILLED_IN
    ff: Literal["plain", "gated"] = "plain"
    ff_width: Natural = _FILLED_IN  # 0: no feed-forward
    vocab: Positive = 50257
    context: Positive = 2048
    tied: bool = True
    positions: Literal["learned", "rotary", "alibi", "none"] = "learned"
    norm: Literal["layernorm", "rmsnorm", "none"] = "layernorm"
    block_norms: Natural = 2
    final_norm: bool = True
    embedding_norm: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    qkv_bias: bool = True
    out_bias: bool = True
    ff_bias: bool = True
    head_bias: bool = False
    extra_positions: Natural = 0
    residual_scales: Natural = 0  # learned numbers a block's residual scheme adds: ReZero 2, LayerScale 2·width
    embedding_width: Positive | None = None
    experts: Experts | None = None
    latent: LatentAttention | None = None
    mixing: Mixing | None = None
    window: Positive | None = None
    sliding_layers: Layers = ()
    attention_free: Layers = ()
    ff_free: Layers = ()
    extras: tuple[Extra, ...] = ()
    kind: Kind = "decoder"
    encoder_depth: Natural = 0  # encoder layers of an encoder-decoder
    head: Head = "tokens"
    classes: Natural = 0  # of the heads class and pair

    @property
    def reads_two(self) -> bool:
        """Whether the network reads a second sequence: the source of an encoder-decoder, or the other of a pair."""
        return self.kind == "encoder-decoder" or self.head == "pair"

    @property
    def sublayers(self) -> int:
        """Residual sublayers of a layer without cross-attention: attention, and the feed-forward if there is one."""
        return 2 if self.experts or self.ff_width != 0 else 1

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Heads of 64 unless given; one key/value head per head; feed-forward of 4d, or 8d/3 if gated."""
        if not isinstance(given, dict):
            return given
        fields = {name: value for name, value in given.items() if value is not None}
        width = fields.get("width")
        if not _is_positive(width):
            return fields
        if not {"heads", "head_dim"} & fields.keys():
            fields["head_dim"] = 64 if width % 64 == 0 else width
        if "heads" not in fields and _is_positive(fields["head_dim"]):
            fields["heads"] = _divide(width, fields["head_dim"], "head_dim")
        if "head_dim" not in fields and _is_positive(fields["heads"]):
            fields["head_dim"] = _divide(width, fields["heads"], "heads")
        fields.setdefault("kv_heads", fields.get("heads"))
        fields.setdefault("ff_width", 4 * width if fields.get("ff", "plain") == "plain" else -(-8 * width // 3))
        return fields

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")
        for name, layers in (
            ("sliding_layers", self.sliding_layers),
            ("experts.dense_layers", self.experts.dense_layers if self.experts else ()),
            ("attention_free", self.attention_free),
            ("ff_free", self.ff_free),
        ):
            if layers != tuple(sorted(set(layers))) or (layers and layers[-1] >= self.depth):
                raise ValueError(f"{name} must be rising layer numbers below depth {self.depth}")
        if self.experts and set(self.ff_free) & set(self.experts.dense_layers):
            raise ValueError("a layer of ff_free has no feed-forward, so it is not among experts.dense_layers")
        if set(self.attention_free) & set(self.sliding_layers):
            raise ValueError("a layer of attention_free has no attention, so it is not among sliding_layers")
        if bool(self.sliding_layers) != (self.window is not None):
            raise ValueError("window and sliding_layers go together")
        if self.ff_width == 0 and (self.ff_bias or self.experts):
            raise ValueError("ff_width 0 means no feed-forward: then ff_bias is false and there are no experts")
        if self.embedding_width == self.width:
            raise ValueError("embedding_width is for embeddings of another width than the blocks; leave it out")
        if self.latent and self.head_dim != self.latent.nope_dim + self.latent.rope_dim:
            raise ValueError("with latent attention, head_dim is nope_dim + rope_dim")
        return self

    @model_validator(mode="after")
    def _kind_and_head_fit(self) -> Self:
        both = self.kind == "encoder-decoder"
        if both != (self.encoder_depth > 0):
            raise ValueError(f"encoder_depth is for encoder-decoders, which need one; kind is {self.kind}")
        if (self.head == "tokens") != (self.classes == 0):
            raise ValueError(f"classes is for the heads class and pair, which need one or more; head is {self.head}")
        if both and self.head != "tokens":
            raise ValueError(f"an encoder-decoder has a head for tokens, not for a {self.head}")
        if (both or self.head != "tokens") and self.embedding_width:
            raise ValueError("embedding_width is for decoders and encoders with a head for tokens; leave it out")
        if self.kind != "decoder" and (self.attention_free or self.ff_free or self.extras):
            raise ValueError(f"layers of several kinds are for decoders; kind is {self.kind}")
        if self.kind != "decoder" and self.window:
            raise ValueError(f"windows are for decoders; kind is {self.kind}")
        if both and (self.experts or self.latent):
            raise ValueError("encoder-decoders have neither experts nor latent attention")
        if self.mixing and (self.kind != "encoder" or self.latent or self.kv_heads != self.heads):
            raise ValueError(f"{self.mixing.kind} attention is for encoders with as many key/value heads as heads")
        if both and (self.block_norms % self.sublayers or self.residual_scales % self.sublayers):
            raise ValueError(f"block_norms and residual_scales must be multiples of {self.sublayers} sublayers")
        return self


def _is_positive(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and 1 <= value <= LARGEST


def _divide(width: int, parts: int, name: str) -> int:
    if width % parts:
        raise ValueError(f"width ({width}) is not a multiple of {name} ({parts}): give heads and head_dim both")
    return width // parts


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
    mixers: int  # what hybrids have in place of attention, or beside it
    head: int  # for tokens, 0 when tied, but for a bias; for classes, all of it
    inactive: int  # experts a token is not sent to

    @computed_field  # type: ignore[prop-decorator]
    @property
    def block(self) -> int:
        """Attention, mixers, feed-forward and norms, the final one included: what the laws call N."""
        return self.attention + self.mixers + self.feed_forward + self.norms

    @computed_field  # type: ignore[prop-decorator]
    @property
    def active_block(self) -> int:
        """Of the block parameters, those that one token passes through."""
        return self.block - self.inactive

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
    counted = _count_usual(shape)
    if not shape.extras:
        return counted
    more: dict[str, int] = {}
    for extra in shape.extras:
        part = "mixers" if extra.part == "mixer" else extra.part
        more[part] = more.get(part, 0) + extra.layers * extra.params
    return counted.model_copy(update={part: getattr(counted, part) + params for part, params in more.items()})


def _count_usual(shape: Parts) -> Params:
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
        attention=(layers - len(shape.attention_free) + cross) * attention_params(shape),
        feed_forward=(layers - len(shape.ff_free) - moe_layers) * feed_forward_params(shape, shape.ff_width)
        + (moe_layers * expert_block_params(shape, expert) if moe else 0),
        norms=(norms + stacks * shape.final_norm) * norm * d + scales,
        mixers=0,
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
    return shape.depth - len(shape.experts.dense_layers) - len(shape.ff_free) if shape.experts else 0


def attention_layers(shape: Parts) -> int:
    """How many layers of `depth` have self-attention."""
    return shape.depth - len(shape.attention_free)


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
        return d * (_read_by_pairs(shape, q, kv) + kv) + q * d
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
    biases = shape.qkv_bias * (_read_by_pairs(shape, q, kv) + kv) + shape.out_bias * shape.width
    own_norms = {"none": 0, "head": 2 * shape.head_dim, "full": q + kv}[shape.qk_norm]
    total = attention_matrices(shape) + biases + norm * own_norms
    if shape.mixing is None:
        return total
    from deepwide.shape.mixing import mixing_params

    return total + mixing_params(shape)


def _read_by_pairs(shape: Parts, q: int, kv: int) -> int:
    """Numbers of a token's queries and keys; synthesizer attention has neither."""
    return 0 if shape.mixing is not None and shape.mixing.kind == "synthesizer" else q + kv


def feed_forward_params(shape: Parts, f: int) -> int:
    """One feed-forward of width f: two matrices if plain, three if gated."""
    into = 2 if shape.ff == "gated" else 1
    return (into + 1) * shape.width * f + shape.ff_bias * (into * f + shape.width)


SIZES = frozenset({"depth", "width", "heads", "kv_heads", "head_dim", "ff_width"})


class Shape(Parts):
    """One transformer: a decoder unless `kind` says otherwise.

    Only `depth` and `width` are required; the rest defaults to the network of Levine et al. and GPT-2:
    plain feed-forward of 4·width, learned positions, LayerNorm and biases, tied embeddings.

    >>> Shape(depth=12, width=768, heads=12, context=1024).total_params   # GPT-2
    124439808
    """

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """`Shape(...)` whose complaint is one sentence, for input that a person or a file gave."""
        try:
            return cls(**fields)
        except ValidationError as error:
            raise DeepwideError(explain(error, cls, noun="field")) from None

    def but(self, **changes: Any) -> Self:
        """The same shape with some fields changed, validated again."""
        if self.extras and "extras" not in changes and not SIZES.isdisjoint(changes):
            sizes = ", ".join(sorted(SIZES & changes.keys()))
            raise DeepwideError(f"{sizes} cannot be changed alone: this shape has parts whose sizes follow from them.")
        return self.of(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def describe(self) -> str:
        """The shape in one line."""
        kv = "" if self.kv_heads == self.heads else f" ({self.kv_heads} key/value)"
        parts = []
        if attention_layers(self):
            few = f" in {plural(attention_layers(self), 'layer')}" if self.attention_free else ""
            kind = f" ({self.mixing.kind})" if self.mixing else ""
            parts.append(f"{plural(self.heads, 'head')}{kv} of {self.head_dim}{kind}{few}")
        parts += [f"{extra.name} in {plural(extra.layers, 'layer')}" for extra in self.extras if extra.part == "mixer"]
        if moe := self.experts:
            shared = f" + {moe.shared} shared" if moe.shared else ""
            few = f" in {plural(expert_layers(self), 'layer')}" if self.ff_free else ""
            parts.append(f"{moe.experts}{shared} {self.ff} experts of {moe.width:,} ({moe.active} active){few}")
        dense = self.depth - len(self.ff_free) - expert_layers(self)
        if dense and self.ff_width:
            few = f" in {plural(dense, 'layer')}" if self.ff_free else ""
            parts.append(f"{self.ff} feed-forward of {self.ff_width:,}{few}")
        return (
            f"{plural(self.depth, 'layer')} × {self.width:,} wide, {', '.join(parts)}, "
            f"vocabulary {self.vocab:,}, context {self.context:,}"
        )

    @property
    def total_params(self) -> int:
        """Every trainable number, tied matrices once."""
        return self.params.total

    @property
    def block_params(self) -> int:
        """What the laws count: everything but embeddings and head."""
        return self.params.block

    @property
    def active_params(self) -> int:
        """What one token passes through: `total_params` less the experts it is not sent to."""
        return self.params.active

    @property
    def params(self) -> Params:
        """Parameters part by part."""
        return count(self)
