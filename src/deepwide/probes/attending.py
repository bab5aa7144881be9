"""What attention heads look at in text (Clark, Khandelwal, Levy, Manning 2019).

A pattern is the attention of every head on one text, L × H × T × T: rows look, columns are looked at, rows sum to 1.
Pieces of words are joined to words by summing over the pieces that are looked at and averaging over those that look.
Everything here is arithmetic on such arrays; `heads.py` takes them from a network.

Letters: L layers, H heads, T tokens, W words, N = L·H heads in one row.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from deepwide.errors import DeepwideError
from deepwide.quantities import Floats, Integers

ENTROPY_SMOOTHING, DISTANCE_SMOOTHING = 1e-4, 1e-3  # shares that the original gives to all tokens alike
NEITHER = -1  # the word of a token that belongs to none


def looked_at(pattern_LHTT: Floats, groups: Mapping[str, Sequence[int]]) -> dict[str, Floats]:
    """The mean attention of each head to the next token, the previous one, itself, and groups of tokens: L × H each.

    Next and previous are means over the tokens that have one; groups are sums over their tokens, mean over all rows.
    """
    shares = {
        "next": pattern_LHTT.diagonal(1, -2, -1).mean(-1) if pattern_LHTT.shape[-1] > 1 else None,
        "previous": pattern_LHTT.diagonal(-1, -2, -1).mean(-1) if pattern_LHTT.shape[-1] > 1 else None,
        "self": pattern_LHTT.diagonal(0, -2, -1).mean(-1),
        **{name: pattern_LHTT[..., list(tokens)].sum(-1).mean(-1) for name, tokens in groups.items()},
    }
    nothing = np.zeros(pattern_LHTT.shape[:2])
    return {name: nothing if share is None else np.asarray(share) for name, share in shares.items()}


def entropies(pattern_LHTT: Floats) -> Floats:
    """The mean entropy in nats of where each head looks, smoothed as in the original: L × H."""
    smooth = _smoothed(pattern_LHTT, ENTROPY_SMOOTHING)
    return np.asarray(-(smooth * np.log(smooth)).sum(-1).mean(-1))


def head_distances(pattern_LHTT: Floats) -> Floats:
    """The Jensen–Shannon divergence in nats between where each two heads look, mean over tokens: N × N."""
    T = pattern_LHTT.shape[-1]
    p_NTT = _smoothed(pattern_LHTT, DISTANCE_SMOOTHING).reshape(-1, T, T)
    inner_N = (p_NTT * np.log(p_NTT)).sum(-1).mean(-1)
    distances = np.zeros((len(p_NTT), len(p_NTT)))
    for head, p_TT in enumerate(p_NTT[:-1]):
        m_NTT = (p_TT + p_NTT[head + 1 :]) / 2
        mixed_N = (m_NTT * np.log(m_NTT)).sum(-1).mean(-1)
        distances[head, head + 1 :] = (inner_N[head] + inner_N[head + 1 :]) / 2 - mixed_N
    return np.maximum(distances + distances.T, 0)


def scaled_to_plane(distances_NN: Floats, steps: int = 300) -> Floats:
    """Points in the plane whose distances are near to the given ones (metric multidimensional scaling): N × 2.

    Classical scaling to begin with, then SMACOF's steps, none of which raises the stress Σ (d_ij − ‖x_i − x_j‖)².
    """
    count = len(distances_NN)
    centred = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-centred @ distances_NN**2 @ centred / 2)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    for _ in range(steps):
        apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
        ratio = np.divide(distances_NN, apart, out=np.zeros_like(apart), where=apart > 0)
        weights = -ratio
        np.fill_diagonal(weights, 0)
        np.fill_diagonal(weights, -weights.sum(1))
        points = weights @ points / count
    return np.asarray(points)


def word_attention(pattern_LHTT: Floats, word_of_token: Sequence[int]) -> Floats:
    """Attention between words, L × H × W × W: summed over the tokens looked at, averaged over those that look.

    `word_of_token` has each token's word, NEITHER for special tokens, which are dropped; rows then sum to 1 or less.
    """
    words = max(word_of_token, default=NEITHER) + 1
    belongs_TW = np.zeros((len(word_of_token), words))
    for token, word in enumerate(word_of_token):
        if word != NEITHER:
            belongs_TW[token, word] = 1
    sizes = belongs_TW.sum(0)
    if words == 0 or not sizes.all():
        raise DeepwideError("every word from the first to the last needs at least one token.")
    return np.asarray((belongs_TW / sizes).T @ pattern_LHTT @ belongs_TW)


def most_attended(word_LHWW: Floats) -> tuple[Integers, Integers]:
    """For each word the other word that each head looks at most, and the other word that looks at it most: L × H × W.

    These are the two directions in which a head can predict a word's syntactic head.
    """
    others = word_LHWW.copy()
    W = others.shape[-1]
    others[..., range(W), range(W)] = -1
    return others.argmax(-1), others.argmax(-2)


def offset_guess(words: int, offset: int) -> Integers:
    """The word at a fixed distance from each word, at the ends the last one there is: the baseline."""
    return np.clip(np.arange(words) + offset, 0, words - 1)


def antecedents_hit(word_LHWW: Floats, mention: int, antecedents: Sequence[int]) -> Floats:
    """Whether each head looks from a mention's word most at the word of one of its antecedents, 1 or 0: L × H."""
    return np.isin(most_attended(word_LHWW)[0][..., mention], list(antecedents)).astype(np.float64)


def looks_more(word_LHWW: Floats, source: int, first: Sequence[int], second: Sequence[int]) -> tuple[Floats, Floats]:
    """Whether each head attends more to the first words than to the second, from the source and back: L × H each.

    The largest attention of a group's words counts; 1 or 0, and ½ for a tie.
    """
    there = [word_LHWW[..., source, list(group)].max(-1) for group in (first, second)]
    back = [word_LHWW[..., list(group), source].max(-1) for group in (first, second)]
    there_LH, back_LH = (np.heaviside(one - other, 0.5) for one, other in (there, back))
    return np.asarray(there_LH), np.asarray(back_LH)


def _smoothed(pattern_LHTT: Floats, share: float) -> Floats:
    return np.asarray((1 - share) * np.asarray(pattern_LHTT, dtype=np.float64) + share / pattern_LHTT.shape[-1])
