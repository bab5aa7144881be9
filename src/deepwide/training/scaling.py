"""The coordinate check (Yang et al. 2021): does one learning rate mean the same at every width and depth?

Networks of several widths (and of several depths) are trained for a few steps with the same learning rate on the same
data. The size of a change is the root mean square of how far activations have moved since the start. Where a
parametrisation is right, it does not depend on width or depth: the slope of ln(change) over ln(width) is near 0. Where
it is wrong, wider or deeper networks move more, and the learning rate that is best for one is wrong for the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from deepwide.data.batches import training_batch
from deepwide.data.config import DataConfig
from deepwide.data.corpus import Corpus, prepare
from deepwide.errors import DeepwideError
from deepwide.model.architecture import Architecture
from deepwide.model.transformer import Transformer
from deepwide.training.config import OptimiserConfig
from deepwide.training.optimiser import Optimiser

PLACES = ("embedding", "middle block", "last block", "logits")
FLAT = 0.2  # a slope below it is called flat: 64 → 1024 then changes the size by less than a factor 1.75


class Point(NamedTuple):
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
        """Whether it does not grow or shrink to speak of."""
        return abs(self.slope) < FLAT


def check_scaling(
    parametrisations: Sequence[str] = ("standard", "mup", "completep"),
    widths: Sequence[int] = (32, 64, 128, 256),
    depths: Sequence[int] = (2, 4, 8, 16),
    *,
    preset: str = "levine",
    steps: int = 4,
    lr: float = 1e-2,
    seeds: Sequence[int] = (0, 1),
    data: DataConfig | None = None,
    progress: Callable[[str], None] | None = None,
    **choices: Any,
) -> list[Point]:
    """Measure every parametrisation along widths (at the first depth) and along depths (at the first width).

    A direction with one size has no slope and is left out.
    """
    directions = [pair for pair in (("width", widths), ("depth", depths)) if len(set(pair[1])) > 1]
    if not directions:
        raise DeepwideError("one width and one depth have no slope: give at least two of one of them.")
    data = data or DataConfig()
    corpus = prepare(data)
    points: list[Point] = []
    for kind in parametrisations:
        for along, sizes in directions:
            for size in sizes:
                if progress:
                    progress(f"{kind}, {along} {size}")
                shape = {"width": widths[0], "depth": depths[0]} | {along: size}
                design = Architecture.of(
                    preset,
                    **shape,
                    vocab=data.vocab_size,
                    context=64,
                    parametrisation=kind,
                    base_width=widths[0],
                    base_depth=depths[0],
                    **choices,
                )
                for seed in seeds:
                    measured = _measure(design, corpus, steps, lr, seed)
                    points += [Point(kind, along, size, place, seed, *values) for place, values in measured.items()]
    return points


def slopes(points: Sequence[Point]) -> list[Slope]:
    """The slope of every parametrisation, direction and place, over the geometric mean of seeds."""
    found = []
    for kind, along, place in dict.fromkeys((p.parametrisation, p.along, p.place) for p in points):
        these = [p for p in points if (p.parametrisation, p.along, p.place) == (kind, along, place)]
        x, y = np.log([p.size for p in these]), np.log([max(p.change, 1e-30) for p in these])
        if len(set(x.tolist())) > 1:
            found.append(Slope(kind, along, place, float(np.polyfit(x, y, 1)[0])))
    return found


def _measure(
    design: Architecture, corpus: Corpus, steps: int, lr: float, seed: int
) -> dict[str, tuple[float, float, float]]:
    """Size at the start, size after the steps, and the size of the difference, at each place."""
    model = Transformer(design, seed)
    optimiser = Optimiser(model, design, OptimiserConfig(lr=lr, weight_decay=0.0, clip=0.0))
    probe_BT = training_batch(corpus.train, 10**6, 4, design.shape.context, seed)[:, :-1]
    before = _activations(model, probe_BT)
    for step in range(steps):
        batch_BT = training_batch(corpus.train, 8 * step, 8, design.shape.context, seed)
        model(batch_BT[:, :-1].contiguous(), batch_BT[:, 1:].contiguous()).backward()
        optimiser.step(1.0, torch.zeros(()))
    after = _activations(model, probe_BT)
    return {place: (_rms(before[place]), _rms(after[place]), _rms(after[place] - before[place])) for place in PLACES}


def _activations(model: Transformer, tokens_BT: Tensor) -> dict[str, Tensor]:
    """The stream after the embedding, half of the blocks and all of them, and the logits."""
    blocks = list(model.blocks)
    places: dict[str, nn.Module] = {"middle block": blocks[(len(blocks) - 1) // 2], "last block": blocks[-1]}
    kept: dict[str, Tensor] = {}
    hooks = [blocks[0].register_forward_pre_hook(lambda _, inputs: kept.update(embedding=inputs[0]))]
    for name, module in places.items():
        hooks.append(module.register_forward_hook(lambda _, __, output, name=name: kept.update({name: output})))
    try:
        with torch.no_grad():
            kept["logits"] = model(tokens_BT)
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def _rms(x: Tensor) -> float:
    return float(x.double().square().mean().sqrt())
