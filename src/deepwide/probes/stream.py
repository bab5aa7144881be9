"""The residual stream of a network, layer by layer: how far the rows of each sequence are from being all the same.

Double precision: below about 1e-15 only rounding is left, and `deepwide.probes.collapse` is the tool.
Shapes: B batch, T positions, D width, L layers.
"""

from typing import TYPE_CHECKING

import numpy as np

from deepwide.probes.collapse import relative_residual
from deepwide.quantities import Floats

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.model import Transformer


def stream_residuals(model: "Transformer", tokens_BT: "Tensor") -> Floats:
    """The relative residual of each sequence before the first block and after every block: B × (L + 1)."""
    import torch

    names = ["blocks.0.residual_before", "blocks.*.residual_after"]
    with torch.no_grad():
        _, activations = model.run_with_cache(tokens_BT, names)
    layers = [activations["blocks.0.residual_before"]]
    layers += [activations[f"blocks.{layer}.residual_after"] for layer in range(len(model.blocks))]
    return np.array([[relative_residual(x_TD.double().numpy()) for x_TD in x_BTD] for x_BTD in layers]).T
