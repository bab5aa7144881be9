"""Sample points, and the value of every block on a tile of them.

Three ways to the same numbers: a chain of matrix–vector products with polynomials in τ (one head, the
fast one), the Gram form at C + 1 values of τ followed by an interpolation (any number of heads), and
eq. 3 itself, position by position (causal networks, and the slow independent check).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from deepwide.separation.case import Case
from deepwide.separation.counting import degree
from deepwide.separation.field import Matrix, reduce
from deepwide.separation.network import Network, direct, gram, stream, times, word

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
            drawn = stream(f"deepwide/points/{letter}/{case.seed}", shape, prime)
            return np.ascontiguousarray(drawn.transpose(1, 2, 0))

        return Points(side("A"), side("B"), prime)

    def digest(self) -> str:
        """SHA-256 of all coordinates, 0 … p − 1, as little-endian 64-bit integers."""
        digest = hashlib.sha256()
        for side in (self.a, self.b):
            digest.update(np.mod(side, self.prime).astype("<i8").tobytes())
        return digest.hexdigest()


def evaluator(case: Case, points: Points, prime: int, *, full_grid: bool, chain: bool) -> Evaluator:
    """The function that gives the wanted blocks on a tile (A points × B points)."""
    network = case.network(prime)
    graded = case.graded and not full_grid
    if graded and chain and case.heads == 1 and not case.causal:
        return _chain(network, points, case)
    values = _by_eq3(network, points, case) if full_grid or case.causal else _by_gram(network, points, case)
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
    return points.a[case.sides[: case.at].count("A")]


def _by_gram(network: Network, points: Points, case: Case) -> Callable[[slice, slice, int], Matrix]:
    p = network.prime
    gram_a, gram_b = _gram_matrices(points.a, p), _gram_matrices(points.b, p)
    x = _output_input(points, case)

    def values(a: slice, b: slice, tau: int) -> Matrix:
        s = reduce(gram_a[..., a, None] + tau * gram_b[..., None, b], p)
        return gram(network, s, np.broadcast_to(x[:, a, None], s.shape[1:]))

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
    """One head: y = ⟨left half of the word, right half⟩, each a chain of products S·v, S = S_A + τ S_B.

    Vectors are polynomials in τ, kept as lists of coefficients. The lowest depends on side A alone, the
    highest of the left half on side B alone; broadcasting keeps them that small until they meet the other.
    """
    p = network.prime
    gram_a, gram_b = _gram_matrices(points.a, p), _gram_matrices(points.b, p)
    x = _output_input(points, case)
    matrices = word(network)
    c = len(matrices) - 1
    middle = c - c // 2
    start = reduce(matrices[0] @ x, p)

    def apply(m: Matrix, v: Matrix, out: Matrix, scratch: Matrix) -> None:
        d = len(m)
        if d >= 8 and m.shape[3] == 1 and v.shape[1] == 1:
            out += (m[..., 0].transpose(0, 2, 1).reshape(-1, d) @ v[:, 0]).reshape(out.shape)
            return
        for i in range(d):
            for j in range(d):
                out[i] += np.multiply(m[i, j], v[j], out=scratch)

    def step(vector: list[Matrix], m_a: Matrix, m_b: Matrix) -> list[Matrix]:
        n = len(vector)
        new = []
        for k in range(n + 1):
            terms = [(m, vector[i]) for m, i in ((m_a, k), (m_b, k - 1)) if 0 <= i < n]
            shape = np.broadcast_shapes(*(m.shape[1:] for m, _ in terms), *(v.shape for _, v in terms))
            out, scratch = np.zeros(shape), np.empty(shape[1:])
            for m, v in terms:
                apply(m, v, out, scratch)
            new.append(reduce(out, p))
        return new

    def values(a: slice, b: slice, wanted: Sequence[int]) -> list[Matrix]:
        s_a, s_b = gram_a[..., a, None], gram_b[..., None, b]
        right = [start[:, a, None]]
        for m in matrices[1 : middle + 1]:  # v ← P S v
            constant = m[..., None, None]
            right = step(right, times(constant, s_a, p), times(constant, s_b, p))
        left = [network.readout[:, None, None]]
        for m in reversed(matrices[middle + 1 :]):  # u ← S Pᵀ u
            constant = m.T[..., None, None]
            left = step(left, times(s_a, constant, p), times(s_b, constant, p))
        out = []
        scratch = np.empty((s_a.shape[2], s_b.shape[3]))
        for k in wanted:
            total = np.zeros_like(scratch)
            for j in range(max(0, k - len(right) + 1), min(k, len(left) - 1) + 1):
                for u, v in zip(left[j], right[k - j], strict=True):
                    total += np.multiply(u, v, out=scratch)
            out.append(reduce(total, p))
        return out

    return values
