"""What the model misses: how it is correlated over the cells, and how it is carried from runs to other places."""

from typing import NamedTuple

import numpy as np

from deepwide.fitting.mixed import fall_of_noise, low_rank
from deepwide.fitting.model import Design
from deepwide.quantities import Floats

MOST_DEPTHS = 100  # beyond which no depth has an offset of its own
CHECKPOINTS = 1.5  # lengths per shape from which they may be those of one run
MOST_SHAPES = 200  # beyond which no run has an offset of its own
LENGTHS = (2.0, 1.0, 1.0)  # e-folds of size, depth and tokens over which a smooth misfit is correlated


def misfit_factors(design: Design) -> dict[str, Floats]:
    """Factors of the correlations of what the model misses: smooth over ln size, ln depth and ln tokens, each depth's
    own, and where lengths differ what it misses of loss against size and tokens at all depths, and what all lengths of
    a shape share, which may be checkpoints of one run."""
    s, x = design.s, design.x
    kernels = {"smooth": low_rank(lambda i: smooth_misfit(design, i), len(s))}
    depths, which = np.unique(np.round(x, 6), return_inverse=True)
    if 2 < len(depths) <= min(len(x) / 2, MOST_DEPTHS):
        kernels["depth"] = np.eye(len(depths))[which]
    if design.t is not None:
        kernels["curve"] = low_rank(lambda i: curve_misfit(design, i), len(s))
        shapes, which = np.unique(np.round(np.column_stack([s, x]), 6), axis=0, return_inverse=True)
        if len(shapes) <= min(len(x) / CHECKPOINTS, MOST_SHAPES):
            kernels["run"] = np.eye(len(shapes))[which.reshape(-1)]
    return kernels


def smooth_misfit(design: Design, cell: int) -> Floats:
    """Correlation of what is missed at all cells with what is missed at one."""
    far = (design.x - design.x[cell]) / LENGTHS[1]
    return np.asarray(curve_misfit(design, cell) * np.exp(-(far**2) / 2))


def curve_misfit(design: Design, cell: int) -> Floats:
    """The same of what does not depend on depth: loss against size and tokens is no sum of powers to the last digit,
    and a fit to checkpoints, which have hardly any noise, would put the difference into the bowl."""
    far = ((design.s - design.s[cell]) / LENGTHS[0]) ** 2
    if design.t is not None:
        far = far + ((design.t - design.t[cell]) / LENGTHS[2]) ** 2
    return np.asarray(np.exp(-far / 2))


class Missed(NamedTuple):
    """Standard deviations of what the model misses: smoothly, by depth, of loss against size and tokens, by run."""

    smooth: float = 0.0
    depth: float = 0.0
    curve: float = 0.0
    run: float = 0.0

    def covariance(self, design: Design) -> Floats:
        """Between all places."""
        return np.stack([self.column(design, cell) for cell in range(len(design.s))])

    def column(self, design: Design, cell: int) -> Floats:
        """Between all places and one."""
        same_depth, same_size = (np.abs(v - v[cell]) < 1e-6 for v in (design.x, design.s))
        parts = smooth_misfit(design, cell), same_depth, curve_misfit(design, cell), same_depth & same_size
        return np.asarray(sum(sd**2 * part for sd, part in zip(self, parts, strict=True)))


class RunNoise(NamedTuple):
    """Of a single run: its standard deviation at τ = 0, and how fast it falls with τ."""

    sd: float
    falls: float = 0.0

    def at(self, design: Design) -> Floats:
        """At each place."""
        return self.sd * fall_of_noise(self.falls, np.zeros_like(design.s) if design.t is None else design.t)


class Carried(NamedTuple):
    """What is missed at runs, carried to other places (kriging; Krige 1951): weights (runs, places), the variance of
    what is missed there that is left, and that of a new run there."""

    weights: Floats
    missed: Floats
    left: Floats


def joined(one: Design, other: Design) -> Design:
    """Both, the one first."""
    return Design(
        *(None if a is None or b is None else np.concatenate([a, b]) for a, b in zip(one, other, strict=True))  # type: ignore[arg-type]
    )


def carry(missed: Missed, noise: RunNoise, runs: Design, places: Design) -> Carried:
    """From runs to places."""
    K, n = missed.covariance(joined(runs, places)), len(runs.s)
    weights = np.asarray(np.linalg.solve(K[:n, :n] + np.diag(noise.at(runs) ** 2 + 1e-12), K[:n, n:]), dtype=float)
    missing = np.maximum(np.diag(K)[n:] - np.einsum("ij,ij->j", K[:n, n:], weights), 0.0)
    return Carried(weights, missing, missing + noise.at(places) ** 2)
