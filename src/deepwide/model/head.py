"""What reads the last activations: heads for classes, and the head for tokens with its cross-entropy as one step.

Heads for classes pool positions to one vector per sequence and give logits over classes.

Shapes: B batch, T positions, D width, C classes, N positions of the batch, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture, logits_multiplier
from deepwide.model.cache import NO_TAPE, Tape

SLICE_NUMBERS = 1 << 21  # logits at a time, 8 MB: smaller slices make the products inefficient, larger gain nothing


def pool(h_BTD: Tensor, padding_BT: Tensor | None, *, causal: bool) -> Tensor:
    """One vector per sequence: the mean of an encoder's real tokens, the last real token of a decoder."""
    if padding_BT is None:
        return h_BTD[:, -1].clone() if causal else h_BTD.mean(1)  # a view would keep all positions in memory
    if not causal:
        weight_BT = padding_BT.to(h_BTD.dtype)
        return (h_BTD * weight_BT[..., None]).sum(1) / weight_BT.sum(1, keepdim=True)
    places = torch.arange(h_BTD.shape[1], device=h_BTD.device)
    last_B = torch.where(padding_BT, places, 0).amax(1)
    return h_BTD[torch.arange(len(h_BTD), device=h_BTD.device), last_B]


class Classifier(nn.Module):
    """Logits over classes.

    class: W a + b of one pooled sequence a.
    pair: W relu(V [a, b, a·b, a−b] + c) + d of two, as in Long Range Arena's matching (Tay et al. 2021), whose head has
    two hidden layers of the feed-forward's width and half of it; this one has a single hidden layer of width D, so that
    little depth is added to the network under study.
    """

    def __init__(self, design: Architecture) -> None:
        super().__init__()
        s = design.shape
        self.hidden = nn.Linear(4 * s.width, s.width) if s.head == "pair" else None
        self.out = nn.Linear(s.width, s.classes)
        self.multiplier = logits_multiplier(design)

    def forward(self, a_BD: Tensor, b_BD: Tensor | None = None, tape: Tape = NO_TAPE) -> Tensor:
        if self.hidden is not None:
            assert b_BD is not None, "a head for pairs reads two sequences"
            features = tape("features", torch.cat((a_BD, b_BD, a_BD * b_BD, a_BD - b_BD), dim=-1))
            a_BD = tape("hidden", functional.relu(self.hidden(features)))
        if self.multiplier != 1:
            a_BD = a_BD * self.multiplier
        return tape("logits", self.out(a_BD))


def cross_entropy(
    h_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor, smoothing: float = 0.0
) -> Tensor:
    """The mean of −log softmax(h Wᵀ + b)[target], in nats, a slice of positions at a time.

    With smoothing s the answer is 1 − s times the target and s times the uniform distribution.

    Logits are the largest thing a small network makes: N × V numbers that autograd would keep, normalise, and read
    again in the backward pass. Their gradient, softmax minus one-hot, is known as soon as they are; so it is turned
    into the gradients of the activations and of the head at once, while the slice is in the cache, and the logits are
    forgotten.
    """
    loss: Tensor = _HeadLoss.apply(h_ND, weight_VD, bias_V, target_N, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor, smoothing: float
    ) -> Tensor:
        N, V = h_ND.shape[0], weight_VD.shape[0]
        rows = max(16, SLICE_NUMBERS // V)
        wanted = torch.is_grad_enabled() or any(ctx.needs_input_grad)
        exact = torch.promote_types(h_ND.dtype, torch.float32)  # bf16 is too coarse to sum in
        total = torch.zeros((), dtype=exact, device=h_ND.device)
        grad_h_ND = torch.empty_like(h_ND) if wanted else None
        grad_w_VD = torch.zeros_like(weight_VD) if wanted else None
        grad_b_V = torch.zeros_like(bias_V) if wanted and bias_V is not None else None
        weight = weight_VD.to(h_ND.dtype)
        for start in range(0, N, rows):
            h, target = h_ND[start : start + rows], target_N[start : start + rows, None]
            logits = functional.linear(h, weight, bias_V if bias_V is None else bias_V.to(h.dtype))
            p = functional.softmax(logits, dim=-1, dtype=exact)
            chosen = p.gather(1, target)
            if smoothing:
                logs = functional.log_softmax(logits, dim=-1, dtype=exact)
                total -= (1 - smoothing) * logs.gather(1, target).sum() + smoothing * logs.mean(1).sum()
            elif (chosen == 0).any():  # beyond 87 nats a probability is 0 in float32, but its logarithm is finite
                total -= functional.log_softmax(logits, dim=-1, dtype=exact).gather(1, target).sum()
            else:
                total -= chosen.log_().sum()
            if grad_h_ND is None or grad_w_VD is None:
                continue
            # N times the gradient; dividing in the backward pass, by the width and not the vocabulary, is cheaper.
            grad = p.scatter_add_(1, target, p.new_full((len(h), 1), smoothing - 1.0))
            if smoothing:
                grad -= smoothing / V
            if grad_b_V is not None:
                grad_b_V += grad.sum(0)
            grad = grad.to(h.dtype)
            torch.mm(grad, weight, out=grad_h_ND[start : start + rows])
            if grad_w_VD.dtype == grad.dtype:
                grad_w_VD.addmm_(grad.T, h)
            else:
                grad_w_VD += grad.T @ h
        ctx.save_for_backward(grad_h_ND, grad_w_VD, grad_b_V)
        ctx.positions = N
        return total / N

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (scale,) = grad_outputs
        # In place: each is used once, and for a large vocabulary they are the largest tensors of the step.
        return *(None if grad is None else grad.mul_(scale / ctx.positions) for grad in ctx.saved_tensors), None, None
