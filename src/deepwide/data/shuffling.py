"""Randomness that is a function of its arguments alone: permutations and draws without any state.

A run must see the same examples when it resumes, whatever the batch; so nothing here remembers what came before.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

ROUNDS = 4
Numbers = NDArray[np.uint64]


def key_of(*words: object) -> int:
    """A key of 64 bits for a stream of numbers with a name, such as ("order", seed, epoch)."""
    text = "/".join(["deepwide", *map(str, words)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def permuted(index: Numbers, size: int, key: int) -> Numbers:
    """A permutation of 0 … size − 1 without a table: a Feistel network, walked until the result is below size.

    >>> sorted(permuted(np.arange(5, dtype=np.uint64), 5, key=7).tolist())
    [0, 1, 2, 3, 4]
    """
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    mask = np.uint64((1 << int(half)) - 1)
    result = index.copy()
    outside = np.ones(len(index), dtype=bool)
    while outside.any():
        value = result[outside]
        left, right = value >> half, value & mask
        for turn in range(ROUNDS):
            left, right = right, left ^ (mix(right, key, turn) & mask)
        result[outside] = (left << half) | right
        outside = result >= size
    return result


def mix(value: Numbers, key: int, turn: int) -> Numbers:
    """The finaliser of splitmix64 (Steele et al. 2014), modulo 2^64."""
    salt = (key + 0x9E3779B97F4A7C15 * (turn + 1)) % 2**64
    z = value + np.uint64(salt)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draws(key: int, index: Numbers, columns: int) -> Numbers:
    """Random numbers of 64 bits, rows × columns: row i depends on the key and index[i], not on the other rows.

    >>> rows = draws(7, np.arange(4, dtype=np.uint64), 3)
    >>> bool((rows[2:] == draws(7, np.arange(2, 4, dtype=np.uint64), 3)).all())
    True
    """
    base = mix(index, key, 0)[:, None] + np.arange(columns, dtype=np.uint64)[None, :] * np.uint64(0x9E3779B97F4A7C15)
    return mix(base, key, 1)
