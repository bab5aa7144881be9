"""One model of ln loss in size N, tokens D and depth L, with its priors.

    ln loss = level + ln[(e^f + e^−α(σ+φε) + e^(g−βτ)) / (e^f + 1 + e^g)] + s₂·σ²       ln(E + A/N^α + B/D^β)
            + c·e^(kσ+mτ)·b(z),   z = ln L − (l + pσ + qσ² + rτ + uστ + vτ²)           a bowl in ln depth

σ = ln(N/centre), τ = ln(D/centre) (terms with τ only where lengths differ), ε = ln(total/block) less its mean (where it
differs): φ is how much of an embedding counts as size. The best depth at a size is e^(l + pσ + qσ²): a power of the
size that may bend; with tokens it shifts, and this shift may bend and change with size. The bowl b is z², but may be
steeper on one side (skew a > 0: when too shallow), ever steeper farther out (tail t; `laws.bowl_sides`), and flatten
with size. What the data do not decide is decided by PRIORS, which are stated; without one on the bend q, no finite
sweep says anything about ten times its largest size.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from deepwide.laws import bowl_sides
from deepwide.quantities import Floats

FLAT = (0.0, np.inf)
PRIORS: Mapping[str, tuple[float, float]] = {  # mean and standard deviation
    "level": FLAT,
    "floor": (0.5, 1.5),  # ln(E / reducible by size), at the centre
    "size_power": (float(np.log(0.3)), 0.6),  # ln α
    "data": (0.0, 1.5),  # ln(reducible by tokens / reducible by size), at the centre
    "data_power": (float(np.log(0.3)), 0.6),  # ln β
    "size2": (0.0, 0.002),  # what the formula of loss against size misses
    "embeddings": (0.5, 0.5),  # how much of one counts as size: 0 only blocks do, 1 the total does
    "curvature": FLAT,
    "curvature_size": (0.0, 0.08),
    "curvature_tokens": (-0.15, 0.15),  # with no prior: Gemstones −0.07 and −0.22, Morph −0.05, our runs −0.16 to −0.48
    "skew": (0.16, 0.28),  # Morph states 0.17 to 0.44; with no prior our fits of public and own runs say −0.6 to 0.3
    "tail": (0.0, 0.6),  # per e-fold; 1.5: a bowl in width/depth; ours and Morph's runs say −0.7 to 0.7
    "depth": FLAT,
    "growth": (0.25, 0.2),
    "bend": (0.0, 0.02),  # per squared e-fold of size
    "depth_tokens": (0.1, 0.15),  # our fits say 0.0 to 0.05 (Gemstones', our runs) and 0.3 (Morph's)
    "bend_both": (0.0, 0.03),  # per e-fold of size and of tokens: how the shift changes with size
    "bend_tokens": (0.0, 0.02),  # per squared e-fold of tokens
}
# Runs say nothing about growth beyond their largest size. Either it ends there at once, or it goes on, towards
# u + k·(growth at the end of the runs − u) ± sd with GOES_ON = (u, k, sd), over RELAX e-folds of size. The interval
# must hold in either case, so each draw is taken both ways, and ENDS is a half. Published laws have growth of 0 to 0.4.
GOES_ON = (0.25, 0.5, 0.1)
ENDS = 0.5
RELAX = 0.3
WITH_TOKENS = ("depth_tokens", "bend_both", "bend_tokens")
PLACE = ("depth", "growth", "bend", *WITH_TOKENS)
SOFT = 0.25  # w: how sharply the sides of the bowl differ
STEEPEST = 300.0  # ln of a fall in loss: beyond it nothing is a loss


class Design(NamedTuple):
    """Where cells lie: σ, τ (None: one length), ε less its mean (None: unknown or the same), ln depth."""

    s: Floats
    t: Floats | None
    e: Floats | None
    x: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that such data can say something about."""
        absent = {"data", "data_power", "curvature_tokens", *WITH_TOKENS} if self.t is None else set()
        absent |= {"embeddings"} if self.e is None else set()
        return tuple(name for name in PRIORS if name not in absent)


def size_curve(theta: Mapping[str, Floats], design: Design) -> Floats:
    """ln loss at the best depth."""
    floor = np.exp(theta["floor"])
    size = design.s if design.e is None else design.s + theta["embeddings"] * design.e
    fall = np.clip(np.exp(theta["size_power"]) * size, -STEEPEST, STEEPEST)
    parts, whole = floor + np.exp(-fall), floor + 1
    if design.t is not None:
        fall = np.clip(np.exp(theta["data_power"]) * design.t, -STEEPEST, STEEPEST)
        parts = parts + np.exp(theta["data"] - fall)
        whole = whole + np.exp(theta["data"])
    return np.asarray(theta["level"] + np.log(parts / whole) + theta["size2"] * design.s**2)


def best_log_depth(theta: Mapping[str, Floats], design: Design) -> Floats:
    """l + pσ + qσ² + rτ + uστ + vτ²."""
    place = theta["depth"] + theta["growth"] * design.s + theta["bend"] * design.s**2
    return np.asarray(place if design.t is None else place + shift(theta, design.s, design.t))


def shift(theta: Mapping[str, Floats], s: Floats, t: Floats) -> Floats:
    """rτ + uστ + vτ²."""
    r, u, v = (theta[name] for name in WITH_TOKENS)
    return np.asarray(t * (r + u * s + v * t))


def along(theta: Mapping[str, Floats], line: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """l, p and q of the best depth where τ = at + slope·σ: its shift with tokens is then one with size."""
    at, slope = line
    place, growth, bend = theta["depth"], theta["growth"], theta["bend"]
    if "depth_tokens" not in theta:
        return place, growth, bend
    r, u, v = (theta[name] for name in WITH_TOKENS)
    return (
        place + r * at + v * at**2,
        growth + r * slope + u * at + 2 * v * at * slope,
        bend + u * slope + v * slope**2,
    )


def bowl(theta: Mapping[str, Floats], design: Design) -> Floats:
    """ln loss above that at the best depth."""
    z = design.x - best_log_depth(theta, design)
    change = theta["curvature_size"] * design.s
    if design.t is not None:
        change = change + theta["curvature_tokens"] * design.t
    sides = bowl_sides(z, theta["skew"], theta["tail"], SOFT)
    return np.asarray(theta["curvature"] * np.exp(np.clip(change, -20, 20)) * sides)


def by_name(names: tuple[str, ...], theta: Floats) -> dict[str, Floats]:
    """Parameters (draws, k) as columns (draws, 1), to be broadcast against a design."""
    return {name: theta[..., i : i + 1] for i, name in enumerate(names)}


def log_loss(names: tuple[str, ...], theta: Floats, design: Design) -> Floats:
    """The model: (draws, cells)."""
    values = by_name(names, theta)
    return np.asarray(size_curve(values, design) + bowl(values, design))


def jacobian(names: tuple[str, ...], theta: Floats, design: Design) -> Floats:
    """∂ ln loss / ∂θ by central differences: (cells, k)."""
    step = 1e-5 * np.maximum(1.0, np.abs(theta))
    ends = theta + np.diag(step), theta - np.diag(step)
    up, down = (log_loss(names, end, design) for end in ends)
    return np.asarray(((up - down) / (2 * step)[:, None]).T)
