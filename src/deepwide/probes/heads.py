"""What attention heads look at: scores of their patterns on random tokens, and what a network gains from context.

A head's induction score is measured on a random block of T tokens that comes twice: position i of the second copy
holds the token of position i − T, and what followed that one stands at i − (T − 1). An induction head looks there
(Elhage et al. 2021; Olsson et al. 2022, "prefix matching").

Shapes: B sequences, T positions of a block, N positions, L layers, H heads.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.quantities import Floats

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.model import Transformer


def repeated_blocks(vocab: int, block: int, sequences: int, seed: int = 0) -> "Tensor":
    """Random blocks of distinct tokens, each followed by itself: B × 2T."""
    import torch

    from deepwide.model import generator_for

    if block > vocab:
        raise DeepwideError(f"a block of {block} distinct tokens needs as many symbols, and there are {vocab}.")
    keys_BV = torch.rand(sequences, vocab, generator=generator_for(seed, "repeated blocks"))
    return keys_BV.argsort(1)[:, :block].repeat(1, 2)


def attention_patterns(model: "Transformer", tokens_BN: "Tensor") -> "Tensor":
    """The attention of every head, L × B × H × N × N: rows look, columns are looked at."""
    import torch

    with torch.no_grad():
        _, activations = model.run_with_cache(tokens_BN, ["blocks.*.attention.pattern"])
    return torch.stack([activations[f"blocks.{layer}.attention.pattern"] for layer in range(len(model.blocks))])


def attention_importance(
    model: "Transformer", tokens_BN: "Tensor", objective: "Callable[[Tensor], Tensor]"
) -> "Tensor":
    """|∂f/∂A|: how much a number f of the last hidden states (B N D) moves with each attention weight, L B H N N.

    The gradient is with respect to weights as they are after the softmax, each by itself (Clark et al. 2019).
    """
    import torch

    from deepwide.model import Recorder

    recorder = Recorder(["blocks.*.attention.pattern"])
    with torch.enable_grad():
        value = objective(model.hidden(tokens_BN, tape=recorder))
        patterns = [recorder.activations[f"blocks.{layer}.attention.pattern"] for layer in range(len(model.blocks))]
        gradients = torch.autograd.grad(value, patterns)
    return torch.stack([gradient.abs() for gradient in gradients])


def induction_scores(pattern_LBHNN: "Tensor") -> Floats:
    """The mean attention at offset −(T − 1) in the second half of sequences of 2T: L × H."""
    block = pattern_LBHNN.shape[-1] // 2
    # The diagonal starts at the last token of the first half, which is not yet repeated.
    looked_LBHT = pattern_LBHNN.diagonal(1 - block, -2, -1)[..., 1:]
    return _mean(looked_LBHT)


def previous_token_scores(pattern_LBHNN: "Tensor") -> Floats:
    """The mean attention to the token before, A[i, i − 1] for i ≥ 1: L × H."""
    return _mean(pattern_LBHNN.diagonal(-1, -2, -1))


def token_losses(model: "Transformer", tokens_BN: "Tensor") -> Floats:
    """The loss in nats of each next token, B × (N − 1): column t is what token t + 1 costs."""
    import torch

    with torch.no_grad():
        logits_BNV = model(tokens_BN[:, :-1])
        logs_BNV = logits_BNV.double().log_softmax(-1)
        losses_BN = -logs_BNV.gather(-1, tokens_BN[:, 1:, None])[..., 0]
    return np.asarray(losses_BN.numpy())


def in_context_score(losses_BN: Floats, late: int, early: int) -> float:
    """The mean loss of the late-th token less that of the early-th (Olsson et al. 2022: the 500th and the 50th).

    Tokens are counted from 1; the first one has no loss. Below 0, the network predicts better when it has read more.
    """
    for place in (late, early):
        if not 2 <= place <= losses_BN.shape[1] + 1:
            raise DeepwideError(f"token {place} has no loss: there are tokens 2 to {losses_BN.shape[1] + 1}.")
    return float((losses_BN[:, late - 2] - losses_BN[:, early - 2]).mean())


def ablation(heads: Sequence[tuple[int, int]]) -> "dict[str, Callable[[Tensor], Tensor]]":
    """Edits for `run_with_cache` that set the outputs of some heads, each a layer and a number, to zero."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)

    def silence(numbers: list[int]) -> "Callable[[Tensor], Tensor]":
        def edit(y_BHTE: "Tensor") -> "Tensor":
            silent_BHTE = y_BHTE.clone()
            silent_BHTE[:, numbers] = 0
            return silent_BHTE

        return edit

    return {f"blocks.{layer}.attention.heads": silence(numbers) for layer, numbers in by_layer.items()}


def _mean(looked_LBHT: "Tensor") -> Floats:
    return np.asarray(looked_LBHT.double().mean((1, 3)).numpy())
