"""Attention: projections, positions and norms are shared; how values are mixed is a kind, by name.

Shapes: B batch, T positions, D width, H heads, K key/value heads, E head width.
"""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture
from deepwide.model.norm import NORMS
from deepwide.model.parametrisation import attention_scale
from deepwide.model.position import Rotation, rotate


class Mixer(Protocol):
    """How a kind of attention mixes values: queries B H T E, keys and values B K T E, to B H T E."""

    def __call__(
        self, q_BHTE: Tensor, k_BKTE: Tensor, v_BKTE: Tensor, *, causal: bool, scale: float, bias_HTT: Tensor | None
    ) -> Tensor: ...


def softmax_attention(
    q_BHTE: Tensor, k_BKTE: Tensor, v_BKTE: Tensor, *, causal: bool, scale: float, bias_HTT: Tensor | None
) -> Tensor:
    """softmax(s·QKᵀ + bias) V (Vaswani et al. 2017), by torch's fused kernel."""
    k_BHTE, v_BHTE = _shared_by_groups(k_BKTE, q_BHTE), _shared_by_groups(v_BKTE, q_BHTE)
    if bias_HTT is None:
        return functional.scaled_dot_product_attention(q_BHTE, k_BHTE, v_BHTE, is_causal=causal, scale=scale)
    T = q_BHTE.shape[2]
    mask_HTT = bias_HTT[:, :T, :T]
    if causal:
        future = torch.ones(T, T, dtype=torch.bool, device=mask_HTT.device).triu(1)
        mask_HTT = mask_HTT.masked_fill(future, -torch.inf)
    return functional.scaled_dot_product_attention(
        q_BHTE, k_BHTE, v_BHTE, attn_mask=mask_HTT.to(q_BHTE.dtype), scale=scale
    )


def linear_attention(
    q_BHTE: Tensor,
    k_BKTE: Tensor,
    v_BKTE: Tensor,
    *,
    causal: bool,
    scale: float,  # noqa: ARG001
    bias_HTT: Tensor | None,  # noqa: ARG001
) -> Tensor:
    """Σ_j ⟨q_i, k_j⟩ v_j, as in eq. 3 of the theory: no softmax, no scale."""
    k_BHTE, v_BHTE = _shared_by_groups(k_BKTE, q_BHTE), _shared_by_groups(v_BKTE, q_BHTE)
    if not causal:
        return q_BHTE @ (k_BHTE.transpose(-1, -2) @ v_BHTE)
    return (q_BHTE @ k_BHTE.transpose(-1, -2)).tril() @ v_BHTE


def _shared_by_groups(x_BKTE: Tensor, q_BHTE: Tensor) -> Tensor:
    groups = q_BHTE.shape[1] // x_BKTE.shape[1]
    return x_BKTE if groups == 1 else x_BKTE.repeat_interleave(groups, dim=1)


ATTENTION: Mapping[str, Mixer] = {"softmax": softmax_attention, "linear": linear_attention}


class Attention(nn.Module):
    """One layer's attention. Queries, keys and values come from one matrix: rows q, then k, then v."""

    def __init__(self, design: Architecture) -> None:
        super().__init__()
        s = design.shape
        self.heads, self.kv_heads, self.head_dim = s.heads, s.kv_heads, s.head_dim
        q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
        self.qkv = nn.Linear(s.width, q + 2 * kv, bias=s.qkv_bias)
        self.out = nn.Linear(q, s.width, bias=s.out_bias)
        self.qk_norm = s.qk_norm
        if s.qk_norm != "none":
            sizes = (s.head_dim, s.head_dim) if s.qk_norm == "head" else (q, kv)
            self.q_norm, self.k_norm = (NORMS[s.norm](size, design.norm_eps) for size in sizes)
        self.mix, self.causal, self.scale = ATTENTION[design.attention], design.causal, attention_scale(design)

    def forward(self, x_BTD: Tensor, turn: Rotation | None, bias_HTT: Tensor | None) -> Tensor:
        B, T, _ = x_BTD.shape
        H, K, E = self.heads, self.kv_heads, self.head_dim
        q, k, v = self.qkv(x_BTD).split((H * E, K * E, K * E), dim=-1)
        if self.qk_norm == "full":
            q, k = self.q_norm(q), self.k_norm(k)
        q_BTHE, k_BTKE, v_BTKE = (part.view(B, T, -1, E) for part in (q, k, v))
        if self.qk_norm == "head":
            q_BTHE, k_BTKE = self.q_norm(q_BTHE), self.k_norm(k_BTKE)
        if turn is not None:
            q_BTHE, k_BTKE = rotate(q_BTHE, turn), rotate(k_BTKE, turn)
        q_BHTE, k_BKTE, v_BKTE = (part.transpose(1, 2) for part in (q_BTHE, k_BTKE, v_BTKE))
        y_BHTE = self.mix(q_BHTE, k_BKTE, v_BKTE, causal=self.causal, scale=self.scale, bias_HTT=bias_HTT)
        y: Tensor = self.out(y_BHTE.transpose(1, 2).reshape(B, T, H * E))
        return y
