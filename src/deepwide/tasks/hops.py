"""Hops: follow k induction steps backwards through a sequence (Sanford, Hsu, Telgarsky 2024).

With X the letters, find⁰(i) = i and find^{j+1}(i) = 1 + the last index before find^j(i) that holds the same letter as
X[find^j(i)]; the answer at i is X[find^k(i)]. One step is the same function wherever it is taken, so find^k is that
function composed with itself: squared ⌊log₂ k⌋ times (pointer jumping), for a whole batch at once.

Letters: B examples, N letters of A kinds; an index that is undefined is −1 outside, and N, which leads to itself,
inside.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from deepwide.shape import Kind
from deepwide.tasks.generated import Draw, Generated, Integers
from deepwide.tasks.task import Batch

if TYPE_CHECKING:
    from torch import Tensor


def hop_positions(letters_BN: Integers, hops_B: Integers) -> Integers:
    """find^k(i) for every position i of every example, k its own number of hops; −1 where it is undefined.

    >>> hop_positions(np.array([[0, 1, 2, 0, 1, 0]]), np.array([1])).tolist()
    [[-1, -1, -1, 1, 2, 4]]
    """
    N = letters_BN.shape[1]
    jump = _one_hop(letters_BN)
    reached = np.broadcast_to(np.arange(N + 1), jump.shape)
    left_B1 = hops_B[:, None]
    while (left_B1 > 0).any():
        reached = np.where(left_B1 % 2 == 1, np.take_along_axis(jump, reached, axis=1), reached)
        jump = np.take_along_axis(jump, jump, axis=1)
        left_B1 = left_B1 // 2
    return np.where(reached == N, -1, reached)[:, :N]


def _one_hop(letters_BN: Integers) -> Integers:
    """find of every position, with N for undefined, and N itself at N."""
    B, N = letters_BN.shape
    places_N = np.arange(N)
    jump = np.full((B, N + 1), N)
    for letter in range(int(letters_BN.max()) + 1):
        here_BN = letters_BN == letter
        last_BN = np.maximum.accumulate(np.where(here_BN, places_N, -1), axis=1)
        before_BN = np.hstack([np.full((B, 1), -1), last_BN[:, :-1]])
        jump[:, :N][here_BN & (before_BN >= 0)] = before_BN[here_BN & (before_BN >= 0)] + 1
    return jump


class Hops(Generated):
    """The letter k hops back from each position; k is the first token. Undefined answers do not count.

    Tokens 0 … letters − 1 are the letters, the token letters + k asks for k hops, 0 … most equally often. No letter
    follows itself. A sequence that has no answer at its k is asked for the most hops that it has one for.
    """

    name: ClassVar[str] = "hops"
    kind: ClassVar[Kind] = "decoder"

    length: Annotated[int, Field(ge=2, le=100_000)] = 40
    letters: Annotated[int, Field(ge=2, le=10_000)] = 4
    most: Annotated[int, Field(ge=0, le=10_000)] = 8

    @property
    def vocab(self) -> int:
        return self.letters + self.most + 1

    @property
    def context(self) -> int:
        return self.length + 1

    def generate(self, draw: Draw) -> Batch:
        steps_BN = 1 + draw.below(self.letters - 1, self.length)
        steps_BN[:, 0] = draw.below(self.letters, 1)[:, 0]
        letters_BN = np.cumsum(steps_BN, axis=1) % self.letters
        hops_B = draw.below(self.most + 1, 1)[:, 0]
        position_BN = hop_positions(letters_BN, hops_B)
        while (empty_B := (position_BN < 0).all(1)).any():
            hops_B = np.where(empty_B, hops_B - 1, hops_B)
            position_BN[empty_B] = hop_positions(letters_BN[empty_B], hops_B[empty_B])
        answer_BN = np.take_along_axis(letters_BN, np.maximum(position_BN, 0), axis=1)
        first_B1 = np.zeros((len(draw), 1), dtype=np.int64)
        return Batch.of(
            np.hstack([self.letters + hops_B[:, None], letters_BN]),
            np.hstack([first_B1, answer_BN]),
            mask=np.hstack([first_B1 > 0, position_BN >= 0]),
        )

    def hops_asked(self, tokens_BT: "Tensor") -> "Tensor":
        """k of each example, read from its first token."""
        return tokens_BT[:, 0] - self.letters

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:
        """The usual sums, and right answers and answers by k."""
        output = logits()
        sums = super().measure(batch, loss, lambda: output)
        assert batch.mask_BT is not None
        right_B = ((output.argmax(-1) == batch.targets) & batch.mask_BT).sum(1)
        answers_B = batch.mask_BT.sum(1)
        asked_B = self.hops_asked(batch.tokens_BT)
        for k in range(self.most + 1):
            sums[f"right_{k}"] = int(right_B[asked_B == k].sum())
            sums[f"answers_{k}"] = int(answers_B[asked_B == k].sum())
        return sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The usual ones, and `accuracy_k` for every k that was asked for."""
        asked = [k for k in range(self.most + 1) if sums[f"answers_{k}"]]
        by_k = {f"accuracy_{k}": sums[f"right_{k}"] / sums[f"answers_{k}"] for k in asked}
        return super().metrics(sums) | by_k
