"""Sample points, and the value of every block on a tile of them.

Three ways to the same numbers: a chain of matrix–vector products with polynomials in τ (one head, the
fast one), the Gram form at C + 1 values of τ followed by an interpolation (any number of heads), and
eq. 3 itself, position by position (causal networks, and the slow independent check).
"""

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from deepwide.separation.blas import Matrix
from deepwide.separation.dimensions import degree
from deepwide.separation.field import reduce
from deepwide.separation.network import (
    Case,
    Network,
    direct,
    draw_residues,
    gram,
    identity_network,
    mixing,
    random_network,
    times,
    word,
)

Method = Literal["chain", "gram", "eq3"]
Evaluator = Callable[[slice, slice, Sequence[int]], list[Matrix]]


@dataclass(frozen=True)
class Points:
    """The same number of random inputs for each side: (positions, width, points)."""

    a: Matrix
    b: Matrix
    prime: int

    @staticmethod
    def draw(case: Case, number: int, prime: int) -> "Points":
        """Drawn point by point, so that fewer points are a beginning of more."""

        def side(letter: str) -> Matrix:
            shape = (number, case.sides.count(letter), case.width)
            drawn = draw_residues(f"deepwide/points/{letter}/{case.seed}", shape, prime)
            return np.ascontiguousarray(drawn.transpose(1, 2, 0))

        return Points(side("A"), side("B"), prime)

    def digest(self) -> str:
        """SHA-256 of all coordinates, 0 … p − 1, as little-endian 64-bit integers."""
        digest = hashlib.sha256()
        for side in (self.a, self.b):
            digest.update(np.mod(side, self.prime).astype("<i8").tobytes())
        return digest.hexdigest()


def case_network(case: Case, prime: int) -> Network:
    """The weights of a case, modulo a prime."""
    if case.weights == "random":
        return random_network(case.depth, case.width, case.heads, prime, case.seed, case.residual, case.causal)
    if case.weights == "identity":
        return identity_network(case.depth, case.width, case.heads, prime, case.residual, case.causal)
    from deepwide.separation.weights import load_network

    shape = (case.depth, case.width)
    return load_network(Path(case.weights), case.heads, prime, case.residual, case.causal, shape)


def evaluator(case: Case, method: Method, graded: bool, points: Points) -> Evaluator:
    """The function that gives the wanted blocks on a tile (A points × B points), or ungraded values as one block."""
    prime = points.prime
    network = case_network(case, prime)
    if method == "chain":
        return _chain(network, points, case)
    values = _by_eq3(network, points, case) if method == "eq3" else _by_gram(network, points, case)
    if not graded:
        return lambda a, b, _: [values(a, b, 1)]
    weights = _interpolation(degree(case.depth), prime)

    def graded_values(a: slice, b: slice, wanted: Sequence[int]) -> list[Matrix]:
        samples = np.stack([values(a, b, tau) for tau in range(len(weights))])
        flat = weights[list(wanted)] @ samples.reshape(len(weights), -1)
        return list(reduce(flat, prime).reshape(len(wanted), *samples.shape[1:]))

    return graded_values


def _interpolation(c: int, prime: int) -> Matrix:
    """Row k takes the values of a polynomial at 0 … C to its coefficient of degree k."""
    from flint import nmod_mat

    powers = nmod_mat(c + 1, c + 1, [pow(tau, k, prime) for tau in range(c + 1) for k in range(c + 1)], prime)
    rows = [[int(entry) for entry in row] for row in powers.inv().table()]
    return reduce(np.array(rows, dtype=np.float64), prime)


def _gram_matrices(side: Matrix, prime: int) -> Matrix:
    """Σ_j x_j x_jᵀ for every point: (d, d, points)."""
    return times(side.swapaxes(0, 1), side, prime)


def _output_input(points: Points, case: Case) -> Matrix:
    """x^i, the position of side A that the output is read at: (d, points)."""
    x: Matrix = points.a[case.sides[: case.at].count("A")]
    return x


def _by_gram(network: Network, points: Points, case: Case) -> Callable[[slice, slice, int], Matrix]:
    p = network.prime
    grams = _gram_matrices(points.a, p), _gram_matrices(points.b, p)
    first = [mixing(network, 0, each) for each in grams]  # linear in S = S_A + τ S_B, so of each side alone
    x = _output_input(points, case)

    def values(a: slice, b: slice, tau: int) -> Matrix:
        s, m = (reduce(of_a[..., a, None] + tau * of_b[..., None, b], p) for of_a, of_b in (grams, first))
        return gram(network, s, np.broadcast_to(x[:, a, None], s.shape[1:]), m)

    return values


def _by_eq3(network: Network, points: Points, case: Case) -> Callable[[slice, slice, int], Matrix]:
    def values(a: slice, b: slice, tau: int) -> Matrix:
        rows, columns = points.a[..., a, None], points.b[..., None, b]
        grid = (case.width, rows.shape[2], columns.shape[3])
        turn = {"A": iter(rows), "B": iter(columns)}
        x = np.stack([np.broadcast_to(next(turn[side]), grid) for side in case.sides])
        scale = np.array([tau if side == "B" else 1 for side in case.sides], dtype=np.float64)
        return direct(network, x, case.at, None if tau == 1 else scale)

    return values


