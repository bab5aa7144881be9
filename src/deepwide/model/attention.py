"""Attention: projections, positions and norms are shared; how values are mixed is a kind, by name.

Shapes: B batch, T positions, S positions attended to (T in self-attention), D width, H heads, K key/value heads,
E head width. `allowed` is True where a query may look at a key, and broadcasts to B H T S.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture, attention_scale
from deepwide.model.cache import NO_TAPE, Tape
from deepwide.model.layers import NORMS, Rotation, rotate

# How a kind of attention mixes values: queries B H T E, keys and values B K S E, to B H T E.
Mixer = Callable[..., Tensor]


def softmax_attention(
    q_BHTE: Tensor,
    k_BKSE: Tensor,
    v_BKSE: Tensor,
    *,
    causal: bool,
    scale: float,
    bias_HTT: Tensor | None,
    allowed: Tensor | None = None,
) -> Tensor:
    """softmax(s·QKᵀ + bias) V (Vaswani et al. 2017), by torch's fused kernel; `allowed` replaces the causal mask."""
    k_BHSE, v_BHSE = _shared_by_groups(k_BKSE, q_BHTE), _shared_by_groups(v_BKSE, q_BHTE)
    if bias_HTT is None:
        plain = causal and allowed is None
        return functional.scaled_dot_product_attention(
            q_BHTE, k_BHSE, v_BHSE, attn_mask=allowed, is_causal=plain, scale=scale
        )
    T, S = q_BHTE.shape[2], k_BKSE.shape[2]
    mask = bias_HTT[:, :T, :S]
    if allowed is not None:
        mask = mask.masked_fill(~allowed, -torch.inf)
    elif causal:
        future = torch.ones(T, T, dtype=torch.bool, device=mask.device).triu(1)
        mask = mask.masked_fill(future, -torch.inf)
    return functional.scaled_dot_product_attention(q_BHTE, k_BHSE, v_BHSE, attn_mask=mask.to(q_BHTE.dtype), scale=scale)


def linear_attention(
    q_BHTE: Tensor,
    k_BKSE: Tensor,
    v_BKSE: Tensor,
    *,
    causal: bool,
    scale: float,  # noqa: ARG001
    bias_HTT: Tensor | None,  # noqa: ARG001
    allowed: Tensor | None = None,
) -> Tensor:
    """Σ_j ⟨q_i, k_j⟩ v_j, as in eq. 3 of the theory: no softmax, no scale."""
    k_BHSE, v_BHSE = _shared_by_groups(k_BKSE, q_BHTE), _shared_by_groups(v_BKSE, q_BHTE)
    if allowed is not None:
        return (q_BHTE @ k_BHSE.transpose(-1, -2)).masked_fill(~allowed, 0) @ v_BHSE
    if not causal:
        return q_BHTE @ (k_BHSE.transpose(-1, -2) @ v_BHSE)
    return (q_BHTE @ k_BHSE.transpose(-1, -2)).tril() @ v_BHSE


def hard_attention(
    q_BHTE: Tensor,
    k_BKSE: Tensor,
    v_BKSE: Tensor,
    *,
    causal: bool,
    scale: float,  # noqa: ARG001
    bias_HTT: Tensor | None,  # noqa: ARG001
    allowed: Tensor | None = None,
    looks: Sequence[str],
) -> Tensor:
    """v_j of the one key j with the largest score, as Yang, Chiang & Angluin 2024 define it; no gradient to scores."""
    k_BHSE, v_BHSE = _shared_by_groups(k_BKSE, q_BHTE), _shared_by_groups(v_BKSE, q_BHTE)
    return hard_pattern(q_BHTE @ k_BHSE.transpose(-1, -2), looks, causal=causal, allowed=allowed) @ v_BHSE


def hard_pattern(scores_BHTS: Tensor, looks: Sequence[str], *, causal: bool, allowed: Tensor | None) -> Tensor:
    """1 at the leftmost or rightmost of the largest scores where a head may look, 0 elsewhere; an empty row is 0."""
    T, S = scores_BHTS.shape[-2:]
    i, j = torch.arange(T, device=scores_BHTS.device)[:, None], torch.arange(S, device=scores_BHTS.device)[None, :]
    seen = {"none": j >= 0, "j<i": j < i, "j<=i": j <= i, "j>i": j > i, "j>=i": j >= i}
    visible_HTS = torch.stack([seen[look.split()[1]].expand(T, S) for look in looks])
    if causal:
        visible_HTS = visible_HTS & (j <= i)
    visible = visible_HTS if allowed is None else visible_HTS & allowed
    masked_BHTS = scores_BHTS.detach().masked_fill(~visible, -torch.inf)
    best_BHTS = (masked_BHTS == masked_BHTS.amax(-1, keepdim=True)) & visible
    first_BHTS = best_BHTS & (best_BHTS.cumsum(-1) == 1)
    last_BHTS = best_BHTS & (best_BHTS.flip(-1).cumsum(-1).flip(-1) == 1)
    leftmost_H11 = torch.tensor([look.startswith("leftmost") for look in looks], device=i.device)[:, None, None]
    return torch.where(leftmost_H11, first_BHTS, last_BHTS).to(scores_BHTS.dtype)


