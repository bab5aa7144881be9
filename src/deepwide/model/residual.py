"""Residual schemes by name: how a sublayer's output joins the stream, and with what gain its matrices start.

    plain       x + f              deepnorm    αx + f, α = (2N)^¼, gain β = (8N)^−¼     (Wang et al. 2022)
    none        f                  rezero      x + a·f, a = 0 learned                   (Bachlechner et al. 2020)
    layerscale  x + γ⊙f            admin       ω⊙x + f, ω learned                       (Liu et al. 2020)

N is the depth; an encoder-decoder has other α and β for each stack (`_deepnorm`). LayerScale (Touvron et al. 2021)
starts at γ = 0.1, 1e-5 or 1e-6 by depth (up to 18, up to 24, deeper). ADMIN starts without profiling at admin-torch's
ω = √((n+1)/ln(n+1) − 1), n residual sublayers. The parametrisation's branch multiplier stands before f in all of them.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from deepwide.model.architecture import Architecture, Stack
from deepwide.model.parametrisation import branch_multiplier


class PlainResidual(nn.Module):
    """x + m·f."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__()
        self.multiplier = branch_multiplier(design, stack)

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.add(x_BTD, f_BTD, alpha=self.multiplier)


class NoResidual(PlainResidual):
    """m·f: no residual connection."""

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:  # noqa: ARG002
        return f_BTD if self.multiplier == 1 else f_BTD * self.multiplier


class DeepNorm(PlainResidual):
    """αx + m·f."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__(design, stack)
        self.alpha = _deepnorm(design, stack)[0]

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.add(self.multiplier * f_BTD, x_BTD, alpha=self.alpha)


class LearnedScale(PlainResidual):
    """x + m·s⊙f with s learned: ReZero's number, LayerScale's vector."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__(design, stack)
        size, self.start = (1, 0.0) if design.residual == "rezero" else (design.shape.width, _layerscale(stack))
        self.scale = nn.Parameter(torch.full((size,), self.start))

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.addcmul(x_BTD, f_BTD, self.scale, value=self.multiplier)


class Admin(PlainResidual):
    """ω⊙x + m·f with ω learned."""

    def __init__(self, design: Architecture, stack: Stack) -> None:
        super().__init__(design, stack)
        n = stack.depth * stack.sublayers
        self.start = math.sqrt((n + 1) / math.log(n + 1) - 1)
        self.scale = nn.Parameter(torch.full((design.shape.width,), self.start))

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.addcmul(self.multiplier * f_BTD, x_BTD, self.scale)


def _layerscale(stack: Stack) -> float:
    return 0.1 if stack.depth <= 18 else 1e-5 if stack.depth <= 24 else 1e-6


def _deepnorm(design: Architecture, stack: Stack) -> tuple[float, float]:
    """α and β of Wang et al. 2022, table 1."""
    N, M = design.shape.encoder_depth, design.shape.depth
    if not N:
        return (2 * M) ** 0.25, (8 * M) ** -0.25
    if stack.cross:
        return (3 * M) ** 0.25, (12 * M) ** -0.25
    return 0.81 * (N**4 * M) ** 0.0625, 0.87 * (N**4 * M) ** -0.0625


RESIDUAL: Mapping[str, Callable[[Architecture, Stack], nn.Module]] = {
    "plain": PlainResidual,
    "none": NoResidual,
    "deepnorm": DeepNorm,
    "rezero": LearnedScale,
    "layerscale": LearnedScale,
    "admin": Admin,
}


def gain(design: Architecture, stack: Stack) -> float:
    """What the scheme multiplies the initial value, output and feed-forward matrices of a stack by."""
    return float(_deepnorm(design, stack)[1]) if design.residual == "deepnorm" else 1.0
