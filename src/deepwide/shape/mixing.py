"""What attention of an encoder that is not a softmax over all pairs has and costs: parameters, products, memory.

The numbers are those of the networks in deepwide.model, which compute in whole blocks. Legend: d width, H heads,
E head_dim, C context, T positions, b size, c links, N = ⌈T/b⌉ blocks, of ⌈C/b⌉ in the context.
"""

from typing import TYPE_CHECKING

from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    from deepwide.shape.shape import Parts

BLOCKWISE = ("bigbird", "local", "longformer", "sinkhorn", "sparse")
ROUNDS = 8  # of Sinkhorn's normalisation


def mixing_params(shape: "Parts") -> int:
    """Parameters of one layer beyond the four projections.

    Linformer projects C positions to b; a synthesizer has a matrix of scores per head; Sinkhorn's sorting maps a
    block's sum to a score per block of the context, for every head.
    """
    kind, b, _ = _sizes(shape)
    H, d, C = shape.heads, shape.width, shape.context
    return {"linformer": b * C, "synthesizer": H * C * C, "sinkhorn": H * d * _blocks(C, b)}.get(kind, 0)


def mixing_flops(shape: "Parts", T: int, attention: str) -> int:
    """Products of one layer over one sequence, projections aside, under what a convention counts of attention."""
    kind, b, _ = _sizes(shape)
    if attention == "none":
        return 0
    if attention == "causal" and kind in BLOCKWISE:
        raise DeepwideError(
            f"{kind} attention is computed in whole blocks, and the convention causal counts single pairs: use torch."
        )
    H, E, d, N = shape.heads, shape.head_dim, shape.width, _blocks(T, b)
    if kind == "linear_elu":
        return 2 * H * (2 * T * E * E + T * E)
    if kind == "performer":
        return 2 * H * (2 * T * E * b + 2 * T * b * E + T * b)
    if kind == "linformer":
        return 2 * H * (2 * b * T * E + 2 * T * b * E)
    if kind == "synthesizer":
        return 2 * H * T * T * E
    sorting = 2 * N * d * H * N + 2 * H * 2 * N * N * b * E if kind == "sinkhorn" else 0
    return 4 * H * E * _pairs(shape, T) + sorting


def mixing_elements(shape: "Parts", T: int) -> int:
    """Numbers per token that one layer's attention keeps for its backward pass, rounded up.

    Left out are the log-sum-exp of each head and masks of padding. What sequences of a batch share where nothing is
    padding (a synthesizer's pattern, masks of windows) is counted for each. The last block is counted as if it were
    full, and what filling it up copies is left out.
    """
    kind, b, c = _sizes(shape)
    H, E, d = shape.heads, shape.head_dim, shape.width
    q, N = H * E, _blocks(T, b)
    half = min(b // 2, T)
    whole = {"local": _blocks(T, min(b, T)) * min(b, T), "longformer": _blocks(T, max(half, 1)) * half}.get(kind, N * b)
    if kind == "local":
        total = whole * 4 * q
    elif kind == "longformer":  # keys and values of three chunks each, and which of their pairs are near
        total = whole * (10 * q + 3 * half)
    elif kind == "linear_elu":
        total = T * (7 * q + H) + q * (E + 1)
    elif kind == "performer":
        total = T * (7 * q + 4 * H * b + H) + H * b * (E + 1)
    elif kind == "linformer":
        total = T * 6 * q + 2 * b * q
    elif kind == "synthesizer":
        total = T * (2 * q + H * T)
    elif kind == "sparse":  # keys and values of a block, and of the positions that all see, for every block
        total = whole * 4 * q + N * (b + N * c) * (2 * q + 1)
    elif kind == "sinkhorn":  # every round of the normalisation keeps the scores and their sums
        total = whole * (10 * q + 3) + d * H * N + N * d + (2 * ROUNDS + 1) * H * N * N + 2 * ROUNDS * H * N
        total += -(-N * N // 4)
    else:
        ends, M = _ends(shape, N), seen_blocks(shape)
        total = whole * (4 * q + 1) + (N - ends) * (M * (2 * b * q + H * b + 2 * H) + b * q) + 2 * ends * b * q
    return -(-total // T)


def _pairs(shape: "Parts", T: int) -> int:
    """Query–key pairs of one head that are computed."""
    kind, b, c = _sizes(shape)
    N = _blocks(T, b)
    if kind == "local":
        b = min(b, T)
        return _blocks(T, b) * b * b
    if kind == "longformer":
        half = min(b // 2, T)
        return _blocks(T, half) * half * 3 * half
    if kind == "sparse":
        return N * b * (b + N * c)
    if kind == "sinkhorn":
        return N * b * 2 * b
    ends = _ends(shape, N)
    return (N - ends) * b * seen_blocks(shape) * b + ends * b * N * b


def seen_blocks(shape: "Parts") -> int:
    """Blocks that a block of bigbird between the ends looks at: itself, two beside it, two ends, and random ones."""
    _, b, c = _sizes(shape)
    return min(_blocks(shape.context, b), 5 + c)


def _ends(shape: "Parts", N: int) -> int:
    """Blocks of bigbird that look at everything: the first, and the last of the context where it is there."""
    return 2 if N == _blocks(shape.context, _sizes(shape)[1]) > 1 else 1


def _sizes(shape: "Parts") -> tuple[str, int, int]:
    assert shape.mixing is not None
    return shape.mixing.kind, shape.mixing.size or 1, shape.mixing.links or 0


def _blocks(T: int, b: int) -> int:
    return -(-T // b)
