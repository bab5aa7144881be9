"""Feed-forwards and activations against their formulas."""

import math

import pytest
import torch

from deepwide.model import Architecture
from deepwide.model.feed_forward import ACTIVATIONS, GatedFeedForward, PlainFeedForward
from model.builders import SMALL, seeded


@pytest.mark.parametrize(
    ("name", "at_two"),
    [
        ("relu", 2.0),
        ("silu", 2 / (1 + math.exp(-2))),
        ("gelu", 2 * 0.5 * (1 + math.erf(2**0.5))),
        ("gelu_tanh", 0.5 * 2 * (1 + math.tanh((2 / math.pi) ** 0.5 * (2 + 0.044715 * 8)))),
    ],
)
def test_activations_have_their_values(name: str, at_two: float) -> None:
    x = torch.tensor([2.0, 0.0], dtype=torch.float64)
    assert ACTIVATIONS[name](x).tolist() == pytest.approx([at_two, 0.0])


def test_plain_is_two_matrices_with_the_activation_between() -> None:
    module = PlainFeedForward(Architecture.of(**SMALL, activation="relu")).double()
    x = torch.randn(16, generator=seeded(0), dtype=torch.float64)
    rows = zip(module.up.weight.detach(), module.up.bias.detach(), strict=True)
    inner = [max(0.0, float(row @ x + b)) for row, b in rows]
    expected = module.down.weight @ torch.tensor(inner, dtype=torch.float64) + module.down.bias
    assert torch.allclose(module(x), expected)


def test_gated_multiplies_what_the_gate_lets_through() -> None:
    module = GatedFeedForward(Architecture.of("llama", **SMALL)).double()
    f = module.down.weight.shape[1]
    x = torch.randn(16, generator=seeded(0), dtype=torch.float64)
    both = module.gate_up.weight.detach() @ x
    inner = [float(g / (1 + math.exp(-g)) * u) for g, u in zip(both[:f], both[f:], strict=True)]
    expected = module.down.weight @ torch.tensor(inner, dtype=torch.float64)
    assert torch.allclose(module(x), expected)
