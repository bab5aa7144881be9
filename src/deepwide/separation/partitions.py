"""Proposition 1 as an experiment: the same rank for every balanced partition, by eq. 3 itself."""

from itertools import combinations
from typing import Any

from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.separation.field import PRIME, another_prime
from deepwide.separation.measurement import measure
from deepwide.separation.network import Case

_MOST_POSITIONS = 12


class PartitionRank(Answer):
    """One balanced partition and the rank that two primes and two programs agree on."""

    partition: str
    rank: int


class Partitions(Answer):
    """The rank of every balanced partition, the output read at the first position."""

    depth: int
    width: int
    heads: int
    same: bool
    primes: tuple[int, int]
    partitions: tuple[PartitionRank, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per partition."""
        return [partition.model_dump() for partition in self.partitions]


def compare_partitions(
    depth: int,
    width: int,
    heads: int = 1,
    *,
    positions: int | None = None,
    weights: str = "random",
    seed: int = 0,
    residual: bool = False,
    prime: int = PRIME,
    memory: int | None = None,
) -> Partitions:
    """Measure every balanced partition of `positions` per side (default: the width) on the full grid.

    Not for causal networks, where Proposition 1 does not hold (docs/theory.md, 4.7).

    >>> compare_partitions(1, 2).same
    True
    """
    side = width if positions is None else positions
    if not 1 <= side <= _MOST_POSITIONS // 2:
        raise DeepwideError(
            f"{2 * side} positions have too many balanced partitions, or none: at most {_MOST_POSITIONS // 2} per side."
        )
    second = another_prime(prime)
    ranks = []
    for others in combinations(range(1, 2 * side), side - 1):
        sides = "".join("A" if i in (0, *others) else "B" for i in range(2 * side))
        case = Case(depth, width, heads, sides, 0, residual, weights=weights, seed=seed)
        rank = measure(case, prime, full_grid=True, memory=memory).rank
        again = measure(case, second, full_grid=True, flint=True, memory=memory).rank
        if again != rank:
            raise DeepwideError(f"Partition {sides} measures {rank} modulo {prime} and {again} modulo {second}.")
        ranks.append(PartitionRank(partition=sides, rank=rank))
    return Partitions(
        depth=depth,
        width=width,
        heads=heads,
        same=len({entry.rank for entry in ranks}) == 1,
        primes=(prime, second),
        partitions=tuple(ranks),
    )
