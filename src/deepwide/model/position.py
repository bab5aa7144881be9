"""Where a token stands: learned vectors are added to embeddings, rotary turns queries and keys, ALiBi biases scores.

Shapes: B batch, T positions, H heads, E head width.
"""

import torch
from torch import Tensor

Rotation = tuple[Tensor, Tensor]  # cosines and sines, T × E/2


def rotation(context: int, head_dim: int, base: float) -> Rotation:
    """Angles of Su et al. 2021: position t turns pair i by t·base^(−2i/E); pairs are (i, i + E/2) as in Llama."""
    frequency = base ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angle = torch.outer(torch.arange(context, dtype=torch.float64), frequency)
    return angle.cos().float(), angle.sin().float()


def rotate(x_BTHE: Tensor, turn: Rotation) -> Tensor:
    """Queries or keys turned by their positions."""
    T = x_BTHE.shape[1]
    cos, sin = (part[:T, None, :].to(x_BTHE.dtype) for part in turn)
    left, right = x_BTHE.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def alibi_bias(heads: int, context: int) -> Tensor:
    """Press et al. 2022: −slope·distance, slopes 2^(−8h/H) for a power of two, interleaved otherwise."""

    def powers(n: int) -> list[float]:
        return [2 ** (-8 * (h + 1) / n) for h in range(n)]

    floor = 1 << (heads.bit_length() - 1)
    slopes = torch.tensor(powers(floor) + powers(2 * floor)[0::2][: heads - floor])
    distance = torch.arange(context)[:, None] - torch.arange(context)[None, :]
    return -slopes[:, None, None] * distance.abs()
