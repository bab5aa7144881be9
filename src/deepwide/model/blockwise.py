"""Attention in which every position looks at a few blocks: local, longformer, bigbird, sparse and sinkhorn.

All are for encoders: no direction is masked. What a position may look at depends on its place, the context and the
layer, never on the length of a batch, so that padding a batch changes no answer. Products are computed block by block,
never as a masked product of all pairs; positions that fill up the last block are hidden, as padding is.

Shapes: B batch, T positions, D width, H heads, E head width, N blocks, P positions of a block, S keys of a block,
M blocks that a block looks at. `real_BT` is True where there is a token, everywhere if it is None.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from deepwide.model.architecture import Architecture
from deepwide.model.initialisation import generator_for

HIDDEN = -1e30  # added to scores; finite, so that a row in which all is hidden has a softmax
TEMPERATURE, ROUNDS = 0.75, 8  # of Sinkhorn's normalisation


def as_blocks(x_BHTE: Tensor, size: int) -> Tensor:
    """B H T E to B N H P E, the last block filled up with zeros; a view where nothing has to be filled up."""
    B, H, T, E = x_BHTE.shape
    x_BTHE = functional.pad(x_BHTE.transpose(1, 2), (0, 0, 0, 0, 0, -T % size)) if T % size else x_BHTE.transpose(1, 2)
    return x_BTHE.reshape(B, -1, size, H, E).transpose(2, 3)


def real_blocks(x_BHTE: Tensor, real_BT: Tensor | None, size: int) -> Tensor:
    """Where the places of every block hold a token: B N P."""
    B, _, T, _ = x_BHTE.shape
    real_BT = torch.ones(B, T, dtype=torch.bool, device=x_BHTE.device) if real_BT is None else real_BT
    return functional.pad(real_BT, (0, -T % size)).view(B, -1, size)


def as_sequence(y_BNHPE: Tensor, length: int) -> Tensor:
    """B N H P E back to B H T E."""
    B, N, H, P, E = y_BNHPE.shape
    return y_BNHPE.transpose(2, 3).reshape(B, N * P, H, E)[:, :length].transpose(1, 2)


def attend(q_BNHPE: Tensor, k_BNHSE: Tensor, v_BNHSE: Tensor, scale: float, seen: Tensor | None) -> Tensor:
    """Softmax attention of every block to keys of its own, by torch's fused kernel; `seen` broadcasts to B N H P S."""
    mask = None
    if seen is not None:
        mask = torch.zeros(seen.shape, dtype=q_BNHPE.dtype, device=seen.device).masked_fill(~seen, HIDDEN)
        mask = mask.expand(*q_BNHPE.shape[:2], *mask.shape[2:]).flatten(0, 1)
    q, k, v = (x.flatten(0, 1) for x in (q_BNHPE, k_BNHSE, v_BNHSE))
    y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return y.view(*q_BNHPE.shape[:2], *y.shape[1:])


class Local(nn.Module):
    """Within blocks of `size` positions, each by itself (Liu et al. 2018)."""

    def __init__(self, design: Architecture, layer: int) -> None:  # noqa: ARG002
        super().__init__()
        assert design.attention_size is not None
        self.size = design.attention_size

    def forward(
        self, x_BTD: Tensor, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, scale: float, real_BT: Tensor | None
    ) -> Tensor:
        T = x_BTD.shape[1]
        size = min(self.size, T)
        seen = None if real_BT is None and T % size == 0 else real_blocks(q_BHTE, real_BT, size)[:, :, None, None]
        q, k, v = (as_blocks(x, size) for x in (q_BHTE, k_BHTE, v_BHTE))
        return as_sequence(attend(q, k, v, scale, seen), T)


class Longformer(nn.Module):
    """A sliding window: positions at most `size`/2 away (Beltagy, Peters, Cohan 2020).

    Its global attention belongs to tokens that a task singles out, such as [CLS]; the tasks here have none. Windows are
    computed in chunks of half a window, each with the chunks beside it.
    """

    def __init__(self, design: Architecture, layer: int) -> None:  # noqa: ARG002
        super().__init__()
        assert design.attention_size is not None
        self.reach = design.attention_size // 2

    def forward(
        self, x_BTD: Tensor, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, scale: float, real_BT: Tensor | None
    ) -> Tensor:
        T = x_BTD.shape[1]
        size = min(self.reach, T)
        real_BNS = _beside(real_blocks(q_BHTE, real_BT, size)[:, :, None, :, None])[:, :, 0, :, 0]
        query, key = torch.arange(size, device=x_BTD.device)[:, None], torch.arange(3 * size, device=x_BTD.device)
        near_PS = (key - size - query).abs() <= self.reach
        seen = real_BNS[:, :, None, None, :] & near_PS
        q, k, v = (as_blocks(x, size) for x in (q_BHTE, k_BHTE, v_BHTE))
        return as_sequence(attend(q, _beside(k), _beside(v), scale, seen), T)


