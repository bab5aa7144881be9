"""Removing parts of a trained network, to see what they do (as Dong, Cordonnier, Loukas 2021 do with BERT).

What is left has the weights that it had. Without feed-forward layers their norms are gone too; the norms of attention
stay in all cases.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deepwide.model import Transformer


def remove_parts(model: "Transformer", *, skips: bool = False, feed_forward: bool = False) -> "Transformer":
    """A copy of the network without its skip connections, its feed-forward layers, or both."""
    import torch

    from deepwide.model import Architecture, Transformer
    from deepwide.shape import Shape

    design = model.design
    shape, choices = design.shape.model_dump(), design.model_dump(exclude={"shape"})
    if feed_forward and shape["ff_width"]:
        shape |= {"ff_width": 0, "ff_bias": False, "block_norms": shape["block_norms"] // 2}
        shape["residual_scales"] //= 2  # one sublayer of two is left
    if skips:
        choices["residual"], shape["residual_scales"] = "none", 0
    rest = Transformer(Architecture(shape=Shape.model_validate(shape), **choices)).to(model.embedding.weight.dtype)
    before = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in rest.named_parameters():
            parameter.copy_(before[name])
    return rest.eval()
