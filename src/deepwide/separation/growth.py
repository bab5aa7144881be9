"""How fast the separation rank grows with depth at least (docs/theory.md, 5.3).

Let the first m layers be any network, write S_m and x_m for what they make of S and x, and give every later layer one
head of rank one: the output is G^c · (aᵀx_m) with G = aᵀ S_m a and c = (3^(L−m) − 1)/2. If G has a smooth zero at which
its Hessian has rank ρ ≥ 3, then for every L > m

    sep ≥ binom(ρ + c, ρ).

With one head ρ is known for every width. With more heads one point is enough, and modulo a prime: a smooth zero lifts
to the p-adic numbers (Hensel), where the rank of the Hessian can only be larger. `hessian` finds such a point.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from deepwide.separation.blas import Matrix
from deepwide.separation.dimensions import degree
from deepwide.separation.field import SECOND_PRIME, balanced, matrix_rank
from deepwide.separation.network import draw_residues, random_network

WIDEST = 8  # a Hessian of 36 × 36 jets of 8 × 8 matrices takes a fraction of a second
MOST_LAYERS = 3
_TRIES = 40


@dataclass(frozen=True)
class Growth:
    """binom(rank + power, rank) is a proved lower bound: the m first layers, the Hessian's rank ρ, the power c of G."""

    layers: int
    rank: int
    power: int
    heads: int  # 1: proved for every width; more: by a Hessian modulo a prime


def one_head_rank(width: int, layers: int) -> int:
    """ρ for one head and N_1 = … = N_m = I: with r = min(d, 3^m − 1), r·d − r(r − 1)/2.

    >>> one_head_rank(2, 1), one_head_rank(4, 1), one_head_rank(4, 2)
    (3, 7, 10)
    """
    r = min(width, int(3**layers) - 1)
    return r * width - r * (r - 1) // 2


def growths(depth: int, width: int, heads: int = 1) -> Iterator[Growth]:
    """Every bound of this kind for a shape; none at depth 1, and few for many heads.

    Inputs that are zero outside the first head's coordinates make a network of H heads one of one head and width d/H.

    >>> [(g.layers, g.rank, g.power) for g in growths(4, 4)]
    [(1, 7, 13), (2, 10, 4)]
    """
    if width % heads:
        return
    narrow = width // heads
    for layers in range(1, depth):
        # Once r = d, more layers in front have no larger Hessian and leave a smaller power.
        by_proof = narrow >= 2 and 3 ** (layers - 1) <= narrow
        by_point = heads > 1 and width <= WIDEST and layers <= MOST_LAYERS
        if by_proof:
            yield Growth(layers, one_head_rank(narrow, layers), degree(depth - layers), 1)
        if by_point and (rank := hessian(width, heads, layers)) >= 3:
            yield Growth(layers, rank, degree(depth - layers), heads)
        if not by_proof and layers >= MOST_LAYERS:
            return


@cache
def hessian(width: int, heads: int, layers: int, seed: int = 0, prime: int = SECOND_PRIME) -> int:
    """The rank modulo a prime of the Hessian of G at a smooth zero, for random weights; 0 if no zero was met.

    >>> hessian(2, 2, 1), hessian(3, 1, 1), hessian(4, 1, 1)
    (3, 5, 7)
    """
    assert prime % 4 == 3  # so that a square root is a power
    assert 4 * width * (prime // 2 + 2) ** 2 < 2**53  # the longest sum that is not reduced, in `times`
    network = random_network(layers, width, heads, prime, seed)
    pairs = [(i, j) for i in range(width) for j in range(i, width)]
    for attempt in range(_TRIES):
        half = draw_residues(f"deepwide/growth/point/{seed}/{attempt}", (width, width), prime)
        jet = _Jet.variables(balanced(np.triu(half) + np.triu(half, 1).T, prime), pairs, prime)
        front = np.eye(width)
        for layer in range(layers):
            weights = zip(network.mix(layer), network.score(layer), strict=True)
            m = _Jet.sum([jet.between(mix, score) for mix, score in weights])
            front = balanced(m.value @ front, prime)
            jet = m.times(jet).times(m.transposed())
        a = _isotropic(jet.value, draw_residues(f"deepwide/growth/a/{seed}/{attempt}", (width,), prime), prime)
        if a is None:
            continue
        gradient = balanced(balanced(jet.first @ a, prime) @ a, prime)
        if gradient.any() and balanced(a @ front, prime).any():
            return matrix_rank(balanced(balanced(jet.second @ a, prime) @ a, prime), prime)
    return 0


def _isotropic(form: Matrix, a: Matrix, prime: int) -> Matrix | None:
    """The vector with its first entry changed so that aᵀ·form·a = 0, if that equation has a root."""
    rest = [int(x) for x in a[1:]]
    matrix = [[int(x) for x in row] for row in form]
    square = matrix[0][0]
    middle = sum(matrix[0][j + 1] * x for j, x in enumerate(rest))
    last = sum(matrix[i + 1][j + 1] * x * y for i, x in enumerate(rest) for j, y in enumerate(rest))
    discriminant = (middle * middle - square * last) % prime
    root = pow(discriminant, (prime + 1) // 4, prime)
    if square % prime == 0 or root * root % prime != discriminant:
        return None
    first = (root - middle) * pow(square, -1, prime) % prime
    return balanced(np.array([first, *rest]), prime)


@dataclass(frozen=True)
class _Jet:
    """A matrix that depends on D variables: its value, first and second derivatives at a point, modulo a prime."""

    value: Matrix  # d d
    first: Matrix  # D d d
    second: Matrix  # D D d d
    prime: int

    @classmethod
    def variables(cls, point: Matrix, pairs: list[tuple[int, int]], prime: int) -> "_Jet":
        """The symmetric matrix itself, with its entries as variables."""
        d, n = len(point), len(pairs)
        first = np.zeros((n, d, d))
        for place, (i, j) in enumerate(pairs):
            first[place, i, j] = first[place, j, i] = 1
        return cls(point, first, np.zeros((n, n, d, d)), prime)

    @classmethod
    def sum(cls, jets: list["_Jet"]) -> "_Jet":
        parts = zip(*((jet.value, jet.first, jet.second) for jet in jets), strict=True)
        value, first, second = (balanced(sum(part, np.zeros(1)), jets[0].prime) for part in parts)
        return cls(value, first, second, jets[0].prime)

    def between(self, left: Matrix, right: Matrix) -> "_Jet":
        """left · self · right with constant matrices."""
        p = self.prime
        value, first, second = (
            balanced(balanced(left @ x, p) @ right, p) for x in (self.value, self.first, self.second)
        )
        return _Jet(value, first, second, p)

    def transposed(self) -> "_Jet":
        value, first, second = (np.swapaxes(x, -1, -2) for x in (self.value, self.first, self.second))
        return _Jet(value, first, second, self.prime)

    def times(self, other: "_Jet") -> "_Jet":
        """The product, by Leibniz's rule."""
        p = self.prime
        value = balanced(self.value @ other.value, p)
        first = balanced(self.first @ other.value + self.value @ other.first, p)
        cross = self.first[:, None] @ other.first[None]
        second = self.second @ other.value + self.value @ other.second + cross + np.swapaxes(cross, 0, 1)
        return _Jet(value, first, balanced(second, p), p)
