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
from typing import Any

import numpy as np
import numpy.typing as npt

from deepwide.answers import Answer
from deepwide.errors import DeepwideError, quoted
from deepwide.separation.dimensions import check_shape
from deepwide.separation.network import DRAWN, NAMES
from deepwide.separation.weights import file_shape, read_arrays

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]  # x_BNd → y_B


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
    shapes = dict.fromkeys(NAMES, (width, width)) | {"up": (4 * width, width), "down": (width, 4 * width)}
    arrays: dict[str, Array] = {
        f"{layer}.{name}": draw.normal(size=shape) / np.sqrt(shape[1])
        for layer in range(depth)
        for name, shape in shapes.items()
    }
    arrays["readout"] = draw.normal(size=width) / np.sqrt(width)
    if weights:
        loaded = read_arrays(weights)
        for name, array in arrays.items():
            if name != "readout" and name not in loaded:
                raise DeepwideError(f"{weights} has no array '{name}'; a softmax network needs it.")
            if name in loaded and loaded[name].shape != array.shape:
                raise DeepwideError(f"'{name}' in {weights} is {loaded[name].shape}, not {array.shape}.")
        arrays |= {name: np.asarray(loaded[name], dtype=np.float64) for name in arrays if name in loaded}

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


class SoftmaxRank(Answer):
    """How many singular values of one softmax transformer are large. Numerical: no proof of anything."""

    numerical: bool = True
    depth: int
    width: int
    heads: int
    positions: tuple[int, int]
    points: int
    seed: int
    effective_rank: float
    epsilon_rank: dict[str, int]
    values: tuple[float, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per singular value, relative to the largest."""
        shape = {"depth": self.depth, "width": self.width, "heads": self.heads}
        return [{**shape, "index": i + 1, "value": value / self.values[0]} for i, value in enumerate(self.values)]


def softmax_rank(
    depth: int | None = None,
    width: int | None = None,
    heads: int = 1,
    *,
    positions: tuple[int, int] | None = None,
    seed: int = 0,
    causal: bool = False,
    weights: str | Path = "random",
    epsilons: tuple[float, ...] = (1e-3, 1e-6),
    points: int = 200,
) -> SoftmaxRank:
    """The numerical ε-rank of a softmax transformer with random weights or those of a file.

    >>> softmax_rank(1, 4, points=20).epsilon_rank["1e-06"]
    20
    """
    if not epsilons or not all(0 < epsilon < 1 for epsilon in epsilons):
        raise DeepwideError("every epsilon must be between 0 and 1, such as 1e-3.")
    if not 2 <= points <= 2000:
        raise DeepwideError(f"points must be between 2 and 2000, not {quoted(points)}.")
    if str(weights) == "identity":
        raise DeepwideError("a softmax transformer takes random weights or a file, not identity.")
    file = None if str(weights) in DRAWN else Path(weights)
    if file and (depth is None or width is None):
        file_depth, file_width = file_shape(file)
        depth, width = depth or file_depth, width or file_width
    if depth is None or width is None:
        raise DeepwideError(f"the {'depth' if depth is None else 'width'} is missing, as in depth=2, width=8.")
    sides = positions or (width, width)
    result = spectrum(
        softmax_transformer(depth, width, heads, seed, causal=causal, weights=file), width, sides, points, seed
    )
    return SoftmaxRank(
        depth=depth,
        width=width,
        heads=heads,
        positions=sides,
        points=points,
        seed=seed,
        effective_rank=result.effective_rank,
        epsilon_rank={f"{epsilon:g}": result.rank(epsilon) for epsilon in epsilons},
        values=result.values,
    )
