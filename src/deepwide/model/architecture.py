"""Architecture: a Shape and the named choices that a count does not see. No torch here, so that planning stays light.

Every choice is a name that one registry in this room answers to: `attention` in attention.py, `norm` in norm.py,
`ff` and `activation` in feed_forward.py, `positions` in position.py, `residual` in residual.py, `initialisation`
in initialisation.py, `parametrisation` in parametrisation.py.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.settings import Part, Positive, explain
from deepwide.shape import Shape

AttentionKind = Literal["softmax", "linear"]
Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
NormPlace = Literal["pre", "post", "peri"]
Residual = Literal["plain", "none", "deepnorm", "rezero", "layerscale", "admin"]
Initialisation = Literal["gpt2", "fan_in", "xavier"]
Parametrisation = Literal["standard", "mup", "completep"]
SmallFloat = Annotated[float, Field(gt=0, le=1)]

NORMS_PER_SUBLAYER: Mapping[str, int] = {"pre": 1, "post": 1, "peri": 2}
SCALES_PER_SUBLAYER: Mapping[str, Literal["scalar", "vector"]] = {
    "rezero": "scalar",
    "layerscale": "vector",
    "admin": "vector",
}
_UNBIASED = {"qkv_bias": False, "out_bias": False, "ff_bias": False}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Levine et al. 2020, GPT-2: learned positions, LayerNorm before each sublayer, plain feed-forward of 4d.
    # GELU in its exact form: on a CPU its tanh approximation, which OpenAI's weights want, is three times slower.
    "levine": {"activation": "gelu"},
    # Touvron et al. 2023: RMSNorm, rotary positions, gated feed-forward of 8d/3, grouped key/value heads, no biases.
    "llama": {
        "ff": "gated",
        "positions": "rotary",
        "norm": "rmsnorm",
        "tied": False,
        "activation": "silu",
        **_UNBIASED,
    },
    # The network that the theory analyses (eq. 3): attention without softmax and nothing else.
    "linear": {
        "attention": "linear",
        "norm": "none",
        "final_norm": False,
        "ff_width": 0,
        "tied": False,
        "residual": "none",
        "initialisation": "fan_in",
        **_UNBIASED,
    },
}


class Stack(NamedTuple):
    """One column of blocks: the decoder or the encoder of a network."""

    depth: int
    sublayers: int  # of one block
    causal: bool
    cross: bool  # whether its blocks attend to an encoder


class Choices(Part):
    """What a Shape does not say about a network."""

    attention: AttentionKind = "softmax"
    activation: Activation = "gelu"
    norm_place: NormPlace = "pre"
    norm_eps: SmallFloat = 1e-5
    rotary_base: Annotated[float, Field(gt=1, le=1e9)] = 10000.0
    residual: Residual = "plain"
    initialisation: Initialisation = "gpt2"
    parametrisation: Parametrisation = "standard"
    base_width: Positive = 256  # where mup and completep equal standard
    base_depth: Positive = 4


class Architecture(Choices):
    """Everything that makes a network but its weights.

    >>> Architecture.of("llama", depth=2, width=128, vocab=256, context=64).shape.total_params
    410752
    """

    shape: Shape

    @classmethod
    def of(cls, preset: str = "levine", **given: Any) -> Self:
        """A preset with some fields of Shape and some choices replaced; the complaint is one sentence.

        >>> Architecture.of("levine", depth=2, width=64, residal="rezero")
        Traceback (most recent call last):
        deepwide.errors.DeepwideError: there is no choice 'residal': did you mean 'residual' or 'residual_scales'?
        """
        if preset not in PRESETS:
            raise DeepwideError(f"there is no preset '{preset}': {did_you_mean(preset, PRESETS)}")
        known = Shape.model_fields.keys() | Choices.model_fields.keys()
        for name in given:
            if name not in known:
                raise DeepwideError(f"there is no choice '{name}': {did_you_mean(name, known)}")
        fields = dict(PRESETS[preset]) | {name: value for name, value in given.items() if value is not None}
        try:
            choices = Choices(**{name: value for name, value in fields.items() if name in Choices.model_fields})
        except ValidationError as error:
            raise DeepwideError(explain(error, Choices)) from None
        fields = {name: value for name, value in fields.items() if name in Shape.model_fields}
        shape = Shape.of(**_implied(preset, fields, choices))
        try:
            return cls(shape=shape, **choices.model_dump())
        except ValidationError as error:
            raise DeepwideError(explain(error, cls)) from None

    @property
    def causal(self) -> bool:
        """Whether a position sees only itself and what came before it: in all decoders."""
        return self.shape.kind != "encoder"

    @property
    def stack(self) -> Stack:
        """The blocks that the head reads: `blocks.*`."""
        s = self.shape
        cross = s.kind == "encoder-decoder"
        return Stack(s.depth, s.sublayers + cross, self.causal, cross)

    @property
    def encoder(self) -> Stack:
        """The encoder of an encoder-decoder: `encoder.blocks.*`."""
        return Stack(self.shape.encoder_depth, self.shape.sublayers, causal=False, cross=False)

    def stack_of(self, name: str) -> Stack:
        """The stack that a parameter's name belongs to."""
        return self.encoder if name.startswith("encoder.") else self.stack

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        s = self.shape
        for name, present in (("experts", s.experts), ("latent attention", s.latent), ("windows", s.window)):
            if present:
                raise ValueError(f"networks with {name} can be counted but not trained yet")
        if s.embedding_width:
            raise ValueError("embeddings of another width than the blocks can be counted but not trained yet")
        norms = s.sublayers * NORMS_PER_SUBLAYER[self.norm_place]
        if s.norm != "none" and s.block_norms != norms:
            raise ValueError(f"norm_place '{self.norm_place}' has block_norms {norms}, the shape {s.block_norms}")
        if s.residual_scales != residual_scales(self.residual, s.width, s.sublayers):
            raise ValueError(f"residual scheme '{self.residual}' does not learn {s.residual_scales} numbers per block")
        if s.positions == "rotary" and s.head_dim % 2:
            raise ValueError(f"rotary positions need an even head_dim, not {s.head_dim}")
        if self.attention == "linear" and s.positions == "alibi":
            raise ValueError("alibi biases the scores before softmax, and linear attention has none")
        return self


