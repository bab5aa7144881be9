"""Architecture: a Shape and the named choices that a count does not see. No torch here, so that planning stays light.

Every choice is a name that one registry in this room answers to: `attention` in attention.py, `initialisation` in
initialisation.py, `parametrisation` in `factors` and the multipliers below, and the others in layers.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from deepwide.errors import DeepwideError, did_you_mean
from deepwide.settings import Part, Positive, explain
from deepwide.shape import Mixing, Shape

AttentionKind = Literal[
    "softmax", "linear", "hard",
    "bigbird", "linear_elu", "linformer", "local", "longformer", "performer", "sinkhorn", "sparse", "synthesizer",
]  # fmt: skip
Look = Literal[
    "leftmost none", "leftmost j<i", "leftmost j<=i", "leftmost j>i", "leftmost j>=i",
    "rightmost none", "rightmost j<i", "rightmost j<=i", "rightmost j>i", "rightmost j>=i",
]  # fmt: skip
Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
NormPlace = Literal["pre", "post", "peri", "pre_scaled"]
Residual = Literal["plain", "none", "deepnorm", "rezero", "layerscale", "admin", "admin_profiled"]
Initialisation = Literal["gpt2", "fan_in", "xavier", "tfixup"]
Parametrisation = Literal["standard", "mup", "completep"]
SmallFloat = Annotated[float, Field(gt=0, le=1)]

NORMS_PER_SUBLAYER: Mapping[str, int] = {"pre": 1, "post": 1, "peri": 2, "pre_scaled": 1}
SCALES_PER_SUBLAYER: Mapping[str, Literal["scalar", "vector"]] = {
    "rezero": "scalar",
    "layerscale": "vector",
    "admin": "vector",
    "admin_profiled": "vector",
}
# Size and links of the attention kinds that have them, as Long Range Arena sets them: see Mixing. Runs that leave
# them out are hashed without them, so these must never change.
MIXING_SIZES: Mapping[str, tuple[int | None, int | None]] = {
    "bigbird": (64, 3),
    "linear_elu": (None, None),
    "linformer": (16, None),
    "local": (50, None),
    "longformer": (512, None),
    "performer": (256, None),
    "sinkhorn": (50, None),
    "sparse": (50, 10),
    "synthesizer": (None, None),
}
BASE_HEAD_DIM = 64  # where mup's and completep's scores equal standard's
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
    attention_size: Positive | None = None  # block, window, rank or features of an encoder's kinds: see Mixing
    attention_links: Positive | None = None  # random blocks of bigbird, common positions of a block of sparse
    looks: tuple[Look, ...] = ()  # of hard attention: which of the best keys each head takes, and where it may look
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
            choices = _sized(Choices(**{name: fields[name] for name in fields if name in Choices.model_fields}))
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
        for name, present in (
            ("experts", s.experts),
            ("latent attention", s.latent),
            ("windows", s.window),
            ("layers of several kinds", s.attention_free or s.ff_free or s.extras),
        ):
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
        if self.attention != "softmax" and s.positions == "alibi":
            raise ValueError(f"alibi biases the scores before softmax, and {self.attention} attention has none")
        self._check_mixing()
        if len(self.looks) != (s.heads if self.attention == "hard" else 0):
            raise ValueError(
                f"looks are for hard attention, one per head, and there are {len(self.looks)} of them for {s.heads} "
                f"heads with {self.attention} attention"
            )
        if self.attention == "hard" and s.kind == "encoder-decoder":
            raise ValueError("hard attention is for encoders and decoders, not for an encoder-decoder")
        return self

    def _check_mixing(self) -> None:
        """Complain about sizes and choices that the attention of an encoder cannot have."""
        kind, s, size, links = self.attention, self.shape, self.attention_size, self.attention_links
        usual = MIXING_SIZES.get(kind)
        if (size is not None) != bool(usual and usual[0]) or (links is not None) != bool(usual and usual[1]):
            takes = "a size and links" if usual and usual[1] else "a size" if usual and usual[0] else "neither"
            raise ValueError(f"{kind} attention takes {takes} (attention_size, attention_links)")
        if s.mixing != (Mixing(kind=kind, size=size, links=links) if usual else None):  # type: ignore[arg-type]
            raise ValueError(f"the shape's mixing is {s.mixing}, and attention is {kind}")
        if usual is None:
            return
        if self.parametrisation != "standard":
            raise ValueError(f"parametrisation '{self.parametrisation}' does not say how {kind} attention is scaled")
        if kind == "longformer" and size is not None and size % 2:
            raise ValueError(f"a window reaches as far back as ahead: attention_size must be even, not {size}")
        if kind == "sparse" and size is not None and links is not None and links > size:
            raise ValueError(f"attention_links ({links}) must be at most attention_size ({size})")
        if kind == "synthesizer" and (s.qk_norm != "none" or s.positions == "rotary"):
            raise ValueError("synthesizer attention has no queries and keys: leave out qk_norm and rotary positions")


def residual_scales(residual: str, width: int, sublayers: int) -> int:
    """How many numbers a block's residual scheme learns."""
    kind = SCALES_PER_SUBLAYER.get(residual)
    return sublayers * {None: 0, "scalar": 1, "vector": width}[kind]


