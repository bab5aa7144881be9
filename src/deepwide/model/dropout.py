"""Dropout (Srivastava et al. 2014) where Vaswani et al. 2017 have it: on what each stack reads, embeddings with their
positions, and on what each sublayer adds to the residual stream. Attention weights are not dropped.

It belongs to the training, not to the network: nothing of it is saved, and a network does without it until `begin`.
"""

import torch
from torch import Tensor, nn

from deepwide.model.initialisation import generator_for


class Dropout(nn.Module):
    """x with a share of its numbers set to zero and the others divided by what is left; one for the whole network.

    Which numbers depends on seed, step and row alone: the numbers of all rows are drawn, and those of the micro-batch
    taken. So a run that resumes, or halves its micro-batch, drops what it would have dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self.share = 0.0

    def begin(self, share: float, seed: int, step: str, *, first: int, rows: int) -> None:
        """Before each forward pass in training; `first` is the first row of the micro-batch, of `rows` in the step."""
        self.share, self.first, self.rows = share, first, rows
        self.drawn = generator_for(seed, f"dropout/{step}").initial_seed()
        self.generator: torch.Generator | None = None

    def forward(self, x_BTD: Tensor) -> Tensor:
        if not self.training or not self.share:
            return x_BTD
        if self.generator is None:
            self.generator = torch.Generator(x_BTD.device).manual_seed(self.drawn)
        stays_RTD = torch.empty((self.rows, *x_BTD.shape[1:]), device=x_BTD.device)
        stays_RTD.bernoulli_(1 - self.share, generator=self.generator)
        stays_BTD = stays_RTD[self.first : self.first + len(x_BTD)] / (1 - self.share)
        return x_BTD * stays_BTD.to(x_BTD.dtype)
