"""What depth does to networks before training: how much outputs move when weights do, gradients, ADMIN's profile.

Everything is measured on networks that a study builds, one part of its measuring per kind and depth.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deepwide.answers import Interval
from deepwide.probes import Move, gradient_norms, output_change
from deepwide.studies.estimates import geometric_interval, interval_row, log_slope, mean_interval
from deepwide.studies.workplace import Workplace

MOVES: tuple[Move, ...] = ("random", "gradient")
Build = Callable[[Any, int, int], tuple[Any, Any, Any]]  # kind, depth, seed → model, tokens, targets
Rows = list[dict[str, Any]]


class Untrained(NamedTuple):
    """Output changes by kind, move and depth, one per network; gradient norms by layer of the deepest networks."""

    changes: Mapping[tuple[str, str, int], Sequence[float]]
    gradients: Rows

    def exponents(self) -> dict[str, Interval]:
        """The exponent of the output change against depth; none where the output does not change (ReZero)."""
        result = {}
        for kind in dict.fromkeys(kind for kind, _, _ in self.changes):
            here = [(depth, values) for (name, move, depth), values in self.changes.items()
                    if (name, move) == (kind, "random")]  # fmt: skip
            curves = dict(here)
            if all(value > 0 for values in curves.values() for value in values):
                by_network = zip(*curves.values(), strict=True)
                result[kind] = mean_interval([log_slope(curves, values) for values in by_network])
        return result

    def change_rows(self) -> Rows:
        """One row per kind, move and depth: the geometric mean of the output change, where there is one."""
        return [
            {"scheme": kind, "move": move, "depth": depth, **interval_row("output_change", geometric_interval(values))}
            for (kind, move, depth), values in self.changes.items()
            if min(values) > 0
        ]


def measure_untrained(
    build: Build, kinds: Sequence[str], depths: Sequence[int], networks: int, moved: float, workplace: Workplace
) -> Untrained:
    """Networks of every kind and depth, all matrices of their blocks moved by the share `moved` of their size."""
    changes: dict[tuple[str, str, int], list[float]] = {}
    rows: Rows = []
    for kind in kinds:
        for depth in depths:
            measure = partial(_networks, build, kind, depth, networks, moved, deepest=depth == max(depths))
            part = workplace.part(f"untrained networks, {kind}, {depth} layers", measure)
            changes |= {(kind, move, depth): values for move, values in zip(MOVES, part["changes"], strict=True)}
            if part["norms"]:
                rows += [
                    {"scheme": kind, "layer": layer + 1, "gradient_norm": float(value)}
                    for layer, value in enumerate(np.mean(part["norms"], axis=0))
                ]
    return Untrained(changes, rows)


def _networks(
    build: Build, kind: str, depth: int, networks: int, moved: float, *, deepest: bool
) -> dict[str, list[list[float]]]:
    """Output changes by move, and gradient norms by layer of the deepest: one value or list per network."""
    changes: dict[Move, list[float]] = {move: [] for move in MOVES}
    norms = []
    for seed in range(networks):
        probe = build(kind, depth, seed)
        for move, values in changes.items():
            values.append(output_change(*probe, move, moved, seed))
        if deepest:
            norms.append(gradient_norms(*probe))
    return {"changes": list(changes.values()), "norms": norms}


def profiles(build: Callable[[int], Any], networks: int, workplace: Workplace) -> list[list[float]]:
    """ω of every sublayer of networks that ADMIN has profiled, one list per network."""

    def scales(model: Any) -> list[float]:
        joins = [join for block in model.blocks for join in (block.attention_join, block.feed_forward_join)]
        return [join.scale[0].item() for join in joins]

    measured: list[list[float]] = workplace.part(
        "ADMIN's profile", lambda: [scales(build(seed)) for seed in range(networks)]
    )
    return measured


# Transformer-Clinic's shipped profile of a 100-layer encoder, for comparison.
PUBLISHED = {1: 1.0, 2: 1.319, 10: 2.03, 50: 4.28, 100: 6.16, 200: 8.84}


def profile_rows(omegas: Sequence[Sequence[float]]) -> Rows:
    """ω² by sublayer: the mean over networks, and the published profile beside it."""
    squares = {
        i: mean_interval([omega * omega for omega in column]) for i, column in enumerate(zip(*omegas, strict=True), 1)
    }
    published = {i: Interval(omega**2) for i, omega in PUBLISHED.items()}
    return [
        {"source": source, "sublayer": i, **interval_row("omega_squared", square)}
        for source, profile in (("here", squares), ("Transformer-Clinic, 100 layers", published))
        for i, square in profile.items()
    ]
