"""The analysed network over a prime field, evaluated three ways that must agree.

    y^i = Σ_j Σ_h ⟨W^Q_h x^i, W^K_h x^j⟩ W^O_h W^V_h x^j                                 (eq. 3)

`direct` is eq. 3, position by position. `gram` is the Gram form x ← M(S) x, S ← M(S) S M(S)ᵀ with
M(S) = Σ_h B_h S A_h, A_h = W^K_hᵀ W^Q_h, B_h = W^O_h W^V_h. `word` writes the one-head network as one
product of C matrices S with constant matrices between them.

Shape letters: L layers, H heads, d width, a = d/H, N positions; a batch of inputs fills the last axes.

A Case is what is measured: one network and the two sides of its positions. It is a description; nothing is computed.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ConfigDict, StrictBool, StrictInt, StrictStr

from deepwide.errors import DeepwideError, quoted
from deepwide.separation.blas import Matrix
from deepwide.separation.dimensions import DEEPEST_LISTED, check_shape, check_whole, degree
from deepwide.separation.field import balanced, reduce

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


NAMES = ("query", "key", "value", "output")


def draw_residues(name: str, shape: tuple[int, ...], prime: int) -> Matrix:
    """Residues drawn from SHAKE-256 of a name: the same on every machine and version, for ever.

    64-bit integers are drawn and then reduced, so every prime sees the same integers.

    >>> draw_residues("weights/0", (3,), 101)
    array([ 39., -14.,  -5.])
    """
    size = int(np.prod(shape))
    raw = np.frombuffer(hashlib.shake_256(name.encode()).digest(8 * size), dtype="<u8")
    return balanced(raw % np.uint64(prime), prime).reshape(shape)


@dataclass(frozen=True)
class Network:
    """Weights of L layers modulo a prime, and the vector the scalar output is read with."""

    query: Matrix  # L H a d
    key: Matrix  # L H a d
    value: Matrix  # L H a d
    output: Matrix  # L H d a
    readout: Matrix  # d
    prime: int
    residual: bool = False
    causal: bool = False

    @property
    def depth(self) -> int:
        return len(self.query)

    @property
    def heads(self) -> int:
        return int(self.query.shape[1])

    @property
    def width(self) -> int:
        return int(self.query.shape[3])

    def score(self, layer: int) -> Matrix:
        """A_h = W^K_hᵀ W^Q_h for each head: H d d."""
        return reduce(self.key[layer].transpose(0, 2, 1) @ self.query[layer], self.prime)

    def mix(self, layer: int) -> Matrix:
        """B_h = W^O_h W^V_h for each head: H d d."""
        return reduce(self.output[layer] @ self.value[layer], self.prime)


def random_network(
    depth: int, width: int, heads: int, prime: int, seed: int, residual: bool = False, causal: bool = False
) -> Network:
    """Every weight uniform modulo the prime."""
    check_shape(depth, width, heads)
    inner = (depth, heads, width // heads, width)
    query, key, value = (draw_residues(f"deepwide/weights/{name}/{seed}", inner, prime) for name in NAMES[:3])
    output = draw_residues(f"deepwide/weights/output/{seed}", inner, prime).transpose(0, 1, 3, 2)
    readout = draw_residues(f"deepwide/weights/readout/{seed}", (width,), prime)
    return Network(query, key, value, output, readout, prime, residual, causal)


def identity_network(
    depth: int, width: int, heads: int, prime: int, residual: bool = False, causal: bool = False
) -> Network:
    """The structured assignment of docs/theory.md: all four matrices the identity, so that y = S^C x."""
    check_shape(depth, width, heads)
    eye = np.eye(width).reshape(1, heads, width // heads, width).repeat(depth, axis=0)
    ones = np.ones(width)
    return Network(eye, eye, eye, eye.transpose(0, 1, 3, 2), ones, prime, residual, causal)


def times(a: Matrix, b: Matrix, prime: int) -> Matrix:
    """The matrix product over the two leading axes, for every member of the batch; reduced.

    By einsum, here and below: BLAS is slow on matrices this small, and its threads would fight with
    those that share out the tiles.
    """
    return reduce(np.einsum("ij...,jk...->ik...", a, b), prime)


def constant_times(c: Matrix, x: Matrix, prime: int) -> Matrix:
    """The product of one matrix with the leading axis of a batch; reduced."""
    return reduce(np.einsum("ij,j...->i...", c, x), prime)


def mixing(network: Network, layer: int, s: Matrix) -> Matrix:
    """Σ_h B_h S A_h, what a layer multiplies all positions by: linear in their Gram matrix s (d d …)."""
    p = network.prime
    m = np.zeros_like(s)
    for score, mix in zip(network.score(layer), network.mix(layer), strict=True):
        right = constant_times(score.T, s.swapaxes(0, 1), p).swapaxes(0, 1)  # S A_h
        m += constant_times(mix, right, p)
    return reduce(m, p)


def gram(network: Network, s: Matrix, x: Matrix, first: Matrix | None = None) -> Matrix:
    """The output from the Gram matrix s (d d …) of all positions and the output's own input x (d …).

    Not for a causal network, where every position sees a Gram matrix of its own. Who knows the first layer's `mixing`
    of s gives it.
    """
    assert not network.causal
    p, d, last = network.prime, network.width, network.depth - 1
    x, m = x[:, None], None
    for layer in range(last):
        if m is not None:
            s = times(times(m, s, p), m.swapaxes(0, 1), p)
        m = mixing(network, layer, s) if first is None or layer else first
        if network.residual:
            m = reduce(m + np.eye(d).reshape(d, d, *[1] * (s.ndim - 2)), p)
        x = times(m, x, p)
    y = x if network.residual else np.zeros_like(x)
    for score, mix in zip(network.score(last), network.mix(last), strict=True):
        v = constant_times(score, x, p)  # the last layer's own Gram matrix M S Mᵀ meets one vector per head
        v = times(s, v, p) if m is None else times(m, times(s, times(m.swapaxes(0, 1), v, p), p), p)
        y = y + constant_times(mix, v, p)
    return constant_times(network.readout[None], reduce(y[:, 0], p), p).reshape(x.shape[2:])


def direct(network: Network, x: Matrix, at: int, scale: Matrix | None = None) -> Matrix:
    """The output at position `at` by eq. 3 itself, for inputs x (N d …); no Gram matrix anywhere.

    With `scale` (N …) position j counts scale_j times in every sum over positions. That is what
    multiplying x^j by √scale_j does to the outputs of a network without residual connections, up to
    a factor √scale_i, and it is how the parts of different degree are told apart without a root.
    """
    p = network.prime
    for layer in range(network.depth):
        last = layer == network.depth - 1
        seen = [at] if last else range(at + 1 if network.causal else len(x))
        new = {i: x[i].copy() if network.residual else np.zeros_like(x[i]) for i in seen}
        for h in range(network.heads):
            weights = (network.query, network.key, network.value)
            query, key, value = ([constant_times(w[layer, h], position, p) for position in x] for w in weights)
            for i in seen:
                mixed = np.zeros_like(value[0])
                for j in range(i + 1 if network.causal else len(x)):
                    score = reduce((query[i] * key[j]).sum(axis=0), p)
                    if scale is not None:
                        score = reduce(score * scale[j], p)
                    mixed += reduce(score * value[j], p)
                new[i] += constant_times(network.output[layer, h], reduce(mixed, p), p)
        # Positions that no one will look at keep their old values; only `seen` is read from here on.
        x = np.stack([reduce(new[i], p) if i in new else x[i] for i in range(len(x))])
    return constant_times(network.readout[None], x[at], p).reshape(x.shape[2:])


def word(network: Network) -> list[Matrix]:
    """P_0 … P_C with y = P_C S P_{C−1} S … S P_0 x, for one head without residual connections."""
    assert network.heads == 1
    assert not network.residual
    assert not network.causal
    p = network.prime

    def join(left: list[Matrix], right: list[Matrix]) -> list[Matrix]:  # both read from the right end
        return [*right[:-1], reduce(left[0] @ right[-1], p), *left[1:]]

    s = [np.eye(network.width), np.eye(network.width)]
    y = [np.eye(network.width)]
    for layer in range(network.depth):
        score, mix = network.score(layer)[0], network.mix(layer)[0]
        m = join([mix], join(s, [score]))
        y = join(m, y)
        s = join(join(m, s), [matrix.T for matrix in reversed(m)])
    return y