def _beside(x_BNHPE: Tensor) -> Tensor:
    """Every block with the one before it and the one after it, zeros beyond the ends: B N H 3P E."""
    around = functional.pad(x_BNHPE, (0, 0, 0, 0, 0, 0, 1, 1))
    return torch.cat([around[:, :-2], around[:, 1:-1], around[:, 2:]], dim=3)


class BigBird(nn.Module):
    """A window, global blocks and random blocks (Zaheer et al. 2020, the construction within the sequence).

    A block of `size` positions looks at itself, its two neighbours, the context's first and last block, and `links`
    others drawn at random for every layer, head and block. The first and the last block look at everything. The draw
    depends on the layer and the head alone: networks of all seeds share it.
    """

    blocks: Tensor  # H N M

    def __init__(self, design: Architecture, layer: int) -> None:
        super().__init__()
        s = design.shape
        assert design.attention_size is not None
        assert design.attention_links is not None
        self.size, self.count = design.attention_size, -(-s.context // design.attention_size)
        chosen = [
            [_chosen(block, self.count, design.attention_links, layer, head) for block in range(self.count)]
            for head in range(s.heads)
        ]
        most = max(len(blocks) for of_head in chosen for blocks in of_head)
        filled = [[blocks + [-1] * (most - len(blocks)) for blocks in of_head] for of_head in chosen]
        self.register_buffer("blocks", torch.tensor(filled, dtype=torch.long), persistent=False)

    def forward(
        self, x_BTD: Tensor, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, scale: float, real_BT: Tensor | None
    ) -> Tensor:
        T = x_BTD.shape[1]
        q, k, v = (as_blocks(x, self.size) for x in (q_BHTE, k_BHTE, v_BHTE))
        real_BNP = real_blocks(q_BHTE, real_BT, self.size)
        B, N, H, P, E = q.shape
        ends = [0, N - 1] if N == self.count > 1 else [0]  # of the blocks that there are, those that see everything
        middle = slice(1, N - 1 if len(ends) == 2 else N)
        blocks_NHM = self.blocks[:, middle].transpose(0, 1)
        there_NHM, index_NHM = (blocks_NHM >= 0) & (blocks_NHM < N), blocks_NHM.clamp(0, N - 1)
        heads_H1 = torch.arange(H, device=index_NHM.device)[:, None]
        seen = (real_BNP[:, index_NHM] & there_NHM[..., None]).flatten(3)[:, :, :, None, :]
        near = [x[:, index_NHM, heads_H1].flatten(3, 4) for x in (k, v)]  # B N H (M P) E
        middles = [attend(q[:, middle], near[0], near[1], scale, seen)] if index_NHM.shape[0] else []
        all_k, all_v = (x.transpose(1, 2).reshape(B, 1, H, N * P, E) for x in (k, v))
        q_ends = q[:, ends].transpose(1, 2).reshape(B, 1, H, len(ends) * P, E)
        y_ends = attend(q_ends, all_k, all_v, scale, real_BNP.reshape(B, 1, 1, 1, N * P))
        y_ends = y_ends.reshape(B, H, len(ends), P, E).transpose(1, 2)
        return as_sequence(torch.cat([y_ends[:, :1], *middles, y_ends[:, 1:]], dim=1), T)


def _chosen(block: int, count: int, links: int, layer: int, head: int) -> list[int]:
    """The blocks that one block looks at, in a context of `count` blocks."""
    if block in (0, count - 1):
        return []  # it looks at everything, which is computed apart
    fixed = {0, count - 1, block - 1, block, block + 1}
    others = [other for other in range(count) if other not in fixed]
    order = torch.randperm(len(others), generator=generator_for(0, f"bigbird/{layer}/{head}/{block}"))
    return sorted(fixed | {others[i] for i in order[:links].tolist()})


class Sparse(nn.Module):
    """The fixed pattern of Child et al. 2019: the position's own block, and the last `links` positions of every block.

    Both sets are seen by every head. The original is causal; here nothing is masked by direction.
    """

    def __init__(self, design: Architecture, layer: int) -> None:  # noqa: ARG002
        super().__init__()
        assert design.attention_size is not None
        assert design.attention_links is not None
        self.size, self.links = design.attention_size, design.attention_links

    def forward(
        self, x_BTD: Tensor, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, scale: float, real_BT: Tensor | None
    ) -> Tensor:
        T = x_BTD.shape[1]
        q, k, v = (as_blocks(x, self.size) for x in (q_BHTE, k_BHTE, v_BHTE))
        real_BNP = real_blocks(q_BHTE, real_BT, self.size)
        N = q.shape[1]
        elsewhere_NN = ~torch.eye(N, dtype=torch.bool, device=x_BTD.device)  # those of its own block it sees anyway
        common_BNS = (real_BNP[:, None, :, -self.links :] & elsewhere_NN[:, :, None]).flatten(2)
        seen = torch.cat([real_BNP, common_BNS], dim=2)[:, :, None, None]
        all_k, all_v = (torch.cat([x, self._common(x)], dim=3) for x in (k, v))
        return as_sequence(attend(q, all_k, all_v, scale, seen), T)

    def _common(self, x_BNHPE: Tensor) -> Tensor:
        """The last positions of all blocks, for every block: B N H S E."""
        last = x_BNHPE[:, :, :, -self.links :].transpose(1, 2).flatten(2, 3)
        return last[:, None].expand(-1, x_BNHPE.shape[1], -1, -1, -1)


class Sinkhorn(nn.Module):
    """A block and what a learned sorting of the blocks puts in its place (Tay et al. 2020, Sparse Sinkhorn attention).

    Per head, W maps the sum of a block's inputs to a score for every block of the context; Sinkhorn's normalisation of
    these scores over the temperature is S, nearly doubly stochastic, and block I of the sorted keys and values is
    Σ_J S_IJ block J. A position looks at the keys of its own block and at those of the sorted block there, in one
    softmax. Blocks without a token take no part in the sorting. Left out is the Gumbel noise that the original adds to
    the scores while training: answers would depend on a random state.
    """

    def __init__(self, design: Architecture, layer: int) -> None:  # noqa: ARG002
        super().__init__()
        s = design.shape
        assert design.attention_size is not None
        self.size = design.attention_size
        self.sort = nn.Parameter(torch.empty(s.heads, s.width, -(-s.context // self.size)))

    def forward(
        self, x_BTD: Tensor, q_BHTE: Tensor, k_BHTE: Tensor, v_BHTE: Tensor, scale: float, real_BT: Tensor | None
    ) -> Tensor:
        T, D = x_BTD.shape[1:]
        real_BNP = real_blocks(q_BHTE, real_BT, self.size)
        x_BTD = functional.pad(x_BTD if real_BT is None else x_BTD * real_BT[..., None], (0, 0, 0, -T % self.size))
        q, k, v = (as_blocks(x, self.size) for x in (q_BHTE, k_BHTE, v_BHTE))
        B, N, H, P, E = q.shape
        sums_BND = x_BTD.view(B, N, P, D).sum(2)
        weight_D_HN = self.sort[:, :, :N].transpose(0, 1).reshape(D, H * N)
        scores_BHNN = (sums_BND.flatten(0, 1) @ weight_D_HN).view(B, N, H, N).transpose(1, 2)
        S_BHNN = sorting(scores_BHNN / TEMPERATURE, real_BNP.any(2))
        shown = real_BNP[:, :, None, :, None].to(k.dtype)
        sorted_k, sorted_v = (
            (S_BHNN @ (x * shown).transpose(1, 2).reshape(B, H, N, P * E)).view(B, H, N, P, E).transpose(1, 2)
            for x in (k, v)
        )
        placed_BNP = real_BNP.any(1, keepdim=True).expand(-1, N, -1)
        seen = torch.cat([real_BNP, placed_BNP], dim=2)[:, :, None, None]
        all_k, all_v = torch.cat([k, sorted_k], dim=3), torch.cat([v, sorted_v], dim=3)
        return as_sequence(attend(q, all_k, all_v, scale, seen), T)


def sorting(scores_BHNN: Tensor, used_BN: Tensor) -> Tensor:
    """exp of the scores after `ROUNDS` normalisations of rows and then columns, among the blocks that are used."""
    unused = ~(used_BN[:, :, None] & used_BN[:, None, :])[:, None]
    log = scores_BHNN.masked_fill(unused, HIDDEN)
    for _ in range(ROUNDS):
        for dim in (-1, -2):
            log = (log - log.logsumexp(dim, keepdim=True)).masked_fill(unused, HIDDEN)
    return log.exp()
