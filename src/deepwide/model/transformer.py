"""The transformer: tokens in, logits or a loss out. Read it top to bottom; every part is chosen by name.

Shapes: B batch, T positions, S positions of the source, D width, V vocabulary, C classes, N = B·T.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture, logits_multiplier
from deepwide.model.architecture import Stack as StackShape
from deepwide.model.attention import Attention, CrossAttention, Past, allowed_pairs
from deepwide.model.cache import NO_TAPE, Edit, Recorder, Tape
from deepwide.model.dropout import Dropout
from deepwide.model.head import Classifier, cross_entropy, pool
from deepwide.model.initialisation import initialise
from deepwide.model.layers import FEED_FORWARD, NORMS, RESIDUAL, Rotation, alibi_bias, rotation


class Block(nn.Module):
    """Attention, cross-attention in the decoder of an encoder-decoder, and the feed-forward where there is one.

    Each sublayer f joins the residual stream x by its norms' place: pre x + f(n(x)), post n(x + f(x)), and peri
    x + n'(f(n(x))) as in Gemma 2, where + is the residual scheme. pre_scaled is x + f(n(x)/√l) in the l-th block, the
    LayerNorm scaling of Sun et al. 2025.
    """

    def __init__(self, design: Architecture, stack: StackShape, layer: int, dropout: Dropout) -> None:
        super().__init__()
        s = design.shape
        self.dropout = dropout

        def norm() -> nn.Module:
            return NORMS[s.norm](s.width, design.norm_eps)

        self.place = design.norm_place
        self.norm_scale = (layer + 1) ** -0.5 if self.place == "pre_scaled" else 1.0
        self.attention, self.attention_norm, self.attention_join = (
            Attention(design, causal=stack.causal, layer=layer),
            norm(),
            RESIDUAL[design.residual](design, stack),
        )
        self.cross = CrossAttention(design) if stack.cross else None
        if self.cross is not None:
            self.cross_norm, self.cross_join = norm(), RESIDUAL[design.residual](design, stack)
        self.feed_forward = FEED_FORWARD[s.ff](design) if s.ff_width else None
        if self.feed_forward is not None:
            self.feed_forward_norm, self.feed_forward_join = norm(), RESIDUAL[design.residual](design, stack)
        if self.place == "peri":
            self.attention_out_norm = norm()
            if self.cross is not None:
                self.cross_out_norm = norm()
            if self.feed_forward is not None:
                self.feed_forward_out_norm = norm()

    def forward(
        self,
        x_BTD: Tensor,
        turn: Rotation | None = None,
        bias_HTT: Tensor | None = None,
        allowed: Tensor | None = None,
        memory_BSD: Tensor | None = None,
        source_allowed: Tensor | None = None,
        tape: Tape = NO_TAPE,
    ) -> Tensor:
        x_BTD, at = tape("residual_before", x_BTD), tape.at("attention")
        f_BTD = self.attention(self._input("attention", x_BTD, at), turn, bias_HTT, allowed, at)
        x_BTD = tape("residual_after_attention", self._join("attention", x_BTD, f_BTD, at))
        if self.cross is not None:
            at = tape.at("cross")
            f_BTD = self.cross(self._input("cross", x_BTD, at), memory_BSD, source_allowed, at)
            x_BTD = tape("residual_after_cross", self._join("cross", x_BTD, f_BTD, at))
        if self.feed_forward is not None:
            at = tape.at("feed_forward")
            f_BTD = self.feed_forward(self._input("feed_forward", x_BTD, at), at)
            x_BTD = self._join("feed_forward", x_BTD, f_BTD, at)
        return tape("residual_after", x_BTD)

    def continued(
        self,
        x_BTD: Tensor,
        turn: Rotation | None,
        bias_HTS: Tensor | None,
        past: Past,
        source: tuple[Tensor, Tensor] | None = None,
        source_allowed: Tensor | None = None,
    ) -> Tensor:
        """The block of a decoder at positions that follow those in `past`; `source` is what its cross-attention
        remembers of the source."""
        f_BTD = self.attention.continued(self._input("attention", x_BTD, NO_TAPE), turn, bias_HTS, past)
        x_BTD = self._join("attention", x_BTD, f_BTD, NO_TAPE)
        if self.cross is not None:
            assert source is not None, "the decoder of an encoder-decoder reads a source"
            f_BTD = self.cross.recall(self._input("cross", x_BTD, NO_TAPE), source, source_allowed)
            x_BTD = self._join("cross", x_BTD, f_BTD, NO_TAPE)
        if self.feed_forward is not None:
            f_BTD = self.feed_forward(self._input("feed_forward", x_BTD, NO_TAPE))
            x_BTD = self._join("feed_forward", x_BTD, f_BTD, NO_TAPE)
        return x_BTD

    def _input(self, sublayer: str, x_BTD: Tensor, tape: Tape) -> Tensor:
        if self.place == "post":
            return tape("input", x_BTD)
        normed_BTD: Tensor = getattr(self, f"{sublayer}_norm")(x_BTD)
        return tape("input", normed_BTD if self.norm_scale == 1 else normed_BTD * self.norm_scale)

    def _join(self, sublayer: str, x_BTD: Tensor, f_BTD: Tensor, tape: Tape) -> Tensor:
        f_BTD = tape("output", f_BTD)
        if self.place == "peri":
            f_BTD = tape("normed_output", getattr(self, f"{sublayer}_out_norm")(f_BTD))
        x_BTD = getattr(self, f"{sublayer}_join")(x_BTD, self.dropout(f_BTD))
        return getattr(self, f"{sublayer}_norm")(x_BTD) if self.place == "post" else x_BTD


class Stack(nn.Module):
    """Positions, blocks and the final norm: all of a network between its embedding and its head."""

    def __init__(
        self, design: Architecture, stack: StackShape, dropout: Dropout, embedding: nn.Embedding | None = None
    ) -> None:
        super().__init__()
        s = design.shape
        self.causal, self.in_pairs, self.dropout = stack.causal, s.mixing is None, dropout
        if embedding is not None:
            self.embedding = embedding  # first, where it always was: the order of parameters is part of a run
        self.positions: Tensor | None = None
        if s.positions == "learned":
            self.positions = nn.Parameter(torch.empty(s.context + s.extra_positions, s.width))
        self.context, self.extra_positions = s.context, s.extra_positions
        self.embedding_norm = NORMS[s.norm](s.width, design.norm_eps) if s.embedding_norm else None
        self.blocks = nn.ModuleList(Block(design, stack, layer, dropout) for layer in range(stack.depth))
        self.final_norm = NORMS[s.norm](s.width, design.norm_eps) if s.final_norm else None

    def read(
        self,
        x_BTD: Tensor,
        turn: Rotation | None,
        bias_HTT: Tensor | None,
        padding_BT: Tensor | None = None,
        memory_BSD: Tensor | None = None,
        source_padding_BS: Tensor | None = None,
        tape: Tape = NO_TAPE,
    ) -> Tensor:
        """The residual stream after the last block and the final norm, from embedded tokens."""
        T = x_BTD.shape[1]
        assert self.context >= T, f"{T} positions in a context of {self.context}"
        x_BTD = tape("embedding", x_BTD)
        if self.positions is not None:
            first = self.extra_positions
            x_BTD = x_BTD + tape("positions", self.positions[first : first + T])
        if self.embedding_norm is not None:
            x_BTD = tape("embedding_norm", self.embedding_norm(x_BTD))
        x_BTD = self.dropout(x_BTD)
        allowed = allowed_pairs(padding_BT, T, causal=self.causal) if self.in_pairs else padding_BT
        source_allowed = None if source_padding_BS is None else source_padding_BS[:, None, None, :]
        for layer, block in enumerate(self.blocks):
            x_BTD = block(x_BTD, turn, bias_HTT, allowed, memory_BSD, source_allowed, tape.at(f"blocks.{layer}"))
        return x_BTD if self.final_norm is None else tape("final_norm", self.final_norm(x_BTD))


class Transformer(Stack):
    """A network of the given architecture, its weights drawn from `seed`.

    >>> design = Architecture.of("levine", depth=2, width=32, vocab=256, context=16)
    >>> model = Transformer(design)
    >>> sum(p.numel() for p in model.parameters()) == design.shape.total_params
    True
    """

    cos: Tensor | None
    sin: Tensor | None
    score_bias: Tensor | None

    def __init__(self, design: Architecture, seed: int = 0) -> None:
        s = design.shape
        super().__init__(design, design.stack, Dropout(), nn.Embedding(s.vocab, s.width))
        self.design = design
        self.head = None if s.tied or s.head != "tokens" else nn.Linear(s.width, s.vocab, bias=False)
        self.head_bias = nn.Parameter(torch.zeros(s.vocab)) if s.head_bias and s.head == "tokens" else None
        self.encoder = Stack(design, design.encoder, self.dropout) if s.kind == "encoder-decoder" else None
        self.classifier = Classifier(design) if s.head != "tokens" else None
        self.logits_multiplier = logits_multiplier(design)
        cos, sin = rotation(s.context, s.head_dim, design.rotary_base) if s.positions == "rotary" else (None, None)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        bias_HTT = alibi_bias(s.heads, s.context) if s.positions == "alibi" else None
        self.register_buffer("score_bias", bias_HTT, persistent=False)
        initialise(self, design, seed)

    def forward(
        self,
        tokens_BT: Tensor,
        targets: Tensor | None = None,
        *,
        mask_BT: Tensor | None = None,
        source_BS: Tensor | None = None,
        padding_BT: Tensor | None = None,
        source_padding_BS: Tensor | None = None,
        smoothing: float = 0.0,
        tape: Tape = NO_TAPE,
    ) -> Tensor:
        """Logits; or, with targets, the mean loss in nats.

        Head tokens: logits B T V, targets B T; the mean is over the positions where `mask_BT` is True, all without it.
        Heads class and pair: logits B C, targets B. `source_BS` is what the encoder of an encoder-decoder reads, or the
        second sequence of a pair. Padding is True where there is a real token, of which every sequence has at least
        one; attention and pooling never look at the others. None means that all tokens are real. With `smoothing` the
        loss is against answers of which that share is spread over all tokens or classes alike (Szegedy et al. 2016).
        """
        s = self.design.shape
        assert s.reads_two == (source_BS is not None), (
            "source_BS is for encoder-decoders and the head for pairs, and needed there"
        )
        assert source_BS is not None or source_padding_BS is None, "source_padding_BS without source_BS"
        if self.classifier is not None:
            assert mask_BT is None, "mask_BT is for the head for tokens"
            a_BD = self._pooled(tokens_BT, padding_BT, tape)
            b_BD = None if source_BS is None else self._pooled(source_BS, source_padding_BS, tape.at("source"))
            logits_BC: Tensor = self.classifier(a_BD, b_BD, tape)
            if targets is None:
                return logits_BC
            return functional.cross_entropy(logits_BC, targets, label_smoothing=smoothing)
        h_BTD = self.hidden(
            tokens_BT, source_BS=source_BS, padding_BT=padding_BT, source_padding_BS=source_padding_BS, tape=tape
        )
        if self.logits_multiplier != 1:
            h_BTD = h_BTD * self.logits_multiplier
        weight_VD = self.embedding.weight if self.head is None else self.head.weight
        if targets is None or tape.wants("logits"):
            logits_BTV = tape("logits", functional.linear(h_BTD, weight_VD, self.head_bias))
            if targets is None:
                return logits_BTV
            scored = slice(None) if mask_BT is None else mask_BT.flatten()
            chosen, answers = logits_BTV.flatten(0, 1)[scored], targets.flatten()[scored]
            return functional.cross_entropy(chosen, answers, label_smoothing=smoothing)
        h_ND, targets_N = h_BTD.flatten(0, 1), targets.flatten()
        if mask_BT is not None:
            h_ND, targets_N = h_ND[mask_BT.flatten()], targets_N[mask_BT.flatten()]
        return cross_entropy(h_ND, weight_VD, self.head_bias, targets_N, smoothing)

    def hidden(
        self,
        tokens_BT: Tensor,
        *,
        source_BS: Tensor | None = None,
        padding_BT: Tensor | None = None,
        source_padding_BS: Tensor | None = None,
        tape: Tape = NO_TAPE,
    ) -> Tensor:
        """What the head reads: the residual stream after the last block and the final norm."""
        memory_BSD = None
        if self.encoder is not None:
            assert source_BS is not None, "an encoder-decoder reads a source"
            memory_BSD = self.memory(source_BS, source_padding_BS, tape)
        return self.read(
            self.embedding(tokens_BT), self._turn, self.score_bias, padding_BT, memory_BSD, source_padding_BS, tape
        )

    def memory(self, source_BS: Tensor, source_padding_BS: Tensor | None = None, tape: Tape = NO_TAPE) -> Tensor:
        """What the decoder of an encoder-decoder attends to: B S D."""
        assert self.encoder is not None, "only an encoder-decoder has an encoder"
        source_BSD = self.embedding(source_BS)
        return self.encoder.read(
            source_BSD, self._turn, self.score_bias, source_padding_BS, tape=tape.at("encoder")
        )  # fmt: skip

    @property
    def _turn(self) -> Rotation | None:
        return None if self.cos is None or self.sin is None else (self.cos, self.sin)

    def _pooled(self, tokens_BT: Tensor, padding_BT: Tensor | None, tape: Tape) -> Tensor:
        h_BTD = self.hidden(tokens_BT, padding_BT=padding_BT, tape=tape)
        return tape("pooled", pool(h_BTD, padding_BT, causal=self.causal))

    def run_with_cache(
        self,
        tokens_BT: Tensor,
        names: Sequence[str] | None = None,
        *,
        edits: Mapping[str, Edit] | None = None,
        **inputs: Any,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """What `forward` returns, and the named activations of the same pass; `names` are full names or globs.

        Activations are part of the graph, so gradients flow through them. `edits` maps names to functions that change
        an activation on the way, for ablations and patching. Where scores, patterns or single heads' outputs are asked
        for, they are computed explicitly, and the output agrees with `forward` to rounding; otherwise to the bit.
        """
        recorder = Recorder(names, edits)
        output = self(tokens_BT, tape=recorder, **inputs)
        recorder.check()
        return output, recorder.activations

    def cache_names(self) -> list[str]:
        """The names of all activations, in the order of the computation."""
        recorder = Recorder()
        token = torch.zeros(1, 1, dtype=torch.long, device=self.embedding.weight.device)
        with torch.no_grad():
            self(token, source_BS=token if self.design.shape.reads_two else None, tape=recorder)
        return list(recorder.seen)
