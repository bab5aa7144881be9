"""Norms against their formulas and torch's modules."""

import math

import pytest
import torch
from torch import nn

from deepwide.model.norm import LayerNorm, NoNorm, RMSNorm
from model.builders import seeded


def test_layer_norm_is_torchs() -> None:
    ours, theirs = LayerNorm(6, 1e-3), nn.LayerNorm(6, eps=1e-3)
    for module in (ours, theirs):
        with torch.no_grad():
            module.weight.copy_(torch.arange(6.0))
            module.bias.copy_(torch.arange(6.0) - 2)
    x = torch.randn(4, 6, generator=seeded(0))
    assert torch.equal(ours(x), theirs(x))


def test_rms_norm_divides_by_the_root_mean_square() -> None:
    ours = RMSNorm(3, 0.25)
    with torch.no_grad():
        ours.weight.copy_(torch.tensor([1.0, 10.0, -1.0]))
    root = math.sqrt((1 + 4 + 9) / 3 + 0.25)
    assert ours(torch.tensor([1.0, 2.0, 3.0])).tolist() == pytest.approx([1 / root, 20 / root, -3 / root])


def test_no_norm_is_the_identity_without_parameters() -> None:
    x = torch.randn(4, 6, generator=seeded(0))
    assert NoNorm(6, 1e-5)(x) is x
    assert not list(NoNorm(6, 1e-5).parameters())
