"""From training FLOPs to a compute-optimal size and number of tokens: L(N, D) = E + A/N^α + B/D^β at C = 6·N·D.

N is the total number of parameters, embeddings included, as in the Chinchilla paper's own table.
"""

from collections.abc import Mapping
from typing import NamedTuple

from deepwide.errors import DeepwideError, did_you_mean


class ComputeLaw(NamedTuple):
    """A fitted loss in parameters and tokens."""

    citation: str
    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def optimum(self, train_flops: float) -> tuple[float, float]:
        """Parameters and tokens of least loss for C = 6·N·D."""
        a, b = self.alpha, self.beta
        N = self._scale * (train_flops / 6) ** (b / (a + b))
        return N, train_flops / (6 * N)

    def flops_for(self, params: float) -> float:
        """The training FLOPs at which this many parameters are the optimum."""
        a, b = self.alpha, self.beta
        return float(6 * (params / self._scale) ** ((a + b) / b))

    @property
    def _scale(self) -> float:
        a, b = self.alpha, self.beta
        return float((a * self.A / (b * self.B)) ** (1 / (a + b)))


COMPUTE_LAWS: Mapping[str, ComputeLaw] = {
    "epoch": ComputeLaw("Besiroglu et al. 2024 (Epoch), refit of Chinchilla", 1.8169, 482.01, 2085.43, 0.3478, 0.3658),
    "hoffmann": ComputeLaw("Hoffmann et al. 2022, as printed (rounded)", 1.69, 406.4, 410.7, 0.34, 0.28),
}


def compute_law(name: str) -> ComputeLaw:
    """The compute law of that name."""
    if name not in COMPUTE_LAWS:
        raise DeepwideError(f"no compute law '{name}': {did_you_mean(name, COMPUTE_LAWS)}")
    return COMPUTE_LAWS[name]
