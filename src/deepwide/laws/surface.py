"""A loss surface as a law: the depth of least loss at equal total parameters.

Legend: N block parameters, P total parameters, L depth, d width, T training tokens.
"""

from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import Field, PositiveFloat

from deepwide.arrays import ArrayLike, Floats
from deepwide.laws.law import DepthCurve, DepthLaw


class SurfaceLaw(DepthLaw):
    """A loss fitted in width, depth, total parameters and tokens; its optimum at equal total parameters.

    Each term is [ln coefficient, exponent]; the loss is Σ e^c·x^−p + e^floor. Total parameters are counted in the
    fit's own architecture: layer_matrices·L·d² + embedding_rows·d. `errors` are rows of block parameters and the 95%
    limits of the depth there, as factors of it; outside them the nearest row holds.
    """

    kind: Literal["surface"] = "surface"
    width_term: tuple[float, float]
    depth_term: tuple[float, float]
    params_term: tuple[float, float]
    tokens_term: tuple[float, float]
    floor: float
    layer_matrices: float = Field(gt=0)
    embedding_rows: float = Field(ge=0)
    tokens_per_param: float = Field(gt=0)
    errors: tuple[tuple[PositiveFloat, PositiveFloat, PositiveFloat], ...] = ()

    def loss(self, depth: ArrayLike, width: ArrayLike, tokens: ArrayLike | None = None) -> Floats:
        """Predicted loss, in nats per token of the fit's data."""
        L, d = np.asarray(depth, dtype=float), np.asarray(width, dtype=float)
        P = self.layer_matrices * L * d**2 + self.embedding_rows * d
        T = self.tokens_per_param * P if tokens is None else np.asarray(tokens, dtype=float)
        terms = ((self.width_term, d), (self.depth_term, L), (self.params_term, P), (self.tokens_term, T))
        return np.asarray(sum(np.exp(c) * x**-p for (c, p), x in terms) + np.exp(self.floor))

    def optimum(self, total_params: ArrayLike) -> tuple[Floats, Floats]:
        """Depth and width of least loss at equal total parameters (and so equal tokens)."""
        P = np.atleast_1d(np.asarray(total_params, dtype=float))[:, None]
        low, high = np.full_like(P, -3.0), np.full_like(P, 8.0)
        for _ in range(6):  # shrink a grid in ln L around its best point; the loss has one minimum
            grid = low + (high - low) * np.linspace(0, 1, 33)
            best = np.argmin(self._loss_at(np.exp(grid), P), axis=1)[:, None]
            step = (high - low) / 32
            centre = np.take_along_axis(grid, best, axis=1)
            low, high = centre - step, centre + step
        L = np.exp((low + high) / 2)
        return L[:, 0], self._width(L, P)[:, 0]

    def depth(self, block_params: ArrayLike) -> DepthCurve:
        """The optimum whose blocks, without its embeddings, have this size."""
        N = np.atleast_1d(np.asarray(block_params, dtype=float))
        log_N, log_L = _surface_table(self)
        L = np.exp(np.interp(np.log(N), log_N, log_L))
        if not self.errors:
            return DepthCurve.exact(L)
        at, low, high = np.log(sorted(self.errors)).T
        return DepthCurve(L, L * np.exp(np.interp(np.log(N), at, low)), L * np.exp(np.interp(np.log(N), at, high)))

    def _width(self, L: Floats, P: Floats) -> Floats:
        m, e = self.layer_matrices * L, self.embedding_rows
        return np.asarray((np.sqrt(e * e + 4 * m * P) - e) / (2 * m))

    def _loss_at(self, L: Floats, P: Floats) -> Floats:
        return self.loss(L, self._width(L, P), self.tokens_per_param * P)


@lru_cache(maxsize=64)  # not in the law: arrays there would make two equal laws incomparable
def _surface_table(law: SurfaceLaw) -> tuple[Floats, Floats]:
    L, d = law.optimum(np.logspace(4, 18, 281))
    return np.log(law.layer_matrices * L * d**2), np.log(L)
