"""Heads for classes: pooling over real tokens, and the features of a pair. The head for tokens: its loss is torch's."""

import math

import pytest
import torch

from deepwide.model import Architecture
from deepwide.model.head import Classifier, cross_entropy, pool
from model.builders import SMALL, seeded

H_BTD = torch.randn(3, 5, 4, generator=seeded(0))
REAL_BT = torch.tensor([[True] * 5, [True, True, False, False, False], [False, True, False, True, False]])


def test_an_encoder_is_pooled_by_the_mean_of_its_real_tokens() -> None:
    pooled = pool(H_BTD, REAL_BT, causal=False)
    expected = [H_BTD[0].mean(0), H_BTD[1, :2].mean(0), (H_BTD[2, 1] + H_BTD[2, 3]) / 2]
    assert torch.allclose(pooled, torch.stack(expected))
    assert torch.allclose(pool(H_BTD, None, causal=False), H_BTD.mean(1))


def test_a_decoder_is_pooled_by_its_last_real_token() -> None:
    pooled = pool(H_BTD, REAL_BT, causal=True)
    assert torch.equal(pooled, torch.stack([H_BTD[0, 4], H_BTD[1, 1], H_BTD[2, 3]]))
    assert torch.equal(pool(H_BTD, None, causal=True), H_BTD[:, 4])


def test_the_pooled_vector_does_not_keep_all_positions_in_memory() -> None:
    for real in (None, REAL_BT):
        pooled = pool(H_BTD, real, causal=True)
        assert pooled.untyped_storage().nbytes() == pooled.nbytes


def test_a_pair_is_classified_from_both_their_product_and_their_difference() -> None:
    head = Classifier(Architecture.of(**SMALL, kind="encoder", head="pair", classes=3)).double()
    assert head.hidden is not None
    a, b = (torch.randn(2, 16, generator=seeded(seed), dtype=torch.float64) for seed in (1, 2))
    w = head.hidden.weight.split(16, dim=1)
    hidden = (a @ w[0].T + b @ w[1].T + (a * b) @ w[2].T + (a - b) @ w[3].T + head.hidden.bias).clamp(min=0)
    assert torch.allclose(head(a, b), hidden @ head.out.weight.T + head.out.bias)
    assert head(a, b).shape == (2, 3)


def test_one_sequence_is_classified_linearly() -> None:
    head = Classifier(Architecture.of(**SMALL, kind="encoder", head="class", classes=3))
    a = torch.randn(2, 16, generator=seeded(1))
    assert head.hidden is None
    assert torch.allclose(head(a), a @ head.out.weight.T + head.out.bias)


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


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
@pytest.mark.parametrize("biased", [False, True])
def test_smoothed_answers_give_torch_s_loss_and_gradients(smoothing: float, biased: bool) -> None:
    draw = torch.Generator().manual_seed(3)
    h, w = (torch.randn(size, 5, generator=draw, dtype=torch.float64, requires_grad=True) for size in (70_000, 40))
    bias = torch.randn(40, generator=draw, dtype=torch.float64, requires_grad=True) if biased else None
    targets = torch.randint(40, (70_000,), generator=draw)
    leaves = [h, w] if bias is None else [h, w, bias]
    ours = cross_entropy(h, w, bias, targets, smoothing)
    theirs = torch.nn.functional.cross_entropy(
        torch.nn.functional.linear(h, w, bias), targets, label_smoothing=smoothing
    )
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), abs=1e-12)
    for mine, torchs in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True):
        assert torch.allclose(mine, torchs, atol=1e-14)
