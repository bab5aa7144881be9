"""Initial weights by name and by seed: every parameter has a random generator of its own.

Two networks with the same seed share the weights of every parameter whose name, size and scale agree: the first
layers of a deep network are those of a shallow one, so that sweeps over depth are paired.
"""

import hashlib
import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from deepwide.model.architecture import Architecture, Stack, factors
from deepwide.model.layers import gain

ENDS_OF_SUBLAYERS = ("attention.out.weight", "cross.out.weight", "feed_forward.down.weight")
Spread = Callable[[Architecture, str, Tensor], float]  # the standard deviation of one parameter's start


def _gpt2(design: Architecture, name: str, weight: Tensor) -> float:  # noqa: ARG001
    """Radford et al. 2019: 0.02, and 0.02/√(2L) where a sublayer joins the stream."""
    return 0.02 / _joins(design, name)


def _fan_in(design: Architecture, name: str, weight: Tensor) -> float:
    """1/√fan_in, LeCun's; embeddings and positions, which are looked up, have size 1/√D."""
    return 1 / math.sqrt(weight.shape[1]) / _joins(design, name)


def _xavier(design: Architecture, name: str, weight: Tensor) -> float:  # noqa: ARG001
    """Glorot & Bengio 2010: √(2/(fan_in + fan_out)); embeddings 1/√D."""
    if name == "embedding.weight" or name.endswith("positions"):
        return 1 / math.sqrt(weight.shape[1])
    return math.sqrt(2 / (weight.shape[0] + weight.shape[1]))


def _tfixup(design: Architecture, name: str, weight: Tensor) -> float:
    """Huang et al. 2020: Xavier, embeddings 1/√D times the gain of the stack that the head reads (see `_shrunk`)."""
    looked_up = name == "embedding.weight" or name.endswith("positions")
    return _xavier(design, name, weight) * (_shrunk(design, design.stack) if looked_up else 1.0)


def _shrunk(design: Architecture, stack: Stack) -> float:
    """T-Fixup's gain on values, outputs and feed-forward of a stack: for networks without norms, trained without
    warm-up.

    Published for encoder-decoders: (9M)^−¼ in the decoder and the embeddings, 0.67 N^−¼ in the encoder. Both solve
    n·(v²w² + v²x² + w²x²) = 1 for n residual sublayers and sizes v, w, x of values, outputs and embeddings: the decoder
    with n = 3M and v = w = x, the encoder with that x, n = 2N = 2M and v = w. A single stack has no cross-attention:
    the same condition with n = 2N and v = w = x gives (6N)^−¼.
    """
    if design.shape.encoder_depth and not stack.cross:
        return float(0.67 * stack.depth**-0.25)
    return float((3 * stack.sublayers * stack.depth) ** -0.25)


SPREADS: Mapping[str, Spread] = {"gpt2": _gpt2, "fan_in": _fan_in, "xavier": _xavier, "tfixup": _tfixup}


def initialise(model: nn.Module, design: Architecture, seed: int) -> None:
    """Fill every matrix from a generator of its own; vectors start as their modules set them, biases at zero."""
    spread = SPREADS[design.initialisation]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim < 2:
                if name.endswith("bias"):
                    parameter.zero_()
                continue
            std = spread(design, name, parameter) * factors(design, name, parameter.ndim).init
            parameter.copy_(torch.empty(parameter.shape).normal_(0, std, generator=generator_for(seed, f"init/{name}")))
            stack = design.stack_of(name)
            beta = gain(design, stack) * (_shrunk(design, stack) if design.initialisation == "tfixup" else 1.0)
            if beta != 1:
                _scale_by_gain(name, parameter, beta, design)


def generator_for(seed: int, name: str) -> torch.Generator:
    """A generator of its own for every name under one seed."""
    digest = hashlib.sha256(f"deepwide/{seed}/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def _joins(design: Architecture, name: str) -> float:
    """√(sublayers) of the stack (√(2L) for L blocks of two) for the matrix that ends a sublayer, else 1.

    Under completep L is the base depth: beyond it, the branch multiplier does what this factor would do.
    """
    if not name.endswith(ENDS_OF_SUBLAYERS) or design.residual == "none":
        return 1.0
    stack = design.stack_of(name)
    depth = design.base_depth if design.parametrisation == "completep" else stack.depth
    return math.sqrt(stack.sublayers * depth)


def _scale_by_gain(name: str, parameter: Tensor, beta: float, design: Architecture) -> None:
    """DeepNorm's β, or T-Fixup's gain, on values, output and feed-forward; queries and keys keep their size."""
    if name.endswith(("attention.qkv.weight", "cross.kv.weight")):
        parameter[-design.shape.kv_heads * design.shape.head_dim :] *= beta
    elif name.startswith(("blocks.", "encoder.blocks.")) and not (name.endswith("cross.q.weight") or ".mixer." in name):
        parameter *= beta
