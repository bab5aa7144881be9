"""Residual schemes by name: how a sublayer's output joins the stream, and with what gain its matrices start.

    plain       x + f              deepnorm    αx + f, α = (2N)^¼, gain β = (8N)^−¼     (Wang et al. 2022)
    none        f                  rezero      x + a·f, a = 0 learned                   (Bachlechner et al. 2020)
    layerscale  x + γ⊙f            admin       ω⊙x + f, ω learned                       (Liu et al. 2020)

N is the depth. LayerScale (Touvron et al. 2021) starts at γ = 0.1, 1e-5 or 1e-6 by depth (18, 24). ADMIN starts
without profiling at admin-torch's ω = √((n+1)/ln(n+1) − 1), n residual sublayers. The parametrisation's branch
multiplier stands before f in all of them.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from deepwide.model.architecture import Architecture
from deepwide.model.parametrisation import branch_multiplier


class Plain(nn.Module):
    """x + m·f."""

    def __init__(self, design: Architecture) -> None:
        super().__init__()
        self.multiplier = branch_multiplier(design)

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.add(x_BTD, f_BTD, alpha=self.multiplier)


class Nothing(Plain):
    """m·f: no residual connection."""

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:  # noqa: ARG002
        return f_BTD if self.multiplier == 1 else f_BTD * self.multiplier


class DeepNorm(Plain):
    """αx + m·f."""

    def __init__(self, design: Architecture) -> None:
        super().__init__(design)
        self.alpha = (2 * design.shape.depth) ** 0.25

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.add(self.multiplier * f_BTD, x_BTD, alpha=self.alpha)


class Scaled(Plain):
    """x + m·s⊙f with s learned: ReZero's number, LayerScale's vector."""

    def __init__(self, design: Architecture) -> None:
        super().__init__(design)
        size, self.start = (1, 0.0) if design.residual == "rezero" else (design.shape.width, _layerscale(design))
        self.scale = nn.Parameter(torch.full((size,), self.start))

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.addcmul(x_BTD, f_BTD, self.scale, value=self.multiplier)


class Admin(Plain):
    """ω⊙x + m·f with ω learned."""

    def __init__(self, design: Architecture) -> None:
        super().__init__(design)
        n = design.shape.depth * design.sublayers
        self.start = math.sqrt((n + 1) / math.log(n + 1) - 1)
        self.scale = nn.Parameter(torch.full((design.shape.width,), self.start))

    def forward(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return torch.addcmul(self.multiplier * f_BTD, x_BTD, self.scale)


def _layerscale(design: Architecture) -> float:
    return 0.1 if design.shape.depth <= 18 else 1e-5 if design.shape.depth <= 24 else 1e-6


RESIDUAL: Mapping[str, Callable[[Architecture], nn.Module]] = {
    "plain": Plain,
    "none": Nothing,
    "deepnorm": DeepNorm,
    "rezero": Scaled,
    "layerscale": Scaled,
    "admin": Admin,
}


def gain(design: Architecture) -> float:
    """What the scheme multiplies the initial value, output and feed-forward matrices by."""
    return float((8 * design.shape.depth) ** -0.25) if design.residual == "deepnorm" else 1.0
