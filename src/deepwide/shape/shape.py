"""Shape: the depth, width and parts of one transformer. It knows itself and nothing about laws or training."""

from typing import Any, Literal, Self, TypeGuard

from pydantic import Field, ValidationError, model_validator

from deepwide.errors import DeepwideError
from deepwide.settings import LARGEST, Natural, Part, Positive, explain

Layers = tuple[Natural, ...]
# Tells type checkers that the field may be left out; `Shape._fill_in` always gives it a value.
_FILLED_IN: Any = Field(default=None)


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


class Shape(Part):
    """One decoder-only transformer.

    Only `depth` and `width` are required; the rest defaults to the network of Levine et al. and GPT-2:
    plain feed-forward of 4·width, learned positions, LayerNorm and biases, tied embeddings.

    >>> Shape(depth=12, width=768, heads=12, context=1024).total_params   # GPT-2
    124439808
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

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        """Heads of 64 unless told otherwise; one key/value head a head; feed-forward of 4d, or 8d/3 if gated."""
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

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """`Shape(...)` whose complaint is one sentence, for input that a person or a file gave."""
        try:
            return cls(**fields)
        except ValidationError as error:
            raise DeepwideError(explain(error, cls, noun="field")) from None

    def but(self, **changes: Any) -> Self:
        """The same shape with some fields changed, validated again."""
        return self.of(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

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
    def params(self) -> "Params":
        """Parameters part by part."""
        from deepwide.shape.params import count

        return count(self)


def _is_positive(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and 1 <= value <= LARGEST


def _divide(width: int, parts: int, name: str) -> int:
    if width % parts:
        raise ValueError(f"width ({width}) is not a multiple of {name} ({parts}): give heads and head_dim both")
    return width // parts


# At the end: params.py speaks about Shape, and Shape's properties about Params.
from deepwide.shape.params import Params  # noqa: E402