ATTENTION: Mapping[str, Mixer] = {
    "softmax": softmax_attention,
    "linear": linear_attention,
    "hard": hard_attention,
}


# Modules of their own mix for encoders only, and are loaded where they are used: `mixer_for`.
MIXERS: Mapping[str, str] = {
    "bigbird": "blockwise:BigBird",
    "linear_elu": "low_rank:LinearElu",
    "linformer": "low_rank:Linformer",
    "local": "blockwise:Local",
    "longformer": "blockwise:Longformer",
    "performer": "low_rank:Performer",
    "sinkhorn": "blockwise:Sinkhorn",
    "sparse": "blockwise:Sparse",
    "synthesizer": "low_rank:Synthesizer",
}


def mixer_for(design: Architecture, layer: int) -> nn.Module:
    """The module that mixes values in this layer, for the kinds of `MIXERS`."""
    module, _, name = MIXERS[design.attention].partition(":")
    mixer: nn.Module = getattr(import_module(f"deepwide.model.{module}"), name)(design, layer)
    return mixer


def allowed_pairs(padding_BS: Tensor | None, length: int, *, causal: bool) -> Tensor | None:
    """Which keys each of `length` positions may look at, where there is padding (True for a real token): B 1 T T.

    A padding position may look at itself, so that its row of the softmax is not empty; nothing real looks at it.
    """
    if padding_BS is None:
        return None
    itself = torch.eye(length, dtype=torch.bool, device=padding_BS.device)
    allowed = padding_BS[:, None, None, :] | itself
    return allowed.tril() if causal else allowed


def _shared_by_groups(x_BKSE: Tensor, q_BHTE: Tensor) -> Tensor:
    groups = q_BHTE.shape[1] // x_BKSE.shape[1]
    return x_BKSE if groups == 1 else x_BKSE.repeat_interleave(groups, dim=1)


