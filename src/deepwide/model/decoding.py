"""Decoding: a prompt is read once, and every further token costs one pass over the weights and the cache.

A Decoder keeps the keys and values of all layers, and of an encoder-decoder those of the source. What it returns is
what the full forward pass over all tokens so far would return, to rounding; tests hold that for every kind of position,
norm place and residual scheme.

Shapes: B batch, T new positions, S all positions so far, D width, V vocabulary.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from deepwide.errors import DeepwideError, at_least_one, quoted
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

    def __init__(
        self,
        model: Transformer,
        batch: int = 1,
        room: int | None = None,
        *,
        source_BS: Tensor | None = None,
        source_padding_BS: Tensor | None = None,
    ) -> None:
        s = model.design.shape
        if s.kind == "encoder" or s.head != "tokens":
            raise DeepwideError(f"decoding is for decoders with a head for tokens, not for a {s.kind} (head {s.head}).")
        if (s.kind == "encoder-decoder") != (source_BS is not None):
            raise DeepwideError("a source is for encoder-decoders, which need one.")
        if model.design.attention == "hard":
            raise DeepwideError("hard attention looks at whole sequences: decode with softmax or linear attention.")
        self.model, self.room, self.length = model, s.context if room is None else room, 0
        if not 1 <= self.room <= s.context:
            raise DeepwideError(f"room must be from 1 to the context of {s.context:,} positions, not {self.room:,}.")
        like = model.embedding.weight.detach()
        self.past = [Past(batch, s.kv_heads, self.room, s.head_dim, like) for _ in range(s.depth)]
        self.sources: list[tuple[Tensor, Tensor] | None] = [None] * s.depth
        self.source_allowed = None if source_padding_BS is None else source_padding_BS[:, None, None, :]
        if source_BS is not None:
            with torch.no_grad():
                memory_BSD = model.memory(source_BS, source_padding_BS)
                self.sources = [block.cross.remember(memory_BSD) for block in model.blocks]  # type: ignore[union-attr,operator]

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
        for block, past, source in zip(model.blocks, self.past, self.sources, strict=True):
            assert isinstance(block, Block)
            x_BTD = block.continued(x_BTD, turn, bias_HTS, past, source, self.source_allowed)
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

    def choose(self, rows_B: Tensor) -> None:
        """Continue with these sequences of the batch, of which some may come several times and others not at all."""
        for past in self.past:
            past.choose(rows_B)
        self.sources = [None if source is None else (source[0][rows_B], source[1][rows_B]) for source in self.sources]
        if self.source_allowed is not None:
            self.source_allowed = self.source_allowed[rows_B]


def generate(model: Transformer, prompt_BT: Tensor, count: int) -> Tensor:
    """The `count` tokens that most likely follow each prompt, one after the other (greedy): B count."""
    B, T = prompt_BT.shape
    decoder = Decoder(model, B, min(T + count, model.design.shape.context))
    chosen = [decoder.read(prompt_BT).argmax(-1)]
    while len(chosen) < count:
        chosen.append(decoder.read(chosen[-1]).argmax(-1))
    return torch.cat(chosen, dim=1)


class Hypothesis(NamedTuple):
    """A sequence that a search ended with, without the token that ended it."""

    tokens: tuple[int, ...]
    log_probability: float  # of its tokens and, where it has one, of its end
    score: float  # what it was chosen by


def penalty(length: int, alpha: float) -> float:
    """What a log-probability is divided by: ((5 + length) / 6)^alpha (Wu et al. 2016); 1 for alpha 0."""
    return float(((5 + length) / 6) ** alpha)


@torch.no_grad()
def beam_search(
    model: Transformer,
    source_BS: Tensor,
    source_padding_BS: Tensor | None = None,
    *,
    begin: int = 0,
    end: int = 0,
    beam: int = 5,
    longest: int | None = None,
    alpha: float = 0.0,
) -> list[Hypothesis]:
    """The best answer to each source that a beam of so many sequences finds; a beam of 1 is greedy.

    An answer is ended by the token `end`, or by having `longest` tokens (as many as the context has positions). At each
    position the `beam` most likely continuations of what is in the beam are kept; those that end leave it and compete
    by their score, log p / penalty. A source is done when nothing in its beam can overtake its best answer any more:
    probabilities only fall, and the penalty is largest for the longest. So a beam that holds all sequences finds the
    best of all.
    """
    s = model.design.shape
    at_least_one(beam=beam, longest=longest)
    longest = min(longest or s.context, s.context)
    if not 0 <= alpha <= 10:
        raise DeepwideError(f"alpha, the weight of length, must be from 0 to 10, not {quoted(alpha)}.")
    B, V = len(source_BS), s.vocab
    best: list[Hypothesis | None] = [None] * B
    decoder = Decoder(model, B, longest, source_BS=source_BS, source_padding_BS=source_padding_BS)
    # One row per source at first; later, `owner` says whose each row is. A row is (owner, tokens, log p).
    owner, logs = list(range(B)), torch.zeros(B, dtype=torch.float64)
    tokens: list[tuple[int, ...]] = [()] * B
    last_B1 = torch.full((B, 1), begin, dtype=torch.long, device=source_BS.device)
    for length in range(1, longest + 1):
        step_RV = decoder.read(last_B1)[:, 0].double().log_softmax(-1).cpu()
        total_RV = logs[:, None] + step_RV
        chosen: list[tuple[int, int, float]] = []  # row, token, log p
        for source in dict.fromkeys(owner):
            mine = [row for row, whose in enumerate(owner) if whose == source]
            flat = total_RV[mine].flatten()
            values, places = flat.topk(min(beam, len(flat)))
            live: list[tuple[int, int, float]] = []
            for value, place in zip(values.tolist(), places.tolist(), strict=True):
                row, token = mine[place // V], place % V
                if token == end or length == longest:
                    words = tokens[row] if token == end else (*tokens[row], token)
                    ended = Hypothesis(words, value, value / penalty(length, alpha))
                    current = best[source]
                    if current is None or ended.score > current.score:
                        best[source] = ended
                else:
                    live.append((row, token, value))
            current = best[source]
            reach = max((value for _, _, value in live), default=-math.inf) / penalty(longest, alpha)
            if current is None or reach > current.score:
                chosen += live
        if not chosen:
            break
        rows = torch.tensor([row for row, _, _ in chosen])
        decoder.choose(rows.to(source_BS.device))
        owner = [owner[row] for row, _, _ in chosen]
        tokens = [(*tokens[row], token) for row, token, _ in chosen]
        logs = torch.tensor([value for _, _, value in chosen], dtype=torch.float64)
        last_B1 = torch.tensor([[token] for _, token, _ in chosen], device=source_BS.device)
    return [hypothesis for hypothesis in best if hypothesis is not None]
