"""What is measured: one network, the two sides of its positions, and how large the answer can be."""

from dataclasses import dataclass
from functools import cached_property
from math import comb
from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.separation.counting import (
    check_shape,
    count,
    degree,
    relations,
    side_with_output,
    side_without_output,
)
from deepwide.separation.network import Network, identity_network, load_network, random_network


@dataclass(frozen=True)
class Case:
    """A network and a partition. `sides` names the side of each position, the output's own is A."""

    depth: int
    width: int
    heads: int = 1
    sides: str = ""
    at: int = -1
    residual: bool = False
    causal: bool = False
    weights: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        check_shape(self.depth, self.width, self.heads)
        sides = self.sides.upper() or "B" * self.width + "A" * self.width
        if set(sides) - set("AB"):
            raise DeepwideError(f"The partition {self.sides!r} must name a side for each position, such as AABB.")
        at = self.at + len(sides) if self.at < 0 else self.at
        if not 0 <= at < len(sides):
            raise DeepwideError(f"Position {self.at} is not there: the positions are 0 to {len(sides) - 1}.")
        if self.depth > 9:
            raise DeepwideError(
                f"Depth {self.depth} cannot be measured: it has {degree(self.depth)} blocks; try at most 5."
            )
        if sides[at] == "B":
            sides = sides.translate(str.maketrans("AB", "BA"))
        object.__setattr__(self, "sides", sides)
        object.__setattr__(self, "at", at)

    @staticmethod
    def with_positions(a: int, b: int) -> str:
        """The sides for so many positions with the output and so many without, the output's last."""
        if a < 1 or b < 1:
            raise DeepwideError(f"Each side needs at least one position; they were {a} and {b}.")
        return "B" * b + "A" * a

    def name(self) -> str:
        """A file name that tells the case."""
        words = [f"L{self.depth}", f"d{self.width}", f"H{self.heads}"]
        if self.sides != Case(self.depth, self.width, self.heads).sides or self.at != len(self.sides) - 1:
            words.append(f"{self.sides}{self.at}")
        words += ["residual"] * self.residual + ["causal"] * self.causal
        if self.weights != "random":
            words.append(Path(self.weights).stem)
        return "-".join([*words, f"seed{self.seed}"])

    def network(self, prime: int) -> Network:
        """The weights, modulo a prime."""
        if self.weights == "random":
            return random_network(self.depth, self.width, self.heads, prime, self.seed, self.residual, self.causal)
        if self.weights == "identity":
            return identity_network(self.depth, self.width, self.heads, prime, self.residual, self.causal)
        network = load_network(Path(self.weights), self.heads, prime, self.residual, self.causal)
        if (network.depth, network.width) != (self.depth, self.width):
            raise DeepwideError(
                f"{self.weights} holds depth {network.depth} and width {network.width}, "
                f"not depth {self.depth} and width {self.width}."
            )
        return network

    @property
    def graded(self) -> bool:
        """Whether parts of different degree in side B can be told apart: not with a residual connection."""
        return not self.residual

    @cached_property
    def dimensions(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A_n and B_k for n, k = 0 … C: how many functions of each degree there are on each side."""
        c = degree(self.depth)
        if self.causal:
            seen = self.sides[: self.at + 1]
            return (
                _even_in_each(self.width, seen.count("A") - 1, c, odd=True),
                _even_in_each(self.width, seen.count("B"), c, odd=False),
            )
        a, b = self.sides.count("A"), self.sides.count("B")
        without = [side_without_output(self.width, b, k) if b else int(k == 0) for k in range(c + 1)]
        return tuple(side_with_output(self.width, a, n) for n in range(c + 1)), tuple(without)

    @cached_property
    def block_dimensions(self) -> tuple[int, ...]:
        """The dimension of each block: what it could be by counting functions; meaningful when graded."""
        a, b = self.sides.count("A"), self.sides.count("B")
        if not self.causal and b:
            return count(self.depth, self.width, self.heads, (a, b)).blocks
        by_a, by_b = self.dimensions
        return tuple(min(x, y) for x, y in zip(by_b, reversed(by_a), strict=True))

    @cached_property
    def block_bounds(self) -> tuple[int, ...]:
        """The bound of each block: its dimension, and with one head no more than the relations leave."""
        if self.causal or self.residual or self.heads > 1 or "B" not in self.sides:
            return self.block_dimensions
        left = (n - relations(self.depth, self.width, k) for k, n in enumerate(self.dimensions[1]))
        return tuple(map(min, self.block_dimensions, left))

    @property
    def relations(self) -> int:
        """By how much the relations of isotropic vectors lower the count, all blocks together."""
        return sum(self.block_dimensions) - sum(self.block_bounds)

    @cached_property
    def bound(self) -> int:
        """The bound of the whole, which is what a measured rank is held against.

        Without grading the parts of degree (n, k) with n + k ≤ C fill a staircase, and a matrix that is zero
        outside it has rank at most that of any cover by columns k < t and the rows n ≤ C − t they leave over; of
        the last column's functions the relations of its block are not needed. With heads the covers of all
        blocks together are one of the staircase (docs/theory.md, section 7).
        """
        if self.graded:
            return sum(self.block_bounds)
        a, b = self.dimensions
        c = degree(self.depth)
        if not self.causal and self.heads > 1 and min(self.sides.count("A"), self.sides.count("B")) >= self.width:
            return sum(self.block_dimensions)
        one = self.heads == 1 and not self.causal
        spared = [0, *(relations(self.depth, self.width, k) if one else 0 for k in range(c + 1))]
        return min(sum(b[:t]) - spared[t] + sum(a[: c + 1 - t]) for t in range(c + 2))


def _even_in_each(width: int, others: int, c: int, odd: bool) -> tuple[int, ...]:
    """The polynomials of total degree 2n (2n + 1 if odd), even in each position, odd in the output's.

    A causal network is no function of one Gram matrix, but changing the sign of a position still
    changes nothing, or only the sign of the output; this counts what that leaves.
    """
    series = [comb(2 * n + width, width - 1) if odd else int(n == 0) for n in range(c + 1)]
    one = [comb(2 * n + width - 1, width - 1) for n in range(c + 1)]
    for _ in range(others):
        series = [sum(series[i] * one[n - i] for i in range(n + 1)) for n in range(c + 1)]
    return tuple(series)
