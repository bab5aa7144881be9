"""Style: everything about a shape but its size.

All arithmetic is vectorised: a thousand budgets cost little more than one. Sizes are arrays in a Grid; `Style.shape`
makes one real Shape, validated.

A Grid is many shapes at once: sizes as arrays, everything else from one Shape.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self, cast

import numpy as np
from pydantic import Field, ValidationError, model_validator

from deepwide.errors import DeepwideError
from deepwide.quantities import Integers, Numbers, parse_count
from deepwide.settings import Natural, Part, Positive, explain
from deepwide.shape import FAMILIES, Experts, Shape, family_named


@dataclass(frozen=True)
class Grid:
    """Shapes that differ in their sizes only, the sizes held as numbers or numpy arrays, whole or real.

    It reads as a Shape: a field that is no size is the template's, and what a Shape derives from its fields (such as
    `params`) is derived from the grid's. So all counting functions take it, and give arrays.
    """

    template: Shape
    depth: Any
    width: Any
    heads: Any
    kv_heads: Any
    head_dim: Any
    ff_width: Any
    experts: Any = None

    def __post_init__(self) -> None:
        vars(self).update({**vars(self.template), **vars(self)})

    def __getattr__(self, name: str) -> Any:
        if name not in _DERIVED:
            raise AttributeError(f"a Shape has no '{name}'")
        return _DERIVED[name](self)

    @property
    def as_shape(self) -> Shape:
        """The grid itself, for functions that are annotated for one Shape."""
        return cast(Shape, self)


# Looked up once: a plan counts a thousand grids.
_DERIVED: dict[str, Callable[[Any], Any]] = {
    name: value.fget
    for kind in reversed(Shape.__mro__)
    for name, value in vars(kind).items()
    if isinstance(value, property) and value.fget is not None
}

Sizes = Shape | Grid
Measure = Callable[[Sizes], Any]  # what a budget limits: block parameters, total parameters, bytes, …


WITH_EXPERTS, WITH_SHARED_EXPERTS = "mixtral", "glm4_moe"  # families of a plan with experts, unless one is given
GRANULARITY_MISS = 0.01  # of a granularity that was asked for: a larger one is noted
RATIOS = {"plain": 4.0, "gated": 8 / 3}  # the usual feed-forward width over the width
IDEAL_HEAD_DIM = ((2048, 128), (512, 64), (0, 32))  # from this width on


def ideal_head_dim(width: Any) -> Integers:
    """The head width that suits a width, constraints apart: 128 from width 2048 on, 64 from 512, 32 below."""
    at = np.asarray(width)
    return np.asarray(np.select([at >= least for least, _ in IDEAL_HEAD_DIM], [head for _, head in IDEAL_HEAD_DIM]))


class Style(Part):
    """A family of shapes that differ in depth and width only."""

    family: str = "llama"
    vocab: Positive = 50304
    context: Positive = 2048
    head_dim: Positive | None = None
    kv_heads: Positive | None = None
    feed_forward: Literal["plain", "gated"] | None = None
    ff_ratio: float | None = Field(default=None, gt=0, le=64)
    tied: bool | None = None
    width_multiple: Positive | None = None
    tensor_parallel: Positive = 1
    pipeline_stages: Positive = 1
    experts: Positive | None = None
    active: Positive | None = None  # experts per token
    shared: Natural = 0  # experts that every token passes, beside the active ones
    granularity: float | None = Field(default=None, gt=0, le=4096)  # a dense feed-forward's width over an expert's
    like: Shape | None = None  # an existing model whose parts are kept, in place of a family's

    @model_validator(mode="before")
    @classmethod
    def _usual_family(cls, given: Any) -> Any:
        if isinstance(given, dict) and "family" not in given:
            if given.get("experts") is not None:
                return given | {"family": WITH_SHARED_EXPERTS if given.get("shared") else WITH_EXPERTS}
            if given.get("feed_forward") == "plain":
                return given | {"family": "gpt2"}
        return given

    @model_validator(mode="after")
    def _experts_fit(self) -> Self:
        if self.experts is None:
            asked = {"active": self.active, "shared": self.shared, "granularity": self.granularity}
            if alone := [name for name, value in asked.items() if value]:
                raise ValueError(f"{alone[0]} is for mixtures of experts: give the number of experts as well")
            return self
        if self.active is None:
            raise ValueError(f"of {self.experts} experts, say how many are active per token: give active as well")
        if self.active > self.experts:
            raise ValueError(f"active must be at most the {self.experts} experts, not {self.active}")
        if self.tensor_parallel > 1 and self.granularity and self.granularity > 64 * self.tensor_parallel:
            raise ValueError("experts so narrow do not divide over tensor parallel ranks: lower granularity")
        return self

    @model_validator(mode="after")
    def _family_can_have_it(self) -> Self:
        if self.like is not None:
            return self
        family = family_named(self.family)
        with_experts = [name for name, each in FAMILIES.items() if each.has_experts and "kv_heads" not in each.fused]
        if family.has_experts and self.family not in with_experts:
            raise ValueError(f"{self.family} has latent attention, which is not planned: {', '.join(with_experts)} are")
        if family.has_experts and self.experts is None:
            raise ValueError(f"{self.family} has experts: give the number of experts and of active ones")
        if self.experts and not family.has_experts:
            raise ValueError(f"{self.family} has no experts: leave it out, or choose {', '.join(with_experts)}")
        if self.shared and not family.shared_experts:
            raise ValueError(f"{self.family} has no shared experts: leave them out, or choose {WITH_SHARED_EXPERTS}")
        if self.kv_heads is not None and not family.free_kv:
            raise ValueError(
                f"{self.family} has one key/value head per head; leave kv_heads out, or choose a family with fewer: "
                "llama (gated) or phi (plain)"
            )
        if self.ff_ratio is not None and "ff_width" in family.fused:
            raise ValueError(f"{self.family} has a feed-forward of 4 × width; leave ff_ratio out")
        if self.head_dim and self.head_dim % 2 and family.fixed.get("positions") == "rotary":
            raise ValueError(f"rotary positions need heads of even width, not {self.head_dim}")
        if self.feed_forward not in (None, self.ff):
            raise ValueError(
                f"the family {self.family} has a {self.ff} feed-forward, not a {self.feed_forward} one: "
                "leave one of them out"
            )
        return self

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """A Style from what a person gave: None means not given, and a vocabulary may be written as 128k."""
        given = {name: value for name, value in fields.items() if value is not None}
        for name, noun in (("vocab", "a vocabulary"), ("context", "a context length")):
            if isinstance(given.get(name), str):
                given[name] = parse_count(given[name], noun)
        try:
            return cls(**given)
        except ValidationError as error:
            raise DeepwideError(explain(error, cls)) from None

    @classmethod
    def of_model(cls, shape: Shape) -> Self:
        """The style of an existing dense model: its own head width, key/value heads and feed-forward."""
        kv_heads = None if shape.kv_heads == shape.heads else shape.kv_heads
        # Windows change no count, and their layer numbers do not fit another depth.
        like = shape.but(window=None, sliding_layers=())
        return cls(vocab=shape.vocab, context=shape.context, head_dim=shape.head_dim, kv_heads=kv_heads, like=like)

    @property
    def ff(self) -> str:
        """The kind of feed-forward, plain or gated."""
        return self.template.ff

    @property
    def template(self) -> Shape:
        """A shape of this style, of no particular size."""
        return self.like or _template(self.family, self.vocab, self.context, self.tied)

    def grid(self, depth: Any, width: Any, head_dim: Any = None, ff_width: Any = None) -> Grid:
        """Shapes as arrays (or floats), for counting; heads are as wide as asked for, or as suits the width."""
        if head_dim is None:
            head_dim = self.usual_head_dim(width)
        heads = width / head_dim if _is_real(width) else width // head_dim
        kv_heads = heads if self.kv_heads is None else self.kv_heads
        if ff_width is None:
            ff_width = self.usual_ff_width(width)
        return Grid(self.template, depth, width, heads, kv_heads, head_dim, ff_width, self._mixture(ff_width))

    def usual_head_dim(self, width: Any) -> Any:
        """The head width that was asked for, or the one that suits the width."""
        if self.head_dim is not None:
            return self.head_dim
        if self.kv_heads is None:
            return 64  # it changes no count
        ideal = ideal_head_dim(width)
        return ideal.astype(float) if _is_real(width) else ideal  # floats: huge counts pass 64-bit integers

    def _mixture(self, width: Any) -> Experts | None:
        """The experts of a layer, of this width each."""
        if self.experts is None:
            return None
        return Experts.model_construct(
            experts=self.experts, active=self.active or 1, width=width, shared=self.shared, dense_layers=()
        )

    @property
    def expert_share(self) -> float:
        """A dense feed-forward's width over an expert's: by default a token passes as much as in a dense model."""
        return self.granularity or float((self.active or 1) + self.shared)

    def shape(self, depth: int, width: int, head_dim: int, ff_width: int) -> Shape:
        """One real shape."""
        heads = width // head_dim
        return self.template.but(
            depth=depth,
            width=width,
            heads=heads,
            kv_heads=self.kv_heads or heads,
            head_dim=head_dim,
            ff_width=ff_width,
            experts=self._mixture(ff_width),
        )

    @property
    def heads_share(self) -> int:
        """What the number of heads must be a multiple of."""
        return math.lcm(self.tensor_parallel, self.kv_heads or 1)

    @property
    def ff_is_free(self) -> bool:
        """Whether rounding may move the feed-forward width: if it is gated, unless a ratio or granularity was given."""
        return self.ff == "gated" and self.ff_ratio is None and self.granularity is None

    def ff_multiple(self, width: Any) -> Any:
        """What feed-forward widths are multiples of."""
        return np.where(
            np.asarray(width) >= 1024, math.lcm(64, self.tensor_parallel), math.lcm(8, self.tensor_parallel)
        )

    def usual_ff_width(self, width: Any) -> Any:
        """The feed-forward width: 4 × width if plain, 8/3 × width if gated, the model's own, or the ratio given.

        Of a mixture, the width of an expert: that of the dense feed-forward over `expert_share`.
        """
        ratio = self.dense_ratio
        if ratio == 4 and self.ff == "plain" and self.ff_ratio is None:
            return 4 * width  # to the number: BLOOM cannot have another
        if self.experts is not None:
            ratio /= self.expert_share
        if _is_real(width):
            return ratio * width
        multiple = self.ff_multiple(width)
        usual = np.maximum(1, np.rint(ratio * width / multiple).astype(np.int64)) * multiple
        if self.granularity is None:
            return usual
        for unit in (32, 16, 8):  # a granularity that was asked for is met by finer steps
            finer = math.lcm(unit, self.tensor_parallel)
            closer = np.maximum(1, np.rint(ratio * width / finer).astype(np.int64)) * finer
            usual = np.where(np.abs(usual / (ratio * width) - 1) > GRANULARITY_MISS, closer, usual)
        return usual

    @property
    def dense_ratio(self) -> float:
        """The usual width of a dense feed-forward over the width."""
        own = self.like.ff_width / self.like.width if self.like else None
        return self.ff_ratio or own or RATIOS[self.ff]

    def width_for(self, depth: Any, amount: Any, measure: Measure, stretch: Any = 1.0, head_dim: Any = None) -> Numbers:
        """The real-valued width at which `measure` reaches `amount` (bisection in its logarithm).

        `stretch` is the feed-forward width over its usual one; heads are as wide as is usual unless `head_dim` says.
        """
        shape = np.broadcast(depth, amount, stretch, 1 if head_dim is None else head_dim).shape
        target = np.broadcast_to(np.asarray(amount, dtype=float), shape)
        low, high = np.zeros(target.shape), np.full(target.shape, 25.0)
        for _ in range(42):
            middle = (low + high) / 2
            width = np.exp(middle)
            over = measure(self.grid(depth, width, head_dim, stretch * self.usual_ff_width(width))) > target
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.asarray(np.exp((low + high) / 2))

    def depth_for(
        self, width: Any, amount: Any, measure: Measure, head_dim: Any = None, stretch: float = 1.0
    ) -> Numbers:
        """The real-valued depth at which `measure`, affine in depth, reaches `amount`."""
        # Counted in floats: FLOPs of a wide layer over a long context pass the largest 64-bit integer.
        ff_width = stretch * np.asarray(self.usual_ff_width(width), dtype=float)
        width = np.asarray(width, dtype=float)
        one, two = (np.asarray(measure(self.grid(L, width, head_dim, ff_width))) for L in (1.0, 2.0))
        return np.asarray((np.asarray(amount, dtype=float) - one) / (two - one) + 1)


@lru_cache(maxsize=64)
def _template(name: str, vocab: int, context: int, tied: bool | None) -> Shape:
    family = family_named(name)
    if tied is None:
        tied = family.defaults["tie_word_embeddings"]
    return Shape.of(depth=1, width=64, vocab=vocab, context=context, tied=tied, **family.fixed)


def _is_real(width: Any) -> bool:
    return isinstance(width, float) or np.asarray(width).dtype.kind == "f"
