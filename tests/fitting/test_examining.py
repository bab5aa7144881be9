"""What a reader of a joint fit is warned of."""

from dataclasses import replace

import numpy as np
import pytest

from deepwide.fitting import Runs, fit_joint, read_runs
from fitting.builders import codes, noted, one_bowl, sweep


@pytest.mark.parametrize(("depths", "beyond"), [((3.0, 4.0, 6.0, 8.0, 9.0), True), ((3.0, 6.0, 12.0, 24.0), False)])
def test_a_best_depth_that_no_run_reaches_is_warned_of(depths: tuple[float, ...], beyond: bool) -> None:
    """The bowl of these runs is about 12 layers."""
    L, N = (g.ravel() for g in np.meshgrid(depths, (1e7, 1e8, 1e9)))
    noise = np.random.default_rng(6).normal(0, 0.0003, len(L))
    loss = np.exp(1 - 0.1 * np.log(N / 1e8) + 0.05 * np.log(L / 12) ** 2 + noise)
    warned = codes(fit_joint(Runs.of(depth=L, block_params=N, loss=loss)).warnings)
    assert ("best-beyond-depths" in warned) == beyond


def test_growth_that_no_run_shows_is_said_to_be_assumed() -> None:
    assert "growth-assumed" not in codes(fit_joint(one_bowl(None)).warnings)
    one_size = fit_joint(one_bowl(None, (1e8, 1.02e8, 1.04e8)))
    assert noted("growth-assumed", one_size.warnings) == pytest.approx({"times": 1.04})


def test_what_is_said_of_a_best_depth_is_not_said_where_there_is_none() -> None:
    runs = sweep(curvature=0.0, noise=0.01)
    fit = fit_joint(runs, bootstrap=200)
    assert fit.declined
    assert not {"bowl-skewed", "skew-assumed", "growth-assumed", "end-thin"} & set(codes(fit.warnings))


def _mistyped(seed: int, factor: float, column: str) -> list[dict[str, float]]:
    """Depth, width and loss of 24 runs, and one cell that is written so many times too large."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, float]] = []
    for N in np.geomspace(4e6, 1.28e8, 6):
        for L in (3, 6, 12, 24):
            d = 16 * round((N / 12 / L) ** 0.5 / 16)
            z = np.log(L / (12 * (12 * L * d**2 / 30e6) ** 0.3))
            loss = (1.7 + 420 / (12 * L * d**2) ** 0.34) * np.exp(0.02 * z**2 + random.normal(0, 0.003))
            rows.append({"depth": L, "width": d, "loss": round(float(loss), 4)})
    rows[int(random.integers(24))][column] *= factor
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_a_depth_that_no_other_run_comes_near_is_named(seed: int) -> None:
    """Of 20 fits with one depth written ten times too large 11 missed, and two said so."""
    rows = _mistyped(seed, 10, "depth")
    deepest = max(row["depth"] for row in rows)
    warnings = fit_joint(read_runs(rows), bootstrap=200).warnings
    if deepest > 4 * 24:
        named = [note for note in warnings if note.code in ("shape-apart", "stands-out")]
        assert dict(named[0].data)["depth"] == deepest
    assert "shape-apart" not in codes(fit_joint(read_runs(_mistyped(seed, 1, "depth")), bootstrap=200).warnings)


@pytest.mark.parametrize("seed", [17, 23, 33])
def test_a_width_that_hides_another_run_breaks_nothing(seed: int) -> None:
    """Without the suspect another run counted as one that did not train, and the fit to the rest was one run short."""
    fit = fit_joint(read_runs(_mistyped(seed, 10, "width")), bootstrap=200)
    assert fit.runs <= 24


def test_an_accuracy_that_is_read_as_a_loss_is_named() -> None:
    runs = sweep(seeds=1)
    accuracies = replace(runs, loss=1 / runs.loss)
    assert "losses-rise" in codes(fit_joint(accuracies, bootstrap=200).warnings)
    assert "losses-rise" not in codes(fit_joint(runs, bootstrap=200).warnings)


def test_perplexities_that_are_read_as_losses_are_named() -> None:
    runs = sweep(seeds=1)
    perplexities = replace(runs, loss=np.exp(3 + runs.loss))
    assert "losses-large" in codes(fit_joint(perplexities, bootstrap=200).warnings)
    assert "losses-large" not in codes(fit_joint(runs, bootstrap=200).warnings)


@pytest.mark.parametrize(("tokens", "warned"), [((5e9, 5.0), True), ((5.0, 7.0), True), ((2e7, 3e11), False)])
def test_tokens_in_several_units_are_warned_of(tokens: tuple[float, float], warned: bool) -> None:
    runs = sweep(seeds=1)
    mixed = replace(runs, tokens=np.resize(tokens, len(runs)))
    assert ("tokens-units" in codes(fit_joint(mixed, bootstrap=200).warnings)) == warned


def test_shapes_of_one_size_are_not_apart() -> None:
    L = np.arange(2.0, 30.0, 2.0)
    loss = np.exp(1 + 0.05 * np.log(L / 12) ** 2 + np.random.default_rng(2).normal(0, 0.001, len(L)))
    fit = fit_joint(Runs.of(depth=L, block_params=np.full(len(L), 1e8), loss=loss), bootstrap=200)
    assert not fit.declined
    assert "shape-apart" not in codes(fit.warnings)
