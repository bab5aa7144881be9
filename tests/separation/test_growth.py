"""Theorem B: its Hessian as the proof computes it, its networks measured, and points modulo a prime."""

from itertools import combinations_with_replacement
from math import comb, log
from pathlib import Path

import numpy as np
import pytest

from deepwide.separation import PRIME, Case, first_contradiction, matrix_rank, measure
from deepwide.separation.dimensions import multiset
from deepwide.separation.field import balanced
from deepwide.separation.growth import _isotropic, _Jet, growths, hessian, one_head_rank
from deepwide.separation.theorems import best_structured_bound, bounds, log3_dimension_count, structured_bounds


def roots_of_unity(n: int, prime: int = PRIME) -> list[int]:
    """All n-th roots of one modulo a prime with n | p − 1."""
    assert (prime - 1) % n == 0
    generator = next(g for g in range(2, 99) if all(pow(g, (prime - 1) // q, prime) != 1 for q in (2, 3)))
    return [pow(generator, (prime - 1) // n * i, prime) for i in range(n)]


def isotropic_squares(number: int, prime: int = PRIME) -> list[int]:
    """a_1, …, a_r with Σ a_p² = 0 modulo the prime."""
    draw = np.random.default_rng(1)
    while True:
        *first, last = map(int, draw.integers(1, prime, number))
        a = [*first, last]
        rest = -sum(x * x for x in first) % prime
        root = next((x for x in range(1, 200) if x * x % prime == rest), None)
        if root is None and pow(rest, (prime - 1) // 2, prime) == 1:
            root = square_root(rest, prime)
        if root is not None:
            a[-1] = root
            return a


def square_root(value: int, prime: int) -> int:
    """By Cipolla's algorithm: this prime is 1 modulo 4."""
    t = next(t for t in range(1, 999) if pow(t * t - value, (prime - 1) // 2, prime) == prime - 1)
    w = (t * t - value) % prime

    def times(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return (x[0] * y[0] + x[1] * y[1] * w) % prime, (x[0] * y[1] + x[1] * y[0]) % prime

    result, power, n = (1, 0), (t, 1), (prime + 1) // 2
    while n:
        if n & 1:
            result = times(result, power)
        power, n = times(power, power), n >> 1
    return result[0]


@pytest.mark.parametrize(("width", "layers"), [(2, 1), (3, 1), (5, 1), (3, 2), (4, 2)])
def test_the_hessian_of_the_proof(width: int, layers: int) -> None:
    """G = aᵀSⁿa at S = diag(roots of unity): zero, smooth, the quadratic form as written, its rank as claimed."""
    n, p = 3**layers, PRIME
    r = min(width, n - 1)
    roots = roots_of_unity(n)
    s = roots[:r] + [roots[r]] * (width - r)
    a = isotropic_squares(r) + [0] * (width - r)
    pairs = [(i, j) for i in range(width) for j in range(i, width)]
    start = jet = _Jet.variables(balanced(np.diag(s), p), pairs, p)
    for _ in range(n - 1):
        jet = jet.times(start)
    a_float = balanced(a, p)
    assert not balanced(a_float @ balanced(jet.value @ a_float, p), p)
    gradient = balanced(balanced(jet.first @ a_float, p) @ a_float, p)
    for (i, j), slope in zip(pairs, gradient, strict=True):
        assert (int(slope) - (n * a[i] ** 2 * pow(s[i], -1, p) if i == j else 0)) % p == 0
    second = balanced(balanced(jet.second @ a_float, p) @ a_float, p)
    for (place, (i, j)), (other, (k, m)) in combinations_with_replacement(enumerate(pairs), 2):
        if max(i, j, k, m) < r:
            expected = formula(n, a, s, (i, j), (k, m))
            assert (int(second[place, other]) - expected) % p == 0
    assert matrix_rank(second, p) == one_head_rank(width, layers)


def formula(n: int, a: list[int], s: list[int], one: tuple[int, int], two: tuple[int, int]) -> int:
    """The second derivative of n·[(n−1)/2 Σ A ξ² + Σ_{p<q} (e_pq X_pq² + 2 a_p a_q X_pq (ξ_p − ξ_q)/(s_p − s_q))]."""
    p = PRIME

    def over(x: int) -> int:
        return pow(x, -1, p)

    if one == two:
        i, j = one
        if i == j:
            return n * (n - 1) * a[i] ** 2 * over(s[i]) ** 2
        return 2 * n * (a[i] ** 2 * over(s[i]) - a[j] ** 2 * over(s[j])) * over(s[i] - s[j])
    (i, j), (k, m) = sorted((one, two), key=lambda pair: pair[0] == pair[1])
    if i == j or k != m or k not in (i, j):
        return 0
    sign = 1 if k == i else -1
    return sign * 2 * n * a[i] * a[j] * over(s[k]) * over(s[i] - s[j])


def test_the_networks_of_the_theorem_are_full_up_to_c_and_no_further(tmp_path: Path) -> None:
    """L = 3, d = 2: N_1 = I, N_2 = N_3 = aaᵀ, w = a; c = 4."""
    a = np.array([square_root(PRIME - 1, PRIME), 1], dtype=np.int64)
    assert (a @ a) % PRIME == 0
    eye = np.eye(2, dtype=np.int64)
    arrays: dict[str, np.ndarray] = {"readout": a}
    for layer in range(3):
        arrays[f"{layer}.query"] = eye if layer == 0 else np.outer(a, a) % PRIME
        arrays |= {f"{layer}.{name}": eye for name in ("key", "value", "output")}
    np.savez(tmp_path / "growth.npz", **arrays)  # type: ignore[arg-type]
    blocks = measure(Case(3, 2, weights=str(tmp_path / "growth.npz")), PRIME).blocks
    assert blocks[:5] == tuple(multiset(3, k) for k in range(5))
    assert blocks[5] == 20 < multiset(3, 5)


@pytest.mark.parametrize(("width", "layers"), [(2, 1), (3, 1), (4, 1), (3, 2), (4, 2)])
def test_random_weights_of_one_head_have_the_same_hessian(width: int, layers: int) -> None:
    assert hessian(width, 1, layers) == one_head_rank(width, layers)


@pytest.mark.parametrize(("width", "heads", "layers"), [(2, 2, 1), (3, 3, 1), (4, 2, 2), (4, 4, 2)])
def test_heads_reach_the_full_hessian(width: int, heads: int, layers: int) -> None:
    assert hessian(width, heads, layers) == width * (width + 1) // 2


@pytest.mark.parametrize(
    ("depth", "width", "heads"),
    [(2, 2, 1), (3, 2, 1), (4, 2, 1), (3, 3, 1), (3, 4, 1), (3, 2, 2), (4, 2, 2), (3, 3, 3)],
)
def test_bounds_are_below_what_was_measured(depth: int, width: int, heads: int) -> None:
    from deepwide.separation import upper_bounds  # met by the measured rank in all of these

    for growth in growths(depth, width, heads):
        assert comb(growth.rank + growth.power, growth.rank) <= upper_bounds(Case(depth, width, heads)).total


def test_logarithms_are_those_of_the_integers() -> None:
    from deepwide.separation import structured_bound

    for depth, width in ((2, 2), (3, 5), (5, 3)):
        by_log = sorted(float(bound.value) for bound in structured_bounds(depth, width))
        exact = [comb(g.rank + g.power, g.rank) for g in growths(depth, width)] + [structured_bound(depth, width)]
        assert by_log == pytest.approx(sorted(log(x, 3) for x in exact))


def test_the_bound_grows_like_the_count() -> None:
    """log_3 of both is D·L + O(1): the gap to the count does not grow with depth."""
    gaps = []
    for depth in (20, 40, 80):
        best = best_structured_bound(depth, 3)
        assert best is not None
        gaps.append(float(log3_dimension_count(depth, 3) - best.value))
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-3)
    assert gaps[1] == pytest.approx(gaps[2], abs=1e-3)


def test_where_the_proved_bound_passes_the_printed_one() -> None:
    table = {4: 43, 5: 17, 6: 12, 7: 11, 8: 10, 9: 9, 64: 9, 128: 10, 1000: 12, 12288: 14}
    assert {width: first_contradiction(width) for width in table} == table
    assert first_contradiction(3) is None
    codes = {note.code for note in bounds(10, 8).notes}
    assert "above-the-printed-bound" in codes
    assert "open-question" not in codes
    assert "open-question" in {note.code for note in bounds(9, 8).notes}


def test_a_vector_is_made_isotropic_or_another_one_is_drawn() -> None:
    form = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert _isotropic(form, np.array([1.0, 1.0]), 7) is None  # no square term to solve for
    a = _isotropic(np.eye(2), np.array([1.0, 2.0]), 5)
    assert a is not None
    assert (a @ a) % 5 == 0