def _chain(network: Network, points: Points, case: Case) -> Evaluator:
    """One head: y = ⟨left half of the word, right half⟩, each a chain of products S·v, S = S_A + τ S_B."""
    p = network.prime
    gram_a, gram_b = _gram_matrices(points.a, p), _gram_matrices(points.b, p)
    start = _output_input(points, case)
    matrices = word(network)
    c = len(matrices) - 1
    middle = c - c // 2
    # Large arrays go back to the system when they are freed, and coming by new ones costs more than the
    # arithmetic done in them: each thread keeps its own.
    workspace = threading.local()

    def chains(shape: tuple[int, int]) -> tuple[_Chain, _Chain]:
        if getattr(workspace, "shape", None) != shape:
            workspace.shape = shape
            workspace.right = _Chain(middle, network.width, shape, p)
            workspace.left = _Chain(c - middle, network.width, shape, p)
        return workspace.right, workspace.left

    def values(a: slice, b: slice, wanted: Sequence[int]) -> list[Matrix]:
        s_a, s_b, x = gram_a[..., a], gram_b[..., b], start[:, a]
        right, left = chains((s_a.shape[2], s_b.shape[2]))
        right.start(reduce(matrices[0] @ x, p)[..., None])
        for m in matrices[1 : middle + 1]:  # v ← P S v
            right.step(_times_each(m, s_a, p), _times_each(m, s_b, p))
        left.start(network.readout[:, None, None])
        for m in reversed(matrices[middle + 1 :]):  # u ← S Pᵀ u, and (S Pᵀ)ᵀ = P S
            left.step(*(_times_each(m, s, p).swapaxes(0, 1) for s in (s_a, s_b)))
        return [reduce(_coefficient(left, right, k), p) for k in wanted]

    return values


class _Chain:
    """A vector of polynomials in τ on a tile, multiplied again and again by S_A + τ S_B.

    The lowest coefficient depends on side A alone and the highest may depend on side B alone, so the
    two are kept apart, small; the others are (degree, d, A points, B points).
    """

    def __init__(self, steps: int, width: int, tile: tuple[int, int], prime: int) -> None:
        self.prime = prime
        size = (max(0, steps - 1), width, *tile)
        self._now, self._next, self._scratch = np.empty(size), np.empty(size), np.empty(size)
        self._high, self._spare = np.empty((2, width, *tile)), np.empty((width, *tile))

    def start(self, vector: Matrix) -> None:
        self.degree = 0
        self.low = self.high = vector

    @property
    def middle(self) -> Matrix:
        return self._now[: max(0, self.degree - 1)]

    def coefficient(self, k: int) -> Matrix:
        return self.low if k == 0 else self.high if k == self.degree else self._now[k - 1]

    def step(self, m_a: Matrix, m_b: Matrix) -> None:
        n, old = self.degree, self.middle
        if n:
            new, scratch = self._next[:n], self._scratch[: n - 1]
            if n > 1:
                per_point = np.ascontiguousarray(m_a.transpose(2, 0, 1))
                np.matmul(per_point, old.swapaxes(1, 2), out=new[:-1].swapaxes(1, 2))
                # Not by BLAS: side B is the innermost axis, and turning the tile costs what it would save.
                np.einsum("ijb,kjab->kiab", m_b, old, out=scratch)
            _by_row(m_a, self.high, new[-1])
            new[1:] += scratch
            new[0] += _by_column(m_b, self.low, self._spare)
            for k in range(n):
                reduce(new[k], self.prime, self._spare)
            self._now, self._next = self._next, self._now
        self.low = reduce(_by_row(m_a, self.low), self.prime)
        if self.high.shape[1] > 1:  # it depends on side A as well, and is large
            self.high = reduce(_by_column(m_b, self.high, self._high[n % 2]), self.prime, self._spare)
        else:
            self.high = reduce(_by_column(m_b, self.high), self.prime)
        self.degree += 1


# By BLAS where it can be, one point or one row at a time: products so small (for d ≤ 16) that it runs each
# on one thread. The tiles are shared out over the cores, and threads of its own would wait for each other.


def _times_each(m: Matrix, s: Matrix, prime: int) -> Matrix:
    """One matrix times every matrix of a batch (j k points); reduced."""
    out = np.empty_like(s)
    np.matmul(m, s.swapaxes(0, 1), out=out.swapaxes(0, 1))
    return reduce(out, prime)


def _by_row(m: Matrix, v: Matrix, out: Matrix | None = None) -> Matrix:
    """Matrices of side A (i j A) times vectors (j A B), where A or B may be one; not reduced."""
    if out is None or v.shape[2] == 1:
        return np.einsum("ijab,jab->iab", m[..., None], v, out=out)
    if v.shape[1] == 1:
        return np.matmul(m.swapaxes(1, 2), v[:, 0], out=out)
    np.matmul(np.ascontiguousarray(m.transpose(2, 0, 1)), v.swapaxes(0, 1), out=out.swapaxes(0, 1))
    return out


def _by_column(m: Matrix, v: Matrix, out: Matrix | None = None) -> Matrix:
    """Matrices of side B (i j B) times vectors (j A B), where A or B may be one; not reduced."""
    if out is None or v.shape[2] > 1 or v.shape[1] == 1:
        return np.einsum("ijab,jab->iab", m[:, :, None], v, out=out)
    return np.matmul(v[..., 0].T, m, out=out)


def _coefficient(left: _Chain, right: _Chain, k: int) -> Matrix:
    """The coefficient of degree k of the inner product of two chains, not reduced."""
    total = np.zeros((1, 1))
    low, high = max(0, k - right.degree), min(k, left.degree)
    for j in range(low, high + 1):
        total = total + np.einsum("iab,iab->ab", left.coefficient(j), right.coefficient(k - j))
    return total
