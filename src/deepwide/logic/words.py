"""Many words at once, bit by bit: bit w of a row is the truth of something at one position of word w.

So one step of numpy treats 64 words, and an operator of temporal logic is one pass over the positions. Shapes: T
positions, A letters, N uint64 blocks of 64 words each.
"""
# ruff: noqa: N815 - names end in their shapes

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepwide.errors import DeepwideError, quoted
from deepwide.logic.ltl import LETTERS, PAST, TEMPORAL, Formula, Place, in_strict_operators, subformulas

Bits = NDArray[np.uint64]
CHUNK = 4096  # words that are packed at a time; a multiple of 64


@dataclass(frozen=True, eq=False)
class Words:
    """Words over an alphabet. `valid_TN` has a bit where a word has a position."""

    alphabet: str
    count: int
    letters_TAN: Bits
    valid_TN: Bits

    @classmethod
    def of(cls, words: Sequence[str], alphabet: str) -> "Words":
        """Words given as text; each has at least one letter."""
        if isinstance(words, str):
            raise DeepwideError(f"words must be a list of words, not the text {quoted(words)}.")
        for word in words:
            if not word:
                raise DeepwideError("the empty word has no position to read: give at least one letter.")
            if strange := sorted(set(word) - set(alphabet)):
                raise DeepwideError(
                    f"{quoted(word)} is not a word over the letters {quoted(alphabet)}: it has {quoted(strange[0])}."
                )
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        tokens = np.zeros((len(words), int(lengths.max(initial=1))), dtype=np.uint8)
        code = {letter: index for index, letter in enumerate(alphabet)}
        for row, word in enumerate(words):
            tokens[row, : len(word)] = [code[letter] for letter in word]
        return cls.of_tokens(tokens, alphabet, lengths)

    @classmethod
    def of_tokens(cls, tokens_WT: NDArray[Any], alphabet: str, lengths_W: NDArray[np.int64] | None = None) -> "Words":
        """Words given as numbers of letters, one row each; the first `lengths_W` of each row count."""
        W, T = tokens_WT.shape
        rows = -(-W // 64) * 64
        valid_TN = np.full((T, rows // 64), ~np.uint64(0))
        if rows > W:
            valid_TN[:, -1] = np.uint64((1 << (W % 64)) - 1)
        if lengths_W is not None:
            valid_TN &= _packed(np.arange(T)[None, :] < lengths_W[:, None], rows)
        letters_TAN = np.stack([_packed(tokens_WT == code, rows) & valid_TN for code in range(len(alphabet))], axis=1)
        return cls(alphabet, W, letters_TAN, valid_TN)

    @property
    def ends(self) -> Bits:
        """A bit at the last position of each word."""
        after = np.vstack([self.valid_TN[1:], np.zeros_like(self.valid_TN[:1])])
        return self.valid_TN & ~after

    def letter(self, name: str) -> Bits:
        """Where a letter stands; nowhere if it is not of the alphabet."""
        if name not in self.alphabet:
            return np.zeros_like(self.valid_TN)
        return self.letters_TAN[:, self.alphabet.index(name)]

    def at(self, values_TN: Bits, place: Place) -> NDArray[np.bool_]:
        """For each word the value at its first or last position."""
        row_N = values_TN[0] if place == "first" else np.bitwise_or.reduce(values_TN & self.ends, axis=0)
        return np.unpackbits(row_N.view(np.uint8), bitorder="little")[: self.count].astype(bool)


def _packed(truth_WT: NDArray[np.bool_], rows: int) -> Bits:
    bytes_TW = np.zeros((truth_WT.shape[1], rows // 8), dtype=np.uint8)
    for start in range(0, len(truth_WT), CHUNK):  # turned over piece by piece, each within the processor's cache
        piece_TW = np.packbits(np.ascontiguousarray(truth_WT[start : start + CHUNK].T), axis=1, bitorder="little")
        bytes_TW[:, start // 8 : start // 8 + piece_TW.shape[1]] = piece_TW
    return bytes_TW.view(np.uint64)


def all_words(alphabet: str, longest: int, shortest: int = 1) -> Iterator[str]:
    """Every word of these lengths, the short ones first."""
    for length in range(shortest, longest + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def random_words(alphabet: str, count: int, length: int, seed: int) -> Words:
    """Uniformly random words of one length."""
    tokens = np.random.default_rng([seed, length]).integers(len(alphabet), size=(count, length), dtype=np.uint8)
    return Words.of_tokens(tokens, alphabet)


def check_alphabet(alphabet: str, letters: Iterable[str] = ()) -> str:
    """The letters of an alphabet in order; it must have those that a formula or a program uses."""
    if not alphabet or set(alphabet) - set(LETTERS):
        raise DeepwideError(f"an alphabet is made of a to z and 0 to 9, not {quoted(alphabet)}.")
    if missing := sorted(set(letters) - set(alphabet)):
        raise DeepwideError(f"the alphabet {quoted(alphabet)} lacks {', '.join(missing)}: add them.")
    return "".join(sorted(set(alphabet)))


def positions_where(f: Formula, words: Words) -> Bits:
    """Where the formula is true, in all words at once: T N."""
    strict = in_strict_operators(f)
    values: dict[Formula, Bits] = {}
    order = subformulas(strict)
    last_use = {arg: index for index, part in enumerate(order) for arg in part.args}
    for index, part in enumerate(order):
        values[part] = _value(part, [values[arg] for arg in part.args], words)
        for arg in part.args:
            if last_use[arg] == index:
                values.pop(arg, None)  # a million words of length 100 take 12 MB per subformula
    return values[strict]


def holds(f: Formula, words: Words, at: Place | None = None) -> NDArray[np.bool_]:
    """For each word whether the formula is true of it (at its last position, or as `Formula.reads_at` says)."""
    return words.at(positions_where(f, words), at or f.reads_at)


def _value(part: Formula, args: list[Bits], words: Words) -> Bits:
    match part.op:
        case "true":
            return words.valid_TN
        case "false":
            return np.zeros_like(words.valid_TN)
        case "!":
            return words.valid_TN & ~args[0]
        case "&":
            return args[0] & args[1]
        case "|":
            return args[0] | args[1]
    if part.op in TEMPORAL:
        return _scanned(args[0], args[1], words, backwards=part.op in PAST)
    return words.letter(part.op)


def _scanned(f_TN: Bits, g_TN: Bits, words: Words, *, backwards: bool) -> Bits:
    """f S< g (backwards) or f U> g: v(i) = g(j) | f(j) & v(j), where j is the neighbour of i on that side."""
    result_TN = np.zeros_like(g_TN)
    T = len(g_TN)
    steps = range(1, T) if backwards else range(T - 2, -1, -1)
    for i in steps:
        j = i - 1 if backwards else i + 1
        np.bitwise_and(f_TN[j], result_TN[j], out=result_TN[i])
        result_TN[i] |= g_TN[j]
    return result_TN & words.valid_TN if backwards else result_TN
