"""A network of attention and skip connections as a sum over paths (Dong, Cordonnier, Loukas 2021).

In every layer a path goes through one head or around the layer. With L layers of H heads there are C(L, k)·H^k paths of
length k, one that goes through k heads. A path is an array of L numbers: the head, or SKIP.

Two sums, which are not the same:
- `exact_path_sum` takes the attention patterns P of the whole network. Then x ↦ P x W is linear in each layer, and the
  sum over all paths is the network, if it has neither norms nor biases: that is the paper's decomposition.
- `path_logits` is how the original measures what paths of one length predict: each path goes through the network alone,
  with patterns from its own activations, biases, and after each head a norm without parameters; the ends of some paths
  are summed and normalised likewise, and the network's own head reads them.

Shapes: B batch, T positions, D width, H heads, E head width, L layers, P paths.
"""

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.model import Transformer

SKIP = -1
Paths = NDArray[np.int64]  # P × L


def count_paths(depth: int, heads: int, length: int) -> int:
    """How many paths go through exactly so many heads.

    >>> [count_paths(6, 2, length) for length in range(7)]
    [1, 12, 60, 160, 240, 192, 64]
    """
    return math.comb(depth, length) * int(heads**length)


def all_paths(depth: int, heads: int) -> Paths:
    """Every path: (H + 1)^L of them."""
    return np.array(list(itertools.product(range(SKIP, heads), repeat=depth)), dtype=np.int64)


def sample_paths(depth: int, heads: int, length: int, number: int, rng: np.random.Generator) -> Paths:
    """Paths of one length, drawn uniformly and independently, so that some may be the same."""
    paths_PL = rng.integers(0, heads, (number, depth))
    for path_L in paths_PL:
        path_L[rng.permutation(depth)[length:]] = SKIP
    return paths_PL


def path_logits(model: "Transformer", tokens_BT: "Tensor", paths_PL: Paths) -> "Tensor":
    """What the network's head makes of the sum of these paths: B T V."""
    import torch
    from torch.nn import functional

    from deepwide.model import Recorder

    _check(model)
    x_BTD = _embedded(model, tokens_BT)
    D, eps = x_BTD.shape[-1], model.design.norm_eps
    turn = None if model.cos is None or model.sin is None else (model.cos, model.sin)
    x_PBTD = x_BTD.expand(len(paths_PL), *x_BTD.shape)
    with torch.no_grad():
        for layer, block in enumerate(model.blocks):
            head_P = torch.from_numpy(paths_PL[:, layer])
            through = head_P != SKIP
            if not bool(through.any()):
                continue
            x_NTD, tape = x_PBTD[through].flatten(0, 1), Recorder(["head_outputs"])
            block.attention(x_NTD, turn, model.score_bias, None, tape)
            each_NTHD = tape.activations["head_outputs"]
            head_N = head_P[through].repeat_interleave(len(x_BTD))
            f_NTD = each_NTHD[torch.arange(len(head_N)), :, head_N]
            if block.attention.out.bias is not None:
                f_NTD = f_NTD + block.attention.out.bias
            x_PBTD = x_PBTD.clone()
            x_PBTD[through] = functional.layer_norm(f_NTD, (D,), eps=eps).view(-1, *x_BTD.shape)
        h_BTD = functional.layer_norm(x_PBTD.sum(0), (D,), eps=eps)
        weight_VD = model.embedding.weight if model.head is None else model.head.weight
        return functional.linear(h_BTD, weight_VD, model.head_bias)


def path_accuracies(
    model: "Transformer",
    tokens_BT: "Tensor",
    targets_BT: "Tensor",
    number: int,
    repeats: int,
    rng: np.random.Generator,
) -> list[float]:
    """The share of right answers by path length 0 … L: of the sum of so many paths, mean over several draws."""
    depth, heads = len(model.blocks), model.design.shape.heads
    accuracies = []
    for length in range(depth + 1):
        draws = [sample_paths(depth, heads, length, number, rng) for _ in range(repeats)]
        right = [path_logits(model, tokens_BT, paths_PL).argmax(-1) == targets_BT for paths_PL in draws]
        accuracies.append(float(np.mean([float(each.double().mean()) for each in right])))
    return accuracies


def exact_path_sum(model: "Transformer", tokens_BT: "Tensor", paths_PL: Paths) -> "Tensor":
    """The sum of these paths under the whole network's attention patterns: B T D."""
    import torch

    _check(model)
    with torch.no_grad():
        _, activations = model.run_with_cache(tokens_BT, ["blocks.*.attention.pattern"])
        total_BTD = torch.zeros_like(_embedded(model, tokens_BT))
        for path_L in paths_PL:
            x_BTD = _embedded(model, tokens_BT)
            for layer, head in enumerate(path_L):
                if head == SKIP:
                    continue
                attention, E = model.blocks[layer].attention, model.design.shape.head_dim
                rows = slice(int(head) * E, (int(head) + 1) * E)
                value_ED = attention.qkv.weight[-attention.heads * E :][rows]
                pattern_BTT = activations[f"blocks.{layer}.attention.pattern"][:, head]
                x_BTD = pattern_BTT @ x_BTD @ value_ED.T @ attention.out.weight[:, rows].T
            total_BTD += x_BTD
    return total_BTD


def _embedded(model: "Transformer", tokens_BT: "Tensor") -> "Tensor":
    import torch

    with torch.no_grad():
        _, activations = model.run_with_cache(tokens_BT, ["blocks.0.residual_before"])
    x_BTD: Tensor = activations["blocks.0.residual_before"]
    return x_BTD


def _check(model: "Transformer") -> None:
    """Paths are those of a decomposition: attention and plain skips, with norms after them or without."""
    design, s = model.design, model.design.shape
    if s.ff_width or design.residual != "plain" or s.kv_heads != s.heads:
        raise DeepwideError("paths need a network of attention and plain skip connections alone, without feed-forward.")
    if s.norm != "none" and design.norm_place != "post":
        raise DeepwideError(f"paths need norms after the sublayers or none, and norm_place is '{design.norm_place}'.")
