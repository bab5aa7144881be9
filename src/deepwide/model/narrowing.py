"""Neurons and heads as groups of weights, and the narrower network that is left when some of them are zero.

A neuron is the rows of the matrix that leads into a feed-forward layer, with their biases; a head is the rows that make
its values, with theirs. Where they are zero the neuron or head answers 0 whatever it reads (every activation maps 0 to
0), so that taking it out changes nothing: `narrowed` removes its other weights too.

Shapes: G groups, N numbers of a group, D width, F feed-forward width, H heads, E head width.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from deepwide.errors import DeepwideError
from deepwide.model.attention import Attention, CrossAttention
from deepwide.model.layers import GatedFeedForward, PlainFeedForward
from deepwide.model.transformer import Transformer

Sized = Literal["feed_forward", "heads"]


@dataclass(frozen=True)
class Groups:
    """The groups of one layer: views of a matrix and of its bias, the same number of rows for each group."""

    kind: Sized
    name: str  # of the matrix, as a parameter
    weights: tuple[Tensor, ...]  # each rows × D, the rows of group 1 first
    biases: tuple[Tensor, ...]
    count: int  # of groups

    def read(self) -> Tensor:
        """All numbers of every group: G × N."""
        return torch.cat([part.reshape(self.count, -1) for part in (*self.weights, *self.biases)], dim=1)

    def write(self, w_GN: Tensor) -> None:
        """Replace the numbers of every group."""
        start = 0
        for part in (*self.weights, *self.biases):
            size = part.numel() // self.count
            part.copy_(w_GN[:, start : start + size].reshape(part.shape))
            start += size

    @property
    def alive(self) -> Tensor:
        """Which groups are not zero: G."""
        return self.read().ne(0).any(1)


def sized_groups(model: nn.Module) -> Iterator[Groups]:
    """The groups of every feed-forward and attention layer of a network, in the order of its modules."""
    for name, module in model.named_modules():
        if isinstance(module, PlainFeedForward):
            yield _groups("feed_forward", f"{name}.up.weight", module.up, [slice(None)], module.up.out_features)
        elif isinstance(module, GatedFeedForward):
            size = module.gate_up.out_features // 2
            rows = [slice(0, size), slice(size, None)]
            yield _groups("feed_forward", f"{name}.gate_up.weight", module.gate_up, rows, size)
        elif isinstance(module, Attention | CrossAttention):
            matrix, inner = (module.qkv, "qkv") if isinstance(module, Attention) else (module.kv, "kv")
            if module.heads != module.kv_heads:
                raise DeepwideError(
                    "heads that share keys and values cannot be sized one by one: set kv_heads to heads."
                )
            values = slice(matrix.out_features - module.kv_heads * module.head_dim, None)
            yield _groups("heads", f"{name}.{inner}.weight", matrix, [values], module.heads)


def _groups(kind: Sized, name: str, matrix: nn.Linear, rows: list[slice], count: int) -> Groups:
    biases = () if matrix.bias is None else tuple(matrix.bias.detach()[part] for part in rows)
    return Groups(kind, name, tuple(matrix.weight.detach()[part] for part in rows), biases, count)


class Silent(nn.Module):
    """What is left of a sublayer without neurons or heads: the bias of its output, whatever it reads."""

    def __init__(self, bias: Tensor | None, width: int) -> None:
        super().__init__()
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        self.width = width

    def forward(self, x_BTD: Tensor, *_: Any) -> Tensor:
        return torch.zeros_like(x_BTD) if self.bias is None else self.bias.to(x_BTD.dtype).expand_as(x_BTD)


def narrowed(model: Transformer) -> Transformer:
    """A copy of a network without the neurons and heads whose groups are zero: smaller matrices, the same outputs.

    Its layers may have different sizes, which its `design` does not know: it is that of the network it came from.
    """
    if model.design.shape.mixing is not None:
        raise DeepwideError(
            f"{model.design.attention} attention cannot be rebuilt narrower: train with softmax or linear attention."
        )
    smaller = deepcopy(model)
    alive = {groups.name.rpartition(".")[0].rpartition(".")[0]: groups.alive for groups in sized_groups(smaller)}
    for name, keep_G in alive.items():
        parent = smaller.get_submodule(name.rpartition(".")[0])
        place, module = name.rpartition(".")[2], smaller.get_submodule(name)
        out = module.out if isinstance(module, Attention | CrossAttention) else module.down
        assert isinstance(out, nn.Linear)
        if not keep_G.any():
            setattr(parent, place, Silent(out.bias, out.out_features))
        elif isinstance(module, Attention | CrossAttention):
            _narrow_heads(module, keep_G)
        else:
            parts = 2 if isinstance(module, GatedFeedForward) else 1
            inner = module.gate_up if isinstance(module, GatedFeedForward) else module.up
            assert isinstance(inner, nn.Linear)
            _keep(inner, keep_G.repeat(parts), rows=True)
            _keep(out, keep_G, rows=False)
    return smaller


def _narrow_heads(module: Attention | CrossAttention, keep_H: Tensor) -> None:
    if module.qk_norm == "full":
        raise DeepwideError("a norm over all queries together ties heads to each other: none can be taken out.")
    keep = keep_H.repeat_interleave(module.head_dim)
    if isinstance(module, Attention):
        _keep(module.qkv, keep.repeat(3), rows=True)
    else:
        _keep(module.q, keep, rows=True)
        _keep(module.kv, keep.repeat(2), rows=True)
    _keep(module.out, keep, rows=False)
    module.heads = module.kv_heads = int(keep_H.sum())


def _keep(matrix: nn.Linear, keep: Tensor, *, rows: bool) -> None:
    """Some rows of a matrix, with their biases, or some of its columns."""
    weight = matrix.weight.detach()
    matrix.weight = nn.Parameter((weight[keep] if rows else weight[:, keep]).clone())
    if rows and matrix.bias is not None:
        matrix.bias = nn.Parameter(matrix.bias.detach()[keep].clone())
    matrix.out_features, matrix.in_features = matrix.weight.shape
