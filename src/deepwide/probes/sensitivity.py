"""How much a network's output moves when its weights do, before training (the amplification effect, Liu et al. 2020).

F(x; W) is the residual stream after the last block, each position centred and divided by its standard deviation, as the
norm that follows, or ends, the last block does. The output change is the mean over positions and components of
(F(x; W) − F(x; W*))². W* moves only the matrices inside the blocks:

    random     W* = W + ε·rms(W)·Z with Z normal: every matrix moves by the same share of its own size
    gradient   W* = W − ε·rms(W)·sign(∂loss/∂W): the first step of Adam, in steps of that size

For small ε the change is ε² times a number that depends on the depth: linear for post-LN and logarithmic for pre-LN
according to the paper. Shapes: B batch, T positions, D width.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.model import Transformer

Move = Literal["random", "gradient"]


def output_change(
    model: "Transformer",
    tokens_BT: "Tensor",
    targets_BT: "Tensor",
    move: Move = "random",
    size: float = 1e-3,
    seed: int = 0,
) -> float:
    """The output change over size², for weights moved by `size`; the model is left as it was. Use float64."""
    import torch

    from deepwide.model import generator_for

    before = {name: matrix.detach().clone() for name, matrix in _block_matrices(model)}
    directions = {}
    if move == "gradient":
        gradients = torch.autograd.grad(model(tokens_BT, targets_BT), [matrix for _, matrix in _block_matrices(model)])
        directions = {name: -gradient.sign() for name, gradient in zip(before, gradients, strict=True)}
    else:
        for name, matrix in before.items():
            noise = torch.randn(matrix.shape, generator=generator_for(seed, f"move/{name}"), dtype=torch.float64)
            directions[name] = noise.to(matrix.dtype)
    with torch.no_grad():
        start = _normalised_output(model, tokens_BT)
        for name, matrix in _block_matrices(model):
            matrix += size * before[name].square().mean().sqrt() * directions[name]
        change = _normalised_output(model, tokens_BT) - start
        for name, matrix in _block_matrices(model):
            matrix.copy_(before[name])
    return float(change.double().square().mean()) / size**2


def gradient_norms(model: "Transformer", tokens_BT: "Tensor", targets_BT: "Tensor") -> list[float]:
    """The length of the loss's gradient by the matrices of each block, from the first to the last."""
    import torch

    gradients = torch.autograd.grad(model(tokens_BT, targets_BT), [matrix for _, matrix in _block_matrices(model)])
    squares = [0.0] * len(model.blocks)
    for (name, _), gradient in zip(_block_matrices(model), gradients, strict=True):
        squares[int(name.split(".")[1])] += float(gradient.double().square().sum())
    return [square**0.5 for square in squares]


def _block_matrices(model: "Transformer") -> "Iterator[tuple[str, Tensor]]":
    return ((name, p) for name, p in model.named_parameters() if name.startswith("blocks.") and p.ndim == 2)


def _normalised_output(model: "Transformer", tokens_BT: "Tensor") -> "Tensor":
    name = f"blocks.{len(model.blocks) - 1}.residual_after"
    x_BTD = model.run_with_cache(tokens_BT, [name])[1][name]
    normalised_BTD: Tensor = (x_BTD - x_BTD.mean(-1, keepdim=True)) / x_BTD.std(-1, correction=0, keepdim=True)
    return normalised_BTD
