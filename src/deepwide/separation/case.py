"""What is measured: one network and the two sides of its positions. A description; nothing is computed here."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, StrictBool, StrictInt, StrictStr

from deepwide.errors import DeepwideError, quoted
from deepwide.separation.dimensions import DEEPEST_LISTED, check_shape, check_whole, degree

WIDEST = 1 << 14
MOST_POSITIONS = 4 * WIDEST
DRAWN = ("random", "identity")  # weights that come from no file


@dataclass(frozen=True)
class Case:
    """A network and a partition. `sides` names the side of each position, the output's own is A.

    >>> Case(2, 3).sides, Case(2, 3, sides="AAB", at=2).sides, Case(2, 3).at
    ('BBBAAA', 'BBA', 5)
    """

    # A certificate holds a case: unknown keys and values of another type are refused there.
    __pydantic_config__ = ConfigDict(extra="forbid")

    depth: StrictInt
    width: StrictInt
    heads: StrictInt = 1
    sides: StrictStr = ""
    at: StrictInt = -1
    residual: StrictBool = False
    causal: StrictBool = False
    weights: StrictStr = "random"
    seed: StrictInt = 0

    def __post_init__(self) -> None:
        check_whole(depth=self.depth, width=self.width, heads=self.heads, at=self.at, seed=self.seed)
        # The limits come first: a case may come from a stranger's file.
        if self.depth > DEEPEST_LISTED:
            blocks = f"it has {degree(self.depth)} blocks" if self.depth < 20 else "it has too many blocks"
            raise DeepwideError(f"Depth {quoted(self.depth)} cannot be measured: {blocks}; try at most 5.")
        if self.width > WIDEST:
            raise DeepwideError(f"Width {quoted(self.width)} cannot be measured: at most {WIDEST}.")
        if abs(self.seed) > 10**18:
            raise DeepwideError(f"The seed must be between -10^18 and 10^18, not {quoted(self.seed)}.")
        if not self.weights or len(self.weights) > 4096 or "\0" in self.weights:
            raise DeepwideError(f"Weights {quoted(self.weights)} must be random, identity or the path of a file.")
        check_shape(self.depth, self.width, self.heads)
        if not isinstance(self.sides, str):
            raise DeepwideError(f"The partition must be text such as AABB, not {quoted(self.sides)}.")
        if len(self.sides) > MOST_POSITIONS:
            raise DeepwideError(
                f"The partition has {len(self.sides)} positions; at most {MOST_POSITIONS} are possible."
            )
        sides = self.sides.upper() or "B" * self.width + "A" * self.width
        if set(sides) - set("AB"):
            raise DeepwideError(
                f"The partition {quoted(self.sides)} must name a side, A or B, for each position, such as AABB."
            )
        at = self.at + len(sides) if self.at < 0 else self.at
        if not 0 <= at < len(sides):
            raise DeepwideError(f"There is no position {quoted(self.at)}: the positions are 0 to {len(sides) - 1}.")
        if sides[at] == "B":
            sides = sides.translate(str.maketrans("AB", "BA"))
        object.__setattr__(self, "sides", sides)
        object.__setattr__(self, "at", at)

    @staticmethod
    def with_positions(a: int, b: int) -> str:
        """The sides for so many positions with the output and so many without, the output's last."""
        check_whole(**{"number of positions on side A": a, "number of positions on side B": b})
        if a < 1 or b < 1:
            raise DeepwideError(f"Each side needs at least one position, not {quoted(a)} and {quoted(b)}.")
        if a + b > MOST_POSITIONS:
            raise DeepwideError(f"At most {MOST_POSITIONS} positions are possible, not {quoted(a + b)}.")
        return "B" * b + "A" * a

    @property
    def positions(self) -> tuple[int, int]:
        """How many positions are on the output's side, and on the other."""
        return self.sides.count("A"), self.sides.count("B")

    @property
    def graded(self) -> bool:
        """Whether parts of different degree in side B can be told apart: not with a residual connection."""
        return not self.residual

    @property
    def from_file(self) -> bool:
        """Whether the weights are somebody's own, neither drawn from the seed nor the identity."""
        return self.weights not in DRAWN

    @property
    def standard(self) -> bool:
        """Whether the published theorems apply: random weights, equal sides of enough positions, plain layers."""
        a, b = self.positions
        return self.weights == "random" and a == b >= self.width and not (self.residual or self.causal)

    def name(self) -> str:
        """A file name that identifies the case."""
        words = [f"L{self.depth}", f"d{self.width}", f"H{self.heads}"]
        if self.sides != Case(self.depth, self.width, self.heads).sides or self.at != len(self.sides) - 1:
            words.append(f"{self.sides}{self.at}")
        words += ["residual"] * self.residual + ["causal"] * self.causal
        if self.weights != "random":
            words.append(Path(self.weights).stem)
        return "-".join([*words, f"seed{self.seed}"])
