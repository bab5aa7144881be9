"""The coordinate check (Yang et al. 2021): does one learning rate mean the same at every width and depth?

Networks of several widths (and of several depths) are trained for a few steps with the same learning rate on the same
data. The size of a change is the root mean square of how far activations have moved since the start. Where a
parametrisation is right, it does not depend on width or depth: the slope of ln(change) over ln(width) is near 0. Where
it is wrong, wider or deeper networks move more, and the learning rate that is best for one is wrong for the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from deepwide.answers import Answer
from deepwide.data import DataConfig
from deepwide.errors import DeepwideError, did_you_mean
from deepwide.model import Architecture, Parametrisation, Transformer, profile
from deepwide.tasks import Language, Task
from deepwide.training.config import OptimiserConfig
from deepwide.training.optimiser import Optimiser

CONTEXT = 64
PLACES = ("embedding", "middle block", "last block", "logits")
FLAT = 0.2  # a slope below it is called flat: 64 → 1024 then changes the size by less than a factor 1.75


class Movement(NamedTuple):
    """One network at one place: how large its activations are and how far they moved."""

    parametrisation: str
    along: str  # width or depth
    size: int
    place: str
    seed: int
    start: float
    after: float
    change: float


class Slope(NamedTuple):
    """How the change grows: ln(change) = const + slope · ln(size)."""

    parametrisation: str
    along: str
    place: str
    slope: float

    @property
    def flat(self) -> bool:
        """Whether it hardly grows or shrinks."""
        return abs(self.slope) < FLAT


class ScalingCheck(Answer):
    """How far activations moved at every size, and how that grows with width and depth; `rows()` is the slopes."""

    preset: str
    lr: float
    steps: int
    slopes: tuple[Slope, ...]
    points: tuple[Movement, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per parametrisation, direction and place."""
        return [slope._asdict() | {"flat": slope.flat} for slope in self.slopes]

    def is_flat(self, parametrisation: str, along: str) -> bool:
        """Whether all places are flat in one direction: one learning rate then means the same at every size."""
        return all(s.flat for s in self.slopes if (s.parametrisation, s.along) == (parametrisation, along))


def check_scaling(
    parametrisations: Sequence[str] = get_args(Parametrisation),
    widths: Sequence[int] = (32, 64, 128, 256),
    depths: Sequence[int] = (2, 4, 8, 16),
    *,
    preset: str = "levine",
    steps: int = 4,
    lr: float = 1e-2,
    seeds: Sequence[int] = (0, 1),
    data: DataConfig | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
    **choices: Any,
) -> ScalingCheck:
    """Measure every parametrisation along widths (at the first depth) and along depths (at the first width).

    A direction with one size has no slope and is left out. `choices` are fields of an Architecture, as
    residual="deepnorm".
    """
    for kind in parametrisations:
        if kind not in get_args(Parametrisation):
            near = did_you_mean(kind, get_args(Parametrisation))
            raise DeepwideError(f"there is no parametrisation '{kind[:40]}': {near}")
    directions = [pair for pair in (("width", widths), ("depth", depths)) if len(set(pair[1])) > 1]
    if not directions:
        raise DeepwideError("one width and one depth have no slope: give at least two of one of them.")
    if threads:
        torch.set_num_threads(threads)
    task = Language(data or DataConfig(), CONTEXT)
    points: list[Movement] = []
    for kind in parametrisations:
        for along, sizes in directions:
            for size in sizes:
                if progress:
                    progress(f"{kind}, {along} {size}")
                shape = {"width": widths[0], "depth": depths[0]} | {along: size}
                design = Architecture.of(
                    preset,
                    **shape,
                    vocab=task.vocab,
                    context=task.context,
                    parametrisation=kind,
                    base_width=widths[0],
                    base_depth=depths[0],
                    **choices,
                )
                for seed in seeds:
                    measured = _measure(design, task, steps, lr, seed)
                    points += [Movement(kind, along, size, place, seed, *values) for place, values in measured.items()]
    return ScalingCheck(preset=preset, lr=lr, steps=steps, slopes=tuple(slopes(points)), points=tuple(points))


def slopes(points: Sequence[Movement]) -> list[Slope]:
    """The slope of every parametrisation, direction and place, over the geometric mean of seeds."""
    result = []
    for kind, along, place in dict.fromkeys((p.parametrisation, p.along, p.place) for p in points):
        these = [p for p in points if (p.parametrisation, p.along, p.place) == (kind, along, place)]
        x, y = np.log([p.size for p in these]), np.log([max(p.change, 1e-30) for p in these])
        if len(set(x.tolist())) > 1:
            result.append(Slope(kind, along, place, float(np.polyfit(x, y, 1)[0])))
    return result


def _measure(
    design: Architecture, task: Task, steps: int, lr: float, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Size at the start, size after the steps, and the size of the difference, at each place."""
    model = Transformer(design, seed)
    profile(model, task.batch(0, 8, seed).tokens_BT)
    optimiser = Optimiser(model, design, OptimiserConfig(lr=lr, weight_decay=0.0, clip=0.0))
    probe_BT = task.batch(10**6, 4, seed).tokens_BT
    before = _activations(model, probe_BT)
    for step in range(steps):
        batch = task.batch(8 * step, 8, seed)
        model(batch.tokens_BT, batch.targets).backward()
        optimiser.step(1.0, torch.zeros(()))
    after = _activations(model, probe_BT)
    return {place: (_rms(before[place]), _rms(after[place]), _rms(after[place] - before[place])) for place in PLACES}


def _activations(model: Transformer, tokens_BT: Tensor) -> dict[str, Tensor]:
    """The residual stream after the embedding, half of the blocks and all of them, and the logits."""
    last = len(model.blocks) - 1
    names = {
        "embedding": "blocks.0.residual_before",
        "middle block": f"blocks.{last // 2}.residual_after",
        "last block": f"blocks.{last}.residual_after",
    }
    with torch.no_grad():
        logits, cache = model.run_with_cache(tokens_BT, list(dict.fromkeys(names.values())))
    return {place: cache[name] for place, name in names.items()} | {"logits": logits}


def _rms(x: Tensor) -> float:
    return float(x.double().square().mean().sqrt())