def residual_scales(residual: str, width: int, sublayers: int) -> int:
    """How many numbers a block's residual scheme learns."""
    kind = SCALES_PER_SUBLAYER.get(residual)
    return sublayers * {None: 0, "scalar": 1, "vector": width}[kind]


def _implied(preset: str, fields: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """Heads, norms and learned scales that follow from the rest, where they are not given."""
    width, heads = fields.get("width"), fields.get("heads")
    if isinstance(width, int) and width > 0:
        if not {"heads", "head_dim"} & fields.keys():
            fields["head_dim"] = _head_dim(width)
        if preset == "llama" and "kv_heads" not in fields:
            if heads is None and isinstance(fields.get("head_dim"), int) and fields["head_dim"] > 0:
                heads = width // fields["head_dim"]
            if isinstance(heads, int) and heads > 0:
                fields["kv_heads"] = next(heads // group for group in (4, 2, 1) if heads % group == 0)
    sublayers = 1 if fields.get("ff_width") == 0 else 2
    fields.setdefault("block_norms", sublayers * NORMS_PER_SUBLAYER[choices.norm_place])
    if isinstance(width, int):
        fields.setdefault("residual_scales", residual_scales(choices.residual, width, sublayers))
    if fields.get("ff_width") == 0:
        fields.setdefault("ff_bias", False)
    if choices.norm_place == "post":
        fields.setdefault("final_norm", False)  # the last block already ends in one
    return fields


def _head_dim(width: int) -> int:
    """64 from width 512 on, else 32, or the largest power of two that divides the width."""
    wanted = (64, 32, 16, 8) if width >= 512 else (32, 16, 8)
    return next((size for size in wanted if width % size == 0), width)
