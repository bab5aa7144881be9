"""Decoding: a prompt is read once, and every further token costs one pass over the weights and the cache.

A Decoder keeps the keys and values of all layers. What it returns is what the full forward pass over all tokens so far
would return, to rounding; tests hold that for every kind of position, norm place and residual scheme.

Shapes: B batch, T new positions, S all positions so far, D width, V vocabulary.
"""

import torch
from torch import Tensor
from torch.nn import functional

from deepwide.errors import DeepwideError
from deepwide.model.attention import Past
from deepwide.model.layers import Rotation
from deepwide.model.transformer import Block, Transformer


class Decoder:
    """Reads tokens piece by piece with a key/value cache of `room` positions (the whole context by default).

    >>> from deepwide.model import Architecture
    >>> model = Transformer(Architecture.of("llama", depth=2, width=32, vocab=64, context=16))
    >>> decoder = Decoder(model)
    >>> _ = decoder.read(torch.tensor([[1, 2, 3]]))
    >>> decoder.read(torch.tensor([[4]])).shape, decoder.length
    (torch.Size([1, 1, 64]), 4)
    """

    def __init__(self, model: Transformer, batch: int = 1, room: int | None = None) -> None:
        s = model.design.shape
        if s.kind != "decoder" or s.head != "tokens":
            raise DeepwideError(f"decoding is for decoders with a head for tokens, not for a {s.kind} (head {s.head}).")
        if model.design.attention == "hard":
            raise DeepwideError("hard attention looks at whole sequences: decode with softmax or linear attention.")
        self.model, self.room, self.length = model, s.context if room is None else room, 0
        if not 1 <= self.room <= s.context:
            raise DeepwideError(f"room must be from 1 to the context of {s.context:,} positions, not {self.room:,}.")
        like = model.embedding.weight.detach()
        self.past = [Past(batch, s.kv_heads, self.room, s.head_dim, like) for _ in range(s.depth)]

    @torch.no_grad()
    def read(self, tokens_BT: Tensor, *, every: bool = False) -> Tensor:
        """Logits of the last new position, B 1 V, or of every new one, B T V."""
        model, start, T = self.model, self.length, tokens_BT.shape[1]
        end = start + T
        if end > self.room:
            raise DeepwideError(f"{end:,} tokens are more than the {self.room:,} positions that the cache has.")
        x_BTD = model.embedding(tokens_BT)
        if model.positions is not None:
            first = model.extra_positions + start
            x_BTD = x_BTD + model.positions[first : first + T]
        if model.embedding_norm is not None:
            x_BTD = model.embedding_norm(x_BTD)
        turn: Rotation | None = None
        if model.cos is not None and model.sin is not None:
            turn = model.cos[start:end], model.sin[start:end]
        bias_HTS = None if model.score_bias is None else model.score_bias[:, start:end, :end]
        for block, past in zip(model.blocks, self.past, strict=True):
            assert isinstance(block, Block)
            x_BTD = block.continued(x_BTD, turn, bias_HTS, past)
        self.length = end
        if not every:
            x_BTD = x_BTD[:, -1:]
        if model.final_norm is not None:
            x_BTD = model.final_norm(x_BTD)
        if model.logits_multiplier != 1:
            x_BTD = x_BTD * model.logits_multiplier
        weight_VD = model.embedding.weight if model.head is None else model.head.weight
        return functional.linear(x_BTD, weight_VD, model.head_bias)

    def fill(self, length: int) -> None:
        """Pretend to have read `length` tokens whose keys and values are 0: for timing, where numbers do not matter."""
        if not 0 <= length <= self.room:
            raise DeepwideError(f"length must be from 0 to {self.room:,} positions, not {length:,}.")
        self.length = length
        for past in self.past:
            past.length = length

    def rewind(self, length: int = 0) -> None:
        """Forget all but the first `length` positions."""
        if not 0 <= length <= self.length:
            raise DeepwideError(f"there are {self.length:,} positions to go back in, and {length:,} is not among them.")
        self.length = length
        for past in self.past:
            past.length = length


def generate(model: Transformer, prompt_BT: Tensor, count: int) -> Tensor:
    """The `count` tokens that most likely follow each prompt, one after the other (greedy): B count."""
    B, T = prompt_BT.shape
    decoder = Decoder(model, B, min(T + count, model.design.shape.context))
    chosen = [decoder.read(prompt_BT).argmax(-1)]
    while len(chosen) < count:
        chosen.append(decoder.read(chosen[-1]).argmax(-1))
    return torch.cat(chosen, dim=1)
