"""Attention whose cost grows with the length alone, and the one that has no queries: linear_elu, performer, linformer
and synthesizer.

All are for encoders: no direction is masked, and padding is left out of every sum.

Shapes: B batch, T positions, N positions of the context, D width, H heads, E head width, R rank or random features.
`real_BT` is True where there is a token, everywhere if it is None.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture
from deepwide.model.initialisation import generator_for

HIDDEN = -1e30
LEAST = 1e-6  # added to the random features, as the authors of Performer do: no sum of them is zero


class LinearElu(nn.Module):
    """φ(q)ᵀ Σ φ(k) vᵀ / φ(q)ᵀ Σ φ(k) with φ = elu + 1 (Katharopoulos et al. 2020); scores have no scale."""

    def __init__(self, design: Architecture, layer: int) -> None:
        super().__init__()
        del design, layer

    def forward(
        self,
        x_BTD: Tensor,  # noqa: ARG002
        q_BHTE: Tensor,
        k_BHTE: Tensor,
        v_BHTE: Tensor,
        scale: float,  # noqa: ARG002
        real_BT: Tensor | None,
    ) -> Tensor:
        return _by_features(functional.elu(q_BHTE) + 1, functional.elu(k_BHTE) + 1, v_BHTE, real_BT)


class Performer(nn.Module):
    """FAVOR+ of Choromanski et al. 2021: φ(x) = exp(ωx − |x|²/2)/√R for R random ω, so that E φ(q)·φ(k) = exp(q·k).

    The rows of ω are orthogonal within each group of E, their lengths those of Gaussian vectors. What is largest is
    taken off the exponents, which cancels but for `LEAST`. ω is drawn once, by the layer alone, and never redrawn:
    networks of all seeds share it.
    """

    omega: Tensor  # H R E

    def __init__(self, design: Architecture, layer: int) -> None:
        super().__init__()
        s, features = design.shape, design.attention_size
        assert features is not None
        omega = torch.stack([orthogonal(features, s.head_dim, f"performer/{layer}/{head}") for head in range(s.heads)])
        self.register_buffer("omega", omega, persistent=False)

    def forward(
        self,
        x_BTD: Tensor,  # noqa: ARG002
        q_BHTE: Tensor,
        k_BHTE: Tensor,
        v_BHTE: Tensor,
        scale: float,
        real_BT: Tensor | None,
    ) -> Tensor:
        q, k = q_BHTE * scale**0.5, k_BHTE * scale**0.5
        omega_HER = self.omega.to(q.dtype).transpose(1, 2)
        q_BHTR, k_BHTR = (x @ omega_HER - x.square().sum(-1, keepdim=True) / 2 for x in (q, k))
        if real_BT is not None:
            k_BHTR = k_BHTR.masked_fill(~real_BT[:, None, :, None], HIDDEN)
        q_BHTR = q_BHTR - q_BHTR.detach().amax(-1, keepdim=True)
        k_BHTR = k_BHTR - k_BHTR.detach().amax((-1, -2), keepdim=True)
        return _by_features(q_BHTR.exp() + LEAST, k_BHTR.exp() + LEAST, v_BHTE, real_BT)


def _by_features(q_BHTR: Tensor, k_BHTR: Tensor, v_BHTE: Tensor, real_BT: Tensor | None) -> Tensor:
    """Σ_j (q_i·k_j) v_j / Σ_j q_i·k_j over real positions j, by sums over j that all i share."""
    if real_BT is not None:
        k_BHTR = k_BHTR * real_BT[:, None, :, None].to(k_BHTR.dtype)
    kv_BHRE = k_BHTR.transpose(-1, -2) @ v_BHTE
    return (q_BHTR @ kv_BHRE) / (q_BHTR @ k_BHTR.sum(2)[..., None])


def orthogonal(rows: int, columns: int, name: str) -> Tensor:
    """Random rows as of Gaussian vectors, but orthogonal within each group of `columns`."""
    generator, groups = generator_for(0, name), -(-rows // columns)
    squares = torch.empty(groups, columns, columns, dtype=torch.float64).normal_(generator=generator)
    directions = torch.linalg.qr(squares)[0].transpose(1, 2).reshape(-1, columns)[:rows]
    lengths = torch.empty(rows, columns, dtype=torch.float64).normal_(generator=generator).norm(dim=1, keepdim=True)
    rows_RE: Tensor = lengths * directions
    return rows_RE.float()


class Linformer(nn.Module):
    """softmax(s·q(Ek)ᵀ) Ev: keys and values of all positions are projected to R of them (Wang et al. 2020).

    One matrix E per layer serves the keys and values of all heads, one of the paper's ways to share it. Padding is left
    out of the projection.
    """

    def __init__(self, design: Architecture, layer: int) -> None:  # noqa: ARG002
        super().__init__()
        assert design.attention_size is not None
        self.project = nn.Parameter(torch.empty(design.attention_size, design.shape.context))

    def forward(
        self, x_BTD: Tensor, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, scale: float, real_BT: Tensor | None
    ) -> Tensor:
        B, H, T, E = q_BHTE.shape
        both = torch.cat([k_BHTE, v_BHTE], dim=-1).transpose(1, 2).reshape(B, T, 2 * H * E)
        if real_BT is not None:
            both = both * real_BT[..., None].to(both.dtype)
        projected = self.project[:, : x_BTD.shape[1]].to(both.dtype) @ both
        k_BHRE, v_BHRE = projected.view(B, -1, H, 2 * E).transpose(1, 2).chunk(2, dim=-1)
        return functional.scaled_dot_product_attention(q_BHTE, k_BHRE, v_BHRE, scale=scale)


class Synthesizer(nn.Module):
    """softmax(M) V with a learned matrix M per head, whatever the tokens are (Tay et al. 2021, random synthesizer).

    There are no queries and no keys. M has the context's size; a shorter sequence uses its first rows and columns.
    """

    def __init__(self, design: Architecture, layer: int) -> None:  # noqa: ARG002
        super().__init__()
        s = design.shape
        self.scores = nn.Parameter(torch.empty(s.heads, s.context, s.context))

    def forward(
        self,
        x_BTD: Tensor,
        q_BHTE: Tensor,  # noqa: ARG002
        k_BHTE: Tensor,  # noqa: ARG002
        v_BHTE: Tensor,
        scale: float,  # noqa: ARG002
        real_BT: Tensor | None,
    ) -> Tensor:
        T = x_BTD.shape[1]
        scores = self.scores[None, :, :T, :T]
        if real_BT is not None:
            scores = scores.masked_fill(~real_BT[:, None, None, :], HIDDEN)
        return scores.softmax(-1).to(v_BHTE.dtype) @ v_BHTE
