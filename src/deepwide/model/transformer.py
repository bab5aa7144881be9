"""The transformer: tokens in, logits or a loss out. Read it top to bottom; every part is chosen by name.

Shapes: B batch, T positions, D width, V vocabulary, N = B·T.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture
from deepwide.model.attention import Attention
from deepwide.model.feed_forward import FEED_FORWARD
from deepwide.model.initialisation import initialise
from deepwide.model.loss import cross_entropy
from deepwide.model.norm import NORMS
from deepwide.model.parametrisation import logits_multiplier
from deepwide.model.position import Rotation, alibi_bias, rotation
from deepwide.model.residual import RESIDUAL


class Block(nn.Module):
    """Attention, then the feed-forward where there is one, each with its norms and its way back into the stream."""

    def __init__(self, design: Architecture) -> None:
        super().__init__()
        s = design.shape

        def norm() -> nn.Module:
            return NORMS[s.norm](s.width, design.norm_eps)

        self.place = design.norm_place
        self.attention, self.attention_norm, self.attention_join = (
            Attention(design),
            norm(),
            RESIDUAL[design.residual](design),
        )
        self.feed_forward = FEED_FORWARD[s.ff](design) if s.ff_width else None
        if self.feed_forward is not None:
            self.feed_forward_norm, self.feed_forward_join = norm(), RESIDUAL[design.residual](design)
        if self.place == "peri":
            self.attention_out_norm = norm()
            if self.feed_forward is not None:
                self.feed_forward_out_norm = norm()

    def forward(self, x_BTD: Tensor, turn: Rotation | None, bias_HTT: Tensor | None) -> Tensor:
        if self.place == "pre":
            x_BTD = self.attention_join(x_BTD, self.attention(self.attention_norm(x_BTD), turn, bias_HTT))
            if self.feed_forward is not None:
                x_BTD = self.feed_forward_join(x_BTD, self.feed_forward(self.feed_forward_norm(x_BTD)))
        elif self.place == "post":
            x_BTD = self.attention_norm(self.attention_join(x_BTD, self.attention(x_BTD, turn, bias_HTT)))
            if self.feed_forward is not None:
                x_BTD = self.feed_forward_norm(self.feed_forward_join(x_BTD, self.feed_forward(x_BTD)))
        else:  # peri, as in Gemma 2: a norm on both sides of each sublayer
            f_BTD = self.attention(self.attention_norm(x_BTD), turn, bias_HTT)
            x_BTD = self.attention_join(x_BTD, self.attention_out_norm(f_BTD))
            if self.feed_forward is not None:
                f_BTD = self.feed_forward(self.feed_forward_norm(x_BTD))
                x_BTD = self.feed_forward_join(x_BTD, self.feed_forward_out_norm(f_BTD))
        return x_BTD


class Transformer(nn.Module):
    """A network of the given architecture, its weights drawn from `seed`.

    >>> design = Architecture.of("levine", depth=2, width=32, vocab=256, context=16)
    >>> model = Transformer(design)
    >>> sum(p.numel() for p in model.parameters()) == design.shape.total_params
    True
    """

    def __init__(self, design: Architecture, seed: int = 0) -> None:
        super().__init__()
        s = design.shape
        self.design = design
        self.embedding = nn.Embedding(s.vocab, s.width)
        self.positions: Tensor | None = None
        if s.positions == "learned":
            self.positions = nn.Parameter(torch.empty(s.context + s.extra_positions, s.width))
        self.embedding_norm = NORMS[s.norm](s.width, design.norm_eps) if s.embedding_norm else None
        self.blocks = nn.ModuleList(Block(design) for _ in range(s.depth))
        self.final_norm = NORMS[s.norm](s.width, design.norm_eps) if s.final_norm else None
        self.head = None if s.tied else nn.Linear(s.width, s.vocab, bias=False)
        self.head_bias = nn.Parameter(torch.zeros(s.vocab)) if s.head_bias else None
        self.logits_multiplier = logits_multiplier(design)
        cos, sin = rotation(s.context, s.head_dim, design.rotary_base) if s.positions == "rotary" else (None, None)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        bias_HTT = alibi_bias(s.heads, s.context) if s.positions == "alibi" else None
        self.register_buffer("score_bias", bias_HTT, persistent=False)
        initialise(self, design, seed)

    def forward(self, tokens_BT: Tensor, targets_BT: Tensor | None = None) -> Tensor:
        """Logits B T V; or, with targets, the mean loss in nats per token."""
        h_BTD = self.hidden(tokens_BT)
        if self.logits_multiplier != 1:
            h_BTD = h_BTD * self.logits_multiplier
        weight_VD = self.embedding.weight if self.head is None else self.head.weight
        if targets_BT is None:
            return functional.linear(h_BTD, weight_VD, self.head_bias)
        return cross_entropy(h_BTD.flatten(0, 1), weight_VD, self.head_bias, targets_BT.flatten())

    def hidden(self, tokens_BT: Tensor) -> Tensor:
        """What the head reads: the stream after the last block and the final norm."""
        T = tokens_BT.shape[1]
        assert self.design.shape.context >= T, f"{T} positions in a context of {self.design.shape.context}"
        x_BTD: Tensor = self.embedding(tokens_BT)
        if self.positions is not None:
            first = self.design.shape.extra_positions
            x_BTD = x_BTD + self.positions[first : first + T]
        if self.embedding_norm is not None:
            x_BTD = self.embedding_norm(x_BTD)
        turn = None if self.cos is None else (self.cos, self.sin)
        for block in self.blocks:
            x_BTD = block(x_BTD, turn, self.score_bias)
        return x_BTD if self.final_norm is None else self.final_norm(x_BTD)