class _Heads(nn.Module):
    """What self-attention and cross-attention share: norms of queries and keys, mixing, and the output matrix."""

    out: nn.Linear
    mix: Mixer

    def __init__(self, design: Architecture, *, causal: bool) -> None:
        super().__init__()
        s = design.shape
        self.heads, self.kv_heads, self.head_dim = s.heads, s.kv_heads, s.head_dim
        self.qk_norm, self.kind = s.qk_norm, design.attention
        self.causal, self.scale, self.looks = causal, attention_scale(design), design.looks
        if design.attention in ATTENTION:
            self.mix = ATTENTION[design.attention]
        if design.attention == "hard":
            self.mix = partial(self.mix, looks=design.looks)

    def _add_norms(self, design: Architecture) -> None:
        s = design.shape
        if s.qk_norm != "none":
            q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
            sizes = (s.head_dim, s.head_dim) if s.qk_norm == "head" else (q, kv)
            self.q_norm, self.k_norm = (NORMS[s.norm](size, design.norm_eps) for size in sizes)

    def _mixed(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        turn: Rotation | None,
        bias_HTT: Tensor | None,
        allowed: Tensor | None,
        tape: Tape,
    ) -> Tensor:
        """The output of all heads from projected queries (B, T, HE), keys and values (B, S, KE)."""
        q_BHTE, k_BKSE, v_BKSE = self._placed(q, k, v, turn)
        q_BHTE, k_BKSE, v_BKSE = tape("q", q_BHTE), tape("k", k_BKSE), tape("v", v_BKSE)
        if tape.wants("scores", "pattern"):
            y_BHTE = self._mixed_explicitly(q_BHTE, k_BKSE, v_BKSE, bias_HTT, allowed, tape)
        else:
            y_BHTE = self.mix(
                q_BHTE, k_BKSE, v_BKSE, causal=self.causal, scale=self.scale, bias_HTT=bias_HTT, allowed=allowed
            )
        return self._joined_each(tape("heads", y_BHTE), tape)

    def _joined_each(self, y_BHTE: Tensor, tape: Tape) -> Tensor:
        """The sum of what the heads give, with each of them where it is recorded."""
        if tape.wants("head_outputs"):
            weight_DHE = self.out.weight.view(self.out.weight.shape[0], self.heads, self.head_dim)
            each_BTHD = tape("head_outputs", torch.einsum("bhte,dhe->bthd", y_BHTE, weight_DHE))
            total_BTD = each_BTHD.sum(2)
            return total_BTD if self.out.bias is None else total_BTD + self.out.bias
        return self._joined(y_BHTE)

    def _placed(self, q: Tensor, k: Tensor, v: Tensor, turn: Rotation | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values by head, normed and turned by their positions."""
        return self._queries(q, turn), *self._keys_and_values(k, v, turn)

    def _queries(self, q: Tensor, turn: Rotation | None = None) -> Tensor:
        q_BTHE = (self.q_norm(q) if self.qk_norm == "full" else q).view(*q.shape[:2], -1, self.head_dim)
        if self.qk_norm == "head":
            q_BTHE = self.q_norm(q_BTHE)
        return (q_BTHE if turn is None else rotate(q_BTHE, turn)).transpose(1, 2)

    def _keys_and_values(self, k: Tensor, v: Tensor, turn: Rotation | None = None) -> tuple[Tensor, Tensor]:
        k_BSKE = (self.k_norm(k) if self.qk_norm == "full" else k).view(*k.shape[:2], -1, self.head_dim)
        if self.qk_norm == "head":
            k_BSKE = self.k_norm(k_BSKE)
        k_BSKE = k_BSKE if turn is None else rotate(k_BSKE, turn)
        return k_BSKE.transpose(1, 2), v.view(*v.shape[:2], -1, self.head_dim).transpose(1, 2)

    def _joined(self, y_BHTE: Tensor) -> Tensor:
        B, H, T, E = y_BHTE.shape
        y: Tensor = self.out(y_BHTE.transpose(1, 2).reshape(B, T, H * E))
        return y

    def _mixed_explicitly(
        self,
        q_BHTE: Tensor,
        k_BKSE: Tensor,
        v_BKSE: Tensor,
        bias_HTT: Tensor | None,
        allowed: Tensor | None,
        tape: Tape,
    ) -> Tensor:
        """The same as `mix`, with the scores (before the mask) and the pattern that a fused kernel does not form."""
        k_BHSE, v_BHSE = _shared_by_groups(k_BKSE, q_BHTE), _shared_by_groups(v_BKSE, q_BHTE)
        T, softmax = q_BHTE.shape[2], self.kind == "softmax"
        scores_BHTS = q_BHTE @ k_BHSE.transpose(-1, -2)
        if softmax:
            scores_BHTS = scores_BHTS * self.scale
            if bias_HTT is not None:
                scores_BHTS = scores_BHTS + bias_HTT[:, :T, :T].to(scores_BHTS.dtype)
        scores_BHTS = tape("scores", scores_BHTS)
        if self.kind == "hard":
            pattern_BHTS = hard_pattern(scores_BHTS, self.looks, causal=self.causal, allowed=allowed)
            return tape("pattern", pattern_BHTS) @ v_BHSE
        if allowed is None and self.causal:
            allowed = torch.ones(T, T, dtype=torch.bool, device=q_BHTE.device).tril()
        if allowed is not None:
            scores_BHTS = scores_BHTS.masked_fill(~allowed, -torch.inf if softmax else 0.0)
        return tape("pattern", scores_BHTS.softmax(-1) if softmax else scores_BHTS) @ v_BHSE


class Attention(_Heads):
    """One layer's self-attention. Queries, keys and values come from one matrix: rows q, then k, then v.

    Where the kind is a module of its own (`MIXERS`), `allowed` is which tokens are real, B T.
    """

    def __init__(self, design: Architecture, *, causal: bool, layer: int = 0) -> None:
        super().__init__(design, causal=causal)
        s = design.shape
        q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
        pairs = 0 if design.attention == "synthesizer" else q + kv  # numbers that are compared
        self.qkv = nn.Linear(s.width, pairs + kv, bias=s.qkv_bias)
        self.out = nn.Linear(q, s.width, bias=s.out_bias)
        self._add_norms(design)
        self.mixer = mixer_for(design, layer) if design.attention in MIXERS else None

    def forward(
        self,
        x_BTD: Tensor,
        turn: Rotation | None,
        bias_HTT: Tensor | None,
        allowed: Tensor | None = None,
        tape: Tape = NO_TAPE,
    ) -> Tensor:
        if self.mixer is not None:
            return self._mixed_by(self.mixer, x_BTD, turn, allowed, tape)
        return self._mixed(*self._projected(x_BTD), turn, bias_HTT, allowed, tape)

    def _mixed_by(
        self, mixer: nn.Module, x_BTD: Tensor, turn: Rotation | None, real_BT: Tensor | None, tape: Tape
    ) -> Tensor:
        """The same by a module; there is no pattern over all pairs to record."""
        if self.kind == "synthesizer":
            v_BHTE = self.qkv(x_BTD).view(*x_BTD.shape[:2], -1, self.head_dim).transpose(1, 2)
            q_BHTE = k_BHTE = v_BHTE
        else:
            q_BHTE, k_BHTE, v_BHTE = self._placed(*self._projected(x_BTD), turn)
            q_BHTE, k_BHTE = tape("q", q_BHTE), tape("k", k_BHTE)
        v_BHTE = tape("v", v_BHTE)
        y_BHTE = mixer(x_BTD, q_BHTE, k_BHTE, v_BHTE, self.scale, real_BT)
        return self._joined_each(tape("heads", y_BHTE), tape)

    def continued(self, x_BTD: Tensor, turn: Rotation | None, bias_HTS: Tensor | None, past: "Past") -> Tensor:
        """The same for positions that follow those in `past`, to which their keys and values are added."""
        q_BHTE, k_BKTE, v_BKTE = self._placed(*self._projected(x_BTD), turn)
        B, H, T, E = q_BHTE.shape
        k_BKSE, v_BKSE = past.add(k_BKTE, v_BKTE)
        S, K = k_BKSE.shape[2], self.kv_heads
        if T == 1 and H != K:  # the heads that share keys are rows of one product: nothing is copied for them
            q_BHTE = q_BHTE.reshape(B, K, H // K, E)
            bias_HTS = None if bias_HTS is None else bias_HTS.reshape(K, H // K, S)
        allowed = None
        if 1 < T < S:
            allowed = torch.ones(T, S, dtype=torch.bool, device=x_BTD.device).tril(S - T)
        y_BHTE = self.mix(
            q_BHTE, k_BKSE, v_BKSE, causal=T == S > 1, scale=self.scale, bias_HTT=bias_HTS, allowed=allowed
        )
        return self._joined(y_BHTE.reshape(B, H, T, E))

    def _projected(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        H, K, E = self.heads, self.kv_heads, self.head_dim
        q, k, v = self.qkv(x_BTD).split((H * E, K * E, K * E), dim=-1)
        return q, k, v


class Past:
    """The keys and values of one layer, B K S E, in room that is allocated once."""

    def __init__(self, batch: int, kv_heads: int, room: int, head_dim: int, like: Tensor) -> None:
        self.keys, self.values = (like.new_zeros(batch, kv_heads, room, head_dim) for _ in range(2))
        self.length = 0

    def add(self, k_BKTE: Tensor, v_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """Everything up to and including the new positions."""
        end = self.length + k_BKTE.shape[2]
        self.keys[:, :, self.length : end], self.values[:, :, self.length : end] = k_BKTE, v_BKTE
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def choose(self, rows_B: Tensor) -> None:
        """Continue with these sequences, of which some may come several times and others not at all."""
        self.keys, self.values = self.keys[rows_B], self.values[rows_B]


class CrossAttention(_Heads):
    """A decoder layer's attention to the encoder's output; keys and values are one matrix, rows k, then v.

    Every position may look at every token of the source. Rotary positions and ALiBi compare places in one sequence and
    are left out here, as T5's relative positions are (Raffel et al. 2020).
    """

    def __init__(self, design: Architecture) -> None:
        super().__init__(design, causal=False)
        s = design.shape
        q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
        self.q = nn.Linear(s.width, q, bias=s.qkv_bias)
        self.kv = nn.Linear(s.width, 2 * kv, bias=s.qkv_bias)
        self.out = nn.Linear(q, s.width, bias=s.out_bias)
        self._add_norms(design)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, allowed: Tensor | None = None, tape: Tape = NO_TAPE) -> Tensor:
        k, v = self.kv(memory_BSD).chunk(2, dim=-1)
        return self._mixed(self.q(x_BTD), k, v, None, None, allowed, tape)

    def remember(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of a source, B K S E: what `recall` reads, once for all positions."""
        return self._keys_and_values(*self.kv(memory_BSD).chunk(2, dim=-1))

    def recall(self, x_BTD: Tensor, source: tuple[Tensor, Tensor], allowed: Tensor | None) -> Tensor:
        """The same as `forward`, from what `remember` returned."""
        q_BHTE, (k_BKSE, v_BKSE) = self._queries(self.q(x_BTD)), source
        return self._joined(
            self.mix(q_BHTE, k_BKSE, v_BKSE, causal=False, scale=self.scale, bias_HTT=None, allowed=allowed)
        )
