"""Laws of growth compared: the true one wins, by numbers that a maximised likelihood gives too."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from deepwide.fitting.bases import compare_bases
from deepwide.fitting.model import Design
from deepwide.laws import transition_law
from deepwide.quantities import Floats

N, L = (column.ravel() for column in np.meshgrid(np.geomspace(1e7, 1e9, 6), [4.0, 8, 16, 32, 64]))
S, X = np.log(N / 1e8), np.log(L)
DESIGN = Design(S, None, None, X)


def _losses(best: Floats) -> Floats:
    noise = np.random.default_rng(3).normal(0, 0.001, len(N))
    return np.asarray(1 - 0.1 * S + 0.005 * S**2 + 0.02 * np.log(L / best) ** 2 + noise)


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("constant ratio of width to depth", 16 * np.cbrt(N / 1e8)),
        ("the levine law's shape", transition_law().depth(N).value),
        ("one depth at all sizes", np.full_like(N, 16.0)),
        ("a power of the size", 16 * (N / 1e8) ** 0.55),
    ],
)
def test_the_true_law_of_growth_has_the_least_aic(name: str, best: Floats) -> None:
    compared = compare_bases(_losses(best), DESIGN, np.log(N))
    assert next(iter(compared)) == name
    assert compared[name] == 0
    assert len(compared) == 4


def test_aic_is_minus_twice_the_likelihood_with_its_parameters() -> None:
    y = _losses(16 * np.cbrt(N / 1e8))

    def likelihood(power: float) -> float:
        place = X - power * S
        A = np.column_stack([np.ones_like(S), S, S**2, place, place**2, place**3])
        off = y - A @ np.linalg.lstsq(A, y)[0]
        return float(-2 * norm.logpdf(off, 0, off.std()).sum())

    best = minimize_scalar(likelihood, bounds=(0, 0.7), method="bounded").fun
    aics = [value + 2 * k * len(y) / (len(y) - k - 1) for value, k in ((best, 8), (likelihood(1 / 3), 7))]
    compared = compare_bases(y, DESIGN, np.log(N))
    difference = compared["a power of the size"] - compared["constant ratio of width to depth"]
    assert difference == pytest.approx(aics[0] - aics[1], abs=0.1)


def test_too_few_cells_compare_nothing() -> None:
    assert compare_bases(X[:7], Design(S[:7], None, None, X[:7]), np.log(N[:7])) == {}
