"""Repeats: random tokens in which one block comes twice. What follows a token of the second copy followed it before.

Where the copy begins and how far it is from the first are random, so that no fixed offset predicts anything: a network
has to look for the token's earlier occurrence and read what came after it, which is what an induction head does
(Elhage et al. 2021, Olsson et al. 2022). All other tokens are distinct, so that the answer is never ambiguous.
"""

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from deepwide.shape import Kind
from deepwide.tasks.generated import Draw, Generated
from deepwide.tasks.sequences import Length, Symbols
from deepwide.tasks.task import Batch

MANY = 2**62  # of draws that are reduced to a smaller range per example, or compared


class Repeats(Generated):
    """Predict the next token where a repeated block makes it predictable.

    `length` tokens are read. The copy's first token cannot be predicted and does not count; its other tokens do: the
    task's `accuracy` is the copy accuracy.
    """

    name: ClassVar[str] = "repeats"
    kind: ClassVar[Kind] = "decoder"

    length: Length = 32
    symbols: Symbols = 64
    shortest: Annotated[int, Field(ge=2, le=100_000)] = 6  # block
    longest: Annotated[int, Field(ge=2, le=100_000)] = 12

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest}) must not exceed longest ({self.longest})")
        if 2 * self.longest > self.length + 1:
            raise ValueError(f"two blocks of {self.longest} do not fit into {self.length + 1} tokens")
        if self.symbols < self.length + 1:
            raise ValueError(f"symbols ({self.symbols}) must exceed length ({self.length}): tokens are distinct")
        return self

    @property
    def vocab(self) -> int:
        return self.symbols

    @property
    def context(self) -> int:
        return self.length

    def generate(self, draw: Draw) -> Batch:
        N = self.length + 1
        keys_BS = draw.below(MANY, self.symbols)
        distinct_BN = np.argsort(keys_BS, axis=1)[:, :N]
        block_B1 = self.shortest + draw.below(self.longest - self.shortest + 1, 1)
        places_B2 = np.sort(draw.below(MANY, 2) % (N - 2 * block_B1 + 1), axis=1)
        first_B1, second_B1 = places_B2[:, :1], places_B2[:, 1:] + block_B1
        place_N = np.arange(N)[None, :]
        copied_BN = (place_N >= second_B1) & (place_N < second_B1 + block_B1)
        tokens_BN = np.take_along_axis(
            distinct_BN, np.where(copied_BN, place_N - (second_B1 - first_B1), place_N), axis=1
        )
        predictable_BN = copied_BN & (place_N > second_B1)
        return Batch.of(tokens_BN[:, :-1], tokens_BN[:, 1:], mask=predictable_BN[:, 1:])
