"""Which heads look at where j hops lead: the attention that each head pays from i to find^j(i).

A network that doubles its hops with every layer (Sanford, Hsu, Telgarsky 2024) has a head for find¹ in its second
layer, for find² in the next, and so on: the first layer only tells each position what stands before it.

Shapes: B batch, N letters, T = N + 1 tokens (the first asks for k hops), L layers, H heads, J hops.
"""

from typing import TYPE_CHECKING

import numpy as np

from deepwide.quantities import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from deepwide.model import Transformer


def attention_to(model: "Transformer", tokens_BT: "Tensor", places_JBN: "NDArray[np.int64]") -> Floats:
    """Mean attention from each letter i to letter places[j, ., i], where that is not negative: L × H × J.

    The mean is over all letters of all examples that have such a place; 0 where none has.
    """
    import torch

    with torch.no_grad():
        _, activations = model.run_with_cache(tokens_BT, ["blocks.*.attention.pattern"])
    patterns = [activations[f"blocks.{layer}.attention.pattern"] for layer in range(len(model.blocks))]
    letters_LBHNN = torch.stack(patterns)[..., 1:, 1:].double().numpy()
    scores = []
    for place_BN in places_JBN:
        defined_BN = place_BN >= 0
        index_BN1 = np.maximum(place_BN, 0)[None, :, None, :, None]
        paid_LBHN = np.take_along_axis(letters_LBHNN, index_BN1, axis=-1)[..., 0]
        total_LH = (paid_LBHN * defined_BN[None, :, None, :]).sum((1, 3))
        scores.append(total_LH / max(1, int(defined_BN.sum())))
    return np.stack(scores, axis=-1)
