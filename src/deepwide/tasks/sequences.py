"""Tasks that answer with a sequence: copying, sorting, reversing.

Tokens 0 … symbols − 1 are the symbols; the token `symbols` separates the two halves of a decoder's sequence, starts the
answer of an encoder-decoder, and fills what a shorter sequence leaves empty.
"""

import math
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from deepwide.shape import Kind
from deepwide.tasks.generated import Draw, Generated, Integers
from deepwide.tasks.task import Batch

Length = Annotated[int, Field(ge=1, le=100_000)]
Symbols = Annotated[int, Field(ge=2, le=1_000_000)]


def _after_question(question_BN: Integers, answer_BN: Integers, separator: int) -> Batch:
    """`question separator answer` for a decoder: it reads all but the last token, and only the answer counts."""
    rows, length = question_BN.shape
    whole = np.hstack([question_BN, np.full((rows, 1), separator), answer_BN])
    mask = np.zeros((rows, whole.shape[1] - 1), dtype=bool)
    mask[:, length:] = True
    return Batch.of(whole[:, :-1], whole[:, 1:], mask=mask)


class Copying(Generated):
    """Repeat a random sequence after a separator."""

    name: ClassVar[str] = "copying"
    kind: ClassVar[Kind] = "decoder"

    length: Length = 16
    symbols: Symbols = 16

    @property
    def vocab(self) -> int:
        return self.symbols + 1

    @property
    def context(self) -> int:
        return 2 * self.length

    def generate(self, draw: Draw) -> Batch:
        sequence_BN = draw.below(self.symbols, self.length)
        return _after_question(sequence_BN, sequence_BN, self.symbols)


class Sorting(Generated):
    """Sort a random sequence (the task of Dong, Cordonnier & Loukas 2021: 8 tokens of 10 labels).

    An encoder answers in place: position i gives the i-th smallest. A decoder writes the answer after a separator.
    """

    name: ClassVar[str] = "sorting"

    length: Length = 8
    symbols: Symbols = 10
    network: Literal["encoder", "decoder"] = "encoder"

    @property
    def kind(self) -> Kind:
        return self.network

    @property
    def vocab(self) -> int:
        return self.symbols + (self.network == "decoder")

    @property
    def context(self) -> int:
        return self.length if self.network == "encoder" else 2 * self.length

    @property
    def position_loss(self) -> float:
        """The loss of the best answer that sees the position only: the entropy of the i-th smallest, mean over i."""
        n, k = self.length, self.symbols
        total = 0.0
        for i in range(n):
            at_most = [0.0]  # the i-th smallest (from 0) is below v if more than i of n tokens are
            at_most += [
                math.fsum(math.comb(n, j) * (v / k) ** j * (1 - v / k) ** (n - j) for j in range(i + 1, n + 1))
                for v in range(1, k + 1)
            ]
            total -= math.fsum(share * math.log(share) for share in np.diff(at_most) if share > 0)
        return total / n

    def generate(self, draw: Draw) -> Batch:
        sequence_BN = draw.below(self.symbols, self.length)
        ordered_BN = np.sort(sequence_BN, axis=1)
        if self.network == "encoder":
            return Batch.of(sequence_BN, ordered_BN)
        return _after_question(sequence_BN, ordered_BN, self.symbols)


class Reversing(Generated):
    """Write a random sequence backwards: the encoder reads it, the decoder answers. Lengths may vary."""

    name: ClassVar[str] = "reversing"
    kind: ClassVar[Kind] = "encoder-decoder"

    length: Length = 16
    shortest: Length | None = None  # the shortest sequence; as long as the longest if left out
    symbols: Symbols = 16

    @model_validator(mode="after")
    def _shortest_fits(self) -> Self:
        if self.shortest is not None and self.shortest > self.length:
            raise ValueError(f"shortest ({self.shortest}) must not exceed length ({self.length})")
        return self

    @property
    def vocab(self) -> int:
        return self.symbols + 1

    @property
    def context(self) -> int:
        return self.length

    @property
    def position_loss(self) -> float:
        """The loss of the best answer that sees the position only, of sequences of one length."""
        return math.log(self.symbols)

    def generate(self, draw: Draw) -> Batch:
        N = self.length
        shortest = N if self.shortest is None else self.shortest
        sequence_BN = draw.below(self.symbols, N)
        length_B1 = shortest + draw.below(N - shortest + 1, 1)
        position_N = np.arange(N)[None, :]
        real_BN = position_N < length_B1
        source_BN = np.where(real_BN, sequence_BN, self.symbols)
        mirrored_BN = np.where(real_BN, length_B1 - 1 - position_N, 0)
        answer_BN = np.where(real_BN, np.take_along_axis(sequence_BN, mirrored_BN, axis=1), self.symbols)
        tokens_BN = np.hstack([np.full((len(draw), 1), self.symbols), answer_BN[:, :-1]])
        if shortest == N:
            return Batch.of(tokens_BN, answer_BN, source=source_BN)
        return Batch.of(tokens_BN, answer_BN, mask=real_BN, source=source_BN, padding=real_BN, source_padding=real_BN)
