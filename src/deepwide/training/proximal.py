"""Auto-sizing: rows of weights that a penalty drives to exactly zero while a network trains (Murray & Chiang 2015;
Murray, Kinnison, Nguyen, Scheirer, Chiang 2019).

After every update each group of weights w is replaced by the minimiser of ½‖x − w‖² + t·‖x‖ over x, the proximal step
of the penalty with t = rate·λ:

    l21     ‖x‖₂   w·max(0, 1 − t/‖w‖₂)
    linf1   ‖x‖_∞  w − the projection of w on the l1 ball of radius t

Groups are all that makes one neuron of a feed-forward layer (its rows of weights and its biases, of a gated one both
rows), and all that makes the values of one attention head. Every activation here maps 0 to 0, so a neuron whose group
is zero answers 0, and so does a head; `deepwide.model.narrowed` takes them out.

Shapes: G groups, N numbers of a group.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from deepwide.model import sized_groups
from deepwide.training.config import AutosizeConfig


def shrunk_l21(w_GN: Tensor, t: float) -> Tensor:
    """The proximal step of t·Σ‖row‖₂."""
    norms_G1: Tensor = torch.linalg.vector_norm(w_GN, dim=1, keepdim=True)
    return w_GN * (1 - t / norms_G1.clamp(min=torch.finfo(w_GN.dtype).tiny)).clamp(min=0)


def shrunk_linf1(w_GN: Tensor, t: float) -> Tensor:
    """The proximal step of t·Σ‖row‖_∞: the largest numbers of a row are cut to one height, by t together.

    A row whose absolute values add up to at most t becomes exactly zero. The height is found by sorting (Duchi et al.
    2008): of the j largest values the cut is (their sum − t)/j, and the right j is the largest whose j-th value is
    above its cut.
    """
    if t == 0:
        return w_GN.clone()
    size_GN = w_GN.abs()
    sorted_GN = size_GN.sort(dim=1, descending=True).values
    count_N = torch.arange(1, w_GN.shape[1] + 1, device=w_GN.device, dtype=w_GN.dtype)
    cut_GN = (sorted_GN.cumsum(1) - t) / count_N
    above_GN = sorted_GN > cut_GN
    last_G1 = above_GN.sum(1, keepdim=True).clamp(min=1) - 1
    height_G1 = cut_GN.gather(1, last_G1).clamp(min=0)
    return torch.where(size_GN.sum(1, keepdim=True) <= t, 0.0, w_GN.sign() * size_GN.minimum(height_G1))


STEPS: Mapping[str, Callable[[Tensor, float], Tensor]] = {"l21": shrunk_l21, "linf1": shrunk_linf1}


class Autosizer:
    """Applies the proximal step to the groups of a network."""

    def __init__(self, model: nn.Module, config: AutosizeConfig) -> None:
        self.config, self.step = config, STEPS[config.penalty]
        self.groups = [part for part in sized_groups(model) if part.kind in config.parts]

    @torch.no_grad()
    def apply(self, rates: Mapping[str, float]) -> None:
        """One step; `rates` has the learning rate that each parameter was just updated with, by name."""
        for part in self.groups:
            t = rates[part.name] * self.config.strength
            if t > 0:
                part.write(self.step(part.read(), t))
