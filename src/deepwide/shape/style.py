"""Style: everything about a shape but its size.

All arithmetic is vectorised: a thousand budgets cost little more than one. Depth, width and what follows from them
are arrays inside a Shape that is never shown to anyone; `Style.shape` makes the real one, validated.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from deepwide.arrays import Numbers
from deepwide.settings import Part, Positive
from deepwide.shape.families import family_named
from deepwide.shape.shape import Shape

Measure = Callable[[Shape], Any]  # what a budget limits: block parameters, total parameters, bytes, …


class Style(Part):
    """A family of shapes that differ in depth and width only."""

    family: str = "llama"
    vocab: Positive = 50304
    context: Positive = 2048
    head_dim: Positive | None = None
    kv_heads: Positive | None = None
    ff_ratio: float | None = Field(default=None, gt=0, le=64)
    tied: bool | None = None
    width_multiple: Positive | None = None
    tensor_parallel: Positive = 1
    pipeline_stages: Positive = 1

    @model_validator(mode="after")
    def _family_is_dense(self) -> "Style":
        family = family_named(self.family)
        if self.family.startswith("deepseek") or "experts" in family.about or self.family == "mixtral":
            raise ValueError(f"planning covers dense families, and {self.family} has experts")
        if self.kv_heads is not None and "kv_heads" in family.fused and self.family != "falcon":
            raise ValueError(f"{self.family} has one key/value head a head; leave kv_heads out")
        if self.ff_ratio is not None and "ff_width" in family.fused:
            raise ValueError(f"{self.family} has a feed-forward of 4 × width; leave ff_ratio out")
        if self.head_dim and self.head_dim % 2 and family.fixed.get("positions") == "rotary":
            raise ValueError(f"rotary positions need heads of even width, not {self.head_dim}")
        return self

    @property
    def ff(self) -> str:
        """The family's feed-forward kind, plain or gated."""
        return str(family_named(self.family).fixed.get("ff", "plain"))

    def grid(self, depth: Any, width: Any, head_dim: Any = 64, ff_width: Any = None) -> Shape:
        """Shapes as arrays (or floats), for counting only."""
        heads = width / head_dim if _is_real(width) else width // head_dim
        return self._template.model_copy(
            update={
                "depth": depth,
                "width": width,
                "heads": heads,
                "kv_heads": heads if self.kv_heads is None else self.kv_heads,
                "head_dim": head_dim,
                "ff_width": self.usual_ff_width(width) if ff_width is None else ff_width,
            }
        )

    def shape(self, depth: int, width: int, head_dim: int, ff_width: int) -> Shape:
        """One real shape."""
        heads = width // head_dim
        return self._template.but(
            depth=depth,
            width=width,
            heads=heads,
            kv_heads=self.kv_heads or heads,
            head_dim=head_dim,
            ff_width=ff_width,
        )

    @property
    def heads_share(self) -> int:
        """What the number of heads must be a multiple of."""
        return math.lcm(self.tensor_parallel, self.kv_heads or 1)

    @property
    def ff_is_free(self) -> bool:
        """Whether rounding may move the feed-forward width: in gated families, unless the ratio was given."""
        return self.ff == "gated" and self.ff_ratio is None

    def ff_multiple(self, width: Any) -> Any:
        """What feed-forward widths are multiples of."""
        return np.where(
            np.asarray(width) >= 1024, math.lcm(64, self.tensor_parallel), math.lcm(8, self.tensor_parallel)
        )

    def usual_ff_width(self, width: Any) -> Any:
        """The family's feed-forward width: 4 × width if plain, 8/3 × width if gated, or the ratio that was given."""
        if self.ff_ratio is None and self.ff == "plain":
            return 4 * width  # to the number: BLOOM cannot have another
        ratio = self.ff_ratio or (8 / 3 if self.ff == "gated" else 4)
        if _is_real(width):
            return ratio * width
        multiple = self.ff_multiple(width)
        return np.maximum(1, np.rint(ratio * width / multiple).astype(np.int64)) * multiple

    def width_for(self, depth: Any, amount: Any, measure: Measure) -> Numbers:
        """The real-valued width at which `measure` reaches `amount` (bisection in its logarithm)."""
        target = np.broadcast_to(np.asarray(amount, dtype=float), np.broadcast(depth, amount).shape)
        low, high = np.zeros(target.shape), np.full(target.shape, 25.0)
        for _ in range(42):
            middle = (low + high) / 2
            over = measure(self.grid(depth, np.exp(middle))) > target
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.asarray(np.exp((low + high) / 2))

    def depth_for(self, width: Any, amount: Any, measure: Measure, head_dim: Any = 64) -> Numbers:
        """The real-valued depth at which `measure`, affine in depth, reaches `amount`."""
        # Counted in floats: FLOPs of a wide layer over a long context pass the largest 64-bit integer.
        ff_width = np.asarray(self.usual_ff_width(width), dtype=float)
        width = np.asarray(width, dtype=float)
        one, two = (np.asarray(measure(self.grid(L, width, head_dim, ff_width))) for L in (1.0, 2.0))
        return np.asarray((np.asarray(amount, dtype=float) - one) / (two - one) + 1)

    @property
    def _template(self) -> Shape:
        return _template(self.family, self.vocab, self.context, self.tied)


@lru_cache(maxsize=64)
def _template(name: str, vocab: int, context: int, tied: bool | None) -> Shape:
    family = family_named(name)
    if tied is None:
        tied = family.defaults["tie_word_embeddings"]
    return Shape.of(depth=1, width=64, vocab=vocab, context=context, tied=tied, **family.fixed)


def _is_real(width: Any) -> bool:
    return isinstance(width, float) or np.asarray(width).dtype.kind == "f"
