"""Style: everything about a shape but its size, and the hardware-friendly shapes of that style nearest to a size.

All arithmetic is vectorised: a thousand budgets cost little more than one. Depth, width and what follows from them
are arrays inside a Shape that is never shown to anyone; `Style.shape` makes the real one, validated.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from deepwide.errors import DeepwideError
from deepwide.shape.families import family_named
from deepwide.shape.shape import Part, Positive, Shape

Numbers = NDArray[Any]
Measure = Callable[[Shape], Any]  # what a budget limits: block parameters, total parameters, bytes, …

HEAD_DIMS = (128, 64, 32, 24, 16, 8)
IDEAL_HEAD_DIM = ((2048, 128), (512, 64), (0, 32))  # from this width on
LEAVING_THE_LAW = 0.03  # another depth than the optimum, rounded, is taken only to save more than 3% of budget
HEAD_PENALTY = 0.02  # a head of half or twice the ideal width is accepted for 2% of budget


class Rounded(NamedTuple):
    """Integer shapes, one per budget."""

    depth: NDArray[np.int64]
    width: NDArray[np.int64]
    head_dim: NDArray[np.int64]


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
        return self

    @property
    def ff(self) -> str:
        """The family's feed-forward kind, plain or gated."""
        return str(family_named(self.family).fixed.get("ff", "plain"))

    def grid(self, depth: Any, width: Any, head_dim: Any = 64) -> Shape:
        """Shapes as arrays (or floats), for counting only."""
        heads = (
            width / head_dim if isinstance(width, float) or np.asarray(width).dtype.kind == "f" else width // head_dim
        )
        return self._template.model_copy(
            update={
                "depth": depth,
                "width": width,
                "heads": heads,
                "kv_heads": heads if self.kv_heads is None else self.kv_heads,
                "head_dim": head_dim,
                "ff_width": self._ff_width(width),
            }
        )

    def shape(self, depth: int, width: int, head_dim: int) -> Shape:
        """One real shape."""
        grid = self.grid(np.int64(depth), np.int64(width), np.int64(head_dim))
        names = ("depth", "width", "heads", "kv_heads", "head_dim", "ff_width")
        return self._template.but(**{name: int(getattr(grid, name)) for name in names})

    def width_for(self, depth: Any, amount: Any, measure: Measure) -> Numbers:
        """The real-valued width at which `measure` reaches `amount` (bisection in its logarithm)."""
        target = np.broadcast_to(np.asarray(amount, dtype=float), np.broadcast(depth, amount).shape)
        low, high = np.zeros(target.shape), np.full(target.shape, 25.0)
        for _ in range(60):
            middle = (low + high) / 2
            over = measure(self.grid(depth, np.exp(middle))) > target
            low, high = np.where(over, low, middle), np.where(over, middle, high)
        return np.asarray(np.exp((low + high) / 2))

    def depth_for(self, width: Any, amount: Any, measure: Measure, head_dim: Any = 64) -> Numbers:
        """The real-valued depth at which `measure`, affine in depth, reaches `amount`."""
        one, two = (np.asarray(measure(self.grid(L, width, head_dim)), dtype=float) for L in (1, 2))
        return np.asarray((np.asarray(amount, dtype=float) - one) / (two - one) + 1)

    def round(
        self,
        amount: Numbers,
        depth: Numbers,
        width: Numbers,
        measure: Measure,
        *,
        fixed_depth: bool = False,
        fixed_width: bool = False,
        never_over: bool = False,
    ) -> Rounded:
        """Integer shapes near (depth, width) whose measure is nearest to the amount.

        For each head width, the five allowed widths around the optimum are tried, each with the optimal depth, rounded,
        and the two depths that bracket the budget. The score is the miss in ln budget, with a price on leaving the
        optimal depth and on heads of unusual width.
        """
        target = np.asarray(amount, dtype=float)[:, None, None]
        ideal = np.select([width >= least for least, _ in IDEAL_HEAD_DIM], [head for _, head in IDEAL_HEAD_DIM])
        share, stages = math.lcm(self.tensor_parallel, self.kv_heads or 1), self.pipeline_stages
        nearest = np.maximum(1, np.rint(depth / stages)).astype(np.int64)[:, None, None] * stages
        tried = []
        for head_dim in (self.head_dim,) if self.head_dim else HEAD_DIMS:
            step = math.lcm(head_dim * share, self.width_multiple or 1)
            if fixed_width:
                W = np.rint(width).astype(np.int64)[:, None]
            else:
                W = np.maximum(1, np.rint(width / step).astype(np.int64)[:, None] + np.arange(-2, 3)) * step
            if fixed_depth:
                D = np.broadcast_to(nearest, (*W.shape, 1))
            else:
                real = self.depth_for(W, target[..., 0], measure, head_dim)
                below = np.maximum(1, np.floor(real / stages)).astype(np.int64) * stages
                D = np.stack([np.broadcast_to(nearest[..., 0], W.shape), below, below + stages], axis=-1)
            D, W = np.broadcast_arrays(D, W[..., None])
            reached = np.asarray(measure(self.grid(D, W, head_dim)), dtype=float)
            score = np.abs(np.log(reached / target))
            score += np.where(nearest == D, 0, LEAVING_THE_LAW + 0.5 * np.abs(np.log(D / nearest)))
            score += HEAD_PENALTY * np.abs(np.log2(head_dim / ideal))[:, None, None]
            allowed = W % step == 0
            if not (self.head_dim or fixed_width):
                allowed &= head_dim >= np.where(ideal >= 64, ideal / 2, 8)[:, None, None]
            if never_over:
                allowed &= reached <= target
            tried.append((np.where(allowed, score, np.inf), D, W, np.full_like(W, head_dim)))
        scores, *choices = (
            np.concatenate([a.reshape(len(a), -1) for a in each], axis=1) for each in zip(*tried, strict=True)
        )
        best = (np.arange(len(scores)), np.argmin(scores, axis=1))
        if not np.all(np.isfinite(scores[best])):
            raise DeepwideError(self._why_nothing_fits(fixed_width, never_over, int(np.rint(width[0]))))
        return Rounded(*(choice[best] for choice in choices))

    def _why_nothing_fits(self, fixed_width: bool, never_over: bool, width: int) -> str:
        heads = f"heads of {self.head_dim}" if self.head_dim else f"heads of {', '.join(map(str, HEAD_DIMS))}"
        if fixed_width:
            return (
                f"width {width} cannot be split into {heads}, in multiples of tensor_parallel {self.tensor_parallel} "
                f"and kv_heads {self.kv_heads or 1}, and of {self.width_multiple or 1}: change one of them."
            )
        reason = "the smallest shape of this style is larger than the memory" if never_over else "nothing fits"
        return f"{reason}: allow more, or loosen vocabulary, context, head_dim or the divisibility asked for."

    @property
    def _template(self) -> Shape:
        # Built once per style; pydantic's frozen models may still hold private state.
        cached: Shape | None = self.__dict__.get("_made")
        if cached is None:
            family = family_named(self.family)
            tied = family.defaults["tie_word_embeddings"] if self.tied is None else self.tied
            fields = family.fixed | {"vocab": self.vocab, "context": self.context, "tied": tied}
            cached = Shape.of(depth=1, width=64, **fields)
            self.__dict__["_made"] = cached
        return cached

    def _ff_width(self, width: Any) -> Any:
        ratio = self.ff_ratio or (8 / 3 if self.ff == "gated" else 4)
        if np.asarray(width).dtype.kind == "f":
            return ratio * width
        multiple = np.where(np.asarray(width) >= 1024, 64, 8)
        return np.maximum(1, np.rint(ratio * width / multiple).astype(np.int64)) * multiple
