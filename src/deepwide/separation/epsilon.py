"""Beyond the analysed network: how fast singular values fall for a real softmax transformer. Numerical.

A softmax network is no polynomial and its separation rank is infinite; what can be seen is how many
singular values of M[s, t] = y(A point s, B point t) are above ε times the largest, and the entropy of
their distribution. Both depend on the sample, on ε and on floating point: they are measurements, never
proofs. `spectrum` takes any function of a batch of inputs, so a trained model of your own works too.

Shape letters: B batch, N positions, d width, H heads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deepwide.errors import DeepwideError
from deepwide.separation.counting import check_shape
from deepwide.separation.network import read_arrays

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]  # x_BNd → y_B
_NAMES = ("query", "key", "value", "output")


@dataclass(frozen=True)
class Spectrum:
    """Singular values of a grid of outputs, largest first."""

    values: tuple[float, ...]

    def rank(self, epsilon: float) -> int:
        """How many are above ε times the largest."""
        return sum(value > epsilon * self.values[0] for value in self.values)

    @property
    def effective_rank(self) -> float:
        """exp of the entropy of σ/Σσ (Roy and Vetterli, 2007): n equal values give n.

        >>> round(Spectrum((2.0, 2.0, 2.0)).effective_rank, 6)
        3.0
        """
        share = np.array(self.values) / sum(self.values)
        share = share[share > 0]
        return float(np.exp(-(share * np.log(share)).sum()))


def softmax_transformer(
    depth: int, width: int, heads: int, seed: int = 0, *, causal: bool = False, weights: Path | None = None
) -> Function:
    """A pre-norm transformer: softmax attention, GELU feed-forward of four times the width, residuals.

    Random weights are Gaussian with standard deviation 1/√width. A file may hold `0.query`, `0.key`,
    `0.value`, `0.output` and `0.up`, `0.down` for each layer, as torch's Linear keeps them, and `readout`.
    """
    check_shape(depth, width, heads)
    draw = np.random.default_rng(seed)
    shapes = dict.fromkeys(_NAMES, (width, width)) | {"up": (4 * width, width), "down": (width, 4 * width)}
    arrays: dict[str, Array] = {
        f"{layer}.{name}": draw.normal(size=shape) / np.sqrt(shape[1])
        for layer in range(depth)
        for name, shape in shapes.items()
    }
    arrays["readout"] = draw.normal(size=width) / np.sqrt(width)
    if weights:
        given = read_arrays(weights)
        for name, array in arrays.items():
            if name != "readout" and name not in given:
                raise DeepwideError(f"{weights} has no array '{name}'; a softmax network needs it.")
            if name in given and given[name].shape != array.shape:
                raise DeepwideError(f"'{name}' in {weights} is {given[name].shape}, not {array.shape}.")
        arrays |= {name: np.asarray(given[name], dtype=np.float64) for name in arrays if name in given}

    def split(x: Array) -> Array:  # B N d → B H N a
        return x.reshape(*x.shape[:2], heads, width // heads).swapaxes(1, 2)

    def function(x: Array) -> Array:
        mask = np.triu(np.full((x.shape[1], x.shape[1]), -np.inf), 1) if causal else 0.0
        for layer in range(depth):
            query, key, value, output, up, down = (arrays[f"{layer}.{name}"].T for name in shapes)
            z = _layer_norm(x)
            scores = split(z @ query) @ split(z @ key).swapaxes(2, 3) / np.sqrt(width // heads) + mask
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ split(z @ value)
            x = x + mixed.swapaxes(1, 2).reshape(x.shape) @ output
            x = x + _gelu(_layer_norm(x) @ up) @ down
        last: Array = _layer_norm(x)[:, -1] @ arrays["readout"]
        return last

    return function


def _layer_norm(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled: Array = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return scaled


def _gelu(x: Array) -> Array:
    from scipy.special import ndtr

    smooth: Array = x * np.asarray(ndtr(x))
    return smooth


def spectrum(function: Function, width: int, positions: tuple[int, int], points: int = 200, seed: int = 0) -> Spectrum:
    """Singular values of the outputs on a grid of Gaussian inputs, the A side's positions last."""
    a, b = positions
    draw = np.random.default_rng([seed, 1])
    x_a = draw.normal(size=(points, a, width))
    x_b = draw.normal(size=(points, b, width))
    grid = np.empty((points, points))
    for row in range(points):
        both = np.concatenate([x_b, np.broadcast_to(x_a[row], (points, a, width))], axis=1)
        grid[row] = function(both)
    if not np.isfinite(grid).all():
        raise DeepwideError("The network's outputs are not finite, so they have no spectrum.")
    return Spectrum(tuple(np.linalg.svd(grid, compute_uv=False).tolist()))
