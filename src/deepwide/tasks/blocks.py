"""Alternating blocks: after how many changes of the letter is a position? (Yang, Cadilhac & Chiang 2025)"""

from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from deepwide.shape import Kind
from deepwide.tasks.generated import Draw, Generated
from deepwide.tasks.sequences import Length
from deepwide.tasks.task import Batch

A, B, BEGIN = 0, 1, 2  # tokens; also the answers: 0 no, 1 yes


class Blocks(Generated):
    """Say at each position of a word a…ab…ba… with k blocks whether it is in the last one: is the prefix in L_k?

    L_1 = a⁺ and L_{k+1} is L_k followed by a block of the other letter. The k − 1 places where the letter changes are
    drawn without repetition. A token that begins the word stands before it and answers 0.
    """

    name: ClassVar[str] = "blocks"
    kind: ClassVar[Kind] = "decoder"

    blocks: Annotated[int, Field(ge=2, le=1000)] = 3
    length: Length = 100
    shortest: Length | None = None  # the shortest word; as long as the longest if left out

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        least = self.length if self.shortest is None else self.shortest
        if not self.blocks <= least <= self.length:
            raise ValueError(
                f"shortest ({least}) must be at least blocks ({self.blocks}) and at most length ({self.length})"
            )
        return self

    @property
    def vocab(self) -> int:
        return 3

    @property
    def context(self) -> int:
        return self.length + 1

    def generate(self, draw: Draw) -> Batch:
        N = self.length
        shortest = N if self.shortest is None else self.shortest
        length_B1 = shortest + draw.below(N - shortest + 1, 1)
        place_N = np.arange(N)[None, :]
        # The k − 1 smallest of random keys at places 1 … n − 1 are where the letter changes.
        key_BN = np.where((place_N >= 1) & (place_N < length_B1), draw.below(2**32, N), 2**32)
        change_BN = np.zeros((len(draw), N), dtype=np.int64)
        chosen = np.argsort(key_BN, axis=1, kind="stable")[:, : self.blocks - 1]
        np.put_along_axis(change_BN, chosen, 1, axis=1)
        block_BN = change_BN.cumsum(1)
        real_BN = place_N < length_B1
        begin_B1 = np.full((len(draw), 1), BEGIN)
        tokens = np.hstack([begin_B1, np.where(real_BN, block_BN % 2, BEGIN)])
        answers = np.hstack([np.zeros_like(begin_B1), (block_BN == self.blocks - 1) & real_BN])
        if shortest == N:
            return Batch.of(tokens, answers)
        there = np.hstack([np.ones_like(begin_B1, dtype=bool), real_BN])
        return Batch.of(tokens, answers, mask=there, padding=there)
