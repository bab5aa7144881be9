"""Parts: the fields of a Shape, what follows from a few of them, and which of them go together."""

from typing import Any, Literal, Self, TypeGuard

from pydantic import Field, model_validator

from deepwide.settings import LARGEST, Natural, Part, Positive

Layers = tuple[Natural, ...]
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


class Parts(Part):
    """What one transformer is made of; `Shape` adds what can be asked about it.

    `kind`: a decoder's positions see what came before them, an encoder's see all; an encoder-decoder (Vaswani et al.
    2017) has `encoder_depth` encoder layers that read a source, and `depth` decoder layers that also attend to it. Both
    stacks share the token embedding and nothing else; each has its own learned positions and final norm. `block_norms`
    and `residual_scales` are those of an encoder layer; a decoder layer has one more sublayer with its share of both.

    `head`: `tokens` gives logits over the vocabulary at each position; `class` one of `classes` per sequence, by a
    linear map of the pooled positions; `pair` one of `classes` per pair of sequences, by one hidden layer of `width`.
    `tied` and `head_bias` describe the head for tokens and mean nothing for the other two.
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
    window: Positive | None = None
    sliding_layers: Layers = ()
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
        ):
            if layers != tuple(sorted(set(layers))) or (layers and layers[-1] >= self.depth):
                raise ValueError(f"{name} must be rising layer numbers below depth {self.depth}")
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
        if self.kind != "decoder" and self.window:
            raise ValueError(f"windows are for decoders; kind is {self.kind}")
        if both and (self.experts or self.latent):
            raise ValueError("encoder-decoders have neither experts nor latent attention")
        if both and (self.block_norms % self.sublayers or self.residual_scales % self.sublayers):
            raise ValueError(f"block_norms and residual_scales must be multiples of {self.sublayers} sublayers")
        return self


def _is_positive(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and 1 <= value <= LARGEST


def _divide(width: int, parts: int, name: str) -> int:
    if width % parts:
        raise ValueError(f"width ({width}) is not a multiple of {name} ({parts}): give heads and head_dim both")
    return width // parts
