"""Normalisation by name. Shapes: B batch, T positions, D width."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional


class LayerNorm(nn.Module):
    """Ba et al. 2016: centred, divided by the standard deviation, scaled and shifted."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, x_BTD: Tensor) -> Tensor:
        return functional.layer_norm(x_BTD, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Zhang & Sennrich 2019: divided by the root mean square and scaled."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x_BTD: Tensor) -> Tensor:
        return functional.rms_norm(x_BTD, self.weight.shape, self.weight, self.eps)


class NoNorm(nn.Module):
    """The identity, for networks without norms."""

    def __init__(self, width: int, eps: float) -> None:  # noqa: ARG002
        super().__init__()

    def forward(self, x_BTD: Tensor) -> Tensor:
        return x_BTD


NORMS: Mapping[str, Callable[[int, float], nn.Module]] = {
    "layernorm": LayerNorm,
    "rmsnorm": RMSNorm,
    "none": NoNorm,
}
