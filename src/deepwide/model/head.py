"""Heads for classes: positions pooled to one vector per sequence, and logits over classes from it.

Shapes: B batch, T positions, D width, C classes.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture
from deepwide.model.cache import NO_TAPE, Tape
from deepwide.model.parametrisation import logits_multiplier


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
