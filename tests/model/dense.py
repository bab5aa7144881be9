"""The attention kinds of encoders, each as one dense matrix per head in loops over positions: slow, and written from
the definitions alone."""

import math
from typing import Any

import torch
from torch import Tensor

ALL = ("bigbird", "linear_elu", "linformer", "local", "longformer", "performer", "sinkhorn", "sparse", "synthesizer")
SMALL_SIZES: dict[str, dict[str, Any]] = {
    "bigbird": {"attention_size": 2, "attention_links": 1},
    "linformer": {"attention_size": 3},
    "local": {"attention_size": 3},
    "longformer": {"attention_size": 4},
    "performer": {"attention_size": 7},
    "sinkhorn": {"attention_size": 3},
    "sparse": {"attention_size": 4, "attention_links": 2},
}


def softmax_over(scores: dict[int, Tensor], values: dict[int, Tensor]) -> Tensor:
    """The mean of values weighted by exp of scores."""
    weights = {j: torch.exp(score - max(scores.values())) for j, score in scores.items()}
    total: Any = sum(weights.values())
    mixed: Any = sum(weights[j] * values[j] for j in weights)
    return mixed / total


def may_look(kind: str, i: int, j: int, *, size: int, links: int, context: int, random: set[int]) -> bool:
    """Whether position i looks at position j; `random` are the random blocks of i's block."""
    mine, other, last = i // size, j // size, (context - 1) // size
    if kind == "local":
        return mine == other
    if kind == "longformer":
        return abs(i - j) <= size // 2
    if kind == "sparse":
        return mine == other or j % size >= size - links
    assert kind == "bigbird"
    ends = {0, last}
    return mine in ends or other in ends or abs(mine - other) <= 1 or other in random


def dense(
    kind: str, mixer: Any, x: Tensor, q: Tensor, k: Tensor, v: Tensor, real: list[int], *, scale: float, context: int,
    size: int = 1, links: int = 1,
) -> dict[int, Tensor]:  # fmt: skip
    """What one head of one sequence gives at its real positions.

    x T D, q, k and v T E; `mixer` has this head's learned or random numbers.
    """
    if kind == "synthesizer":
        return {i: softmax_over({j: mixer[i, j] for j in real}, {j: v[j] for j in real}) for i in real}
    if kind == "linformer":
        rows = range(len(mixer))
        keys, values = ({r: sum(mixer[r, j] * t[j] for j in real) for r in rows} for t in (k, v))
        return {i: softmax_over({r: scale * (q[i] @ keys[r]) for r in rows}, values) for i in real}
    if kind in ("linear_elu", "performer"):
        weight = {(i, j): _similarity(kind, q[i], k[j], mixer, scale) for i in real for j in real}
        total: Any = {i: sum(weight[i, j] for j in real) for i in real}
        return {i: sum(weight[i, j] * v[j] for j in real) / total[i] for i in real}
    if kind == "sinkhorn":
        return _sinkhorn(mixer, x, q, k, v, real, scale, size)
    return {
        i: softmax_over(
            {
                j: scale * (q[i] @ k[j])
                for j in real
                if may_look(kind, i, j, size=size, links=links, context=context, random=mixer(i // size))
            },
            {j: v[j] for j in real},
        )
        for i in real
    }


def _similarity(kind: str, q: Tensor, k: Tensor, omega: Any, scale: float) -> Tensor:
    if kind == "linear_elu":
        phi = lambda t: torch.where(t > 0, t + 1, torch.exp(t))  # noqa: E731
        return phi(q) @ phi(k)
    a, b = q * math.sqrt(scale), k * math.sqrt(scale)
    return torch.exp(omega @ a - a @ a / 2) @ torch.exp(omega @ b - b @ b / 2) / len(omega)


def _sinkhorn(
    weight: Tensor, x: Tensor, q: Tensor, k: Tensor, v: Tensor, real: list[int], scale: float, size: int
) -> dict[int, Tensor]:
    blocks = sorted({i // size for i in real})
    sums = {block: torch.stack([x[i] for i in real if i // size == block]).sum(0) for block in blocks}
    S = torch.stack([torch.stack([sums[block] @ weight[:, J] for J in blocks]) for block in blocks]).div(0.75).exp()
    for _ in range(8):
        S = S / S.sum(1, keepdim=True)
        S = S / S.sum(0, keepdim=True)
    answers = {}
    for i in real:
        row = S[blocks.index(i // size)]
        scores, values = {}, {}
        for j in real:
            if j // size == i // size:
                scores[j], values[j] = scale * (q[i] @ k[j]), v[j]
        for place in {j % size for j in real}:
            here = [(row[blocks.index(j // size)], j) for j in real if j % size == place]
            key: Any = sum(share * k[j] for share, j in here)
            scores[-1 - place] = scale * (q[i] @ key)
            values[-1 - place] = sum(share * v[j] for share, j in here)  # type: ignore[assignment]
        answers[i] = softmax_over(scores, values)
    return answers
