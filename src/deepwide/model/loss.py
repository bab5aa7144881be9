"""The head and the cross-entropy as one step, a slice of positions at a time.

Logits are the largest thing a small network makes: N × V numbers that autograd would keep, normalise, and read again
in the backward pass. Their gradient, softmax minus one-hot, is known as soon as they are; so it is turned into the
gradients of the activations and of the head at once, while the slice is in the cache, and the logits are forgotten.

Shapes: N positions of the batch, D width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

SLICE_NUMBERS = (
    1 << 21
)  # logits at a time: 8 MB; smaller slices make the products inefficient, larger ones gain nothing


def cross_entropy(h_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor) -> Tensor:
    """The mean of −log softmax(h Wᵀ + b)[target], in nats."""
    loss: Tensor = _HeadLoss.apply(h_ND, weight_VD, bias_V, target_N)  # type: ignore[no-untyped-call]
    return loss


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor) -> Tensor:
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
            if (chosen == 0).any():  # beyond 87 nats a probability is 0 in float32, but its logarithm is finite
                total -= functional.log_softmax(logits, dim=-1, dtype=exact).gather(1, target).sum()
            else:
                total -= chosen.log_().sum()
            if grad_h_ND is None or grad_w_VD is None:
                continue
            # N times the gradient; dividing in the backward pass, by the width and not the vocabulary, is cheaper.
            grad = p.scatter_add_(1, target, p.new_full((len(h), 1), -1.0))
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
        return *(None if grad is None else grad.mul_(scale / ctx.positions) for grad in ctx.saved_tensors), None