@dataclass(frozen=True)
class Factors:
    """What one parameter's settings are multiplied by, so that one learning rate serves every width and depth.

    With m_d = width / base_width and m_L = depth / base_depth, relative to `standard`:

                            standard   mup                completep (Dey et al. 2025, α = 1)
        hidden: init std    1          m_d^−½             m_d^−½
                lr          1          m_d^−1             m_d^−1            (· m_L^(α−1) = 1)
                decay       1          m_d                m_d
                Adam's ε    1          m_d^−1             m_d^−1 m_L^−1
        other:  Adam's ε    1          m_d^−1             m_d^−1 (in the blocks: · m_L^−1)
        branch  x + m·f     1          1                  m_L^−1
        logits              1          m_d^−1             m_d^−1
        scores              E^−½       E0^½ / E           E0^½ / E          (E head width, E0 = 64)

    Hidden are the matrices inside blocks and the hidden layer of a head for pairs; embeddings, positions, biases, norms
    and the head's last matrix are other. The depth is that of the stack, encoder or decoder, that a block belongs to.
    At the base shape all three are the same network. A parameter's name decides its role.
    """

    init: float = 1.0
    lr: float = 1.0
    decay: float = 1.0
    eps: float = 1.0


def factors(design: Architecture, name: str, dimensions: int) -> Factors:
    """The factors of the parameter `name` (such as blocks.0.attention.qkv.weight) with so many dimensions."""
    if design.parametrisation == "standard":
        return Factors()
    m_d, m_L = _growth(design, design.stack_of(name))
    in_block = name.startswith(("blocks.", "encoder.blocks."))
    deeper = 1 / m_L if design.parametrisation == "completep" and in_block else 1.0
    if dimensions == 2 and (in_block or name == "classifier.hidden.weight"):
        return Factors(init=m_d**-0.5, lr=1 / m_d, decay=m_d, eps=deeper / m_d)
    return Factors(eps=deeper / m_d)


def branch_multiplier(design: Architecture, stack: Stack) -> float:
    """What the output of every sublayer of a stack is multiplied by before it joins the residual stream."""
    return 1 / _growth(design, stack)[1] if design.parametrisation == "completep" else 1.0


def logits_multiplier(design: Architecture) -> float:
    """What the final activations are multiplied by before the head."""
    return 1.0 if design.parametrisation == "standard" else 1 / _growth(design, design.stack)[0]


def attention_scale(design: Architecture) -> float:
    """What scores are multiplied by before softmax."""
    E = design.shape.head_dim
    return float(E**-0.5 if design.parametrisation == "standard" else BASE_HEAD_DIM**0.5 / E)


def _growth(design: Architecture, stack: Stack) -> tuple[float, float]:
    return design.shape.width / design.base_width, stack.depth / design.base_depth


def _sized(choices: Choices) -> Choices:
    """The choices with the usual size and links of their attention, where none are given."""
    size, links = MIXING_SIZES.get(choices.attention, (None, None))
    usual = {"attention_size": size, "attention_links": links}
    return choices.model_copy(update={name: getattr(choices, name) or value for name, value in usual.items()})


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
    if choices.attention in MIXING_SIZES:
        sizes = {"size": choices.attention_size, "links": choices.attention_links}
        fields.setdefault("mixing", {"kind": choices.attention} | sizes)
    if choices.norm_place == "post":
        fields.setdefault("final_norm", False)  # the last block already ends in one
    return fields


def _head_dim(width: int) -> int:
    """64 from width 512 on, else 32, or the largest power of two that divides the width."""
    wanted = (64, 32, 16, 8) if width >= 512 else (32, 16, 8)
    return next((size for size in wanted if width % size == 0), width)
