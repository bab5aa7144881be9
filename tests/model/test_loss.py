"""The fused loss has the values and gradients of cross-entropy."""

import math

import pytest
import torch

from deepwide.model.loss import cross_entropy
from model.builders import seeded


@pytest.mark.parametrize("vocab", [7, 70000])
def test_the_fused_loss_has_the_gradients_of_cross_entropy(vocab: int) -> None:
    generator = seeded(0)
    h = torch.randn(37, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(vocab, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    b = torch.randn(vocab, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.randint(vocab, (37,), generator=generator)
    loss = cross_entropy(h, w, b, target)
    expected = torch.nn.functional.cross_entropy(h @ w.T + b, target)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    ours, theirs = torch.autograd.grad(3 * loss, (h, w, b)), torch.autograd.grad(3 * expected, (h, w, b))
    assert all(torch.allclose(o, t, rtol=1e-5, atol=1e-9) for o, t in zip(ours, theirs, strict=True))


def test_the_fused_loss_is_exact_where_a_probability_underflows() -> None:
    h, w = torch.tensor([[300.0], [1.0]]), torch.tensor([[1.0], [0.0]])
    loss = cross_entropy(h, w, None, torch.tensor([1, 0]))
    assert loss.item() == pytest.approx((300 + math.log(1 + math.exp(-1))) / 2)
